//go:build linux

package telemetry

import (
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

	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/metrics/vitals"
	"github.com/dlwb/dlwb/remote/wire"
)

// smi writes an nvidia-smi: the lines of a sh program.
func smi(t *testing.T, program string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "nvidia-smi")
	if err := testprogram.Write(path, []byte("#!/bin/sh\ncd "+filepath.Dir(path)+"\necho $$ $* >>asked\n"+program+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked are the process ids and the arguments that a nvidia-smi was started with.
func asked(path string) []string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "asked"))
	return slices.Collect(strings.Lines(string(text)))
}

// loop answers as nvidia-smi does when it is to go on.
const loop = `for a; do every=${a#--loop=}; done
while :; do printf '0, A, 5, 1, 2, 3, 4, 5\n1, B, [N/A], 1, 2, 3, 4, 5\n'; sleep $every; done`

// stream is a Watch under way.
type stream struct {
	t      *testing.T
	pace   chan time.Duration
	frames chan string
	stop   context.CancelFunc
	ended  chan error
}

// watch watches with a given nvidia-smi; "" is none.
func watch(t *testing.T, path string) *stream {
	t.Helper()
	if path != "" {
		t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &stream{t: t, pace: make(chan time.Duration), frames: make(chan string, 1000), stop: stop, ended: make(chan error, 1)}
	go func() {
		s.ended <- Watch(ctx, "lo", 0, s.pace, func(frame []byte) error {
			s.frames <- string(frame)
			return nil
		})
	}()
	t.Cleanup(s.end)
	return s
}

// end ends the stream, which must leave no child.
func (s *stream) end() {
	s.stop()
	if err, more := <-s.ended; more && err != nil {
		s.t.Error(err)
	} else if more {
		close(s.ended)
	}
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		if got, _ := os.ReadFile(list); len(got) > 0 {
			s.t.Errorf("children are left: %s", got)
		}
	}
}

// until returns the first frame that has a line which begins as a pattern says.
func (s *stream) until(begin string) string {
	s.t.Helper()
	limit := time.After(time.Minute)
	var seen []string
	for line := regexp.MustCompile("(?m)^" + begin); ; {
		select {
		case frame := <-s.frames:
			if seen = append(seen, frame); line.MatchString(frame) {
				return frame
			}
		case <-limit:
			s.t.Fatalf("no line %q in %q", begin, seen)
		}
	}
}

func wantLine(t *testing.T, frame, pattern string) {
	t.Helper()
	if !regexp.MustCompile("(?m)^" + pattern + "$").MatchString(frame) {
		t.Errorf("no line %q in\n%s", pattern, frame)
	}
}

// within waits for a condition.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func lives(asked string) bool {
	pid, _ := strconv.Atoi(strings.Fields(asked)[0])
	return syscall.Kill(pid, 0) == nil
}

func TestFramesTellWhatTheNodeIsDoing(t *testing.T) {
	t.Setenv("DLWB_SIMULATED_GPUS", "2")
	path := smi(t, loop)
	s := watch(t, path)
	parser := vitals.NewReader()
	frame := s.until("smi ")
	parser.Frame([]byte(frame))
	frame = s.until("disk ")
	for _, p := range []string{`frame \d+\.\d\d`, `cores [1-9]\d*`, `cpu \d+ \d+`, `mem \d+ \d+`, `net \d+ \d+`, `disk \d+ \d+`,
		`smi 0, A, 5, 1, 2, 3, 4, 5`, `smi 1, B, \[N/A\], 1, 2, 3, 4, 5`, `smiage \d+`, "sim"} {
		wantLine(t, frame, p)
	}
	if strings.Contains(frame, "every") || !strings.HasSuffix(frame, "\nend\n") {
		t.Errorf("a frame of each second is\n%s", frame)
	}
	sample, ok := parser.Frame([]byte(s.until("smi ")))
	if !ok || sample.CPU == nil || sample.NetRx == nil || *sample.MemUsed <= 0 || *sample.MemUsed >= *sample.MemTotal || len(sample.GPUs) != 2 || sample.GPUError != "" {
		t.Errorf("it is read as %+v", sample)
	}
	if got := asked(path); len(got) != 1 || !strings.HasSuffix(got[0], "--loop=1\n") {
		t.Errorf("nvidia-smi was started with %q", got)
	}
	s.end()
	if lives(asked(path)[0]) {
		t.Error("nvidia-smi is left")
	}
}

