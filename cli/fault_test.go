package cli

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Before training, a failure is one clear message and leaves nothing behind.
func TestFailuresBeforeTrainingLeaveNothing(t *testing.T) {
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
	}{
		"a script that does not exist": {
			profile: "run: {command: trian.py}\n", code: 2, says: []string{"trian.py", "did you mean", "train.py", "dlwb.yaml:"},
		},
		"an unknown key": {
			profile: "run: {comand: train.py}\n", code: 2, says: []string{"comand", "command", "dlwb.yaml:1"},
		},
		"requirements that fail": {
			profile: "environment: {venv: requirements.txt}\nrun: {command: train.py}\n", code: 1,
			env: []string{"PIP_INDEX_URL=http://127.0.0.1:9/simple", "PIP_NO_INDEX=", "PIP_RETRIES=0"}, says: []string{"no-such-package-here"},
		},
		"a taken port": {
			profile: fmt.Sprintf("run: {engine: plain, command: train.py, master_port: %d}\n", port), code: 1,
			says: []string{fmt.Sprint(port), "taken"},
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
			r := b.run("run", "--plain")
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
