//go:build linux

package hostsstory

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// The command that somebody with machines calls holds on these, of which two have one
// home, and leaves nothing.
func TestTheCommandForSomebodysMachines(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 3)
	if _, err := bed.ShareHome(1, 2); err != nil {
		t.Fatal(err)
	}
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "bin", "dlwb")); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../tools/e2e_hosts.sh")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOSTS="+strings.ReplaceAll(hostNames(0, 3), ",", ""), "DLWB_SSH_CONFIG="+bed.SSHConfig(), "SSH_AUTH_SOCK=", "TERM=dumb")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all 7 points held on 3 machines") {
		t.Errorf("%v\n%s", err, out)
	}
	for i := range 3 {
		if left, err := bed.Run(i, "ls -d /home/"+testbed.User+"/.dlwb /home/"+testbed.User+"/dlwb 2>/dev/null || true"); err != nil || strings.TrimSpace(left) != "" {
			t.Errorf("left on %s: %s, %v", testbed.Name(i), left, err)
		}
	}
}
