package jobstory

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Terminal is a tmux server of its own, with one window of 120×36 in which a shell
// stands in the project.
type Terminal struct {
	t      testing.TB
	socket string
}

// Terminal opens one.
func (p *Project) Terminal() *Terminal {
	p.T.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		p.T.Fatal("tmux is not installed; make test installs what the tests need")
	}
	dir, err := os.MkdirTemp("", "dlwb-t") // short: sockets have at most 100 characters
	if err != nil {
		p.T.Fatal(err)
	}
	x := &Terminal{p.T, filepath.Join(dir, "tmux")}
	p.T.Cleanup(func() {
		_, _ = x.tmux("kill-server")
		_ = os.RemoveAll(dir)
	})
	env := slices.DeleteFunc(append(os.Environ(), p.Env...), func(kv string) bool { return strings.HasPrefix(kv, "TERM=") || strings.HasPrefix(kv, "TMUX") })
	x.must(append(append([]string{"new-session", "-d", "-s", "s", "-x", "120", "-y", "36", "-c", p.Dir, "env"}, env...), "TERM=tmux-256color", "PS1=ready> ", "sh")...)
	x.must("set-option", "-g", "escape-time", "0")
	x.See(time.Minute, "ready>")
	return x
}

func (x *Terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	return string(out), err
}

func (x *Terminal) must(args ...string) string {
	x.t.Helper()
	out, err := x.tmux(args...)
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// Press presses keys, one after the other, by tmux's names of them.
func (x *Terminal) Press(keys ...string) {
	x.t.Helper()
	x.must(append([]string{"send-keys", "-t", "s"}, keys...)...)
}

// Type types a text as it stands.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	x.Press("-l", text)
}

// See waits until the screen has all of the texts, and gives it.
func (x *Terminal) See(limit time.Duration, texts ...string) string {
	x.t.Helper()
	screen := ""
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		screen = x.must("capture-pane", "-p", "-J", "-t", "s")
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) }) {
			return screen
		}
	}
	x.t.Fatalf("after %s the screen does not say %q:\n%s", limit, texts, screen)
	return ""
}

// Refused presses keys that can do nothing here: each says why, and what does instead.
func (x *Terminal) Refused(why map[string][]string) {
	x.t.Helper()
	for key, texts := range why {
		x.Press(key)
		x.See(time.Minute, append([]string{"not now"}, texts...)...)
	}
}
