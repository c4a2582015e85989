//go:build linux

package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// frames reads telemetry until take has enough of it.
func frames(t *testing.T, n *Node, pace *job.Pace, take func(frame string) (enough bool)) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	err := n.Telemetry(ctx, "lo", pace, func(frame []byte) {
		text := string(frame)
		if ctx.Err() == nil && (!strings.HasPrefix(text, "frame ") || !strings.HasSuffix(text, "\nend\n") || strings.Count(text, "frame ") > 1) {
			t.Errorf("%q is no whole frame", text)
		}
		if take(text) {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v, want context.Canceled", err)
	}
}

func TestTelemetrySurvivesALostConnection(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	count := 0
	frames(t, n, nil, func(frame string) bool {
		if count++; count == 2 {
			s.KillConnections()
		}
		if !strings.Contains(frame, "\nnet ") || !strings.Contains(frame, "\nmem ") {
			t.Errorf("a frame is\n%s", frame)
		}
		return count == 5
	})
}

func TestTelemetryIsAskedForItsPaceOverTheStreamThatIsThere(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	pace := job.NewPace()
	var got []string
	frames(t, n, pace, func(frame string) bool {
		every := "1"
		if _, rest, is := strings.Cut(frame, "\nevery "); is {
			every, _, _ = strings.Cut(rest, "\n")
		}
		if n := len(got); n > 0 && n < 4 && every == got[n-1] {
			return false // what is asked for is still on its way: a busy machine takes longer than a frame
		}
		switch got = append(got, every); len(got) {
		case 1:
			pace.Set(time.Hour)
		case 2:
			pace.Set(10 * time.Second) // as it is
			pace.Set(0)
		case 3:
			pace.Set(5 * time.Second)
		case 4:
			s.KillConnections() // the next stream begins with it
		case 5:
			return true
		}
		return false
	})
	if got := strings.Join(got, " "); got != "1 10 1 5 5" {
		t.Errorf("the paces were %q", got)
	}
}

// An agent that is killed leaves no nvidia-smi, whatever that does.
func TestNoNvidiaSMIOutlivesItsStream(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	writeProgram(t, filepath.Join(bin, "nvidia-smi"), "trap '' TERM HUP PIPE; echo $$ >>"+asked+"; echo '0, A, 5, 1, 2, 3, 4, 5'; while :; do sleep 1000; done")
	s := sshdtest.Start(t, sshdtest.PathFirst(bin))
	n := openTest(t, s)
	killed := false
	frames(t, n, nil, func(frame string) bool {
		if !strings.Contains(frame, "\nsmi 0, A") {
			return false
		}
		if !killed {
			killed = true
			for _, pid := range agents(t, s.Home) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return false
		}
		return true
	})
	waitUntil(t, "none is left", func() bool {
		text, _ := os.ReadFile(asked)
		pids := strings.Fields(string(text))
		for _, pid := range pids {
			if alive(t, pid) {
				return false
			}
		}
		return len(pids) == 2
	})
}

func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	if err := testprogram.Write(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

// An idle node has one process of ours, which forks nothing.
func TestAnIdleNodeHasOneSmallProcess(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	ended := make(chan error, 1+9)
	for i := range 9 {
		name := fmt.Sprintf("log-%d", i)
		writeFile(t, filepath.Join(s.Home, name), "x")
		go func() { ended <- n.Follow(ctx, name, 0, func(int64, []byte) error { return nil }) }()
	}
	seen := make(chan string, 100)
	go func() { ended <- n.Telemetry(ctx, "", nil, func(frame []byte) { seen <- string(frame) }) }()
	next(t, seen)
	waitUntil(t, "all is followed", func() bool { return followers(t, s.Home) == 9 })
	pids := agents(t, s.Home)
	if len(pids) != 1 {
		t.Fatalf("there are the agents %v", pids)
	}
	pid := pids[0]
	forked, began := childFaults(t, pid), busy(t, pid)
	const seconds = 5
	for range seconds {
		next(t, seen)
	}
	used := busy(t, pid) - began
	want := 1
	if _, err := exec.LookPath("nvidia-smi"); err == nil {
		want++
	}
	if all := processes(t, s.Home, ""); len(all) != want {
		t.Errorf("there are %d processes, want %d", len(all), want)
	}
	if now := childFaults(t, pid); now != forked {
		t.Errorf("the agent has forked: %s became %s", forked, now)
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	rss, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil || rss > 15<<10 {
		t.Errorf("the agent has %d KiB of memory, want 15 MB at most; %v", rss, err)
	}
	t.Logf("the agent used %v of a processor in %d s, and %d KiB", used, seconds, rss)
	if used > seconds*10*time.Millisecond {
		t.Errorf("the agent used %v of a processor in %d s, want 1 %% at most", used, seconds)
	}
	cancel()
	for range cap(ended) {
		<-ended
	}
}

// busy is how long a process has used a processor.
func busy(t *testing.T, pid int) (took time.Duration) {
	t.Helper()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		nanos, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(nanos, 10, 64)
		took += time.Duration(n)
	}
	return took
}

// childFaults are the page faults of the children that a process has waited for:
// each child adds some.
func childFaults(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if err != nil || len(fields) < 9 {
		t.Fatal(err)
	}
	return fields[8]
}
