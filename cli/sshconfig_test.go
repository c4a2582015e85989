package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/tunnel"
)

// ownSSH runs OpenSSH's client as the user of this bed would.
func (b *bed) ownSSH(args ...string) (string, error) {
	cmd := exec.Command("ssh", append([]string{"-o", "BatchMode=yes"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+b.home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestOwnSSHReachesTheNodesWithTheConfigAndNothingIsLeftOfIt(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("NOT RUN: there is no OpenSSH client: apt-get install openssh-client")
	}
	b := newBed(t)
	b.up("")
	r := b.run("ssh", "bed", "--config", "--json")
	var made tunnel.SSHConfig
	if err := json.Unmarshal([]byte(r.stdout), &made); err != nil || r.code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", r.code, err, r.stdout, r.stderr)
	}
	if info, err := os.Stat(made.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	for _, name := range []string{"node1", "bed-1", "bed.node1"} {
		if out, err := b.ownSSH("-F", made.File, name, "echo I am $DLWB_NODE"); err != nil || out != "I am 1\n" {
			t.Errorf("ssh %s: %v %q", name, err, out)
		}
	}
	if text := b.run("ssh", "bed", "--config"); !strings.Contains(text.stdout, "ssh -F "+made.File+" node0") || !strings.Contains(text.stdout, "StrictHostKeyChecking yes") {
		t.Errorf("the text:\n%s", text.stdout)
	}

	// Without a yes nothing is changed; with one the line is there once, and
	// the rest is as it was.
	const old = "# mine\r\nHost gpu\n\tHostName 10.0.0.1   \nHost *\n  User nobody"
	path := filepath.Join(b.home, ".ssh", "config")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	env := "HOME=" + b.home
	include := func(args ...string) result {
		t.Helper()
		cmd := b.command(append([]string{"ssh", "--include"}, args...)...)
		cmd.Env = append(cmd.Env, env)
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return result{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errs.String()}
	}
	if r := include(); r.code != 0 || !strings.Contains(r.stderr, "Include ") || !strings.Contains(r.stdout, "nothing was changed") {
		t.Errorf("without a yes: %+v", r)
	}
	if text, _ := os.ReadFile(path); string(text) != old {
		t.Errorf("without a yes it is now:\n%s", text)
	}
	for _, says := range []string{"to undo it", "has the line already"} {
		if r := include("--yes"); r.code != 0 || !strings.Contains(r.stdout, says) {
			t.Errorf("%q is not said: %+v", says, r)
		}
	}
	text, _ := os.ReadFile(path)
	line, rest, _ := strings.Cut(string(text), "\n")
	if info, err := os.Stat(path); rest != old || !strings.HasPrefix(line, "Include ") || err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("with a yes it is, %v:\n%s", info.Mode(), text)
	}
	// OpenSSH reads ~/.ssh/config of the account, whatever HOME says.
	if out, err := b.ownSSH("-F", path, "bed-0", "echo I am $DLWB_NODE"); err != nil || out != "I am 0\n" {
		t.Errorf("by name: %v %q", err, out)
	}
	if d := b.run("down"); d.code != 0 {
		t.Errorf("down: %+v", d)
	}
	if left, _ := filepath.Glob(filepath.Join(b.home, "state", "ssh", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
