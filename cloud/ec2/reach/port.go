package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
	"github.com/dlwb/dlwb/internal/pattern"
)

// Port is a port of a target. The plugin listens for it on a port of loopback here, which
// every user of this machine reaches, and carries any number of connections.
type Port struct {
	cmd       *exec.Cmd
	in        io.Closer
	terminate func()
	local     chan string   // the port here, once
	ended     chan struct{} // closed when the plugin has ended
	close     func()

	mu   sync.Mutex
	said string // the end of what the plugin said
}

// openLimit bounds the wait until the plugin listens, and graceLimit that until it has
// ended.
const (
	openLimit  = 30 * time.Second
	graceLimit = 2 * time.Second
)

// Open begins a session to a port of the target. It outlives ctx, and ends when the port
// is closed, or this process has ended in any way.
func (t Target) Open(ctx context.Context, port int) (*Port, error) {
	// An open port is chosen by the plugin: of one that was looked for here another
	// program might get hold first.
	return t.open(ctx, portDocument, map[string][]string{"portNumber": {strconv.Itoa(port)}, "localPortNumber": {"0"}})
}

func (t Target) open(ctx context.Context, document string, parameters map[string][]string) (*Port, error) {
	plugin, err := Ready(ctx)
	if err != nil {
		return nil, err
	}
	b, err := t.begin(ctx, plugin, document, parameters)
	if err != nil {
		return nil, err
	}
	p := &Port{terminate: b.terminate, local: make(chan string, 1), ended: make(chan struct{})}
	p.close = sync.OnceFunc(p.end)
	if err := p.start(ctx, b); err != nil {
		b.terminate()
		return nil, fmt.Errorf("start %s: %w", Plugin, err)
	}
	return p, nil
}

func (p *Port) start(ctx context.Context, b begun) (err error) {
	p.cmd = apart.Guarded(context.WithoutCancel(ctx), b.argv)
	p.cmd.Env = b.env
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.cmd.Stderr = p.cmd.Stdout
		err = p.cmd.Start()
	}
	if err != nil {
		return err
	}
	go p.listen(out)
	return nil
}

var openedForm = pattern.New(`Port ([0-9]+) opened for sessionId`)

// saidMost is how much of what the plugin says is kept.
const saidMost = 1 << 10

// listen reads what the plugin says until it has ended.
func (p *Port) listen(out io.Reader) {
	piece, told := make([]byte, 4<<10), false
	for {
		n, err := out.Read(piece)
		p.mu.Lock()
		p.said += string(piece[:n])
		m := openedForm.FindStringSubmatch(p.said)
		p.said = p.said[max(0, len(p.said)-saidMost):]
		p.mu.Unlock()
		if m != nil && !told {
			told = true
			p.local <- m[1]
		}
		if err != nil {
			break
		}
	}
	close(p.ended)
	p.close()
}

// end ends the plugin, and the session with it.
func (p *Port) end() {
	_ = p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(graceLimit):
	}
	apart.Kill(p.cmd)
	_ = p.cmd.Wait()
	p.terminate()
}

// Close ends the plugin and all connections.
func (p *Port) Close() { p.close() }

// Over reports whether the plugin has ended.
func (p *Port) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Dial connects to the port.
func (p *Port) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	var local string
	select {
	case local = <-p.local:
		p.local <- local
	case <-p.ended:
		return nil, p.why()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s did not listen: %w", Plugin, context.Cause(ctx))
	}
	// It listens on the first address that localhost has.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("localhost", local))
	if err != nil {
		return nil, err
	}
	return &portConn{TCPConn: conn.(*net.TCPConn), port: p}, nil
}

// why is why the plugin has ended, as far as it says so.
func (p *Port) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(p.said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s ended: %s", Plugin, strings.ToValidUTF8(last, ""))
	}
	return fmt.Errorf("%s ended and said nothing", Plugin)
}

// closedThere is what the plugin says when nothing listens on the port of the target.
const closedThere = "Connection to destination port failed"

// portConn is a connection to the port of a target.
type portConn struct {
	*net.TCPConn
	port *Port
	got  bool
}

// Read tells why a connection that carried nothing was closed, where the plugin says it.
func (c *portConn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if c.got = c.got || n > 0; !c.got && errors.Is(err, io.EOF) {
		c.port.mu.Lock()
		defer c.port.mu.Unlock()
		if strings.Contains(c.port.said, closedThere) {
			return n, fmt.Errorf("nothing listens on that port there (%s: %s)", Plugin, closedThere)
		}
	}
	return n, err
}
