//go:build linux

package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
)

// terminal is a tmux of its own with dlwb in its one window.
type terminal struct {
	lab    *lab
	socket string
}

// terminal opens dlwb in a terminal of 120×36.
func (l *lab) terminal(args ...string) *terminal {
	l.t.Helper()
	trusttest.TrustEnv(l.env, filepath.Join(l.home, "code"))
	e := &terminal{l, filepath.Join(l.home, "tmux")}
	var env []string
	for _, kv := range l.env[len(os.Environ()):] {
		if !strings.HasPrefix(kv, "TERM=") {
			env = append(env, kv)
		}
	}
	line := append([]string{"new-session", "-d", "-s", "j", "-x", "120", "-y", "36", "-c", filepath.Join(l.home, "code"), "env"}, env...)
	e.must(append(append(line, "COLORTERM=truecolor", exe), args...)...)
	l.t.Cleanup(func() { _, _ = e.tmux("kill-server") })
	e.must("set-option", "-g", "escape-time", "0")
	e.must("set-option", "-g", "remain-on-exit", "on")
	return e
}

func (e *terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", e.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	return string(out), err
}

func (e *terminal) must(args ...string) string {
	e.lab.t.Helper()
	out, err := e.tmux(args...)
	if err != nil {
		e.lab.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// pid is dlwb's process.
func (e *terminal) pid() int {
	e.lab.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(e.must("display-message", "-p", "-t", "j", "#{pane_pid}")))
	if err != nil {
		e.lab.t.Fatal(err)
	}
	return pid
}

func (e *terminal) title() string { return e.must("display-message", "-p", "-t", "j", "#{pane_title}") }

// see waits until the screen has all of the texts.
func (e *terminal) see(limit time.Duration, texts ...string) {
	e.lab.t.Helper()
	screen := ""
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		screen = e.must("capture-pane", "-p", "-J", "-t", "j")
		all := true
		for _, text := range texts {
			all = all && strings.Contains(screen, text)
		}
		if all {
			return
		}
	}
	e.lab.t.Fatalf("after %s the screen does not say %q:\n%s", limit, texts, screen)
}

// keyLimit is how long an answer to a key may take here, where a node floods
// dlwb on a machine that is busy: else it counts as none.
const keyLimit = 10 * time.Second

// answers asks for the keys of where one is and goes back again; it gives how
// long the slower of the two answers took.
func (e *terminal) answers() time.Duration {
	e.lab.t.Helper()
	begin := time.Now()
	e.must("send-keys", "-t", "j", "?")
	e.see(keyLimit, "› help")
	there := time.Since(begin)
	begin = time.Now()
	e.must("send-keys", "-t", "j", "Escape")
	e.see(keyLimit, "› train")
	return max(there, time.Since(begin))
}

// peak is the most memory that a process ever had (VmHWM, proc(5)).
func peak(t *testing.T, pid int) int {
	t.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	var kib int
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}