func TestANewPaceIsAFrameAtOnceAndANewNvidiaSMI(t *testing.T) {
	path := smi(t, loop)
	s := watch(t, path)
	s.until("smi ")
	s.pace <- 3 * time.Second
	before := s.until("every 3")
	wantLine(t, before, `smi 0, A, 5, 1, 2, 3, 4, 5`) // the answer of the one before it
	if after := s.until("every 3"); after[:12] == before[:12] {
		t.Error("a frame came twice")
	}
	within(t, "the second nvidia-smi alone runs", func() bool {
		got := asked(path)
		return len(got) == 2 && strings.HasSuffix(got[1], "--loop=3\n") && !lives(got[0]) && lives(got[1])
	})
	for range 20 {
		s.pace <- 3 * time.Second // no other
		s.pace <- time.Hour
		s.pace <- 0
	}
	s.pace <- time.Hour
	s.until("every 10")
	within(t, "the last nvidia-smi has the last pace", func() bool {
		got := asked(path)
		return strings.HasSuffix(got[len(got)-1], "--loop=10\n") && !slices.ContainsFunc(got[:len(got)-1], lives)
	})
	s.pace <- time.Second
	for strings.Contains(s.until("frame"), "every 10") {
	}
}

func TestFramesComeThoughNvidiaSMIHangs(t *testing.T) {
	s := watch(t, smi(t, `trap '' TERM; echo '0, A, 5, 1, 2, 3, 4, 5'; while :; do sleep 1; done`))
	frame := s.until("smiage [3-9]")
	wantLine(t, frame, `smi 0, A, 5, 1, 2, 3, 4, 5`)
	wantLine(t, frame, `net \d+ \d+`)
}

func TestAnNvidiaSMIThatHangsIsEndedAndStartedAnew(t *testing.T) {
	path := smi(t, `trap '' TERM; [ -e hung ] || { : >hung; sleep 1000; }; `+loop)
	m := newMonitor(path, paceLeast)
	m.hung = 100 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := m.start(ctx)
	within(t, "it answers", func() bool { return len(m.last(time.Now()).lines) == 2 })
	if got := asked(path); len(got) < 2 || lives(got[0]) {
		t.Errorf("it was started as %q", got)
	}
	stop()
	<-ended
	if got := asked(path); lives(got[len(got)-1]) {
		t.Error("nvidia-smi is left")
	}
}

func TestWhatNvidiaSMIComplainsAboutIsTold(t *testing.T) {
	for _, c := range []struct{ program, want string }{
		{`echo "NVIDIA-SMI has failed because it couldn't."; echo; echo "Make sure"; exit 9`,
			"smierr NVIDIA-SMI has failed because it couldn't. Make sure\n"},
		{"echo '0, A, 5'; echo 'Unable to determine the device handle for GPU 1'; exit 15",
			"smi 0, A, 5\nsmierr Unable to determine the device handle for GPU 1\n"},
		{"exit 7", "smierr nvidia-smi ended with exit code 7\n"},
		{"kill -9 $$", "smierr nvidia-smi ended with signal: killed\n"},
	} {
		m := newMonitor(smi(t, c.program), paceLeast)
		ctx, stop := context.WithCancel(t.Context())
		ended := m.start(ctx)
		within(t, "it has failed", func() bool { return m.last(time.Now()).fault != "" })
		if got := told(m, time.Now()); got != c.want+"smiage 0\n" {
			t.Errorf("%q is told as %q, want %q", c.program, got, c.want)
		}
		stop()
		<-ended
	}
	m := newMonitor("/nowhere/nvidia-smi", paceLeast)
	m.round(expired(t))
	if err := m.run(t.Context(), func() {}, paceLeast); err == nil || m.end(err) != failPause || !strings.Contains(told(m, time.Now()), "smierr fork/exec") {
		t.Errorf("one that can't be started is told as %q", told(m, time.Now()))
	}
}

// expired is a context that is over.
func expired(t *testing.T) context.Context {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	return ctx
}

// told is what a frame has of the GPUs.
func told(m *monitor, now time.Time) string {
	var b strings.Builder
	m.tell(func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }, now)
	return b.String()
}

func TestABrokenNvidiaSMIIsNotStartedEachSecond(t *testing.T) {
	m := newMonitor("", paceLeast)
	m.restart = true
	m.take("Failed to initialize NVML", time.Now())
	if got := m.end(errors.New("exit")); got != failPause {
		t.Errorf("one that fails is tried again after %v", got)
	}
	m.restart = true
	m.take("0, A", time.Now())
	if got := m.end(nil); got != paceLeast {
		t.Errorf("one that answers once is asked again after %v", got)
	}
}

