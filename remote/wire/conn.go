package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lingerLimit and lingerMost are how long, and for how many bytes, a
	// connection that was closed here waits for the other side to end too. What
	// was sent before would be lost with a reset.
	lingerLimit = 10 * time.Second
	lingerMost  = 1 << 20
)

// Conn is the rest of a call as a connection: bytes both ways, each with an end
// of its own.
type Conn struct {
	s      *Stream
	closed chan struct{} // Close was called
	over   chan struct{} // the stream has ended
	once   sync.Once
	abrupt atomic.Bool // Close resets

	reading sync.Mutex
}

// Conn makes a connection of what follows the messages.
func (s *Stream) Conn() *Conn {
	return &Conn{s: s, closed: make(chan struct{}), over: make(chan struct{})}
}

// Read reads what comes. It ends with io.EOF at the other side's CloseWrite.
func (c *Conn) Read(p []byte) (int, error) {
	if c.isClosed() {
		return 0, net.ErrClosed
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.s.in.Read(p)
	return n, c.told(err)
}

// Write blocks while the other side does not read.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.s.raw.Write(p)
	return n, c.told(err)
}

// told is an error as those of net are.
func (c *Conn) told(err error) error {
	var late interface{ Timeout() bool }
	switch {
	case err == nil, err == io.EOF:
		return err
	case c.isClosed():
		return net.ErrClosed
	case errors.As(err, &late) && late.Timeout():
		return os.ErrDeadlineExceeded
	}
	return noEnd(err)
}

func (c *Conn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// CloseWrite says that no more bytes come from here.
func (c *Conn) CloseWrite() error { return c.s.CloseWrite() }

// SetLinger with 0 makes Close give up what was sent, as with TCP: the other
// side sees that the connection was cut off.
func (c *Conn) SetLinger(seconds int) error {
	c.abrupt.Store(seconds == 0)
	return nil
}

// Close ends both directions. It waits for nothing; what was sent still gets
// there.
func (c *Conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		_ = c.s.raw.SetDeadline(time.Unix(1, 0)) // ends what reads and writes now
		go c.linger()
	})
	return nil
}

// Over is closed when nothing more is to be done for a connection that was
// closed.
func (c *Conn) Over() <-chan struct{} { return c.over }

// linger ends the stream, after the other side where that ends soon.
func (c *Conn) linger() {
	defer close(c.over)
	c.reading.Lock() // who reads has been told to go
	defer c.reading.Unlock()
	if !c.abrupt.Load() {
		late := time.AfterFunc(lingerLimit, c.s.Reset)
		defer late.Stop()
		_ = c.s.raw.SetReadDeadline(time.Time{})
		if c.s.CloseWrite() == nil {
			if _, err := io.CopyN(io.Discard, c.s.raw, lingerMost); errors.Is(err, io.EOF) {
				c.s.Close()
				return
			}
		}
	}
	c.s.Reset()
}

// LocalAddr and RemoteAddr say nothing.
func (c *Conn) LocalAddr() net.Addr  { return plainAddr{} }
func (c *Conn) RemoteAddr() net.Addr { return plainAddr{} }

// SetDeadline bounds Read and Write, as with net.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline bounds Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.s.raw.SetReadDeadline(t) }

// SetWriteDeadline bounds Write.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.s.raw.SetWriteDeadline(t) }
