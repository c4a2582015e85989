package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// agrees holds that a machine which is asked for a plan says what a run would then use
// there, and that nothing is left by it.
func agrees(t *testing.T, l *local, spec Spec) Result {
	t.Helper()
	before, err := os.ReadDir(l.home)
	if err != nil {
		t.Fatal(err)
	}
	// The Python of this machine's own /usr/bin may have PyTorch, which would be taken.
	_, out, errs, err := l.Exec(t.Context(), strings.ReplaceAll(spec.AskLine(), usualDirs, homeDirs()))
	if err != nil {
		t.Fatal(err)
	}
	planned, err := spec.Told(out)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	if after, _ := os.ReadDir(l.home); len(after) != len(before) {
		t.Errorf("the look has left something: %v", after)
	}
	p := preparer{run: l, spec: spec, dirs: homeDirs(), limit: requiredLimit, progress: func(string) {}}
	r, err := p.prepare(t.Context())
	if err != nil {
		l.explain(err)
		t.Fatal(err)
	}
	if r.Python != planned.Python || r.Torch != planned.Torch || r.Text != planned.Text {
		t.Errorf("the plan said %+v, the run has %+v", planned, r)
	}
	return r
}

// homeDirs are the usual ones that lie in a home.
func homeDirs() string {
	return strings.Join(slices.DeleteFunc(strings.Split(usualDirs, ":"), filepath.IsAbs), ":")
}

// usual is a node whose PATH has the machine's tools and no Python.
func usual(t *testing.T) *local {
	t.Helper()
	l := newLocal(t)
	bin := t.TempDir()
	for _, name := range []string{"env", "tr", "awk", "cut", "sed", "readlink", "dirname", "basename", "ls", "bash", "grep", "sort", "find", "printf", "od"} {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.env[1] += ":" + bin
	return l
}

// realPyenv is the root of a real pyenv that has built a Python; it is only read.
func realPyenv(t *testing.T) (root, version string) {
	t.Helper()
	home, _ := os.UserHomeDir()
	for _, root = range []string{os.Getenv("DLWB_TEST_PYENV"), os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv")} {
		built, _ := filepath.Glob(filepath.Join(root, "versions", "3.*", "bin", "python3"))
		if root != "" && len(built) > 0 {
			return root, filepath.Base(filepath.Dir(filepath.Dir(built[len(built)-1])))
		}
	}
	t.Skip("NOT RUN: no pyenv here has built a Python 3; DLWB_TEST_PYENV names the root of one, and make test-environments says so")
	return "", ""
}

// What a real pyenv has built is found where commands by ssh do not have it on the
// PATH: behind its shims, and where nothing was chosen, and by its version.
func TestThePythonsOfPyenvAreFoundByThePlanAndTheRun(t *testing.T) {
	t.Parallel()
	root, version := realPyenv(t)
	for name, spec := range map[string]Spec{"chosen": {Kind: System}, "not chosen": {Kind: System}, "by its version": {Kind: System, Python: minor(version)}} {
		t.Run(name, func(t *testing.T) {
			l := usual(t)
			dir := filepath.Join(l.home, ".pyenv")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"bin", "libexec", "shims", "versions", "completions", "plugins", "pyenv.d"} {
				if name == "chosen" || part == "versions" {
					_ = os.Symlink(filepath.Join(root, part), filepath.Join(dir, part))
				}
			}
			write(t, filepath.Join(dir, "version"), version+"\n")
			if name == "chosen" {
				l.env = append(l.env, "PYENV_ROOT="+dir, "PYENV_VERSION="+version)
			}
			r := agrees(t, l, spec)
			if !strings.Contains(r.Python, "/versions/") || name != "not chosen" && !strings.HasPrefix(r.Version, minor(version)) {
				t.Errorf("%s: %+v", name, r)
			}
		})
	}
}

// An interpreter that only uv has brought is used where there is no other.
func TestThePythonThatUVHasBroughtIsFound(t *testing.T) {
	t.Parallel()
	_, version := realPyenv(t) // stands for what uv unpacks: uv's own come from the network
	root, _ := realPyenv(t)
	l := usual(t)
	dir := filepath.Join(l.home, ".local/share/uv/python")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "versions", version), filepath.Join(dir, "cpython-"+version+"-linux-x86_64-gnu")); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []Spec{{Kind: System}, {Kind: System, Python: minor(version)}} {
		if r := agrees(t, l, spec); r.Version != version {
			t.Errorf("%+v", r)
		}
	}
	if path, err := exec.LookPath(os.Getenv("DLWB_TEST_UV")); err == nil { // the real one agrees on the place
		c := exec.Command(path, "python", "dir")
		c.Env = l.env
		if out, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != dir {
			t.Errorf("uv keeps its interpreters in %s, %v", out, err)
		}
	}
}

