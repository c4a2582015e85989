//go:build linux

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// leaveLimit is how long calls have to end after the connection did.
const leaveLimit = 6 * time.Second

// serve WORD WORD: answers calls on its standard input and output, for as long
// as that lasts. The words are those of its hello.
func serve(args []string) int {
	if len(args) != 2 {
		return exitUsage
	}
	if !whole(true) {
		fmt.Fprintln(os.Stderr, "the file of dlwb's agent was altered")
		return exitFailed
	}
	// Whoever hangs up means the connection, which ends by itself. Signals that are
	// ignored would be ignored by all that is started, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT)
	allowOwner()
	if err := os.Chdir(home()); err != nil {
		_ = os.Chdir("/")
	}
	// Nothing that is started here may hold on to the connection.
	in, out := aside(os.Stdin), aside(os.Stdout)
	if in == nil || out == nil {
		fmt.Fprintln(os.Stderr, "dlwb's agent has no input and output")
		return exitFailed
	}
	if _, err := io.WriteString(out, wire.Hello(args[0], args[1])); err != nil {
		return exitFailed
	}
	if err := Serve(context.Background(), twoEnds{in, out}); err != nil {
		return exitFailed
	}
	return 0
}

// allowOwner takes from the umask what would keep a user from the user's own
// files: nothing works with that.
func allowOwner() {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask &^ 0o700)
}

// aside takes a standard stream away to another descriptor that no child gets.
// It does not block: what waits on it would hold a thread of its own.
func aside(f *os.File) *os.File {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	_ = syscall.SetNonblock(fd, true)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		_ = syscall.Dup3(int(null.Fd()), int(f.Fd()), 0)
		_ = null.Close()
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// twoEnds is one connection of two streams.
type twoEnds struct{ in, out *os.File }

func (t twoEnds) Read(p []byte) (int, error)  { return t.in.Read(p) }
func (t twoEnds) Write(p []byte) (int, error) { return t.out.Write(p) }
func (t twoEnds) Close() error                { return errors.Join(t.in.Close(), t.out.Close()) }

// Serve answers calls on a connection until that ends or ctx does. Then every
// call ends.
func Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	session, err := wire.Answer(conn)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var calls sync.WaitGroup
	for {
		s, err := session.Accept()
		if err != nil {
			break
		}
		calls.Go(func() { handle(ctx, s) })
	}
	cancel()
	return leave(&calls)
}

// leave waits for the calls to end, for a while.
func leave(calls *sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		calls.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(leaveLimit):
		return errors.New("a call did not end")
	}
}

// handle does one call.
func handle(ctx context.Context, s *wire.Stream) {
	defer s.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var name string
	if err := s.Recv(&name); err != nil {
		s.Reset()
		return
	}
	do, known := services[name]
	if !known {
		_ = s.End(wire.Faultf(wire.Unknown, "this agent has no service %.40q", name))
		return
	}
	if s.End(do(ctx, s)) != nil {
		s.Reset()
	}
}
