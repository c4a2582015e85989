package kubernetes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/remote/transfer"
)

// What a sync sends to a node is what a pod gets, by each of the two ways to
// unpack it: links too, and nothing that is held back.
func TestAPodGetsWhatASyncSends(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"train.py": "print(1)\n", "configs/a.yaml": "a: 1\n", "configs/sub/b.yaml": "b: 1\n", ".env": "TOKEN=hunter2hunter2\n"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "runs", "ckpt"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"configs/now.yaml": "sub/b.yaml", "conf": "configs", "notes.txt": ".env"} {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip("this system makes no symbolic links: " + err.Error())
		}
	}
	tree, err := transfer.Scan(t.Context(), dir, transfer.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := payload(cloud.Code{Dir: dir, Paths: tree.Paths(), Links: tree.Links(), Empty: tree.Empty()}, true, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, words := range [][]string{{"tar", "-xzf"}, {"python3", "-m", "tarfile", "-e"}} {
		program, err := exec.LookPath(words[0])
		if err != nil {
			continue
		}
		tried++
		at := t.TempDir()
		if err := os.WriteFile(filepath.Join(at, "p.tar.gz"), packed, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(program, append(words[1:], "p.tar.gz")...)
		c.Dir = at
		if said, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", words, err, said)
		}
		for name, want := range map[string]string{"train.py": "print(1)\n", "configs/now.yaml": "b: 1\n", "conf/a.yaml": "a: 1\n"} {
			if got, err := os.ReadFile(filepath.Join(at, "code", filepath.FromSlash(name))); string(got) != want {
				t.Errorf("%v: %s is %q, %v", words, name, got, err)
			}
		}
		if info, err := os.Stat(filepath.Join(at, "code", "runs", "ckpt")); err != nil || !info.IsDir() {
			t.Errorf("%v: the empty directory is not there: %v", words, err)
		}
		for _, name := range []string{".env", "notes.txt"} {
			if got, err := os.ReadFile(filepath.Join(at, "code", name)); err == nil {
				t.Errorf("%v: %s came along: %q", words, name, got)
			}
		}
	}
	if tried == 0 {
		t.Fatal("there is neither tar nor python3 here")
	}
}
