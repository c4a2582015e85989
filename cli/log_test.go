package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLogGoesToTheFileThatIsNamed(t *testing.T) {
	b := newBed(t)
	b.env = append(b.env, "DLWB_LOG="+filepath.Join(b.home, "log"))
	if r := b.run("ls"); r.code != 0 || r.stderr != "" {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	log, err := os.ReadFile(filepath.Join(b.home, "log"))
	if err != nil || !strings.Contains(string(log), "exit_code=0") {
		t.Errorf("%q, %v", log, err)
	}
	b.env = append(b.env, "DLWB_LOG="+filepath.Join(b.home, "no", "such", "directory"))
	if r := b.run("ls"); r.code != 1 || !strings.Contains(r.stderr, "DLWB_LOG") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}
