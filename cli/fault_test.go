package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// Before training, a failure is one clear message. Nodes that came up stay, which
// is said with the way on and the way out, or go where that was asked for; what
// did not come up leaves nothing.
func TestFailuresBeforeTrainingAreOneClearMessage(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port
	for name, c := range map[string]struct {
		profile string
		env     []string
		code    int
		says    []string
		up      bool // the nodes had come up
		// What is said where they are removed, and what where they stay.
		removed, stays string
	}{
		"a script that does not exist": {
			profile: "run: {command: trian.py}\n", code: 2, says: []string{"trian.py", "did you mean", "train.py", "dlwb.yaml:"},
		},
		"an unknown key": {
			profile: "run: {comand: train.py}\n", code: 2, says: []string{"comand", "command", "dlwb.yaml:1"},
		},
		"requirements that fail": {
			profile: "environment: {venv: requirements.txt}\nrun: {command: train.py}\n", code: 1,
			env: []string{"PIP_INDEX_URL=http://127.0.0.1:9/simple", "PIP_NO_INDEX=", "PIP_RETRIES=0"}, says: []string{"no-such-package-here"}, up: true,
			removed: "the machines are removed now: without --remove-on-failure they stay", stays: "the node's network",
		},
		"a taken port": {
			profile: fmt.Sprintf("run: {engine: plain, command: train.py, master_port: %d}\n", port), code: 1,
			says: []string{fmt.Sprint(port), "taken"}, up: true,
		},
		"no Python": {
			profile: "environment: {system: true}\nrun: {command: train.py}\n", code: 1, says: []string{"python"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			b.write("train.py", "print('hello')\n")
			b.write("requirements.txt", "no-such-package-here==1.0\n")
			profile := c.profile
			if name == "no Python" {
				profile = "environment: {python: /nowhere/python3}\nrun: {command: train.py}\n"
			}
			b.write("dlwb.yaml", profile+"name: bed\nmachines: {count: 2}\n")
			b.env = append(b.env, c.env...)
			r := b.run("run", "--plain", "--remove-on-failure")
			if c.up {
				if !strings.Contains(r.stdout, c.removed) || !strings.Contains(r.stdout, "receipt: everything is gone") {
					t.Errorf("nodes that are removed:\n%s", r.stdout)
				}
				kept := b.run("run", "--plain")
				if kept.code != c.code || strings.Contains(kept.stdout, "receipt") {
					t.Errorf("exit code %d\n%s", kept.code, kept.stdout)
				}
				if strings.Contains(kept.stdout, "removed now") || !strings.Contains(kept.stdout, c.stays) {
					t.Errorf("nodes that stay:\n%s", kept.stdout)
				}
				for line := range strings.SplitSeq(kept.stdout, "\n") {
					for _, part := range []string{"  command: ", "  next: ", "  | "} {
						if strings.HasPrefix(line, part) && strings.Count(kept.stdout, line) > 1 {
							t.Errorf("it is said twice: %s\n%s", line, kept.stdout)
						}
					}
				}
				for _, s := range []string{"warning: cluster bed stays: 2 nodes of local; dlwb run ", "goes on with them", "dlwb down bed removes them"} {
					if n := strings.Count(kept.stdout, s); n != 1 {
						t.Errorf("%q is said %d times:\n%s", s, n, kept.stdout)
					}
				}
				if l := b.run("ls", "--json"); !strings.Contains(l.stdout, `"phase":"ready"`) {
					t.Errorf("after a failed set-up: %s", l.stdout)
				}
				if r := b.run("down"); r.code != 0 {
					t.Errorf("down: exit code %d\n%s", r.code, r.stderr)
				}
			}
			if r.code != c.code {
				t.Errorf("exit code %d, want %d", r.code, c.code)
			}
			said := strings.ToLower(r.stdout + r.stderr)
			for _, s := range c.says {
				if !strings.Contains(said, strings.ToLower(s)) {
					t.Errorf("%q is not said", s)
				}
			}
			if t.Failed() {
				t.Logf("%s%s", r.stdout, r.stderr)
			}
			if left := b.processes(); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			if entries, err := os.ReadDir(filepath.Join(b.home, "state", "local")); err == nil && len(entries) > 0 {
				t.Errorf("files left: %v", entries)
			}
		})
	}
}

// What failed is most often a line of the profile. The nodes once went with it,
// and came up anew for the next attempt. Where they go, the advice says so: "check the
// node's network" was said of nodes that were removed the next moment.
func TestRunGoesOnWithTheNodesOfAFailedSetUp(t *testing.T) {
	b := newBed(t).withOneNode()
	b.env = append(b.env, "PIP_INDEX_URL=http://127.0.0.1:9/simple", "PIP_NO_INDEX=", "PIP_RETRIES=0")
	b.write("requirements.txt", "no-such-package-here==1.0\n")
	b.profile(fmt.Sprintf(lossScript, 3, 0.01), "environment: {venv: requirements.txt}\n")
	if r := b.run("run", "--plain", "--down"); !strings.Contains(r.stdout, "the machines are removed now: without --down they stay") || !strings.Contains(r.stdout, "receipt: everything is gone") {
		t.Errorf("with --down:\n%s", r.stdout)
	}
	r := b.run("run", "--json")
	if r.code != 1 || len(r.all("receipt")) > 0 || r.one(t, "notice")["level"] != "warning" {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	b.profile(fmt.Sprintf(lossScript, 3, 0.01), "")
	r = b.run("run", "--json") // the cluster's step is skipped: its nodes are there
	if r.code != 0 || r.one(t, "run_ended")["verdict"] != "succeeded" || r.all("step_ended")[0]["skipped"] != true {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
