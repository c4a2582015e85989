//go:build unix

package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestShellHasATerminalThatIsResized(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	in, type_ := io.Pipe()
	defer in.Close()
	sizes := make(chan [2]int, 1)
	var screen buffer
	type ending struct {
		code int
		err  error
	}
	ended := make(chan ending, 1)
	go func() {
		code, err := n.Shell(testContext(t), Pty{
			Line: "sh", Term: "vt100", Width: 91, Height: 33, Resize: sizes, Stdin: in, Stdout: &screen,
		})
		_ = in.Close() // so that nobody goes on typing in vain
		ended <- ending{code, err}
	}()
	send(t, type_, "stty size; echo term=$TERM\n")
	waitUntil(t, "the size is right", func() bool {
		needTerminals(t, s)
		return screen.has("33 91") && screen.has("term=vt100")
	})
	sizes <- [2]int{120, 40}
	waitUntil(t, "the new size is right", func() bool {
		send(t, type_, "stty size\n")
		return screen.has("40 120")
	})
	send(t, type_, "exit 7\n")
	if e := next(t, ended); e.err != nil || e.code != 7 {
		t.Errorf("exit %d, %v; want 7", e.code, e.err)
	}
}

func TestShellEndsWithItsContextAndTakesItsProcessesAlong(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	var pid firstLine
	pid.then = cancel
	_, err := n.Shell(ctx, Pty{Line: "echo $$; exec sleep 60", Stdout: &pid})
	needTerminals(t, s)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	waitUntil(t, "its process is gone", func() bool { return !alive(t, pid.text) })
}

// needTerminals skips a test where sshd can't make a terminal: without root,
// and where /dev/pts is mounted without the terminals' own group, as in some
// containers.
func needTerminals(t *testing.T, s *sshdtest.Server) {
	t.Helper()
	if strings.Contains(s.Log(), "chown(/dev/pts/") {
		t.Skip("sshd can't make terminals here, as it does not run as root")
	}
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) has(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(b.b.String(), text)
}

func send(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
}
