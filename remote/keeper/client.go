//go:build unix

package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/internal/ownfile"
	"github.com/dlwb/dlwb/remote"
)

const (
	// greetLimit is how long a keeper may take to greet: one that was just started
	// loads itself first.
	greetLimit = 5 * time.Second
	// startLimit is how long another process may be starting one.
	startLimit = 3 * time.Second
)

// Client asks the keeper of a state directory.
type Client struct {
	state string
	exe   string
	build string

	mu  sync.Mutex // of starting one
	off bool       // one could not be started: it is not tried again
}

// New makes a client. exe is the program that becomes the keeper.
func New(state, exe string) (*Client, error) {
	b, err := build(exe)
	return &Client{state: state, exe: exe, build: b}, err
}

// Lender is the keeper as who lends connections.
func (c *Client) Lender() *remote.Lender {
	return &remote.Lender{Lend: c.lend, Drop: c.drop, Hold: c.hold, End: c.end}
}

// talk is a connection to a keeper that has greeted.
type talk struct {
	net.Conn
	in       *bufio.Reader
	greeting greeting
}

func (t *talk) Read(p []byte) (int, error) { return t.in.Read(p) }

// lendLimit is how long a keeper may take, which may have to connect first.
const lendLimit = time.Minute

// lend asks for a node's agent. What goes wrong with the keeper itself is no matter:
// then the command dials.
func (c *Client) lend(ctx context.Context, t remote.Target) (*remote.Loan, error) {
	q := question{Build: c.build, Op: opLend, Targets: []remote.Target{resolved(t)}}
	talk, err := c.reach(ctx, q)
	if err != nil {
		slog.Debug("no keeper", "error", err)
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = talk.Close() })
	_ = talk.SetReadDeadline(time.Now().Add(lendLimit))
	var a answer
	err = receive(talk.in, &a)
	_ = talk.SetReadDeadline(time.Time{})
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err == nil && a.Failure == nil {
		return &remote.Loan{Conn: talk, HostKey: a.HostKey}, nil
	}
	_ = talk.Close()
	if err != nil {
		slog.Debug("the keeper gave no answer", "error", err)
		return nil, nil
	}
	return nil, a.Failure.error()
}

// resolved is a target with the agent of this process's user, which the keeper's
// environment may not have.
func resolved(t remote.Target) remote.Target {
	const variable = "SSH_AUTH_SOCK"
	if t.Keys.Agent == variable {
		t.Keys.Agent = os.Getenv(variable)
	}
	t.Jumps = slices.Clone(t.Jumps)
	for i := range t.Jumps {
		if t.Jumps[i].Keys.Agent == variable {
			t.Jumps[i].Keys.Agent = os.Getenv(variable)
		}
	}
	return t
}

// drop has the keeper end connections, if there is one.
func (c *Client) drop(targets []remote.Target) {
	_ = c.each(question{Op: opDrop, Targets: targets}, func(*talk, answer) {})
}

// Status asks each keeper of the state directory what it holds: an older dlwb's may
// be there too.
func (c *Client) Status() ([]Status, error) {
	all := []Status{}
	err := c.each(question{Op: opStatus}, func(t *talk, a answer) {
		if a.Status != nil {
			a.Status.Current = t.greeting.Build == c.build
			all = append(all, *a.Status)
		}
	})
	return all, err
}

// Stop ends each keeper of the state directory and says how many there were.
func (c *Client) Stop() (ended int, err error) {
	err = c.each(question{Op: opStop}, func(t *talk, _ answer) {
		_, _ = io.Copy(io.Discard, t) // until it is gone
		ended++
	})
	return ended, err
}

// each asks every keeper that there is. One that does not answer is none.
func (c *Client) each(q question, take func(*talk, answer)) error {
	dir, prefix := place(c.state)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look for the keeper: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), ".sock") {
			continue
		}
		t, err := ask(context.Background(), filepath.Join(dir, e.Name()), q)
		if err != nil {
			continue
		}
		_ = t.SetReadDeadline(time.Now().Add(2 * greetLimit))
		var a answer
		if receive(t.in, &a) == nil {
			take(t, a)
		}
		_ = t.Close()
	}
	return nil
}

// reach asks the keeper of this build, starting it where there is none.
func (c *Client) reach(ctx context.Context, q question) (*talk, error) {
	path := socketPath(c.state, c.build)
	for try := 1; ; try++ {
		t, err := ask(ctx, path, q)
		if err == nil || ctx.Err() != nil || try == 3 {
			return t, err
		}
		if err := c.start(ctx, path); err != nil {
			return nil, err
		}
	}
}

// ask connects, asks, and waits for the greeting.
func ask(ctx context.Context, path string, q question) (*talk, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	t := &talk{Conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	_ = conn.SetDeadline(time.Now().Add(greetLimit))
	err = sameUser(conn)
	if err == nil {
		err = send(conn, q)
	}
	if err == nil {
		err = receive(t.in, &t.greeting)
	}
	if err == nil && q.Build != "" && t.greeting.Build != q.Build {
		err = fmt.Errorf("the keeper at %s is of another build", path)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return t, nil
}

// start starts a keeper, unless another process has done so. It hands the socket
// over: who connects before the keeper is ready waits in its queue.
func (c *Client) start(ctx context.Context, path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off {
		return errors.New("it could not be started before")
	}
	err := c.startLocked(ctx, path)
	c.off = err != nil && ctx.Err() == nil
	return err
}

func (c *Client) startLocked(ctx context.Context, path string) error {
	dir := filepath.Dir(path)
	if err := ownfile.MakeDir(dir); err != nil {
		return err
	}
	if err := ownfile.Check(dir); err != nil {
		return err
	}
	unlock, err := lock(ctx, path+".lock", startLimit)
	if err != nil {
		return err
	}
	defer unlock()
	if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path); err == nil {
		return conn.Close() // somebody else was faster
	}
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	listener := l.(*net.UnixListener)
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	f, err := listener.File()
	if err != nil {
		return err
	}
	defer f.Close()
	return c.spawn(f)
}

// spawn starts the program as the keeper. It is in a session of its own: the keys
// that are pressed here are not for it, and it has none of this process's streams.
func (c *Client) spawn(socket *os.File) error {
	cmd := exec.Command(c.exe, Command, c.state, c.build)
	cmd.Dir, cmd.ExtraFiles = "/", []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the keeper: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// lock takes the lock of starting and ending a keeper. Whoever has it may remove its
// file.
func lock(ctx context.Context, path string, limit time.Duration) (unlock func(), err error) {
	for began := time.Now(); ; {
		f, err := tryLock(path)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if time.Since(began) >= limit || ctx.Err() != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// errRemoved says that a lock's file was removed by the one who had it.
var errRemoved = errors.New("its file was removed")

func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = errRemoved
		mine, mineErr := f.Stat()
		if there, thereErr := os.Stat(path); mineErr == nil && thereErr == nil && os.SameFile(mine, there) {
			return f, nil
		}
	}
	_ = f.Close()
	return nil, err
}

// send writes a message: a line of JSON.
func send(to io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = to.Write(append(text, '\n'))
	}
	return err
}

// receive reads one.
func receive(from *bufio.Reader, v any) error {
	var text []byte
	for {
		part, err := from.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > messageMost {
			return errors.New("a message is too long")
		}
		if err == nil {
			return json.Unmarshal(text, v)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
