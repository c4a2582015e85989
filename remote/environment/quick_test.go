package environment

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// packages is the directory of packages of a Python made by bare.
func packages(t *testing.T, bin string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(bin), "lib", "python3*", "site-packages"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	return found[0]
}

// metadataOf puts a package there that consists of its metadata.
func metadataOf(t *testing.T, dir, name, version string, requires ...string) {
	t.Helper()
	text := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	for _, r := range requires {
		if strings.Contains(r, "extra == 'z'") {
			text += "Provides-Extra: z\n"
		}
		text += "Requires-Dist: " + r + "\n"
	}
	info := filepath.Join(dir, name+"-"+version+".dist-info")
	if err := os.MkdirAll(info, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(info, "METADATA"), text)
}

func TestAnUnchangedEnvironmentIsSeenWithoutStartingPython(t *testing.T) {
	t.Parallel()
	base := bare(t)
	l := newLocal(t, base)
	spec := Spec{Kind: Venv, Cluster: "c", Content: "--no-index\n"}
	made := l.must(spec)
	working := l.env
	l.env = append(l.env[:len(l.env):len(l.env)], "PYTHONHOME=/does/not/exist") // no Python starts with that
	r := l.must(spec)
	if !r.Skipped || l.trips != 1 || r.Python != made.Python || r.Version != made.Version || r.Home != l.home {
		t.Errorf("in %d round trips: %+v", l.trips, r)
	}
	// Whatever comes or goes among the packages is looked at anew.
	metadataOf(t, packages(t, base), "dlwbone", "1.0")
	if r, err := l.prepare(spec); err == nil {
		t.Errorf("it did not ask the interpreters again: %+v", r)
	}
	l.env = working
	if r = l.must(spec); !r.Skipped || l.trips != 1 {
		t.Errorf("in %d round trips: %+v", l.trips, r)
	}
	l.env = append(l.env[:len(l.env):len(l.env)], "PYTHONHOME=/does/not/exist")
	if r = l.must(spec); !r.Skipped {
		t.Errorf("the second look was not kept: %+v", r)
	}
	// Another requirement is no reason to start any, but to install.
	l.env = working
	spec.Content += "dlwbone\n"
	if f := l.mustFail(spec); !strings.Contains(f.Error(), "dlwbone") {
		t.Error(f)
	}
}

