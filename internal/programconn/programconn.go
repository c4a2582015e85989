// Package programconn makes a connection of a program that carries bytes: what is
// written goes to its standard input, what it prints is read. So ssh uses a
// ProxyCommand, and AWS's plugin carries a session of Systems Manager.
package programconn

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
)

// endLimit is how long a program has to end when its connection is closed.
const endLimit = time.Second

// Conn is a connection over a program. It has no deadlines: whoever waits for it
// closes it instead.
type Conn struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	said  tail
	mute  chan struct{} // closed when it complains no more
	close func() error
}

// Start starts a program and gives the connection over it. The program has no
// terminal, so that Ctrl-C, which is meant for dlwb, does not reach it; what it would
// ask there it can't. name is what errors call it. ended is called once, after the
// program has ended because the connection was closed; nil: nothing is.
func Start(cmd *exec.Cmd, name string, ended func()) (*Conn, error) {
	c := &Conn{name: name, cmd: cmd, mute: make(chan struct{})}
	apart.Set(cmd)
	complaints, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.mute)
		_, _ = io.Copy(&c.said, complaints)
	}()
	c.close = sync.OnceValue(func() error {
		c.end()
		if ended != nil {
			ended()
		}
		return nil
	})
	return c, nil
}

// end asks the program to end, and kills it and what it has started when it does not.
func (c *Conn) end() {
	_ = c.in.Close()
	apart.HangUp(c.cmd)
	kill := time.AfterFunc(endLimit, func() { apart.Kill(c.cmd) })
	_ = c.cmd.Wait()
	kill.Stop()
	<-c.mute // Wait has closed the pipe
}

// Read reads what the program prints. That it has ended is told with what it
// complained of last.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if errors.Is(err, io.EOF) {
		err = c.why(err)
	}
	return n, err
}

// Write sends to the program. That it has ended is told as by Read.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.in.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = c.why(err)
	}
	return n, err
}

// why is why the program has ended, as far as it says so; else the error that tells it.
func (c *Conn) why(err error) error {
	select { // what it complained of may be on its way
	case <-c.mute:
	case <-time.After(endLimit):
	}
	if said := c.said.last(); said != "" {
		return &EndedError{c.name, said}
	}
	return err
}

// Close ends the program.
func (c *Conn) Close() error { return c.close() }

// EndedError says that a program has ended by itself, and what it said last.
type EndedError struct{ Name, Said string }

func (e *EndedError) Error() string { return fmt.Sprintf("%s: %s", e.Name, e.Said) }

// Unwrap: nothing more comes.
func (e *EndedError) Unwrap() error { return io.EOF }

// addr is an address for those who ask a connection for one.
type addr string

// Network is "program".
func (addr) Network() string { return "program" }

func (a addr) String() string { return string(a) }

// LocalAddr is this end.
func (c *Conn) LocalAddr() net.Addr { return addr("here") }

// RemoteAddr is the program.
func (c *Conn) RemoteAddr() net.Addr { return addr(c.name) }

// SetDeadline is not possible.
func (c *Conn) SetDeadline(time.Time) error { return errors.ErrUnsupported }

// SetReadDeadline is not possible either.
func (c *Conn) SetReadDeadline(time.Time) error { return errors.ErrUnsupported }

// SetWriteDeadline is not possible either.
func (c *Conn) SetWriteDeadline(time.Time) error { return errors.ErrUnsupported }

// tail keeps the end of what a program complains of.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailMost = 400

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailMost):]
	return len(p), nil
}

// last is the end of it, in one line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.text), "")), " ")
}
