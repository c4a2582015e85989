//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/wedge"
)

// wedgedBed is a bed whose profile has one node, on a server that can hang.
func wedgedBed(t *testing.T) (*bed, *wedge.Server) {
	t.Helper()
	s := wedge.Start(t) // it is still there when the bed is cleaned up
	b := newBed(t)
	t.Cleanup(func() { s.Wedge(wedge.None) }) // before the bed is cleaned up
	config, known := s.Profile("gpu1")
	hosts := filepath.Join(b.home, "known_hosts")
	if err := os.WriteFile(hosts, []byte(known), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.home, "ssh_config")
	if err := os.WriteFile(path, []byte(config+" UserKnownHostsFile "+hosts+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.env = append(b.env, "DLWB_SSH_CONFIG="+path, "SSH_AUTH_SOCK=", shortBounds+"=1")
	b.write("train.py", "import time\nprint('loss: 1.0', flush=True)\ntime.sleep(600)\n")
	b.write("dlwb.yaml", "name: bed\nprovider: hosts\nmachines: {hosts: [gpu1]}\nrun: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n")
	return b, s
}

// ended is a command that has come to its end, or was ended by the test.
type ended struct {
	code int
	took time.Duration
	said string
}

// timed runs dlwb and tells how long that took. After limit it is told to say
// where it hangs, and the test has failed.
func (b *bed) timed(limit time.Duration, args ...string) ended {
	b.t.Helper()
	var said bytes.Buffer
	c := b.command(args...)
	c.Stdout, c.Stderr, c.WaitDelay = &said, &said, time.Second
	began := time.Now()
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	late := time.AfterFunc(limit, func() { _ = c.Process.Signal(syscall.SIGQUIT) })
	_ = c.Wait()
	e := ended{c.ProcessState.ExitCode(), time.Since(began), said.String()}
	if !late.Stop() {
		b.t.Errorf("dlwb %s goes on after %v:\n%.20000s", strings.Join(args, " "), limit, e.said)
	} else {
		b.t.Logf("dlwb %s: %v, exit %d: %.300s", strings.Join(args, " "), e.took.Round(time.Millisecond), e.code, lastLineOf(e.said))
	}
	return e
}

func lastLineOf(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// longest is more than the short bounds of any command together, on a machine
// that is busy with other tests.
const longest = 20 * time.Second

// atOnce is less than any bound of a connection that is not short, and as much as a
// machine takes at most that is busy with other tests.
const atOnce = 8 * time.Second

// must runs dlwb where nothing hangs yet, however busy the machine is.
func (b *bed) must(args ...string) {
	b.t.Helper()
	patient := *b
	patient.env = slices.DeleteFunc(slices.Clone(b.env), func(v string) bool { return strings.HasPrefix(v, shortBounds+"=") })
	if e := patient.timed(time.Minute, args...); e.code != 0 {
		b.t.Fatalf("dlwb %s: exit %d\n%s", strings.Join(args, " "), e.code, e.said)
	}
}

func TestRunEndsWithinItsBoundAtEveryStageAtWhichAServerHangs(t *testing.T) {
	sample.Leave(t)
	for stage, name := range wedge.Stages {
		switch stage {
		case wedge.SubsystemReply, wedge.Direct:
			continue // run asks for none of these
		case wedge.Rekey:
			continue // setting up Python may take hours: how its commands end is held in remote
		}
		t.Run(name, func(t *testing.T) {
			b, s := wedgedBed(t)
			s.Wedge(stage)
			if e := b.timed(longest, "run", "--plain"); e.code == 0 {
				t.Errorf("it succeeded:\n%s", e.said)
			}
		})
	}
}

func TestExecEndsWithinItsBoundAtEveryStageAtWhichAServerHangs(t *testing.T) {
	sample.Leave(t)
	b, s := wedgedBed(t)
	b.must("up", "--plain")
	for stage, name := range wedge.Stages {
		switch stage {
		case wedge.SubsystemReply, wedge.Direct:
			continue // exec asks for none of these
		case wedge.Rekey:
			continue // the command is the user's: it may take as long as it likes
		}
		s.Wedge(stage)
		if e := b.timed(longest, "exec", "bed", "--", "true"); e.code == 0 {
			t.Errorf("%s: it succeeded:\n%s", name, e.said)
		}
	}
	s.Wedge(wedge.None)
}

func TestEveryCommandEndsWithinItsBoundWhenNoSessionIsOpened(t *testing.T) {
	sample.Leave(t)
	b, s := wedgedBed(t)
	b.must("up", "--plain")
	s.Wedge(wedge.OpenChannel)
	for _, args := range [][]string{
		{"ssh", "bed", "--", "true"}, {"exec", "bed", "--", "true"}, {"ls"}, {"plan"}, {"doctor"}, {"sync"}, {"up", "--plain"}, {"run", "--plain"},
		{"forward", "bed", "jupyter"}, {"forward", "bed", "--reverse", "8100:8100"}, {"stop", "bed"},
	} {
		b.timed(longest, args...)
	}
	if e := b.timed(longest, "down", "bed", "--yes", "--plain"); e.code == 0 {
		t.Errorf("a host that does not answer is said to be as it was:\n%s", e.said)
	}
	s.Wedge(wedge.None)
}

// interrupted starts a command, sends it Ctrl-C when it has hung for a while and
// tells how long it took to its end.
func (b *bed) interrupted(args ...string) ended {
	b.t.Helper()
	var said bytes.Buffer
	c := b.command(args...)
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	for still, end := 0, time.Now().Add(longest); still < 15 && time.Now().Before(end); { // it hangs by then
		select {
		case <-gone:
			return ended{c.ProcessState.ExitCode(), -1, said.String()}
		case <-time.After(100 * time.Millisecond):
		}
		if still++; works(c.Process.Pid) {
			still = 0
		}
	}
	_ = c.Process.Signal(os.Interrupt)
	began := time.Now()
	select {
	case <-gone:
	case <-time.After(longest):
		_ = c.Process.Signal(syscall.SIGQUIT)
		<-gone
		b.t.Errorf("dlwb %s goes on after Ctrl-C:\n%.20000s", strings.Join(args, " "), said.String())
	}
	e := ended{c.ProcessState.ExitCode(), time.Since(began), said.String()}
	b.t.Logf("dlwb %s: %v after Ctrl-C, exit %d: %.300s", strings.Join(args, " "), e.took.Round(time.Millisecond), e.code, lastLineOf(e.said))
	return e
}

// works reports whether a process computes, or would if it had a processor.
func works(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(thread string) bool {
		text, err := os.ReadFile(thread)
		_, state, _ := strings.Cut(string(text), ") ")
		return err == nil && (strings.HasPrefix(state, "R") || strings.HasPrefix(state, "D"))
	})
}

func TestCtrlCEndsEveryCommandOnANodeThatHangs(t *testing.T) {
	sample.Leave(t)
	b, s := wedgedBed(t)
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, shortBounds+"=") })
	b.must("run", "--detach", "--plain")
	s.Wedge(wedge.OpenChannel)
	for _, args := range [][]string{
		{"exec", "bed", "--", "true"}, {"ssh", "bed", "--", "true"}, {"logs", "-f"}, {"attach", "bed"}, {"forward", "bed", "8100"}, {"plan"}, {"pull", "bed"},
	} {
		if e := b.interrupted(args...); e.took > atOnce {
			t.Errorf("dlwb %s took %v to end:\n%s", strings.Join(args, " "), e.took, e.said)
		}
	}
	s.Wedge(wedge.None)
}

