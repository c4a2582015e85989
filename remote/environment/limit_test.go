package environment

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// deafIndex is a package index that takes connections and never answers.
func deafIndex(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return "http://" + l.Addr().String() + "/"
}

// nothingRunsIn waits until no process has the directory in its command line.
func nothingRunsIn(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		out, err := exec.Command("ps", "-eo", "args").Output()
		if err != nil {
			t.Skip("no ps here to look for processes: install procps")
		}
		left = left[:0]
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, dir) {
				left = append(left, line)
			}
		}
		if len(left) == 0 {
			return
		}
	}
	t.Errorf("still running: %q", left)
}

func TestAnInstallationEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PIP_INDEX_URL="+deafIndex(t))
	p := preparer{run: l, progress: func(string) {}, limit: 2 * time.Second,
		spec: Spec{Kind: Venv, Cluster: "c", Content: "no-such-package-dlwb"}}
	_, err := p.prepare(t.Context())
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v", err)
	}
	contains(t, f.Why, "was not done within 2s")
	noFile(t, filepath.Join(l.home, "dlwb/c/venv"))
	nothingRunsIn(t, l.home)
}

func TestAnInstallationThatNobodyWaitsForEnds(t *testing.T) {
	t.Parallel()
	l := newLocal(t, bare(t))
	l.env = append(l.env, "PIP_INDEX_URL="+deafIndex(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		file := filepath.Join(l.home, "dlwb/c/venv/requirements.txt")
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	p := preparer{run: l, progress: func(string) {}, limit: time.Minute,
		spec: Spec{Kind: Venv, Cluster: "c", Content: "no-such-package-dlwb", Optional: true}}
	_, err := p.prepare(ctx)
	cancel() // also where it failed for another reason
	<-cancelled
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	nothingRunsIn(t, l.home)
}

func TestTwoNodesThatShareAHomeInstallOnce(t *testing.T) {
	t.Parallel()
	wheels := t.TempDir()
	wheel(t, wheels, "dlwbone", "1.0")
	l := newLocal(t, bare(t))
	spec := Spec{Kind: Venv, Cluster: "c", Content: "--no-index\n--find-links " + wheels + "\ndlwbone\n"}
	type outcome struct {
		r   Result
		err error
	}
	done := make(chan outcome)
	for range 2 {
		other := *l
		p := preparer{run: &other, spec: spec, progress: func(string) {}, limit: time.Minute}
		go func() {
			r, err := p.prepare(t.Context())
			done <- outcome{r, err}
		}()
	}
	skipped := 0
	for range 2 {
		o := <-done
		if o.err != nil {
			t.Fatal(o.err)
		}
		if o.r.Skipped {
			skipped++
			contains(t, o.r.Text, "shares the directory")
		}
	}
	if skipped != 1 {
		t.Errorf("%d of 2 nodes left the work to the other", skipped)
	}
}

func TestTheProbeRunsUnderEveryShell(t *testing.T) {
	first := bare(t)
	for _, shell := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			path, err := exec.LookPath(shell[0])
			if err != nil {
				t.Skipf("no %s here: install it with `apt-get install %s`", shell[0], shell[0])
			}
			l := newLocal(t, "", "/nowhere", first)
			l.shell = append([]string{path}, shell[1:]...)
			r := l.must(Spec{Kind: System})
			if r.Python != first+"/python3" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestTheScriptsPassShellcheck(t *testing.T) {
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("no shellcheck here: install it with `apt-get install shellcheck`")
	}
	scripts := []string{"-s", "sh"}
	for _, name := range []string{"probe", "python", "setup", "conda", "container", "run"} {
		scripts = append(scripts, "scripts/"+name+".sh")
	}
	if out, err := exec.Command(path, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
}

// streaming is a node whose output is heard while a command runs.
type streaming struct {
	*local
	heard int
}

func (s *streaming) Stream(ctx context.Context, line string, stdout func(string)) (int, []byte, error) {
	exit, out, errs, err := s.Exec(ctx, line)
	for _, l := range strings.Split(string(out), "\n") {
		s.heard++
		stdout(l)
	}
	return exit, errs, err
}

func TestARunnerThatStreamsIsHeard(t *testing.T) {
	t.Parallel()
	s := &streaming{local: newLocal(t, bare(t))}
	var told []string
	p := preparer{run: s, progress: func(text string) { told = append(told, text) }, limit: time.Minute,
		spec: Spec{Kind: Venv, Cluster: "c", File: "r.txt", Content: "not a requirement"}}
	_, err := p.prepare(t.Context())
	var f *Failure
	if !errors.As(err, &f) || s.heard == 0 {
		t.Fatalf("heard %d lines, error %v", s.heard, err)
	}
	contains(t, f.Why, "r.txt, line 1 is not a requirement")
	contains(t, strings.Join(told, "\n"), "looking for Python", "installing r.txt for Python", "Invalid requirement")
}
