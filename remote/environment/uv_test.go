package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// realUV is a real uv: DLWB_TEST_UV, or the one on the PATH.
func realUV(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("DLWB_TEST_UV"), "uv"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("NOT RUN: there is no uv here; make test-environments installs one")
	return ""
}

// withUV is a node whose uv lies where its own installer puts it, off the PATH
// of a command by ssh.
func withUV(t testing.TB, path ...string) *local {
	l := newLocal(t, path...)
	if err := os.MkdirAll(filepath.Join(l.home, ".local/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(realUV(t), filepath.Join(l.home, ".local/bin/uv")); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestUVInstallsWhereItIs(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := withUV(t, bare(t))
	spec := Spec{Kind: Venv, Cluster: "c 1", Content: "--no-index\n--find-links " + wheels + "\ndlwbone\n"}
	r := l.must(spec)
	if got := l.python(r, "import dlwbone; print(dlwbone.version)"); got != "1.0" {
		t.Errorf("the package says %q", got)
	}
	installer := l.python(r, "from importlib.metadata import distribution as d; print(d('dlwbone').read_text('INSTALLER'))")
	if strings.TrimSpace(installer) != "uv" {
		t.Errorf("%q installed it", installer)
	}
	if r = l.must(spec); !r.Skipped || l.trips != 1 {
		t.Errorf("unchanged: skipped %v in %d round trips", r.Skipped, l.trips)
	}
}

// A node that reaches its packages by a line of pip.conf reaches them with uv too.
func TestUVIsToldWhatPipWasTold(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := withUV(t, bare(t))
	conf := filepath.Join(l.home, ".config/pip/pip.conf")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, conf, "[global]\nno-index = true\nfind-links = "+wheels+"\n")
	l.must(Spec{Kind: Venv, Cluster: "c", Content: "dlwbone\n"})
	write(t, conf, "[global]\nno-index = true\nfind-links = "+t.TempDir()+"\n")
	f := l.mustFail(Spec{Kind: Venv, Cluster: "d", Content: "dlwbone\n"})
	contains(t, f.Command, "uv pip install")
	contains(t, f.Why, "there is no dlwbone")
	if len(f.LastLines) == 0 {
		t.Error("its last lines are not there")
	}
}

// Without ensurepip, as Debian has it, uv is enough.
func TestUVNeedsNoEnsurepip(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := withUV(t, without(t, bare(t), "ensurepip"))
	l.must(Spec{Kind: Venv, Cluster: "c", Content: "--no-index\n--find-links " + wheels + "\ndlwbone\n"})
}

func TestUVIsLeftAloneWhereThePyTorchOfTheNodeIsUsed(t *testing.T) {
	if uv := (node{uv: "/x/uv"}).uvFor(interpreter{Torch: "2.9", Modules: true}); uv != "" {
		t.Errorf("%s would install over the node's PyTorch", uv)
	}
}

// other is a Python of another minor version than the tests' own, by its name.
func other(t *testing.T) (path, minor string) {
	t.Helper()
	mine := python(t, "True", "apt-get install python3")
	version := func(exe string) string {
		out, _ := exec.Command(exe, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])").Output()
		return strings.TrimSpace(string(out))
	}
	found, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv/versions/3.*/bin/python3"))
	for _, name := range []string{"python3.14", "python3.13", "python3.12", "python3.10"} {
		if p, err := exec.LookPath(name); err == nil {
			found = append(found, p)
		}
	}
	for _, p := range found {
		if v := version(p); v != "" && v >= "3.10" && v != version(mine) {
			return p, v
		}
	}
	t.Skip("NOT RUN: there is one version of Python here; make test-environments installs another")
	return "", ""
}

func TestTheVersionOfTheProfileIsFoundAndStays(t *testing.T) {
	t.Parallel()
	path, minor := other(t)
	for name, lay := range map[string]func(l *local){
		"by its name on the PATH": func(l *local) {
			dir := t.TempDir()
			program(t, filepath.Join(dir, "python"+minor), "#!/bin/sh\nexec "+path+` "$@"`+"\n")
			l.env = append(l.env, "PATH="+dir+":"+strings.TrimPrefix(l.env[1], "PATH="))
		},
		"built by pyenv": func(l *local) {
			dir := filepath.Join(l.home, ".pyenv/versions", minor+".9/bin")
			_ = os.MkdirAll(dir, 0o755)
			program(t, filepath.Join(dir, "python3"), "#!/bin/sh\nexec "+path+` "$@"`+"\n")
		},
	} {
		l := newLocal(t, bare(t))
		lay(l)
		for again := range 2 {
			r := l.must(Spec{Kind: System, Python: minor})
			if !strings.HasPrefix(r.Version, minor+".") {
				t.Errorf("%s: asked for %s, got %s", name, minor, r.Version)
			}
			if again == 1 && l.trips != 1 {
				t.Errorf("%s: %d round trips for what was found before", name, l.trips)
			}
		}
	}
}

func TestUVFindsTheVersionOfTheProfile(t *testing.T) {
	t.Parallel()
	path, minor := other(t)
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := withUV(t, bare(t))
	managed := filepath.Join(l.home, ".local/share/uv/python")
	// Where uv keeps what it has installed: there it finds it again.
	full, err := exec.Command(path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.prefix)").Output()
	if err != nil {
		t.Fatal(err)
	}
	version, prefix, _ := strings.Cut(strings.TrimSpace(string(full)), "\n")
	dir := filepath.Join(managed, "cpython-"+version+"-linux-x86_64-gnu") // a link is none of its own
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"bin", "lib", "include"} {
		if err := os.Symlink(filepath.Join(prefix, part), filepath.Join(dir, part)); err != nil {
			t.Fatal(err)
		}
	}
	r := l.must(Spec{Kind: Venv, Cluster: "c", Python: minor, Content: "--no-index\n--find-links " + wheels + "\ndlwbone\n"})
	if !strings.HasPrefix(r.Version, minor+".") {
		t.Errorf("asked for %s, got %s", minor, r.Version)
	}
}

func TestAVersionThatCannotBeHadSaysWhatWasTried(t *testing.T) {
	t.Parallel()
	l := withUV(t, bare(t))
	l.env = append(l.env, "UV_OFFLINE=1")
	f := l.mustFail(Spec{Kind: Venv, Cluster: "c", Python: "3.199", Content: "x\n"})
	contains(t, f.Why, "Python 3.199, which the profile asks for, is not on the node", "uv could not install it")
	contains(t, f.Command, "uv python install 3.199")
	if len(f.LastLines) == 0 || f.Next == "" {
		t.Errorf("got %+v", f)
	}
}

func TestWhatIsAVersionOfPython(t *testing.T) {
	for text, want := range map[string]bool{"3": true, "3.12": true, "3.12.4": true, "2.7": false, "python3.12": false, "/usr/bin/python3": false, "3.12-dev": false, "": false} {
		if IsVersion(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
