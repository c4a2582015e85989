//go:build unix

package remote

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestASilentConnectionIsReplacedWhenANewOneIsAnswered(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	p := s.Passage()
	n := Open(Target{Name: "node0", Addr: p.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile})
	defer func() { _ = n.Close() }()
	// It is doubted after 4 s. A busy machine then takes seconds to log in again,
	// for which there are 16 until the link is dead.
	n.bounds.Every, n.bounds.Answer = 200*time.Millisecond, 20*time.Second
	states := make(chan string, 10)
	n.OnState(func(_ bool, why string) { states <- why })
	log := filepath.Join(s.Home, "log")
	check(t, os.WriteFile(log, []byte("one\n"), 0o600))
	came := make(chan string, 10)
	followed := make(chan error, 1)
	go func() {
		followed <- n.Follow(testContext(t), log, 0, func(_ int64, p []byte) error {
			came <- string(p)
			if string(p) == "two\n" {
				return io.EOF
			}
			return nil
		})
	}()
	if got := next(t, came); got != "one\n" {
		t.Fatalf("first came %q", got)
	}
	p.Hold()
	f, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString("two\n")
	check(t, errors.Join(err, f.Close()))
	if got := next(t, came); got != "two\n" {
		t.Errorf("then came %q", got)
	}
	if err := next(t, followed); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if first := next(t, states); first != "" || len(states) > 0 {
		t.Errorf("the node was told unreachable: %q", next(t, states))
	}
}

func TestAConnectionThatIsHeardStays(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	p := s.Passage()
	n := Open(Target{Name: "node0", Addr: p.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile})
	defer func() { _ = n.Close() }()
	n.bounds.Every, n.bounds.Answer = 200*time.Millisecond, 20*time.Second
	mustExec(t, n, "sleep 6") // longer than a silent one would be believed
	mustExec(t, n, "true")
	if p.Opened() != 1 {
		t.Errorf("%d connections were made, want 1", p.Opened())
	}
}
