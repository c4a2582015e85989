package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func noFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s was left behind", path)
	}
}

func TestANodeWithoutPythonIsOneClearFailure(t *testing.T) {
	l := newLocal(t)
	f := l.mustFail(Spec{Kind: System, Optional: true})
	contains(t, f.Error(), "there is no Python 3 on the node")
	if f.Next == "" {
		t.Error("it does not say what to do")
	}
	if l.trips != 1 {
		t.Errorf("it took %d round trips", l.trips)
	}
	noFile(t, filepath.Join(l.home, ".dlwb"))
}

func TestAPythonThatDoesNotRunIsPassedOver(t *testing.T) {
	shim := script(t, "echo 'pyenv: python3: command not found' >&2; exit 127")
	l := newLocal(t, shim, bare(t))
	r := l.must(Spec{Kind: System})
	contains(t, strings.Join(r.Notes, "\n"), shim+"/python3 does not run: pyenv: python3: command not found")

	f := newLocal(t, shim).mustFail(Spec{Kind: System})
	contains(t, f.Error(), "no Python 3 on the node that runs", "command not found")
}

// Its last words are of a stack that is empty.
func TestAPythonThatCanNotBeginSaysWhy(t *testing.T) {
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PYTHONHOME=/nonexistent")
	f := l.mustFail(Spec{Kind: System})
	contains(t, f.Error(), "Fatal Python error: ", "PYTHONHOME is set to /nonexistent", "not set PYTHONHOME")
}

func TestThePythonOfTheProfileIsTaken(t *testing.T) {
	first, second := bare(t), bare(t)
	l := newLocal(t, first, second)
	for _, want := range []string{second + "/python3", "~/py/bin/python3"} {
		_ = os.Symlink(filepath.Dir(second), filepath.Join(l.home, "py"))
		r := l.must(Spec{Kind: System, Python: want})
		if filepath.Base(r.Python) != "python3" || strings.HasPrefix(r.Python, first) || r.Torch != "" {
			t.Errorf("asked for %s, got %s", want, r.Python)
		}
	}
	f := l.mustFail(Spec{Kind: System, Python: "python9"})
	contains(t, f.Error(), "python9, is not on the node", "set environment.python", first)
	f = l.mustFail(Spec{Kind: System, Python: script(t, "echo broken >&2; exit 1") + "/python3"})
	contains(t, f.Error(), "does not run on the node: broken")
}

// A wrapper of shell, a Makefile and environment.after say python and do not know the
// profile; what is first on the PATH already needs nothing.
func TestAScriptOfShellMeansTheChosenPython(t *testing.T) {
	first, second := bare(t), bare(t)
	l := newLocal(t, first)
	for _, want := range []string{"", first + "/python3", second + "/python3"} {
		spec := Spec{Kind: System, Python: want, Cluster: "c", After: []string{`python -c "import sys; print(sys.executable)" >"$HOME/after"`}}
		r := l.must(spec)
		if (len(r.Env) > 0) != strings.HasPrefix(want, second) {
			t.Errorf("asked for %q, the ranks have %q", want, r.Env)
		}
		after, _ := os.ReadFile(filepath.Join(l.home, "after"))
		for _, said := range []string{string(after), l.python(r, `import subprocess; print(subprocess.check_output(["python", "-c", "import sys; print(sys.executable)"], text=True))`)} {
			if filepath.Dir(strings.TrimSpace(said)) != filepath.Dir(r.Python) {
				t.Errorf("asked for %q, python is %s and the ranks have %s", want, said, r.Python)
			}
		}
	}
}

func TestWithoutPyTorchTheFirstPythonIsUsedAndSaysHowToGetIt(t *testing.T) {
	first := bare(t)
	r := newLocal(t, first, bare(t)).must(Spec{Kind: System})
	if r.Python != first+"/python3" || r.Torch != "" || len(r.Env) != 0 || r.Home == "" {
		t.Errorf("got %+v", r)
	}
	contains(t, r.Text, "without PyTorch")
	contains(t, strings.Join(r.Notes, "\n"), "to train with PyTorch")
}

func TestAnUnknownKindNamesTheKnownOnes(t *testing.T) {
	_, err := newLocal(t).prepare(Spec{Kind: "nix"})
	if err == nil || err.Error() != `environment kind "nix" is not one of system, venv, conda, docker` {
		t.Errorf("got %v", err)
	}
	for _, cluster := range []string{"", "..", "a/b", ".x"} {
		if _, err := newLocal(t).prepare(Spec{Kind: Venv, Cluster: cluster}); err == nil {
			t.Errorf("the cluster name %q was taken", cluster)
		}
	}
}

