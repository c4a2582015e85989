package tuitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
)

// A real program in a real terminal: tmux keeps the screen, the test presses
// keys and waits for what the screen says.

const journeyProfile = `name: journey
provider: local
machines: {count: 2}
run: {engine: plain, command: train.py}
results: {paths: [outputs/]}
`

const journeyScript = `import os, time
for step in range(1, 401):
    print(f"epoch {1 + step // 101}/4  step {step}/400  loss {4 / (1 + step / 40):.4f}", flush=True)
    if step % 10 == 0:
        print(f"step {step}/400  val_loss {4.2 / (1 + step / 40):.4f}", flush=True)
    time.sleep(0.1 if step < 100 else 2) # whoever looks may take his time
`

// terminal is a tmux server of its own with one window.
type terminal struct {
	t      *testing.T
	socket string
}

func (e *terminal) tmux(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", e.socket, "-f", "/dev/null"}, args...)...).CombinedOutput()
	return string(out), err
}

func (e *terminal) must(args ...string) string {
	e.t.Helper()
	out, err := e.tmux(args...)
	if err != nil {
		e.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (e *terminal) press(keys ...string) {
	e.t.Helper()
	e.must(append([]string{"send-keys", "-t", "j"}, keys...)...)
}

// patience is when a screen certainly does not come any more. How quick they are is
// measured elsewhere.
const patience = 90 * time.Second

// see waits until the screen has all of the texts.
func (e *terminal) see(texts ...string) string {
	e.t.Helper()
	screen := ""
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		// -J: what the shell printed is one line also where the terminal wrapped it, wherever
		// the name of the temporary directory made it do so.
		screen = e.must("capture-pane", "-p", "-J", "-t", "j")
		all := true
		for _, text := range texts {
			all = all && strings.Contains(screen, text)
		}
		if all {
			return screen
		}
	}
	e.t.Fatalf("after %s the screen does not say %q:\n%s", patience, texts, screen)
	return ""
}

// needed fails with how to get a program that is missing.
func needed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not installed; make test installs what the tests need", name)
		}
	}
}

// journey is a terminal of 120×36 with a shell in a project.
func journey(t *testing.T, more ...string) *terminal {
	t.Helper()
	dir, err := os.MkdirTemp("", "dlwb-j") // short: sockets have at most 100 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"dlwb.yaml": journeyProfile, "train.py": journeyScript} {
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := &terminal{t, filepath.Join(dir, "tmux")}
	env := append(dlwbEnv(dir), more...)
	trusttest.TrustEnv(env, project)
	e.must(append(append([]string{"new-session", "-d", "-s", "j", "-x", "120", "-y", "36", "-c", project, "env"}, env...),
		"PS1=ready> ", "COLORTERM=truecolor", "sh")...)
	t.Cleanup(func() {
		down := dlwb("down", "--all", "--plain")
		down.Env = append(os.Environ(), env...)
		_ = down.Run() // nothing to do where the test has done it
		_, _ = e.tmux("kill-server")
	})
	e.must("set-option", "-g", "escape-time", "0")
	e.see("ready>")
	return e
}

func TestJourneyInARealTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on two nodes in a terminal")
	}
	needed(t, "tmux", "python3")
	e := journey(t)
	e.press(dlwb().Path+" run --theme dark; echo code $?", "Enter")
	e.see("● training", "1 loss", "2 val/loss", "node1", "rank 0 on node0", "world size 2 on 2 nodes")

	e.press("l")
	e.see("▼ following", "/400  loss ")
	e.press("/")
	e.press("-l", "val_loss")
	e.press("Enter")
	e.see(`"val_loss"`, " of ", "held", "n next match")
	e.press("Escape")
	e.see("▼ following")

	e.must("resize-window", "-t", "j", "-x", "80", "-y", "24") // while it runs
	e.press("t")
	e.see("› train", "● training", "? keys")

	e.press("X")
	e.see("Tear down journey?", "› Cancel", "the run that is going on: journey-", "type journey to agree")
	e.press("-l", "journey")
	e.see("› Tear down")
	e.press("Enter")
	screen := e.see("Everything is gone", "0 processes, 0 files")
	if !regexp.MustCompile(`lived +\d`).MatchString(screen) {
		t.Errorf("the receipt does not say how long it lived:\n%s", screen)
	}
	e.press("Escape")
	e.see("› train", "■ stopped", "at the end")
	e.press("Escape")
	e.see("› home", "■ stopped")
	e.press("q")
	e.see("code 130") // the run was stopped, and that is known at home too
	e.restored()
}

