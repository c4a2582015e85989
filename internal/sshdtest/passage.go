//go:build unix

package sshdtest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Passage passes connections on to a server, until it is told to hold those
// that are there: so a network is back while TCP still waits to send again.
type Passage struct {
	Addr string      // 127.0.0.1:port
	Away atomic.Bool // new connections are dropped too

	mu     sync.Mutex
	held   chan struct{} // closed when the present connections are held
	opened int
}

// Passage listens until the test is over.
func (s *Server) Passage() *Passage {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	p := &Passage{Addr: l.Addr().String(), held: make(chan struct{})}
	s.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", s.Addr)
			if err == nil && p.Away.Load() {
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
				go pass(way[0], way[1], held)
			}
		}
	}()
	return p
}

func pass(from, to net.Conn, held <-chan struct{}) {
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

// Hold stops what passes now; later connections pass.
func (p *Passage) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.held)
	p.held = make(chan struct{})
}

// Opened is how many connections there ever were.
func (p *Passage) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}
