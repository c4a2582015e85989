package remote

import (
	"context"
	"net"
	"os/exec"
)

// Visit is how a machine is used on which nothing of dlwb's can be run: its ports, and a
// shell on the user's terminal.
type Visit struct {
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Shell begins a session and gives the program that carries it, not started yet;
	// end ends the session.
	Shell func(ctx context.Context) (program *exec.Cmd, end func(), err error)
	// Note is what a person should know of tunnels to its ports; empty: nothing.
	Note string
	// Why is the error of whoever asks for more.
	Why error
	// Close ends what leads there.
	Close func() error
}

// OpenVisit returns the node of a machine that is only visited. It does no I/O.
func OpenVisit(name string, v Visit) *Node {
	n := newNode(Target{Name: name})
	n.visit = &v
	return n
}

// Visit is how a node is used that has no agent of dlwb's; nil: it has one.
func (n *Node) Visit() *Visit { return n.visit }

// noAgent is the error of a call of a node that is only visited.
func (n *Node) noAgent() error {
	select {
	case <-n.ctx.Done():
		return n.wrap("connect", ErrClosed)
	default:
		return n.visit.Why
	}
}

// farConn is a connection whose directions end one by one.
type farConn interface {
	net.Conn
	CloseWrite() error
}

// dialVisited connects to a port of a machine that is only visited. It is closed with the
// node.
func (n *Node) dialVisited(ctx context.Context, network, addr string) (farConn, error) {
	if n.ctx.Err() != nil {
		return nil, n.wrap("connect", ErrClosed)
	}
	conn, err := n.visit.Dial(ctx, network, addr)
	if err != nil {
		return nil, n.wrap("connect to "+addr, err)
	}
	if both, can := conn.(farConn); can {
		return both, nil
	}
	return wholeConn{conn}, nil
}

// wholeConn is a connection whose directions end together.
type wholeConn struct{ net.Conn }

// CloseWrite ends both.
func (c wholeConn) CloseWrite() error { return c.Close() }
