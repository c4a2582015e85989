//go:build linux

package telemetry

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// hungAfter is how long nvidia-smi may say nothing, beyond its interval,
	// before it is ended and started anew.
	hungAfter = 20 * time.Second
	// silentAfter is from when on it is told that it has never answered.
	silentAfter = 5 * time.Second
	// failPause is the pause before an nvidia-smi that failed is tried again.
	failPause = 10 * time.Second
	// wholeAfter is when an answer shorter than the one before it is taken to be
	// whole.
	wholeAfter = 500 * time.Millisecond

	linesMost = 128
	lineMost  = 1 << 10
)

// smiFields are what package metrics reads by position.
const smiFields = "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit"

// monitor keeps one nvidia-smi running that answers again and again, and the
// last of its answers. One that answers only once is started again.
type monitor struct {
	path  string
	begun time.Time
	hung  time.Duration // hungAfter, but in tests

	mu      sync.Mutex
	every   time.Duration
	anew    context.CancelFunc // ends this nvidia-smi, or the pause before the next
	whole   answer             // the last
	part    answer             // the one that comes; nothing tells that it is whole
	restart bool               // the next line is another process's
}

// answer is what nvidia-smi said about all GPUs at one time.
type answer struct {
	at    time.Time // of its last line; zero: there is none
	lines []string
	index int    // of its last GPU
	fault string // how nvidia-smi ended after it, when that was no success
}

func newMonitor(path string, every time.Duration) *monitor {
	return &monitor{path: path, begun: time.Now(), hung: hungAfter, every: every, anew: func() {}}
}

// start asks until ctx ends. ended is closed when no process is left.
func (m *monitor) start(ctx context.Context) (ended <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // what it starts is ended with its thread, see childAttr
		for ctx.Err() == nil {
			m.round(ctx)
		}
	}()
	return done
}

// setPace has a new nvidia-smi started for it.
func (m *monitor) setPace(every time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.every = every
	m.anew()
}

// round runs one nvidia-smi to its end, and pauses. It is ended here when ctx
// ends, it hangs, or another pace is asked for.
func (m *monitor) round(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.mu.Lock()
	m.anew, m.restart = cancel, true
	every := m.every
	m.mu.Unlock()
	err := m.run(ctx, cancel, every)
	if ctx.Err() != nil {
		return
	}
	select {
	case <-time.After(m.end(err)):
	case <-ctx.Done():
	}
}

func (m *monitor) run(ctx context.Context, cancel func(), every time.Duration) error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, m.path, "--query-gpu="+smiFields, "--format=csv,noheader,nounits", fmt.Sprintf("--loop=%d", every/time.Second))
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = in, in, childAttr()
	cmd.Cancel = func() error { return errors.Join(endChild(cmd), out.Close()) }
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		return err
	}
	silence := time.AfterFunc(m.hung+every, cancel)
	defer silence.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		silence.Reset(m.hung + every)
		m.take(lines.Text(), time.Now())
	}
	if lines.Err() != nil {
		cancel() // a line without an end
	}
	return cmd.Wait()
}

// childAttr gives a child a group of its own and has the kernel end it when the
// thread that started it ends: also an agent that is killed leaves none behind.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func endChild(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// indexOf is the number of the GPU that a line is about; -1: it is about none,
// but an error, or an event that nvidia-smi tells of between its answers.
func indexOf(line string) int {
	first, _, is := strings.Cut(line, ",")
	if n, err := strconv.Atoi(strings.TrimSpace(first)); is && err == nil && n >= 0 {
		return n
	}
	return -1
}

// take adds a line to the answer that comes. An answer has no end: the next one
// begins with a GPU that does not come behind the last. An error that is told
// again and again is one.
func (m *monitor) take(line string, now time.Time) {
	line = strings.TrimSpace(line[:min(len(line), lineMost)])
	if line == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	index := indexOf(line)
	if m.restart || index >= 0 && index <= m.part.index {
		m.turn()
	}
	m.part.at = now
	if index >= 0 {
		m.part.index = index
	}
	if len(m.part.lines) < linesMost && !slices.Contains(m.part.lines, line) {
		m.part.lines = append(m.part.lines, line)
	}
}

// turn begins an answer.
func (m *monitor) turn() {
	m.whole, m.part, m.restart = m.part, answer{index: -1}, false
}

// end adds to the answer how nvidia-smi ended, and tells when to ask again.
func (m *monitor) end(err error) (pause time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.restart {
		m.turn()
	}
	m.part.at = time.Now()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("nvidia-smi ended with %s", strings.Replace(exit.String(), "status", "code", 1))
	}
	if err != nil {
		m.part.fault = err.Error()
	}
	m.whole = m.part
	if m.part.index >= 0 {
		return m.every
	}
	return failPause
}

// last is the answer to be shown.
func (m *monitor) last(now time.Time) answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.part.lines) < len(m.whole.lines) && now.Sub(m.part.at) < wholeAfter {
		return m.whole
	}
	return m.part
}

// tell adds the answer to a frame. nvidia-smi prints its errors among its
// answers. Where it has failed, what looks like an answer is still told.
func (m *monitor) tell(line func(format string, args ...any), now time.Time) {
	a := m.last(now)
	if a.at.IsZero() {
		if waited := now.Sub(m.begun); waited >= silentAfter {
			line("smiage %d", waited/time.Second)
		}
		return
	}
	var said []string
	for _, text := range a.lines {
		if a.fault == "" || indexOf(text) >= 0 {
			line("smi %s", text)
		} else {
			said = append(said, text)
		}
	}
	switch {
	case len(said) > 0:
		line("smierr %s", strings.Join(said, " "))
	case a.fault != "":
		line("smierr %s", a.fault)
	}
	line("smiage %d", now.Sub(a.at)/time.Second)
}
