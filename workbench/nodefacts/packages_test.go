package nodefacts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// site is a home, and a directory of packages that Python looks in.
type site struct {
	t         *testing.T
	home, dir string
	python    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t, t.TempDir(), t.TempDir(), python}
	if err := os.Mkdir(filepath.Join(s.home, ".dlwb"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// install puts a package there as pip does; age is how long ago that was.
func (s *site) install(name, version string, age time.Duration) {
	s.t.Helper()
	dir := filepath.Join(s.dir, name+"-"+version+".dist-info")
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	text := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	if err := os.WriteFile(filepath.Join(dir, "METADATA"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(s.dir, at, at); err != nil {
		s.t.Fatal(err)
	}
}

// packages is what the program tells.
func (s *site) packages() []string {
	s.t.Helper()
	c := exec.Command(s.python, "-")
	c.Env = append(os.Environ(), "HOME="+s.home, "PYTHONPATH="+s.dir)
	c.Stdin = strings.NewReader(packagesProgram)
	out, err := c.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	var f Facts
	if f.python(out); f.Err != nil {
		s.t.Fatalf("%v: %s", f.Err, out)
	}
	return f.Packages
}

func (s *site) has(line string) bool {
	return strings.Contains(strings.Join(s.packages(), "\n")+"\n", line+"\n")
}

// kept is the file in which what was found is kept.
func (s *site) kept() string {
	found, _ := filepath.Glob(filepath.Join(s.home, ".dlwb", "look.packages.*"))
	if len(found) != 1 {
		s.t.Fatalf("kept: %q", found)
	}
	return found[0]
}

func TestPackagesAreLookedAtAgainWhenTheirDirectoryHasChanged(t *testing.T) {
	s := newSite(t)
	s.install("first", "1.0", time.Hour)
	if !s.has("first==1.0") {
		t.Error("a package is missing")
	}
	// What is kept is what is told.
	text, err := os.ReadFile(s.kept())
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(text), "first==1.0", "kept==1.0", 1)
	if err := os.WriteFile(s.kept(), []byte(altered), 0o600); err != nil {
		t.Fatal(err)
	}
	if !s.has("kept==1.0") {
		t.Error("what is kept is not used")
	}
	s.install("second", "2.0", 30*time.Minute)
	if !s.has("first==1.0") || !s.has("second==2.0") {
		t.Errorf("after an installation: %q", s.packages())
	}
	if err := os.RemoveAll(filepath.Join(s.dir, "first-1.0.dist-info")); err != nil {
		t.Fatal(err)
	}
	if s.has("first==1.0") {
		t.Error("a package that was removed is told of")
	}
}

func TestPackagesThatMayStillBeInstalledAreNotKept(t *testing.T) {
	s := newSite(t)
	s.install("first", "1.0", 0)
	if !s.has("first==1.0") {
		t.Error("a package is missing")
	}
	if found, _ := filepath.Glob(filepath.Join(s.home, ".dlwb", "look.packages*")); len(found) > 0 {
		t.Errorf("kept: %q", found)
	}
	if err := os.WriteFile(filepath.Join(s.home, ".dlwb", "look.packages.zz"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.install("second", "2.0", time.Hour)
	if !s.has("second==2.0") {
		t.Error("a package is missing")
	}
}

func TestAHomeWithoutRoomForItIsNoHindrance(t *testing.T) {
	s := newSite(t)
	if err := os.RemoveAll(filepath.Join(s.home, ".dlwb")); err != nil {
		t.Fatal(err)
	}
	s.install("first", "1.0", time.Hour)
	for range 2 {
		if !s.has("first==1.0") {
			t.Error("a package is missing")
		}
	}
}
