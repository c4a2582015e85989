//go:build linux

package frameworks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endless is a trial that goes on for ever on two nodes.
type endless struct {
	lab
	out  bytes.Buffer
	over chan error
}

func begin(ctx context.Context, t *testing.T, trial Trial) (*endless, error) {
	t.Helper()
	e := &endless{lab: newLab(t, trial, Shape{2, 1}, "wait"), over: make(chan error, 1)}
	c := e.run(ctx)
	c.Stdout, c.Stderr = &e.out, &e.out
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() { e.over <- c.Wait() }()
	return e, nil
}

var (
	waiting = regexp.MustCompile(`waiting (\d+)`)
	ofRank1 = regexp.MustCompile(`(?s)rank-1\.log\n.*?waiting (\d+)`)
)

// busy waits until all ranks are, and gives the process of the last one. Its
// number is -1 where a driver prints for all.
func (e *endless) busy(ctx context.Context) (pid, rank int, err error) {
	for ctx.Err() == nil {
		text := e.logs()
		if m := ofRank1.FindStringSubmatch(text); m != nil && strings.Contains(text, "rank-0.log") {
			pid, err = strconv.Atoi(m[1])
			return pid, 1, err
		}
		if m := waiting.FindAllStringSubmatch(text, -1); len(m) > 4 && !strings.Contains(text, "rank-1.log") {
			pid, err = strconv.Atoi(m[len(m)-1][1])
			return pid, -1, err
		}
		select {
		case err := <-e.over:
			return 0, 0, fmt.Errorf("it ended before all ranks were busy: %v: %s\n%s", err, tail(e.out.String(), 10), tail(text, 80))
		case <-time.After(200 * time.Millisecond):
		}
	}
	return 0, 0, errors.Join(fmt.Errorf("it never got so far:\n%s", tail(e.logs(), 80)), <-e.over)
}

// without kills a process and says how long the others took to end, and why the
// run has ended by its own word.
func (e *endless) without(pid int) (took time.Duration, verdict, cause string, err error) {
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, "", "", err
	}
	select {
	case <-e.over:
		took = time.Since(began)
	case <-time.After(2 * endLimit):
		return 0, "", "", fmt.Errorf("the others were still there after %v:\n%s", 2*endLimit, tail(e.logs(), 60))
	}
	if took > endLimit {
		err = fmt.Errorf("the others ended after %v", took)
	}
	verdict, cause = ended(e.out.Bytes())
	return took, verdict, cause, errors.Join(err, e.nothingLeft(e.out.Bytes()))
}

// kill starts a trial that goes on for ever on two nodes, kills the last rank
// once all are busy, and says how long the others took to end.
func kill(t *testing.T, trial Trial) (said string, err error) {
	t.Helper()
	ctx, cancel := limited(t, t.Context())
	defer cancel()
	e, err := begin(ctx, t, trial)
	if err != nil {
		return "", err
	}
	pid, rank, err := e.busy(ctx)
	if err != nil {
		return "", err
	}
	took, verdict, cause, err := e.without(pid)
	if err != nil {
		cancel()
	}
	said = fmt.Sprintf("%.0f s: %s", took.Seconds(), cause)
	switch named := strings.HasPrefix(cause, fmt.Sprintf("rank %d on node1", rank)); {
	case err != nil:
	case rank >= 0 && (!named || verdict != "killed"):
		err = fmt.Errorf("the verdict is %s: %s\n%s", verdict, cause, tail(e.logs(), 60))
	case rank < 0 && (verdict != "failed" || !regexp.MustCompile(`(?i)rank.{0,3}\d`).MatchString(tail(e.logs(), 200))):
		err = fmt.Errorf("the verdict is %s: %s; or no rank is named:\n%s", verdict, cause, tail(e.logs(), 60))
	}
	return said, err
}

// process finds one of the run by the name of its program and the node that its
// arguments speak of; either may be empty.
func (e *endless) process(name, node string) (pid int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		dir := filepath.Dir(path)
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		environ, _ := os.ReadFile(path)
		if strings.TrimSpace(string(comm)) != name || !bytes.Contains(environ, []byte(e.state)) {
			continue
		}
		if args, _ := os.ReadFile(filepath.Join(dir, "cmdline")); node == "" || bytes.Contains(args, []byte(node)) {
			pid, _ = strconv.Atoi(filepath.Base(dir))
		}
	}
	return pid
}

// What a Ray consists of is missed as a rank is: the run ends on all nodes, and
// whose part it was is said.
func TestFrameworksRayWithoutAPartOfIt(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "ray") {
		t.Skip("the frameworks are not installed, or Ray is not asked for: make test-frameworks does that")
	}
	trial := Trials[slices.IndexFunc(Trials, func(t Trial) bool { return t.Engine == "ray" })]
	for _, part := range []struct{ program, node, blamed string }{{"gcs_server", "", "node0"}, {"raylet", "node1", "node1"}, {"raylet", "node0", "node0"}} {
		t.Run(part.program+part.node, func(t *testing.T) {
			ctx, cancel := limited(t, t.Context())
			defer cancel()
			e, err := begin(ctx, t, trial)
			if err == nil {
				_, _, err = e.busy(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			took, verdict, cause, err := e.without(e.process(part.program, part.node))
			t.Logf("%v: %s: %s", took, verdict, cause)
			if err != nil || verdict != "failed" || !strings.Contains(cause, part.blamed) {
				t.Errorf("%v\n%s", err, tail(e.logs(), 60))
			}
		})
	}
}

// lateAgents makes every agent of Ray slow, as they are on a machine that has
// other work: Ray by itself gives up then.
const lateAgents = `import sys, time
if any("agent" in word and word.endswith(".py") for word in sys.orig_argv):
    time.sleep(40)
`

func TestFrameworksRayOnASlowMachine(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "ray") {
		t.Skip("the frameworks are not installed, or Ray is not asked for: make test-frameworks does that")
	}
	trial := Trials[slices.IndexFunc(Trials, func(t Trial) bool { return t.Engine == "ray" })]
	ctx, cancel := limited(t, t.Context())
	defer cancel()
	l := newLab(t, trial, Shape{2, 1}, "")
	late := t.TempDir()
	if err := os.WriteFile(filepath.Join(late, "sitecustomize.py"), []byte(lateAgents), 0o600); err != nil {
		t.Fatal(err)
	}
	l.add("  env: {PYTHONPATH: " + late + "}\n")
	out, err := l.run(ctx).CombinedOutput()
	// The two Rays of one machine may each bring what a worker prints to the driver.
	told := map[string]bool{}
	for _, m := range summed.FindAllStringSubmatch(l.logs(), -1) {
		told[m[1]+" of "+m[2]+" "+m[3]] = true
	}
	if err != nil || len(told) != 2 || !told["0 of 2 2"] || !told["1 of 2 2"] {
		t.Errorf("%v, the ranks have told %v: %s\n%s", err, told, tail(string(out), 15), tail(l.logs(), 60))
	}
}
