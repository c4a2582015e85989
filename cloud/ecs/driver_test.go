package ecs

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/pack"
)

// A script that is Ray's own driver ends the job as it ends itself, also on a machine
// whose name nobody resolves: nobody looks for it.
func TestTheDriverBesideTheHeadEndsAsTheScript(t *testing.T) {
	dir := t.TempDir()
	var node pack.Node
	if err := json.Unmarshal([]byte(`{"procs":[{"name":"rank-0","ranks":[0],"env":["RANK=0"],"argv":["python3","train.py"]}]}`), &node); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order{Run: "run", Env: []string{"A=b"}, Nodes: []pack.Node{node}, Driver: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".dlwb/driver.py": driverPy, ".dlwb/launch.py": pack.Launcher, ".dlwb/job.json": string(text),
		"train.py": "import os, sys\nprint('given', os.environ['A'], flush=True)\nsys.exit(3)\n",
		"begin.py": "import runpy, socket\ndef none(name):\n    raise socket.gaierror(-2, 'Name or service not known')\nsocket.gethostbyname = none\nrunpy.run_path('.dlwb/driver.py', run_name='__main__')\n"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "python3", "-u", "begin.py")
	c.Dir = dir
	out, err := c.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 3 || !strings.Contains(string(out), "[rank0] given b\n") || !strings.HasSuffix(string(out), "[dlwb] ranks: 0:3\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
