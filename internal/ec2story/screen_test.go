package ec2story

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/trusttest"
)

// terminal is a tmux server of its own, with one window of 120×36 in which a
// shell stands in the project.
type terminal struct {
	b      *bench
	socket string
	shown  strings.Builder // every screen that was looked at
}

func (b *bench) terminal(env ...string) *terminal {
	b.t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		b.t.Fatal("tmux is not installed; make test installs what the tests need")
	}
	dir, err := os.MkdirTemp("", "dlwb-s") // short: sockets have at most 100 characters
	if err != nil {
		b.t.Fatal(err)
	}
	x := &terminal{b: b, socket: filepath.Join(dir, "tmux")}
	b.t.Cleanup(func() {
		_, _ = x.tmux("kill-server")
		_ = os.RemoveAll(dir)
	})
	all := slices.DeleteFunc(append(b.command().Env, env...), func(kv string) bool { return strings.HasPrefix(kv, "TERM=") || strings.HasPrefix(kv, "TMUX") })
	args := append([]string{"new-session", "-d", "-s", "s", "-x", "120", "-y", "36", "-c", b.dir, "env"}, all...)
	x.must(append(args, "TERM=tmux-256color", "PS1=ready> ", "sh")...)
	x.must("set-option", "-g", "escape-time", "0")
	x.see(soon, "ready>")
	return x
}

func (x *terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	return string(out), err
}

func (x *terminal) must(args ...string) string {
	x.b.t.Helper()
	out, err := x.tmux(args...)
	if err != nil {
		x.b.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// press presses keys, one after the other.
func (x *terminal) press(keys ...string) {
	x.b.t.Helper()
	x.must(append([]string{"send-keys", "-t", "s"}, keys...)...)
}

// see waits until the screen has all of the texts.
func (x *terminal) see(limit time.Duration, texts ...string) string {
	x.b.t.Helper()
	screen := ""
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		screen = x.must("capture-pane", "-p", "-J", "-t", "s")
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(screen, text) }) {
			x.shown.WriteString(screen)
			return screen
		}
	}
	x.b.t.Fatalf("after %s the screen does not say %q:\n%s", limit, texts, screen)
	return ""
}

// soon is when a screen certainly does not come any more, late when machines don't.
const soon, late = time.Minute, 3 * time.Minute

// agree chooses the second button of a question whose first was seen to take keys.
func (x *terminal) agree(button string) {
	x.b.t.Helper()
	x.press("Tab")
	x.see(soon, "› "+button)
	x.press("Enter")
}

// countdown is how long the machines live yet, as every screen shows it.
// A node whose lease is heard of later than the others' ends alone, for a moment.
var countdown = regexp.MustCompile(`ends in (\d+h(\d+m)?|\d+m|\d+m\d+s) \([a-z ]+(, node\d)?\)`)

// Everything by keys: a profile is put together out of what AWS offers, run,
// watched, and taken down to the receipt.
func TestTheWholeStoryByKeys(t *testing.T) {
	sample.Leave(t)
	long(t)
	needTorch(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.write("train.py", strings.NewReplacer("for step in range(1, 21):", "import time\nfor step in range(1, 401):\n    time.sleep(0.2 if step < 50 else 2)", "/20 ", "/400 ").Replace(ddp))
	words := canaries{"the secret key of AWS": "canary/secret/key/31ff02", "the session token of AWS": "canary-session-token-7c20"}
	x := b.terminal("AWS_SECRET_ACCESS_KEY="+words["the secret key of AWS"], "AWS_SESSION_TOKEN="+words["the session token of AWS"])
	x.press(exe+" --theme dark; echo code $?", "Enter")
	x.see(soon, "Nothing here yet", "N   ")

	x.press("N")
	x.see(soon, "Where do the machines come from?", "ec2")
	x.press("Down")
	x.see(soon, "› ec2")
	x.press("Enter")
	x.see(soon, "Where do they stand?")
	x.press("Down", "Enter")
	x.see(soon, "Which machine?", "machines  live", "g5.xlarge")
	x.press("/")
	x.press("-l", "g5.xlarge")
	x.press("Enter")
	x.see(soon, "1 of ", "› ", "g5.xlarge")
	x.press("Enter")
	x.see(soon, "How many, and how?", "1 × g5.xlarge")
	x.press("Enter", "C-u", "4", "Enter")
	x.see(soon, "4 × g5.xlarge", "$4.0")
	x.press("7")
	x.see(soon, "When do the machines end by themselves?")
	x.press("Tab")
	x.see(soon, "This is what it comes to.", "4 nodes of ec2", "at most", "✓ credentials", "instance: g5.xlarge")
	x.press("W")
	x.see(soon, "Write the profile?", "› Cancel")
	x.agree("Write")
	x.see(soon, "› plan", "✓ quota", "R run")

	b.amend() // where the sshd of these machines is
	x.press("Escape")
	x.see(soon, "› home")
	x.press("R")
	x.see(soon, "› plan", "4 nodes of ec2", "/h", "R run")
	x.press("R")
	screen := x.see(late, "● training", "world size 4 on 4 nodes", "━ loss", "/400", "$4.1", "/h", "so far", "4 × g5.xlarge", "ends in ")
	if !countdown.MatchString(screen) {
		t.Errorf("no countdown of the lease:\n%s", screen)
	}
	t.Logf("the screen says %q", countdown.FindString(screen))
	x.press("X")
	screen = x.see(soon, "Tear down ", "› Cancel", "the run that is going on: ", "4 nodes of ec2", "to keep", "$4.1", " to agree")
	x.press("-l", regexp.MustCompile(`type (\S+) to agree`).FindStringSubmatch(screen)[1])
	x.see(soon, "› Tear down")
	x.press("Enter")
	screen = x.see(late, "› receipt", "Everything is gone", "0 processes, 0 files", "seen terminated", "security-group", "cost ")
	if !regexp.MustCompile(`(?s)node0 i-.*node1 i-.*node2 i-.*node3 i-`).MatchString(screen) {
		t.Errorf("the machines are not in the order of their nodes:\n%s", screen)
	}
	for kind, want := range map[string]int{"instance": 4, "security-group": 1, "key-pair": 1, "placement-group": 1} {
		if n := len(regexp.MustCompile(`(?m)^ +`+kind+` .*✓ gone +[\d.]+(m\d\d)?s `).FindAllString(screen, -1)); n != want {
			t.Errorf("%d × %s gone by the receipt, with what they lived, want %d:\n%s", n, kind, want, screen)
		}
	}
	x.press("Escape")
	x.see(soon, "› train", "■ stopped")
	x.press("Escape")
	x.see(soon, "› home", "■ stopped")
	x.press("q")
	x.see(soon, "code 130") // the run was stopped
	words.find(t, "a screen", []byte(x.shown.String()))
	b.nothingLeft("after the story by keys")
	if n, calls := b.aws.Launched(), b.calls("RunInstances"); n != 4 || calls != 1 {
		t.Errorf("%d instances by %d calls", n, calls)
	}
}

// amend writes into the profile what no question asks for.
func (b *bench) amend() {
	b.t.Helper()
	path := filepath.Join(b.dir, "dlwb.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	amended := regexp.MustCompile(`(?m)^( *)instance: g5.xlarge$`).ReplaceAllString(string(text), fmt.Sprintf("${0}\n${1}ssh_port: %d", b.rig.SSHPort()))
	if amended == string(text) {
		b.t.Fatalf("no place for the port in\n%s", text)
	}
	b.write("dlwb.yaml", amended)
	trusttest.Trust(b.state(), b.dir)
}