func TestAnAnswerIsWhatComesUntilTheNumbersBeginAnew(t *testing.T) {
	m, now := newMonitor("", paceLeast), time.Now()
	m.restart = true
	show := func(after time.Duration) string { return told(m, now.Add(after)) }
	say := func(lines ...string) {
		for _, l := range lines {
			m.take(l, now)
		}
	}
	if show(time.Second) != "" || show(6*time.Second) != "smiage 6\n" {
		t.Errorf("before an answer: %q, later %q", show(time.Second), show(6*time.Second))
	}
	say("0, a", "", "1, b", "2, c")
	if got := show(0); got != "smi 0, a\nsmi 1, b\nsmi 2, c\nsmiage 0\n" {
		t.Errorf("the first answer is %q", got)
	}
	say("0, d", "1, e") // the third is on its way
	if got := show(0); !strings.HasPrefix(got, "smi 0, a\n") {
		t.Errorf("while the next one comes: %q", got)
	}
	if got := show(time.Second); got != "smi 0, d\nsmi 1, e\nsmiage 1\n" {
		t.Errorf("one that has become shorter is %q", got)
	}
	say("2, f", "Xid 79 on GPU 1", "Xid 79 on GPU 1")
	if got := show(0); got != "smi 0, d\nsmi 1, e\nsmi 2, f\nsmi Xid 79 on GPU 1\nsmiage 0\n" {
		t.Errorf("with an event behind it: %q", got)
	}
	say("0, g", "1, h", "2, i")
	if got := show(9 * time.Second); got != "smi 0, g\nsmi 1, h\nsmi 2, i\nsmiage 9\n" {
		t.Errorf("the one after it: %q", got)
	}
}

func FuzzAnyOutputOfNvidiaSMIMakesAFrameOfWholeLines(f *testing.F) {
	f.Add("0, a\n1, b\n0, c\nerror\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, n := newMonitor("", paceLeast), &node{}
		n.gpus, m.restart = m, true
		for line := range strings.SplitSeq(text, "\n") {
			m.take(line, m.begun)
		}
		frame := string(n.frame())
		if !strings.HasSuffix(frame, "\nend\n") || len(frame) > linesMost*(lineMost+8)+4096 {
			t.Errorf("a frame of %d bytes", len(frame))
		}
		for line := range strings.Lines(frame) {
			if key, _, _ := strings.Cut(strings.TrimSpace(line), " "); !slices.Contains([]string{"frame", "every", "cores", "cpu", "mem", "net", "smi", "smiage", "end"}, key) {
				t.Errorf("a line %q", line)
			}
		}
		m.end(nil)
		told(m, time.Now())
	})
}

func TestANodeTellsWhatItIs(t *testing.T) {
	path := smi(t, `case $1 in *name*) printf '550.1, NVIDIA A100\n550.1, NVIDIA A100\n';; *) echo '| NVIDIA-SMI 550.1   Driver Version: 550.1   CUDA Version: 12.4     |';; esac`)
	t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
	host, _ := os.Hostname()
	f, _ := Facts(t.Context(), wire.FactsRequest{})
	if f.Host != host || !strings.HasPrefix(f.Kernel, "Linux ") || f.System == "" || f.Cores < 1 || f.Memory < 1<<20 || f.Image != "" {
		t.Errorf("it is %+v", f)
	}
	if !slices.Equal(f.GPUs, []string{"NVIDIA A100", "NVIDIA A100"}) || f.Driver != "550.1" || f.CUDA != "12.4" {
		t.Errorf("its GPUs are %+v", f)
	}
}

// A run that ends while a node's driver hangs must leave nothing there.
func TestADriverThatHangsIsAskedOnceAndNotForEver(t *testing.T) {
	path := smi(t, "trap '' TERM; sleep 1000")
	t.Setenv("PATH", filepath.Dir(path)+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		within(t, "it was asked", func() bool { return len(asked(path)) > 0 })
		cancel()
	}()
	f, _ := Facts(ctx, wire.FactsRequest{})
	if got := asked(path); f.Kernel == "" || len(f.GPUs) > 0 || len(got) != 1 || lives(got[0]) {
		t.Errorf("got %+v; it was asked as %q", f, got)
	}
}
