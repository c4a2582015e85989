//go:build unix

package remote

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// passage passes connections on to a server, until it is told to hold those
// that are there: so a network is back while TCP still waits to send again.
type passage struct {
	net.Listener
	mu     sync.Mutex
	held   chan struct{} // closed when the present connections are held
	opened int
	away   atomic.Bool // new connections are dropped too
}

func newPassage(t *testing.T, to string) *passage {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	p := &passage{Listener: l, held: make(chan struct{})}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err == nil && p.away.Load() {
				_, err = b.Close(), io.EOF
			}
			if err != nil {
				_ = a.Close()
				continue
			}
			p.mu.Lock()
			p.opened++
			held := p.held
			p.mu.Unlock()
			for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
				go p.pass(way[0], way[1], held)
			}
		}
	}()
	return p
}

func (p *passage) pass(from, to net.Conn, held <-chan struct{}) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-held:
			_, _ = io.Copy(io.Discard, from)
			return
		default:
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// hold stops what passes now; later connections pass.
func (p *passage) hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held)
	p.held = make(chan struct{})
}

func TestASilentConnectionIsReplacedWhenANewOneIsAnswered(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	p := newPassage(t, s.Addr)
	n := Open(Target{Name: "node0", Addr: p.Addr().String(), User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile})
	defer func() { _ = n.Close() }()
	// It is doubted after 4 s. A busy machine then takes seconds to log in again,
	// for which there are 11 until next gives up, and 16 until the link is dead.
	n.bounds.Every, n.bounds.Answer = 200*time.Millisecond, 20*time.Second
	states := make(chan string, 10)
	n.OnState(func(_ bool, why string) { states <- why })
	log := filepath.Join(s.Home, "log")
	check(t, os.WriteFile(log, []byte("one\n"), 0o600))
	came := make(chan string, 10)
	followed := make(chan error, 1)
	go func() {
		followed <- n.Follow(testContext(t), log, 0, func(_ int64, p []byte) error {
			came <- string(p)
			if string(p) == "two\n" {
				return io.EOF
			}
			return nil
		})
	}()
	if got := next(t, came); got != "one\n" {
		t.Fatalf("first came %q", got)
	}
	p.hold()
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString("two\n")
	check(t, errors.Join(err, f.Close()))
	if got := next(t, came); got != "two\n" {
		t.Errorf("then came %q", got)
	}
	if err := next(t, followed); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if first := next(t, states); first != "" || len(states) > 0 {
		t.Errorf("the node was told unreachable: %q", next(t, states))
	}
}

func TestAConnectionThatIsHeardStays(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	p := newPassage(t, s.Addr)
	n := Open(Target{Name: "node0", Addr: p.Addr().String(), User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile})
	defer func() { _ = n.Close() }()
	n.bounds.Every, n.bounds.Answer = 200*time.Millisecond, 10*time.Second
	mustExec(t, n, "sleep 4") // longer than a silent one would be believed
	mustExec(t, n, "true")
	if p.opened != 1 {
		t.Errorf("%d connections were made, want 1", p.opened)
	}
}