func TestAVirtualEnvironmentIsMadeOnceAndUpdatedWhenItsRequirementsChange(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	wheel(t, wheels, "dlwbtwo", "2.0")
	l := newLocal(t, bare(t))
	for _, trap := range []string{"json.py", "torch.py", "pip.py", "venv.py"} {
		write(t, filepath.Join(l.home, trap), "raise SystemExit('the wrong "+trap+"')\n")
	}
	offline := "--no-index\n--find-links " + wheels + "\n"
	spec := Spec{Kind: Venv, Cluster: "c 1", File: "requirements.txt", Content: offline + "dlwbone\n"}
	dir := filepath.Join(l.home, "dlwb", "c 1", "venv")

	r := l.must(spec)
	if r.Python != dir+"/bin/python" || r.Kind != Venv || r.Skipped {
		t.Errorf("got %+v", r)
	}
	contains(t, r.Text, "requirements.txt installed in")
	if got := l.python(r, "import dlwbone; print(dlwbone.version)"); got != "1.0" {
		t.Errorf("the package says %q", got)
	}
	if !slices.Contains(r.Env, "VIRTUAL_ENV="+dir) {
		t.Errorf("env is %q", r.Env)
	}

	r = l.must(spec)
	contains(t, r.Text, "requirements.txt did not change")
	if !r.Skipped || l.trips != 1 {
		t.Errorf("skipped %v in %d round trips", r.Skipped, l.trips)
	}

	marker := filepath.Join(dir, "marker")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// More than goes along in one command line.
	spec.Content = offline + "dlwbone\ndlwbtwo\n" + strings.Repeat("# padding\n", 10<<10)
	r = l.must(spec)
	if got := l.python(r, "import dlwbtwo; print(dlwbtwo.version)"); got != "2.0" || r.Skipped {
		t.Errorf("the second package says %q; skipped %v", got, r.Skipped)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("a changed line made the whole environment anew")
	}
	noFile(t, filepath.Join(l.home, "dlwb", "c 1", ".requirements.part"))

	spec.Force = true
	if r = l.must(spec); r.Skipped {
		t.Error("force was skipped")
	}
	noFile(t, marker)
}

func TestAFailedInstallationLeavesNothingAndTellsTheLine(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	f := l.mustFail(Spec{Kind: Venv, Cluster: "c", File: "deps/req.txt", Content: "# mine\ntorch=>2\n"})
	contains(t, f.Why, "deps/req.txt, line 2 is not a requirement", "torch=>2")
	contains(t, f.Command, "-m pip install", "-r deps/req.txt")
	if f.ExitCode == 0 || len(f.LastLines) == 0 {
		t.Errorf("got %+v", f)
	}
	noFile(t, filepath.Join(l.home, "dlwb/c/venv"))
}

func TestAnOptionalEnvironmentFallsBackToThePythonThatIsThere(t *testing.T) {
	t.Parallel()
	first := bare(t)
	l := newLocal(t, first)
	l.env = append(l.env, "PIP_INDEX_URL=http://127.0.0.1:9/")
	spec := Spec{Kind: Venv, Cluster: "c", File: "requirements.txt", Content: "no-such-package-dlwb\n", Optional: true}
	r := l.must(spec)
	if r.Kind != System || r.Python != first+"/python3" || r.Skipped {
		t.Errorf("got %+v", r)
	}
	contains(t, r.Text, "as it is on the node, because requirements.txt could not be installed: the package index can't be reached")
	contains(t, strings.Join(r.Notes, "\n"), "to train with PyTorch")
	noFile(t, filepath.Join(l.home, "dlwb/c/venv"))

	spec.Optional = false
	contains(t, l.mustFail(spec).Error(), "the package index can't be reached from the node")
}

func TestAPythonThatCannotMakeEnvironmentsSaysWhatToInstall(t *testing.T) {
	l := newLocal(t, without(t, bare(t), "ensurepip"))
	f := l.mustFail(Spec{Kind: Venv, Cluster: "c", Content: "torch"})
	contains(t, f.Error(), "its venv or ensurepip module is missing")
	if f.Next == "" {
		t.Error("it does not say what to do")
	}
	noFile(t, filepath.Join(l.home, "dlwb"))
}

func TestAnOptionalEnvironmentIsSparedWhereItsPackagesAre(t *testing.T) {
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.4")
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PYTHONPATH="+filepath.Join(wheels, "dlwbone-1.4-py3-none-any.whl"))
	r := l.must(Spec{Kind: Venv, Cluster: "c", Content: "dlwbone>=1.3 # ours\n", Optional: true})
	if !r.Skipped || r.Kind != System || l.trips != 1 {
		t.Errorf("got %+v in %d round trips", r, l.trips)
	}
	contains(t, r.Text, "already has what requirements.txt asks for")
}

// What a file that others name with -c says is held to, by pip itself.
func TestConstraintsHoldAndMakeTheEnvironmentAnewWhenTheyChange(t *testing.T) {
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbpinned", "1.0")
	wheel(t, wheels, "dlwbpinned", "2.0")
	l := newLocal(t, bare(t))
	spec := Spec{Kind: Venv, Cluster: "c", File: "requirements.txt", Content: "--no-index\n--find-links " + wheels + "\n" + Constraint + "dlwbpinned<2\ndlwbpinned\n"}
	r := l.must(spec)
	if got := l.python(r, "import dlwbpinned; print(dlwbpinned.version)"); got != "1.0" {
		t.Errorf("version %s", got)
	}
	spec.Content = strings.Replace(spec.Content, "<2", "<3", 1)
	if r = l.must(spec); r.Skipped {
		t.Error("another constraint was passed over")
	}
}
