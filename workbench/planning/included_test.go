package planning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The forms of real requirements files.
func TestFilesThatRequirementsNameAreInThem(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "my project ü")
	files := map[string]string{
		"requirements.txt":                "\uFEFF# all\r\n-r requirements/gpu.txt\r\n--extra-index-url https://download.pytorch.org/whl/cu121\r\nnumpy>=1.20 ; python_version < '4'\r\nx @ git+https://host/x.git@v1\r\n",
		"requirements/gpu.txt":            "-r base.txt\n--constraint=pins.txt\ntorch\n",
		"requirements/base.txt":           "tqdm==4.66.1 --hash=sha256:abc\n",
		"requirements/pins.txt":           "# pins\n-c more.txt\ntorch==2.1\n",
		"requirements/more.txt":           "numpy<2",
		"loop.txt":                        "-r loop2.txt\n",
		"loop2.txt":                       "-rloop.txt\n",
		"outside.txt":                     "-r ../secret.txt\n",
		"linked.txt":                      "-r link.txt\n",
		"missing.txt":                     "a\n-r none.txt\n",
		"self.txt":                        "a\n-e .[dev]\n",
		"local.txt":                       "./lib\n",
		"vcs.txt":                         "-e git+https://host/x.git#egg=x\n-r https://host/r.txt\n",
		"env.txt":                         "-r .env\n",
		".env":                            "A=b\n",
		filepath.Join("..", "secret.txt"): "secret\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret.txt", filepath.Join(dir, "link.txt")); err != nil {
		t.Skip(err)
	}
	read := func(name string) (string, error) { return included(dir, filepath.Join(dir, name), files[name]) }
	want := "# all\ntqdm==4.66.1 --hash=sha256:abc\n# pins\n#dlwb-constraint: numpy<2\n#dlwb-constraint: torch==2.1\ntorch\n" +
		"--extra-index-url https://download.pytorch.org/whl/cu121\nnumpy>=1.20 ; python_version < '4'\nx @ git+https://host/x.git@v1\n"
	if got, err := read("requirements.txt"); err != nil || strings.TrimSpace(strings.ReplaceAll(got, "\n\n", "\n")) != strings.TrimSpace(want) {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if got, err := read("vcs.txt"); err != nil || got != files["vcs.txt"]+"" && strings.TrimSpace(got) != strings.TrimSpace(files["vcs.txt"]) {
		t.Errorf("%v, got %q", err, got)
	}
	for name, why := range map[string]string{
		"loop.txt": "names itself", "outside.txt": "outside of the code directory", "linked.txt": "escapes", "missing.txt": "missing.txt:2: -r none.txt",
		"self.txt": "self.txt:2: -e .[dev]: the code is not on the nodes yet", "local.txt": "local.txt:1", "env.txt": ".env",
	} {
		if got, err := read(name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, %q, want %q", name, err, got, why)
		}
	}
}
