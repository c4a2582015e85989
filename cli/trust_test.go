//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// clone is a project of somebody else's on a laptop that records what is done
// for it: every program that could be started for it leaves a line, every
// connection is counted, and reading what lies beside it never ends.
type clone struct {
	*bed
	started     string // the file with the lines
	connections atomic.Int32
	addr        string
}

func newClone(t *testing.T) *clone {
	t.Helper()
	c := &clone{bed: newBed(t)}
	c.stranger = true
	c.started = filepath.Join(c.home, "started")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c.addr = l.Addr().String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.connections.Add(1)
			_ = conn.Close()
		}
	}()
	shims := filepath.Join(c.home, "shims")
	for _, name := range []string{"git", "ssh", "python3", "python", "nvidia-smi", "sh", "pip", "conda", "docker", "ssh-keygen"} {
		c.program(filepath.Join(shims, name))
	}
	for _, name := range []string{".gitignore", ".dlwbignore", "requirements.txt", "train.py", ".netrc"} {
		if err := syscall.Mkfifo(filepath.Join(c.home, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.env = append(c.env, "PATH="+shims+":"+os.Getenv("PATH"), "AWS_ENDPOINT_URL=http://"+c.addr,
		"AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=the-secret", "SSH_AUTH_SOCK=")
	return c
}

// program leaves a line when it is started.
func (c *clone) program(path string) {
	c.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := testprogram.Write(path, []byte("#!/bin/sh\necho \"$0 $*\" >>"+c.started+"\nexit 1\n"), 0o755); err != nil {
		c.t.Fatal(err)
	}
}

// quick runs dlwb, which has no reason to take long.
func (c *clone) quick(args ...string) result {
	c.t.Helper()
	cmd := c.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	err := cmd.Run()
	if !stuck.Stop() {
		c.t.Fatalf("%v did not end", args)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return result{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
}

// untouched holds that nothing was done for the project.
func (c *clone) untouched(after string) {
	c.t.Helper()
	if text, err := os.ReadFile(c.started); err == nil {
		c.t.Errorf("%s: started: %s", after, text)
		_ = os.Remove(c.started)
	}
	if n := c.connections.Swap(0); n > 0 {
		c.t.Errorf("%s: %d connections", after, n)
	}
}

// attacks are profiles of strangers, each with what must be said of it.
var attacks = []struct {
	name, profile string
	says          []string
}{
	{"the home, its keys and a secret to a host that vouches for itself", `
name: evil
provider: hosts
machines: {hosts: [{host: "me@<ADDR>", host_key: "<KEY>"}]}
environment: {venv: requirements.txt}
code: {dir: .., exclude: ["!/.ssh/id_*"]}
run: {command: train.py, env: {X: "${env:AWS_SECRET_ACCESS_KEY}"}}`,
		[]string{"<ADDR> by ssh; the profile itself vouches for its host key", "the variable AWS_SECRET_ACCESS_KEY of your shell", "<HOME> to the nodes: a directory outside the project", "!/.ssh/id_*"}},
	{"the project to a host that vouches for itself", `
name: evil
provider: hosts
machines: {hosts: [{host: "<ADDR>", host_key: "<KEY>"}]}
run: {command: train.py}`,
		[]string{"<ADDR> by ssh; the profile itself vouches for its host key"}},
	{"a program of the project as Python", `
name: evil
environment: {python: ./evil}
run: {command: train.py}`,
		[]string{"./evil as Python, on this machine", "train.py, on this machine"}},
	{"paid machines", `
name: evil
provider: ec2
machines: {region: us-east-1, instance: p5.48xlarge, count: 100}
run: {command: train.py}`,
		[]string{"paid machines on EC2, with your AWS credentials: 100 × p5.48xlarge in us-east-1", "without a budget"}},
	{"a .dlwbignore that asks for secrets", `
name: evil
run: {command: train.py}`,
		[]string{".env is asked for by a rule of the project"}},
}

func TestAStrangersProfileIsShownAndDoesNothing(t *testing.T) {
	c := newClone(t)
	c.write("train.py", "import os\n")
	c.write(".dlwbignore", "!*\n")
	c.write(".env", "TOKEN=1\n")
	c.program(filepath.Join(c.dir, "evil"))
	c.program(filepath.Join(c.dir, "hook"))
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/objects/.keep": "", ".git/refs/.keep": "",
		".git/config":    "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = " + c.dir + "/hook\n[filter \"x\"]\n\tclean = " + c.dir + "/hook\n",
		".gitattributes": "* filter=x\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(c.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		c.write(name, text)
	}
	key := sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "key"))
	for _, attack := range attacks {
		fill := strings.NewReplacer("<ADDR>", c.addr, "<KEY>", strings.TrimSpace(key), "<HOME>", c.home)
		path := c.write("dlwb.yaml", fill.Replace(attack.profile)+"\n")
		for _, command := range [][]string{{"plan"}, {"up"}, {"run"}, {"run", "--down"}, {"sync"}, {"sync", "--dry-run"}, {"sync", "--watch"}, {"trust"}, {"plan", "--trust=0123456789abcdef"}} {
			r := c.quick(command...)
			said := r.stdout + r.stderr
			if r.code != ExitUntrusted || !strings.Contains(said, "is not trusted") || !strings.Contains(said, "dlwb trust --hash ") || !strings.Contains(said, path) {
				t.Errorf("%s, %v: exit code %d\n%s", attack.name, command, r.code, said)
			}
			for _, want := range attack.says {
				if !strings.Contains(said, fill.Replace(want)) {
					t.Errorf("%s, %v: %q is not said in\n%s", attack.name, command, fill.Replace(want), said)
				}
			}
			if strings.Contains(said, "the-secret") {
				t.Errorf("%s, %v: a secret is shown:\n%s", attack.name, command, said)
			}
			c.untouched(attack.name + ", " + strings.Join(command, " "))
			r = c.quick(append(command, "--json")...)
			all := objects(t, r.stdout)
			if r.code != ExitUntrusted || len(all) != 1 || all[0]["exit_code"] != float64(ExitUntrusted) || fmt.Sprint(all[0]["untrusted"]) == "<nil>" {
				t.Errorf("%s, %v --json: exit code %d\n%s", attack.name, command, r.code, r.stdout)
			}
			c.untouched(attack.name + ", " + strings.Join(command, " ") + " --json")
		}
	}
	if r := c.quick("ls", "--json"); !strings.Contains(r.stdout, `"clusters":[]`) {
		t.Errorf("clusters: %s", r.stdout)
	}
}

// hashOf is the hash of a profile that is not trusted.
func (b *bed) hashOf(path string) string {
	b.t.Helper()
	r := b.run("trust", "--json", path)
	if len(r.events) != 1 {
		b.t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return fmt.Sprint(r.events[0]["untrusted"].(map[string]any)["key"])
}

func TestTheHashThatWasShownTrustsThatAndNothingElse(t *testing.T) {
	b := newBed(t)
	b.stranger = true
	path := b.profile("print(1)\n", "")
	hash := b.hashOf(path)[:16]
	if r := b.run("plan", "--trust="+hash); r.code != 0 || !strings.Contains(r.stdout, "world size 2") {
		t.Errorf("--trust: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("plan"); r.code != ExitUntrusted {
		t.Errorf("--trust holds for more than once: exit code %d", r.code)
	}
	for _, bad := range []string{hash[:15], strings.ToUpper(hash[:15]) + "Z", "yes"} {
		for _, args := range [][]string{{"plan", "--trust=" + bad}, {"trust", "--hash", bad}} {
			if r := b.run(args...); r.code != ExitUsage || !strings.Contains(r.stderr, "is no hash") {
				t.Errorf("%v: exit code %d, %s", args, r.code, r.stderr)
			}
		}
	}
	b.write(".dlwbignore", "!*\n")
	for _, args := range [][]string{{"plan", "--trust=" + hash}, {"trust", "--hash", hash}} {
		if r := b.run(args...); r.code != ExitUntrusted || !strings.Contains(r.stderr, "its hash is ") {
			t.Errorf("%v after a change: exit code %d, %s", args, r.code, r.stderr)
		}
	}
	if r := b.run("trust", "--hash", b.hashOf(path)); r.code != 0 || !strings.Contains(r.stdout, "is trusted") {
		t.Errorf("trust --hash: exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("plan"); r.code != 0 {
		t.Errorf("a trusted profile: exit code %d\n%s", r.code, r.stderr)
	}
	if r := b.run("trust", "--list"); r.code != 0 || !strings.Contains(r.stdout, path) {
		t.Errorf("--list: exit code %d\n%s", r.code, r.stdout)
	}
	if r := b.run("trust", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"trusted":true`) {
		t.Errorf("trust of what is trusted: exit code %d\n%s", r.code, r.stdout)
	}
	if r := b.run("trust", "--revoke"); r.code != 0 {
		t.Errorf("--revoke: exit code %d\n%s", r.code, r.stderr)
	}
	if r := b.run("run"); r.code != ExitUntrusted {
		t.Errorf("after --revoke: exit code %d\n%s", r.code, r.stderr)
	}
}

func TestATypedYesTrustsAndSaysWhatHasChanged(t *testing.T) {
	b := newBed(t)
	b.stranger = true
	b.profile("print(1)\n", "")
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, "TERM=") })
	b.env = append(b.env, "TERM=xterm")
	const question = "type yes to trust it and go on: "
	for _, no := range []string{"no", "y", "", "yes please", "\x04"} {
		x := b.onTerminal(120, 40, "plan")
		x.waitFor(question)
		x.types(no + "\r")
		if code := x.exit(); code != ExitUntrusted || strings.Contains(x.shown.String(), "world size") || strings.Count(x.shown.String(), "! runs") != 1 {
			t.Errorf("%q: exit code %d\n%s", no, code, x.shown)
		}
	}
	x := b.onTerminal(120, 40, "plan")
	x.waitFor(question)
	x.types("\x03")
	if code := x.exit(); code != ExitInterrupt {
		t.Errorf("^C: exit code %d\n%s", code, x.shown)
	}
	x = b.onTerminal(120, 40, "plan")
	x.waitFor("nobody has trusted it yet")
	x.waitFor("train.py, on this machine, as you")
	x.waitFor(question)
	x.types("yes\r")
	if code := x.exit(); code != 0 || !strings.Contains(x.shown.String(), "world size 2") {
		t.Errorf("yes: exit code %d\n%s", code, x.shown)
	}
	if r := b.run("plan"); r.code != 0 {
		t.Errorf("after yes: exit code %d\n%s", r.code, r.stderr)
	}
	b.write(".dlwbignore", "!*\n")
	x = b.onTerminal(120, 40, "trust")
	x.waitFor("since it was trusted on ")
	x.waitFor(".dlwbignore is new")
	x.waitFor(question)
	x.types("yes\r")
	if code := x.exit(); code != 0 || !strings.Contains(x.shown.String(), "is trusted") {
		t.Errorf("trust: exit code %d\n%s", code, x.shown)
	}
}

func TestWhatInitWroteRunsWithoutAQuestion(t *testing.T) {
	b := newBed(t)
	b.stranger = true
	b.write("train.py", "print(1)\n")
	if r := b.run("init"); r.code != 0 {
		t.Fatalf("init: %s", r.stderr)
	}
	if r := b.run("plan"); r.code != 0 {
		t.Errorf("plan: exit code %d\n%s", r.code, r.stderr)
	}
	b.write("requirements.txt", "numpy\n")
	if r := b.run("plan"); r.code != 0 {
		t.Errorf("with a file that its environment is not made from: exit code %d\n%s", r.code, r.stderr)
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "dlwb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	b.write("dlwb.yaml", string(text)+"forward: [8265]\n")
	if r := b.run("plan"); r.code != ExitUntrusted || !strings.Contains(r.stderr, "dlwb.yaml has changed") {
		t.Errorf("after a change: exit code %d\n%s", r.code, r.stderr)
	}
}

// A rerun reads the ignore files and the requirements as they are now; what goes
// on needs no trust.
func TestWhatWasLaunchedGoesOnAndARerunIsAskedAbout(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile("print('loss: 1')\n", "")
	if r := b.run("run", "--json"); r.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.stranger = true
	if r := b.run("rerun", "bed", "--plan"); r.code != 0 {
		t.Errorf("rerun of what is trusted: exit code %d\n%s", r.code, r.stderr)
	}
	b.write(".dlwbignore", "!*\n")
	for _, args := range [][]string{{"rerun", "bed", "--plan"}, {"rerun", "bed"}} {
		if r := b.run(args...); r.code != ExitUntrusted || !strings.Contains(r.stderr, ".dlwbignore is new") {
			t.Errorf("%v after a change: exit code %d\n%s", args, r.code, r.stderr)
		}
	}
	if r := b.run("rerun", "bed", "--plan", "--trust="+b.hashOf("dlwb.yaml")); r.code != 0 {
		t.Errorf("rerun --trust: exit code %d\n%s", r.code, r.stderr)
	}
	for _, args := range [][]string{{"exec", "bed", "--", "true"}, {"attach", "bed", "--plain"}, {"pull", "bed"}, {"logs", "bed"}, {"down", "bed"}} {
		if r := b.run(args...); r.code == ExitUntrusted {
			t.Errorf("%v: %s", args, r.stderr)
		}
	}
}

func TestAWatchSendsNothingUnderRulesThatNobodyTrusted(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile("print(1)\n", "")
	b.write(".dlwbignore", "private/\n")
	if err := os.Mkdir(filepath.Join(b.dir, "private"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("private/letter.txt", "dear\n")
	s := b.start("sync", "--watch", "--json")
	b.stranger = true
	s.await("the first sync", func(e printedEvent) bool { return e["event"] == "step_ended" && e["step"] == "sync" })
	b.write(".dlwbignore", "\n")
	notice := s.await("the question", func(e printedEvent) bool {
		return e["event"] == "notice" && strings.Contains(fmt.Sprint(e["text"]), "not trusted any more")
	})
	if !strings.Contains(fmt.Sprint(notice["text"]), ".dlwbignore has changed") {
		t.Errorf("it says %v", notice)
	}
	there := func() bool {
		found, _ := filepath.Glob(filepath.Join(b.home, "state", "local", "*", "*", "dlwb", "bed", "code", "private"))
		deeper, _ := filepath.Glob(filepath.Join(b.home, "state", "local", "*", "*", "*", "dlwb", "bed", "code", "private"))
		return len(found)+len(deeper) > 0
	}
	if there() {
		t.Error("what the trusted rules leave out was sent")
	}
	if r := b.run("trust", "--hash", b.hashOf("dlwb.yaml")); r.code != 0 {
		t.Fatalf("trust: %s", r.stderr)
	}
	s.await("the next sync", func(e printedEvent) bool { return e["event"] == "step_ended" && e["step"] == "sync" })
	if !there() {
		t.Error("where the code is looked for is not where it is")
	}
	s.signal(syscall.SIGINT)
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