// Who quits was told that clusters stay, also of one that would go in the end.
func TestLeavingTheScreenLeavesWhatRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on two nodes in a terminal")
	}
	needed(t, "tmux", "python3")
	e := journey(t)
	e.press(dlwb().Path+" run --down; echo code $?", "Enter")
	e.see("● training", "rank 0 on node0")
	e.press("C-c")
	e.see("Quit dlwb?", "Clusters stay", "› Stay")
	e.press("Tab")
	e.see("› Quit")
	e.press("Enter")
	e.see("cluster journey is still up", "code 0")
	e.press("clear; "+dlwb().Path+" ls", "Enter")
	e.see("journey  running", "2 alive")
}

// Who opens somebody else's profile is shown what it would do, and asked.
func TestAStrangersProfileIsTrustedByATypedYesOnTheScreen(t *testing.T) {
	needed(t, "tmux", "python3")
	e := journey(t)
	e.press("printf 'data/\\n' >.dlwbignore; "+dlwb().Path+" --theme dark; echo code $?", "Enter")
	e.see("› home", "in this directory")
	e.must("resize-window", "-t", "j", "-x", "80", "-y", "24")
	e.press("Enter")
	e.see("This profile is not trusted", "train.py, on this machine, as you", ".dlwbignore is new")
	e.press("R")
	e.see("Trust this profile?", "› Cancel")
	e.press("Enter")
	e.see("nothing was done")
	e.press("R")
	e.see("Trust this profile?", "› Cancel")
	e.press("-l", "yes")
	e.see("to trust it: yes")
	e.press("Enter")
	e.see("world size 2")
	e.press("C-c")
	e.see("code 0")
	e.press("clear; "+dlwb().Path+" trust --list; "+dlwb().Path+" ls", "Enter")
	e.see("project/dlwb.yaml", "no clusters") // the plan has started nothing
}

// restored holds what a program owes the terminal it leaves.
func (e *terminal) restored() {
	e.t.Helper()
	got := strings.TrimSpace(e.must("display-message", "-p", "-t", "j", "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_cursor_flag}"))
	if got != "0 1 0 0" {
		e.t.Errorf("alternate screen, cursor, mouse, cursor keys: %s, want 0 1 0 0", got)
	}
	e.press("clear; stty -a", "Enter") // as the shell set it: lines are edited and echoed
	e.see(" icanon", " echo ")
}

// Ctrl-Z once did nothing. The terminal is the shell's again while dlwb waits,
// the run goes on, and fg draws the screen anew; also from within a question.
func TestCtrlZSuspendsAndFgComesBack(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on two nodes in a terminal")
	}
	needed(t, "tmux", "python3", "bash")
	e := journey(t)
	e.press("exec env PS1='ready> ' bash --norc --noprofile -i", "Enter")
	e.see("ready>")
	e.press(dlwb().Path+" run --theme dark", "Enter")
	e.see("● training", "rank 0 on node0")
	e.press("X")
	e.see("Tear down journey?", "type journey to agree")
	e.press("C-z")
	e.see("Stopped")
	e.restored()
	e.press("fg", "Enter")
	e.see("journey on local", "› train", "Tear down journey?")
	e.press("C-c")
	e.see("Quit dlwb?")
	e.press("C-c")
	e.see("cluster journey is still up")
	e.press("clear; "+dlwb().Path+" ls", "Enter")
	e.see("journey  running", "2 alive") // the ranks were not stopped with it
}

// Where no shell waits above it nothing could bring dlwb back: it stays.
func TestCtrlZWithoutAShellSaysWhyNot(t *testing.T) {
	o := open(t, t.TempDir())
	defer o.end(t)
	if _, err := o.tty.WriteString("\x1a"); err != nil {
		t.Fatal(err)
	}
	out := o.out
	buf := make([]byte, 64<<10)
	for deadline := time.Now().Add(patience); !strings.Contains(string(out), "no shell waits"); {
		n, err := o.tty.Read(buf)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%v: %q", err, out)
		}
		out = append(out, buf[:n]...)
	}
}

func TestAPastRunOpensFromTheShell(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on two nodes in a terminal")
	}
	needed(t, "tmux", "python3")
	e := journey(t)
	e.press("sed -i 's/sleep(.*/sleep(0.001)/' train.py; "+dlwb().Path+" run --plain --down >/dev/null; echo done $?", "Enter")
	e.see("done 0")
	e.press("clear; "+dlwb().Path+" attach journey", "Enter")
	e.see("› train", "✓ succeeded", "1 loss", "step 400/400")
	e.press("Escape")
	e.see("› home", "runs")
	e.press("/")
	e.press("-l", "succ")
	e.press("Enter")
	e.see("/succ", "esc shows all")
	e.press("Escape")
	e.see("profiles", "runs", "› home")
	e.press("q")
	e.see("ready>")
	e.restored()
}
