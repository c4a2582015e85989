package environment

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// local is a node made of this machine with a home directory of its own.
type local struct {
	t     testing.TB
	home  string
	env   []string
	trips int
	shell []string
	limit time.Duration // of what is installed; 0: a minute
	fetch micromamba
}

func newLocal(t testing.TB, path ...string) *local {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &local{t: t, home: home, shell: []string{"sh"}, env: []string{
		"HOME=" + home, "PATH=" + strings.Join(append(path, tools(t)), ":"),
		"PIP_NO_CACHE_DIR=1", "LC_ALL=C",
	}}
}

// tools is a PATH without any Python: only what the scripts call.
func tools(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "id", "uname", "head", "tail", "cat", "stat", "mkdir", "mv", "rm", "gcc"} {
		if real, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(real, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func (l *local) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	l.trips++
	cmd := exec.CommandContext(ctx, l.shell[0], append(l.shell[1:len(l.shell):len(l.shell)], "-c", line)...)
	cmd.Env, cmd.WaitDelay = l.env, time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, nil, nil, err
	}
	if ctx.Err() != nil {
		return 0, nil, nil, ctx.Err()
	}
	return cmd.ProcessState.ExitCode(), out.Bytes(), errs.Bytes(), nil
}

// prepare runs Prepare on it, without the directories outside of its PATH.
func (l *local) prepare(spec Spec) (Result, error) {
	l.t.Helper()
	l.trips = 0
	p := preparer{run: l, spec: spec, fetched: l.fetch, limit: cmp.Or(l.limit, 5*time.Minute), progress: func(text string) { l.t.Log(text) }}
	return p.prepare(l.t.Context())
}

func (l *local) must(spec Spec) Result {
	l.t.Helper()
	r, err := l.prepare(spec)
	if err != nil {
		l.explain(err)
		l.t.Fatal(err)
	}
	l.t.Log(r.Text)
	return r
}

func (l *local) mustFail(spec Spec) *Failure {
	l.t.Helper()
	r, err := l.prepare(spec)
	var f *Failure
	if !errors.As(err, &f) {
		l.t.Fatalf("got %+v, %v; want a failure", r, err)
	}
	l.t.Log(f)
	return f
}

func (l *local) explain(err error) {
	var f *Failure
	if errors.As(err, &f) {
		l.t.Log(strings.Join(f.LastLines, "\n"))
	}
}

// python executes an interpreter on the node and gives what it prints.
func (l *local) python(r Result, code string) string {
	l.t.Helper()
	cmd := exec.Command(r.Python, "-c", code)
	cmd.Env = append(append([]string{}, l.env...), r.Env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s -c %q: %v\n%s", r.Python, code, err, out)
	}
	return strings.TrimSpace(string(out))
}

// python finds a Python of this machine that answers yes to a question.
func python(t testing.TB, question, install string) string {
	t.Helper()
	for _, p := range []string{os.Getenv("DLWB_TEST_PYTHON"), "/usr/bin/python3", "python3"} {
		out, err := exec.Command("sh", "-c", `[ -n "$1" ] && exec "$1" -c "$2"`, "sh", p,
			"import sys\nif "+question+": print(sys.executable)").Output()
		if path := strings.TrimSpace(string(out)); err == nil && path != "" {
			return path
		}
	}
	t.Skipf("no suitable python3 here: install it with `%s`, or name one in DLWB_TEST_PYTHON", install)
	return ""
}

// bare makes a Python without any packages and gives its directory.
func bare(t testing.TB) string {
	t.Helper()
	base := python(t, "__import__('ensurepip') and __import__('venv')", "apt-get install python3-venv")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(base, "-m", "venv", "--without-pip", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "bin")
}

// script makes an executable python3 of a text and gives its directory.
func script(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := testprogram.Write(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// without makes a Python that lacks a module.
func without(t testing.TB, dir, module string) string {
	t.Helper()
	hidden := t.TempDir()
	code := fmt.Sprintf(`import sys
class Hide:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == %q:
            raise ImportError(name)
sys.meta_path.insert(0, Hide)
`, module)
	if err := os.WriteFile(filepath.Join(hidden, "sitecustomize.py"), []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	return script(t, fmt.Sprintf(`PYTHONPATH=%s exec %s/python3 "$@"`, hidden, dir))
}

// wheel makes a package that pip can install without an index.
func wheel(t testing.TB, dir, name, version string, needs ...string) {
	t.Helper()
	metadata := "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
	for _, need := range needs {
		metadata += "Requires-Dist: " + need + "\n"
	}
	f, err := os.Create(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	info := name + "-" + version + ".dist-info/"
	z := zip.NewWriter(f)
	for _, file := range [][2]string{
		{name + ".py", "version = '" + version + "'\n"},
		{info + "METADATA", metadata},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		w, err := z.Create(file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
