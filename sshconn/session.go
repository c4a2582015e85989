package sshconn

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/waits"
)

// Session is one session of a connection: what is asked of the server is
// bounded and ends with a context. The streams are the caller's: a write blocks
// for as long as the other end does not read, until Close or the end of the
// connection.
type Session struct {
	raw  *ssh.Session
	conn *Conn
}

// refusedTries is how often a session is asked for that was refused.
const refusedTries = 10

// NextSession is Conn.Session for whoever has just ended another one: a server
// that allows few may not know yet that it is over.
func (c *Conn) NextSession(ctx context.Context) (*Session, error) {
	for try := 1; ; try++ {
		s, err := c.Session(ctx)
		var refused *ssh.OpenChannelError
		if err == nil || !errors.As(err, &refused) || try == refusedTries {
			return s, err
		}
		pause := min(500*time.Millisecond, 20*time.Millisecond<<min(try, 5))
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Streams sets where input comes from and where output goes; each may be nil.
func (s *Session) Streams(in io.Reader, out, errs io.Writer) {
	s.raw.Stdin, s.raw.Stdout, s.raw.Stderr = in, out, errs
}

// Stderr sets where the error output goes.
func (s *Session) Stderr(w io.Writer) { s.raw.Stderr = w }

// StdinPipe is the input, to be written before or after Start.
func (s *Session) StdinPipe() (io.WriteCloser, error) { return s.raw.StdinPipe() }

// StdoutPipe is the output, to be read after Start.
func (s *Session) StdoutPipe() (io.Reader, error) { return s.raw.StdoutPipe() }

func (s *Session) request(ctx context.Context, what string, call func() error) error {
	return s.conn.tell(ctx, waits.Wait{What: what, Limit: s.conn.bounds.Reply}, call)
}

// Start has a command started and waits until the server says that it was.
func (s *Session) Start(ctx context.Context, line string) error {
	return s.request(ctx, "to start a command", func() error { return s.raw.Start(line) })
}

// Shell is Start for the user's login shell.
func (s *Session) Shell(ctx context.Context) error {
	return s.request(ctx, "to start a shell", s.raw.Shell)
}

// Pty asks for a terminal, before Start or Shell.
func (s *Session) Pty(ctx context.Context, term string, height, width int) error {
	return s.request(ctx, "to give a terminal", func() error { return s.raw.RequestPty(term, height, width, ssh.TerminalModes{}) })
}

// Subsystem starts a subsystem, such as sftp, instead of a command.
func (s *Session) Subsystem(ctx context.Context, name string) error {
	return s.request(ctx, "to start "+name, func() error { return s.raw.RequestSubsystem(name) })
}

// endGrace is how long a session has to tell its end after the connection's:
// what has arrived before that is still to be read.
const endGrace = 100 * time.Millisecond

// Wait waits for the end of the command: that may take as long as it likes. It
// returns with ctx, and with the connection, at the latest.
func (s *Session) Wait(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- s.raw.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.conn.over:
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(endGrace):
		return &ssh.ExitMissingError{}
	}
}

// HangUp ends the session and waits for nothing. Its command gets SIGHUP first,
// where the server passes signals on: one that reads and writes nothing would
// never learn of the session's end.
func (s *Session) HangUp() {
	go func() {
		_ = s.raw.Signal(ssh.SIGHUP)
		s.Close()
	}()
}

// Resize tells the size of the terminal.
func (s *Session) Resize(ctx context.Context, height, width int) error {
	return s.request(ctx, "to take the size of the terminal", func() error { return s.raw.WindowChange(height, width) })
}

// closeWait is how long Close waits for its word to be sent: what is asked for
// next then comes behind it.
const closeWait = 100 * time.Millisecond

// Close ends the session. On a dead link it goes on by itself.
func (s *Session) Close() {
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_ = s.raw.Close()
	}()
	select {
	case <-sent:
	case <-time.After(closeWait):
	}
}
