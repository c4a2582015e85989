package nodefacts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// site is a home, and a directory of packages that Python looks in.
type site struct {
	t         *testing.T
	home, dir string
	also      string // behind dir on the path
	python    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, home: t.TempDir(), dir: t.TempDir(), python: python}
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
	c.Env = append(os.Environ(), "HOME="+s.home, "PYTHONPATH="+s.dir+s.also)
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

// Python's own importlib.metadata reads the same of every form in which a package may
// lie there, and of all that this machine has.
func TestPackagesAreThoseThatPythonTells(t *testing.T) {
	s := newSite(t)
	write := func(path, text string) {
		path = filepath.Join(s.dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	headers := func(name, version string) string {
		return "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nAuthor: Zoë\n\nName: of the description\nVersion: 9\n"
	}
	write("a_b-1.0.dist-info/METADATA", headers("A.b", "1.0"))
	write("folder.egg-info/PKG-INFO", headers("folder", "2.0+cu121"))
	write("file-3.0.egg-info", headers("file", "3.0"))
	write("egg-4.0-py3.egg/EGG-INFO/PKG-INFO", headers("egg", "4.0"))
	s.also = string(os.PathListSeparator) + filepath.Join(s.dir, "egg-4.0-py3.egg")
	write("half-5.0.dist-info/RECORD", "") // an installation that was cut
	write("latin-6.0.dist-info/METADATA", strings.Replace(headers("latin", "6.0"), "ë", "\xeb", 1))
	for dir, direct := range map[string]string{
		"git":   `{"url": "https://user:secret@host/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}`,
		"local": `{"url": "file:///home/me/x", "dir_info": {"editable": true}}`,
	} {
		write(dir+"-7.0.dist-info/METADATA", headers(dir, "7.0"))
		write(dir+"-7.0.dist-info/direct_url.json", direct)
	}
	c := exec.Command(s.python, "-c", `
from importlib import metadata
for d in metadata.distributions():
    try:
        if d.metadata["Name"] and not d.read_text("direct_url.json"):
            print(d.metadata["Name"] + "==" + d.version)
    except UnicodeDecodeError: # importlib does not read what is no UTF-8; a name and a version still are
        print("latin==6.0")`)
	c.Env = append(os.Environ(), "HOME="+s.home, "PYTHONPATH="+s.dir+s.also)
	c.Dir = s.home
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(out)), "\n")
	got := s.packages()
	for _, line := range append(want, "git @ git+https://host/x.git@abc", "local @ file:///home/me/x") {
		if !slices.Contains(got, line) {
			t.Errorf("%s is missing", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) && !strings.Contains(line, " @ ") {
			t.Errorf("%s is none of Python's", line)
		}
	}
}
