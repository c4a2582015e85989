//go:build linux

package environment

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/podrig"
	"github.com/dlwb/dlwb/internal/shellword"
)

// withPodman is a node with a real podman and an image that has Python.
func withPodman(t testing.TB) *local {
	t.Helper()
	env := podrig.Images(t)
	l := newLocal(t)
	l.env[1] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin" // a program called docker elsewhere is another one
	l.env = append(l.env, env...)
	return l
}

// inside runs a command as a rank would be, and gives what it prints.
func (l *local) inside(r Result, env []string, argv ...string) (out string, code int) {
	l.t.Helper()
	cmd := exec.Command(r.Wrap[0], argv...)
	cmd.Env = append(slices.Clone(l.env), append(r.Env, env...)...)
	cmd.Dir = filepath.Join(l.home, "dlwb/c")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, _ := cmd.Output()
	l.t.Log(errs.String())
	return strings.TrimSpace(string(text)), cmd.ProcessState.ExitCode()
}

func TestRanksRunInTheImage(t *testing.T) {
	l := withPodman(t)
	data := t.TempDir()
	write(t, filepath.Join(data, "sample"), "data")
	spec := Spec{Kind: Docker, Cluster: "c", File: podrig.PythonImage, Mounts: []string{data + ":/data:ro"}}
	r := l.must(spec)
	if r.Version == "" || r.Skipped || r.Python != l.home+"/dlwb/c/container/python" {
		t.Errorf("got %+v", r)
	}
	script := `import os
open("written", "w").write(os.environ["A"])
open(os.path.expanduser("~/cache"), "w").close()
print(os.getpid(), os.environ["A"], os.environ.get("B"), open("/data/sample").read(), os.path.exists("/usr/bin/podman"), os.getcwd())
raise SystemExit(7)`
	out, code := l.inside(r, []string{"A=it's\ntwo lines", "DLWB_RUN=x"}, r.Python, "-c", script)
	f := strings.SplitN(out, " ", 2)
	if want := "it's\ntwo lines None data False " + l.home + "/dlwb/c"; len(f) != 2 || f[1] != want || code != 7 {
		t.Errorf("inside: %q, exit code %d; want %q and 7", out, code, want)
	}
	if text, _ := os.ReadFile(filepath.Join(l.home, "dlwb/c/written")); string(text) != "it's\ntwo lines" {
		t.Errorf("what is written there is not here: %q", text)
	}
	if r = l.must(spec); !r.Skipped || l.trips != 1 {
		t.Errorf("unchanged: skipped %v in %d round trips", r.Skipped, l.trips)
	}
	spec.Mounts = nil
	if r = l.must(spec); r.Skipped {
		t.Error("other mounts were passed over")
	}
}

func TestAnImageIsBuiltAgainWhenItsInputsChangeAndOnlyThen(t *testing.T) {
	l := withPodman(t)
	code := filepath.Join(l.home, "dlwb/c/code")
	if err := os.MkdirAll(filepath.Join(code, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(code, "etc/one"), "1")
	write(t, filepath.Join(code, "train.py"), "x")
	dockerfile := "FROM " + podrig.PythonImage + "\nCOPY --chown=0:0 etc \\\n  /etc/dlwb\nENV FROM_IMAGE=yes\n"
	write(t, filepath.Join(code, "Dockerfile"), dockerfile)
	spec := Spec{Kind: Docker, Cluster: "c", File: "Dockerfile", Content: dockerfile, Code: "dlwb/c/code"}
	cat := func(r Result) string {
		out, _ := l.inside(r, nil, "sh", "-c", "cat /etc/dlwb/one; echo $FROM_IMAGE")
		return out
	}
	if got := cat(l.must(spec)); got != "1yes" {
		t.Errorf("inside: %q", got)
	}
	write(t, filepath.Join(code, "train.py"), "changed")
	if r := l.must(spec); !r.Skipped {
		t.Error("a file that is no input built it again")
	}
	write(t, filepath.Join(code, "etc/one"), "2")
	if r := l.must(spec); r.Skipped || cat(r) != "2yes" {
		t.Errorf("after a change: skipped %v, inside %q", r.Skipped, cat(r))
	}
	spec.Content = "FROM " + podrig.PythonImage + "\nCOPY nowhere /\n"
	write(t, filepath.Join(code, "Dockerfile"), spec.Content)
	f := l.mustFail(spec)
	contains(t, f.Why, "copies a file that is not in the code")
	contains(t, f.Command, "podman build")
	if len(f.LastLines) == 0 {
		t.Error("without its last lines")
	}
}

// An image that did not change costs one question to the engine, whose every start
// takes a tenth of a second and more; after a change of anything all are asked again.
func TestAnUnchangedImageIsOneQuestion(t *testing.T) {
	l := withPodman(t)
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	program(t, filepath.Join(bin, "podman"), "#!/bin/sh\necho \"$@\" >>'"+asked+"'\nexec /usr/bin/podman \"$@\"\n")
	l.env[1] = "PATH=" + bin + ":/usr/sbin:/usr/bin:/sbin:/bin"
	spec := Spec{Kind: Docker, Cluster: "c", File: podrig.PythonImage}
	first := l.must(spec)
	write(t, asked, "")
	again := l.must(spec)
	text, err := os.ReadFile(asked)
	if calls := strings.Split(strings.TrimSpace(string(text)), "\n"); err != nil || len(calls) != 1 || !strings.HasPrefix(calls[0], "image inspect ") {
		t.Errorf("asked was %q (%v)", calls, err)
	}
	if !again.Skipped || again.Python != first.Python || again.Version != first.Version || !slices.Equal(again.Wrap, first.Wrap) {
		t.Errorf("%+v, and before %+v", again, first)
	}
	spec.Mounts = []string{bin + ":/data:ro"}
	if r := l.must(spec); r.Skipped {
		t.Error("other mounts were passed over")
	}
}

// A podman that needs four seconds after the end of what it ran, as on a busy machine,
// and one whose own helper was killed, which waits for ever.
func TestTheExitCodeOfASlowPodmanIsKeptAndOneThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		helper string // the process beside the container
		code   int
	}{"slow": {"sleep 6 & helper=$!", 3}, "hangs": {"sh -c : & helper=$!; wait $helper; sleep 60", 137}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "hangs" && os.Getenv("DLWB_RIGS") == "" {
				t.Skip("NOT RUN: it takes 16 s; make test-environments runs it")
			}
			home, dir := t.TempDir(), t.TempDir()
			program(t, filepath.Join(dir, "podman"), `#!/bin/sh
while [ $# -gt 0 ]; do case $1 in --*pidfile) pid=$2 mon=$1 ;; esac; shift; done
[ -n "${pid-}" ] || exit 0
true & gone=$!; wait $gone
helper=$gone
`+strings.Replace(c.helper, "; wait $helper; sleep 60", "; wait $helper; printf %s $helper >$pid; exec sleep 60", 1)+`
case $mon in *conmon*) ;; *) helper=$gone ;; esac
printf %s $helper >$pid
sleep 4
kill $helper 2>/dev/null
exit 3
`)
			program(t, filepath.Join(home, "run"), "#!/bin/sh\nengine=podman image=x gpus= dir="+home+" python=python3\nmounts=\n"+runShell)
			write(t, filepath.Join(home, "baseline"), "")
			cmd := exec.Command(filepath.Join(home, "run"), "true")
			cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + dir + ":/usr/bin:/bin", "DLWB_RUN_DIR=" + home}, home
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d: %v\n%s", code, c.code, err, out)
			}
		})
	}
}

