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
	pid, ended, err := start()
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	runbox.Within(t, runbox.Patience, "its end is seen", func() bool {
		s.children.bury()
		select {
		case <-ended:
			return true
		case <-time.After(time.Millisecond):
			return false
		}
	})
	s.children.close()
	if pid, _, err := start(); !errors.Is(err, errOver) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("it was started: %v", err)
	}
	// What the supervisor asks for itself goes on: of GPUs, of peers.
	go func() {
		for range s.children.started {
			for !s.children.bury() {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	if said, ok := s.children.help(t.Context(), "echo", "there"); !ok || strings.TrimSpace(said) != "there" {
		t.Errorf("%q, %v", said, ok)
	}
}