// A conda that lies where nobody looks is found by the list that it keeps itself, and
// an environment by its name is used as `conda activate` would, unchanged.
func TestACondaEnvironmentThatIsThereIsUsedByItsName(t *testing.T) {
	t.Parallel()
	l, channel := withConda(t)
	prefix := filepath.Join(l.home, "far away", "envs", "torch2")
	if err := os.MkdirAll(filepath.Dir(prefix), 0o755); err != nil {
		t.Fatal(err)
	}
	tool, _ := filepath.Glob(filepath.Join(l.home, "miniforge3/bin/*"))
	c := exec.Command(tool[0], "create", "--yes", "--prefix", prefix, "--override-channels", "--channel", "file://"+channel, "python", "dlwbone")
	c.Env = append(slices.Clone(l.env), "HOME="+l.home)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	spec := Spec{Kind: Conda, Cluster: "c", File: "torch2", There: true}
	r := agrees(t, l, spec)
	if got := l.python(r, "import dlwbone, os; print(dlwbone.version, os.environ['CONDA_PREFIX'], os.environ['DLWB_ACTIVATED'])"); got != "1.0 "+prefix+" "+prefix+"/x" {
		t.Errorf("it runs with %q", got)
	}
	spec.File = prefix
	agrees(t, l, spec)
	spec.File = "torch3"
	if f := l.mustFail(spec); !strings.Contains(f.Error(), "there is no conda environment torch3") || !strings.Contains(f.Error(), "torch2 ("+prefix+")") {
		t.Error(f)
	}
	if _, err := os.Stat(filepath.Join(l.home, "dlwb")); err == nil {
		t.Error("it has made something")
	}
}

// moduleSystems are the two that clusters have, by the file that their functions come from.
func moduleSystems(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, init := range map[string]string{"Environment Modules": "/usr/share/modules/init/sh", "Lmod": "/usr/share/lmod/lmod/init/sh"} {
		if _, err := os.Stat(init); err == nil {
			found[name] = init
		}
	}
	if len(found) == 0 {
		t.Skip("NOT RUN: neither Environment Modules nor Lmod is installed; make test installs one of them")
	}
	return found
}

func TestModulesAreLoadedBeforeEverythingAndForTheRanks(t *testing.T) {
	t.Parallel()
	base := bare(t)
	for name, init := range moduleSystems(t) {
		t.Run(name, func(t *testing.T) {
			l := usual(t)
			real := os.Getenv("PATH")
			l.env[1] = l.env[1] + ":" + strings.Join(slices.DeleteFunc(strings.Split(real, ":"), func(dir string) bool {
				_, err := os.Stat(filepath.Join(dir, "python3"))
				return err == nil
			}), ":")
			files := filepath.Join(l.home, "modulefiles")
			if err := os.MkdirAll(filepath.Join(files, "python"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(files, "python/3.x"), "#%Module1.0\nprepend-path PATH "+base+"\nsetenv LAB_PYTHON \"yes it is\"\n")
			l.env = append(l.env, "MODULEPATH="+files, "MODULESHOME="+filepath.Dir(filepath.Dir(init)))
			spec := Spec{Kind: System, Cluster: "c", Modules: []string{"python/3.x"}, After: []string{`test "$LAB_PYTHON" = "yes it is" && command -v python3 >"$HOME/seen"`}}
			r := agrees(t, l, Spec{Kind: System, Modules: spec.Modules})
			if !slices.Contains(r.Env, "LAB_PYTHON=yes it is") || !slices.ContainsFunc(r.Env, func(kv string) bool { return strings.HasPrefix(kv, "PATH="+base+":") }) {
				t.Errorf("the ranks get %q", r.Env)
			}
			l.must(spec)
			if text, _ := os.ReadFile(filepath.Join(l.home, "seen")); strings.TrimSpace(string(text)) != base+"/python3" {
				t.Errorf("environment.after has %q", text)
			}
			spec.Modules = []string{"pyhton"}
			if f := l.mustFail(spec); !strings.Contains(f.Error(), "the module pyhton can't be loaded there") || !strings.Contains(f.Error(), "module avail") {
				t.Error(f)
			}
			_, out, _, _ := l.Exec(t.Context(), spec.AskLine())
			if _, err := spec.Told(out); err == nil || !strings.Contains(err.Error(), "the module pyhton can't be loaded there") {
				t.Errorf("the plan says %v", err)
			}
		})
	}
}

func TestWithoutModulesThatIsSaid(t *testing.T) {
	t.Parallel()
	_, err := Spec{Kind: System, Modules: []string{"cuda"}}.Told([]byte("hello\ndlwb\tmodule\t\tthere is no module command\n"))
	if err == nil || !strings.Contains(err.Error(), "there are no modules on the node") {
		t.Error(err)
	}
}