func TestAShimIsAskedEachTime(t *testing.T) {
	base := bare(t)
	l := newLocal(t, script(t, `exec `+base+`/python3 "$@"`))
	spec := Spec{Kind: System}
	if err := os.Mkdir(filepath.Join(l.home, ".dlwb"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.must(spec)
	noFile(t, filepath.Join(l.home, ".dlwb", "look"))
}

// What a shim of pyenv starts hangs on its files of versions and on a variable.
func TestAShimOfPyenvIsAskedWhenItMayStartAnotherPython(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	asked, shims := filepath.Join(root, "asked"), filepath.Join(root, "shims")
	pyenv := filepath.Join(root, "libexec", "pyenv")
	for _, dir := range []string{filepath.Dir(pyenv), shims, filepath.Join(root, "versions")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program(t, pyenv, "#!/bin/sh\necho >>"+asked+"\nshift 2\nexec "+bare(t)+"/python3 \"$@\"\n")
	program(t, filepath.Join(shims, "python3"), "#!/bin/sh\nset -e\nprogram=\"${0##*/}\"\nexec \""+pyenv+"\" exec \"$program\" \"$@\"\n")
	l := newLocal(t, shims)
	if err := os.Mkdir(filepath.Join(l.home, ".dlwb"), 0o700); err != nil {
		t.Fatal(err)
	}
	times := func(when string, want int) {
		t.Helper()
		r := l.must(Spec{Kind: System})
		text, _ := os.ReadFile(asked)
		if got := bytes.Count(text, []byte("\n")); got != want || r.Python == "" {
			t.Errorf("%s: it was asked %d times, want %d: %+v", when, got, want, r)
		}
	}
	times("at first", 1)
	times("nothing changed", 1)
	write(t, filepath.Join(root, "version"), "3.9.1\n")
	times("pyenv global", 2)
	times("nothing changed", 2)
	write(t, filepath.Join(l.home, ".python-version"), "3.9.1\n")
	times("pyenv local", 3)
	if err := os.Mkdir(filepath.Join(root, "versions", "3.9.1"), 0o755); err != nil {
		t.Fatal(err)
	}
	times("pyenv install", 4)
	l.env = append(l.env, "PYENV_VERSION=3.9.1")
	times("pyenv shell", 5)
	times("nothing changed", 5)
	l.env = append(l.env, "PYENV_DIR="+root)
	times("a directory that is not known", 6)
	times("a directory that is not known", 7)
}

func TestAPlanKeepsTheLookWhereItIsTold(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	keep := filepath.Join(t.TempDir(), "pythons")
	first, err := Probe(t.Context(), l, "", keep)
	if err != nil {
		t.Fatal(err)
	}
	l.env = append(l.env, "PYTHONHOME=/does/not/exist") // no Python starts with that
	again, err := Probe(t.Context(), l, "", keep)
	if err != nil || again.Python != first.Python || again.Version != first.Version {
		t.Errorf("%+v, %v; at first %+v", again, err, first)
	}
	noFile(t, filepath.Join(l.home, ".dlwb"))
}

func TestPipIsSparedWhereEverythingIsThere(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PIP_INDEX_URL=http://127.0.0.1:9/", "PYTHONPATH="+l.home+"/more")
	metadataOf(t, filepath.Join(l.home, "more"), "dlwb_one", "1.4", "dlwb-two>=2 ; python_version >= '3'", "other; extra == 'x'")
	metadataOf(t, filepath.Join(l.home, "more"), "dlwb_two", "2.0.1")
	r := l.must(Spec{Kind: Venv, Cluster: "c 1", Content: "# ours\nDLWB.one>=1.3,<2 # fine\ndlwb_two==2.*\n"})
	if r.Skipped || r.Kind != Venv {
		t.Errorf("got %+v", r)
	}
	for _, name := range []string{"pip", "pip3"} {
		out, err := exec.Command(filepath.Join(filepath.Dir(r.Python), name), "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), filepath.Join(l.home, "dlwb/c 1/venv")) {
			t.Errorf("%s --version: %v %s", name, err, out)
		}
	}
	// What is not there is pip's.
	f := l.mustFail(Spec{Kind: Venv, Cluster: "c 1", Content: "dlwb.one\nabsent\n"})
	if !strings.Contains(f.Command, "-m pip install") {
		t.Errorf("got %+v", f)
	}
}

func TestWhatOnlyPipCanJudgeIsLeftToPip(t *testing.T) {
	py := python(t, "sys.version_info >= (3, 8)", "apt-get install python3")
	dir := t.TempDir()
	metadataOf(t, dir, "plain", "1.2.3")
	metadataOf(t, dir, "local", "2.0.1+cu118")
	metadataOf(t, dir, "young", "1.0rc1")
	metadataOf(t, dir, "needy", "1", "absent>=1")
	metadataOf(t, dir, "marked", "1", "absent; sys_platform == 'nowhere'", "absent; extra == 'z'")
	metadataOf(t, dir, "odd", "1", "absent; python_version > '3' or os_name == 'x'")
	for text, want := range map[string]string{
		"plain":                                  `{"left": []}`,
		"plain==1.2.3\nlocal==2.0.1":             `{"left": []}`,
		"plain>=1.2,!=1.2.4, <=1.2.3.0":          `{"left": []}`,
		"plain~=1.2":                             `{"left": []}`,
		"plain~=1.1.0":                           `{"left": ["plain~=1.1.0"]}`,
		"plain==1.1.*":                           `{"left": ["plain==1.1.*"]}`,
		"plain>1.2.3":                            `{"left": ["plain>1.2.3"]}`,
		"plain<1.2.3; sys_platform == 'nowhere'": `{"left": []}`,
		"--index-url https://example.com\nplain": `{"left": []}`,
		"needy":                                  `{"left": ["absent>=1"]}`,
		"marked":                                 `{"left": []}`,
		"marked[z]":                              `{"left": ["absent"]}`,
		"marked[y]":                              "unsure",
		"absent":                                 `{"left": ["absent"]}`,
		"young>=1":                               "unsure",
		"young":                                  `{"left": []}`,
		"odd":                                    "unsure",
		"plain==1.2.3rc1":                        "unsure",
		"plain===1.2.3":                          "unsure",
		"-r other.txt":                           "unsure",
		"-e .":                                   "unsure",
		"plain @ https://example.com/x.whl":      "unsure",
		"./plain.whl":                            "unsure",
		"plain --hash=sha256:00":                 "unsure",
		"plain \\\n>=1":                          "unsure",
		"torch=>2":                               "unsure",
	} {
		cmd := exec.Command(py, "-c", checkPython)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		cmd.Stdin = strings.NewReader(text + "\n")
		out, err := cmd.CombinedOutput()
		said := bytes.TrimPrefix(bytes.TrimSpace(out), []byte("dlwb\tcheck\t"))
		if err != nil || string(said) != want && !(want == "unsure" && bytes.HasPrefix(said, []byte(`{"unsure"`))) {
			t.Errorf("%q: %s, %v; want %s", text, out, err, want)
		}
	}
}
