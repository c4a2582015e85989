package boot

import (
	"context"
	"io"
	"net"
	"time"
)

// openDoors lets connections to both addresses of the machine through to its
// node. Until then, and after its end, they are refused.
func (g *guest) openDoors(ctx context.Context, node, public string) error {
	g.mu.Lock()
	g.inside = node
	g.mu.Unlock()
	for _, addr := range []string{g.private, public} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		g.mu.Lock()
		g.doors = append(g.doors, l)
		g.answering = time.Now()
		g.mu.Unlock()
		g.serving.Go(func() { g.receive(l) })
	}
	return nil
}

func (g *guest) closeDoors() {
	g.mu.Lock()
	for _, l := range g.doors {
		_ = l.Close()
	}
	g.doors, g.answering = nil, time.Time{}
	g.mu.Unlock()
	g.cut()
	g.serving.Wait()
}

// receive takes connections until its listener is closed.
func (g *guest) receive(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !g.keep(l, conn) {
			return
		}
		g.serving.Go(func() {
			defer g.drop(conn)
			if middle := g.rig.planFor(g.id).intercept; middle != nil {
				middle(conn)
				return
			}
			g.pass(conn)
		})
	}
}

// keep remembers a connection, unless the machine was switched off meanwhile.
func (g *guest) keep(l net.Listener, conn net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, open := range g.doors {
		if l == nil || open == l {
			g.conns[conn] = struct{}{}
			return true
		}
	}
	_ = conn.Close()
	return false
}

func (g *guest) drop(conn net.Conn) {
	_ = conn.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
}

func (g *guest) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.Close()
	}
}

// pass connects two sides. Between TCP connections the copying is the
// kernel's.
func (g *guest) pass(conn net.Conn) {
	inner, err := g.rig.Dial(g.id)
	if err != nil || !g.keep(nil, inner) {
		return
	}
	defer g.drop(inner)
	back := make(chan struct{})
	go func() {
		defer close(back)
		relay(conn, inner)
	}()
	relay(inner, conn)
	<-back
}

// relay copies until one side ends, and tells the other.
func relay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	_ = to.Close()
	_ = from.Close()
}
