//go:build unix

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestGeneratedKeyIsPrivateAndOpenSSHReadsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "cluster", "id")
	pub, err := GenerateKey(path, "dlwb\ncluster")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(pub, "ssh-ed25519 ") || !strings.HasSuffix(pub, " dlwb cluster") {
		t.Errorf("public key is %q", pub)
	}
	for p, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", p, st.Mode().Perm(), err, want)
		}
	}
	out, err := exec.Command("ssh-keygen", "-y", "-f", path).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), strings.TrimSuffix(pub, "dlwb cluster")) {
		t.Errorf("ssh-keygen says %q (%v), want %q", out, err, pub)
	}
	again, err := GenerateKey(path, "dlwb cluster")
	if err != nil || again != pub {
		t.Errorf("the second time got %q (%v), want the same key", again, err)
	}
}

func TestBrokenKeyIsNeverReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	writeFile(t, path, "something")
	if _, err := GenerateKey(path, ""); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if !fileSays(path, "something") {
		t.Error("the file was changed")
	}
}
