//go:build unix

package remote

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

func TestPutKeepsWhatIsInTheWayAndTheTimesOfWhatComes(t *testing.T) {
	s := sshdtest.Start(t)
	n, from := openTest(t, s), t.TempDir()
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	writeFiles(t, from, map[string]string{"step-2/model": "new", "step 3/it's": "odd"})
	check(t, os.Symlink("step-2", filepath.Join(from, "last")))
	check(t, os.Chtimes(filepath.Join(from, "step-2/model"), then, then))
	there := filepath.Join(s.Home, codeDir, "ckpt")
	writeFiles(t, there, map[string]string{"step-1/model": "stays", "step-2/model": "half", "step-2/more": "half"})
	for range 2 { // what was put is moved away like anything else
		check(t, Put(testContext(t), n, from, codeDir+"/ckpt", "dlwb/x/unfinished"))
	}
	for name, want := range map[string]string{
		"ckpt/step-1/model": "stays", "ckpt/step-2/model": "new", "ckpt/step 3/it's": "odd", "ckpt/last/model": "new",
	} {
		if got, err := os.ReadFile(filepath.Join(s.Home, codeDir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(s.Home, "dlwb/x/unfinished/step-2/more")); err != nil || string(got) != "half" {
		t.Errorf("what was in the way is %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(there, "step-2/model")); err != nil || !info.ModTime().Equal(then) {
		t.Errorf("its time is %v, want %v (%v)", info.ModTime(), then, err)
	}
	if entries, err := os.ReadDir(there); err != nil || len(entries) != 4 {
		t.Errorf("there are %v, %v", entries, err)
	}
	check(t, MoveAside(testContext(t), n, codeDir+"/ckpt", "dlwb/x/unfinished", []string{"step 3", "step-9"}))
	if _, err := os.Stat(filepath.Join(s.Home, "dlwb/x/unfinished/step 3.2/it's")); err != nil {
		t.Error(err)
	}
	if err := MoveAside(testContext(t), n, codeDir, "dlwb/x", []string{"../x"}); err == nil {
		t.Error("a name that leaves the directory was taken")
	}
}
