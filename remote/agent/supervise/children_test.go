//go:build linux

package supervise

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// A helper that is about to start when the last rank has ended was started behind the look
// at what is left, and outlived the run.
// (Not beside others: it waits for all children of the test.)
func TestNothingOfARunStartsWhenItHasComeToItsEnd(t *testing.T) {
	r := runs.At(t.TempDir())
	if err := os.WriteFile(r.Path("dir"), []byte(t.TempDir()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &supervisor{run: r, children: &children{ends: map[int]chan<- end{}, helpers: map[int]bool{}, none: true, started: make(chan struct{}, 1)}}
	late := wire.LaunchProc{Name: "helper", Helper: true}
	start := func() (int, <-chan end, error) { return s.fork([]string{"sleep", "1000"}, s.environ(late), os.Stderr) }
	// within waits for children, which nobody else does here, until something is told.
	within := func(what string, told <-chan bool) {
		runbox.Within(t, runbox.Patience, what, func() bool {
			s.children.bury()
			select {
			case well := <-told:
				if !well {
					t.Errorf("%s: it is not", what)
				}
				return true
			case <-time.After(time.Millisecond):
				return false
			}
		})
	}
	pid, ended, err := start()
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	seen := make(chan bool, 1)
	go func() { <-ended; seen <- true }()
	within("its end is seen", seen)
	s.children.close()
	if pid, _, err := start(); !errors.Is(err, errOver) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("it was started: %v", err)
	}
	// What the supervisor asks for itself goes on: of GPUs, of peers.
	answered := make(chan bool, 1)
	go func() {
		said, ok := s.children.help(t.Context(), "echo", "there")
		answered <- ok && strings.TrimSpace(said) == "there"
	}()
	within("it is answered", answered)
}