// The containers of a directory go, one that never began too; what stays and what can't
// be known is told. docker here is a directory with a file for each container.
func TestContainersOfADirectoryAreRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rm, ps  string // what these commands do besides
		without bool   // no docker
		want    string // of the error
		stay    bool   // which is sure
	}{
		"gone":      {},
		"busy":      {rm: `[ -e "$at/tried" ] || { : >"$at/tried"; exit 1; }`},
		"stays":     {rm: "exit 1", want: "could not be removed: aa Created", stay: true},
		"mute":      {ps: "echo 'Cannot connect to the Docker daemon' >&2; exit 1", want: "not known: Cannot connect to the Docker daemon"},
		"no engine": {without: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, at := filepath.Join(t.TempDir(), "my [disk]*"), t.TempDir()
			dir := filepath.Join(home, "dlwb", "c", "container")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if !c.without {
				program(t, filepath.Join(at, "docker"), "#!/bin/sh\nat="+shellword.Quote(at)+`
case $1 in
ps) `+c.ps+`
	case "$*" in *"label=dlwb="`+shellword.Quote(dir)+`) ;; *) exit 3 ;; esac
	for f in "$at"/c-*; do [ ! -e "$f" ] || echo "${f##*/c-} Created"; done ;;
rm) `+c.rm+`
	for last; do :; done
	[ "$*" = "rm --force $last" ] && rm "$at/c-$last" ;;
esac
`)
			}
			program(t, filepath.Join(dir, "run"), "#!/bin/sh\nengine=docker image=x gpus= dir="+shellword.Quote(dir)+" python=python3\nmounts=\n"+runShell)
			if err := os.Symlink("run", filepath.Join(dir, containers.Gone)); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(at, "c-aa"), "")
			write(t, filepath.Join(dir, "baseline"), "LANG\tC\nPATH\t"+at+":/bin\n")
			has, left := containers.Remove(t.Context(), filepath.Join(home, "dlwb", "c"), []string{"HOME=" + home, "PATH=/usr/bin:/bin"})
			if has == c.without || (left == nil) != (c.want == "") || left != nil && (!strings.Contains(left.Error(), c.want) || (len(left.Containers) > 0) != c.stay) {
				t.Errorf("%t, %+v; want %q", has, left, c.want)
			}
			if _, is := os.Stat(filepath.Join(at, "c-aa")); !c.without && (is == nil) != (c.want != "") {
				t.Errorf("the container: %v", is)
			}
		})
	}
}

func TestWithoutAContainerEngineThatIsSaid(t *testing.T) {
	l := newLocal(t)
	contains(t, l.mustFail(Spec{Kind: Docker, Cluster: "c", File: "x"}).Why, "neither docker nor podman")
	dir := t.TempDir()
	program(t, filepath.Join(dir, "docker"), "#!/bin/sh\n[ \"$1\" != info ] || { echo 'permission denied while trying to connect to the Docker daemon socket' >&2; exit 1; }\n")
	l.env[1] += ":" + dir
	f := l.mustFail(Spec{Kind: Docker, Cluster: "c", File: "x"})
	contains(t, f.Why, "docker: permission denied")
	contains(t, f.Next, "usermod -aG docker")
}

func TestAnEnvironmentFileMakesAnImage(t *testing.T) {
	img, err := Spec{Kind: Docker, File: "conf/environment.yml", Content: "dependencies: [python]"}.image()
	if err != nil || !strings.Contains(img.own, `COPY ["conf/environment.yml","/tmp/environment.yml"]`) || !slices.Equal(img.sources, []string{"conf/environment.yml"}) {
		t.Errorf("got %+v, %v", img, err)
	}
	if img, _ = (Spec{Kind: Docker, File: "pytorch/pytorch:latest"}).image(); img.name != "pytorch/pytorch:latest" {
		t.Errorf("got %+v", img)
	}
}