// heardWriter keeps what is written and tells when it holds a text.
type heardWriter struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *heardWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *heardWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits until a text was written.
func (w *heardWriter) await(t *testing.T, text string) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !strings.Contains(w.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited 30 s for %q in:\n%s", text, w)
		}
	}
}

func TestTheSecondCtrlCEndsATeardownAtOnce(t *testing.T) {
	b, s := wedgedBed(t)
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, shortBounds+"=") })
	var said heardWriter
	c := b.command("run", "--down", "--plain")
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said.await(t, "loss: 1.0")
	s.Wedge(wedge.OpenChannel)
	_ = c.Process.Signal(os.Interrupt)
	said.await(t, "Ctrl-C again ends dlwb at once")
	began := time.Now()
	_ = c.Process.Signal(os.Interrupt)
	_ = c.Wait()
	if took := time.Since(began); took > atOnce || c.ProcessState.ExitCode() != ExitInterrupt || !strings.Contains(said.String(), "ended at once") {
		t.Errorf("it took %v to end, exit %d:\n%s", took, c.ProcessState.ExitCode(), &said)
	}
	s.Wedge(wedge.None)
}

func TestAStepThatWaitsForANodeSaysSo(t *testing.T) {
	sample.Leave(t)
	b, s := wedgedBed(t)
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, shortBounds+"=") })
	b.must("up", "--plain")
	began := filepath.Join(b.home, "began")
	b.write("dlwb.yaml", "name: bed\nprovider: hosts\nmachines: {hosts: [gpu1]}\nenvironment: {before: [\"touch "+began+"; sleep 600\"]}\nrun: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n")
	st := b.start("up", "--json")
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // a step is on its way by then
		if _, err := os.Stat(began); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the step does not begin")
		}
	}
	s.Wedge(wedge.Mute)
	st.await("word of what is waited for", func(e printedEvent) bool {
		text, _ := e["text"].(string)
		return e["event"] == "step_progress" && strings.HasPrefix(text, "waiting for ") && strings.Contains(text, " since ")
	})
	s.Wedge(wedge.None)
	st.signal(syscall.SIGINT)
	_ = st.end()
}
