package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/sshkeys"
)

// Jump is a host that is only passed through on the way to a node.
type Jump struct {
	Name    string // what errors call it: "bastion"
	Addr    string // host:port, as the host before it reaches it
	User    string
	HostKey string // the one key that it may show, in authorized_keys form
	Keys    sshkeys.Keys
}

// hop is a connection to the last of a chain of jump hosts. All links of this
// process that pass through the same chain share it, so that the jump host sees
// one login however many nodes are behind it.
type hop struct {
	chain  []Jump
	bounds sshconn.Bounds
	ctx    context.Context // ends when nobody uses the hop any more
	cancel context.CancelFunc
	dialed chan struct{} // closed when the dial is over

	// valid after dialed
	client *sshconn.Conn
	err    error

	users int // guarded by hops
}

// hops are those in use, by their chain.
var hops = struct {
	sync.Mutex
	open map[string]*hop
}{open: map[string]*hop{}}

func (h *hop) key() string { return fmt.Sprintf("%#v", h.chain) }

// through takes a share of the hop of a chain, dialing it when there is none.
// Whoever gets one releases it.
func through(ctx context.Context, chain []Jump, b sshconn.Bounds) (*hop, error) {
	wanted := &hop{chain: chain, bounds: b, dialed: make(chan struct{}), users: 1}
	hops.Lock()
	h := hops.open[wanted.key()]
	if h == nil {
		h = wanted
		h.ctx, h.cancel = context.WithCancel(context.Background())
		hops.open[h.key()] = h
		go h.live()
	} else {
		h.users++
	}
	hops.Unlock()
	select {
	case <-h.dialed:
	case <-ctx.Done():
		h.release()
		return nil, ctx.Err()
	}
	if h.err != nil {
		h.release()
		return nil, h.err
	}
	return h, nil
}

// release gives a share back. The last one closes the connection.
func (h *hop) release() {
	hops.Lock()
	defer hops.Unlock()
	if h.users--; h.users == 0 {
		h.cancel()
		h.forgetLocked()
	}
}

// forgetLocked makes the next one who passes through dial anew.
func (h *hop) forgetLocked() {
	if hops.open[h.key()] == h {
		delete(hops.open, h.key())
	}
}

// live dials the hop and stays with it until it has ended.
func (h *hop) live() {
	if h.client, h.err = h.dial(); h.err != nil {
		h.end()
		close(h.dialed)
		return
	}
	close(h.dialed)
	stop := context.AfterFunc(h.ctx, func() { _ = h.client.Close() })
	defer stop()
	h.client.KeepAlive()
	h.end()
}

func (h *hop) end() {
	hops.Lock()
	defer hops.Unlock()
	h.forgetLocked()
}

func (h *hop) dial() (*sshconn.Conn, error) {
	last := h.chain[len(h.chain)-1]
	p := party{name: last.Name, addr: last.Addr, user: last.User, hostKeys: []string{last.HostKey}, keys: last.Keys}
	client, err := p.dial(h.ctx, h.chain[:len(h.chain)-1], h.bounds)
	if err != nil {
		return nil, fmt.Errorf("jump host: %w", err)
	}
	return client, nil
}

// reach opens a connection to an address, directly or through jump hosts.
func reach(ctx context.Context, chain []Jump, addr string, b sshconn.Bounds) (net.Conn, error) {
	if len(chain) == 0 {
		return sshconn.Reach(ctx, addr)
	}
	for try := 1; ; try++ {
		h, err := through(ctx, chain, b)
		if err != nil {
			return nil, err
		}
		conn, err := h.client.Dial(ctx, "tcp", addr)
		if err == nil {
			return h.carry(conn), nil
		}
		h.release()
		var refused *ssh.OpenChannelError
		if errors.As(err, &refused) || ctx.Err() != nil || try == 2 {
			return nil, fmt.Errorf("%s, which leads there, could not open a connection: %w", chain[len(chain)-1].Name, err)
		}
		h.end() // it was lost a moment ago
	}
}

// carry gives a connection through the hop the share of it.
func (h *hop) carry(conn net.Conn) net.Conn {
	return &hopConn{Conn: conn, done: sync.OnceFunc(func() {
		// Close of a channel may block on a dead link: nobody waits for it.
		go func() {
			_ = conn.Close()
			h.release()
		}()
	})}
}

// hopConn is a connection that leads through a hop and holds a share of it.
type hopConn struct {
	net.Conn
	done func()
}

// Close ends the connection and gives its share of the hop back.
func (c *hopConn) Close() error {
	c.done()
	return nil
}
