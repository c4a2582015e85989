package ec2story

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// event is one line of a --json stream.
type printedEvent = map[string]any

// driven is a dlwb that goes on, and what it has printed so far.
type driven struct {
	b    *bench
	cmd  *exec.Cmd
	news chan printedEvent
	seen []printedEvent // that were awaited past

	mu             sync.Mutex
	stdout, stderr bytes.Buffer
}

// start starts dlwb and goes on.
func (b *bench) start(args ...string) *driven { return b.begin(b.command(args...)) }

func (b *bench) begin(c *exec.Cmd) *driven {
	b.t.Helper()
	d := &driven{b: b, cmd: c, news: make(chan printedEvent, 100_000)}
	out, err := c.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	c.Stderr = lockedWriter{d}
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	go d.read(bufio.NewReader(out))
	b.t.Cleanup(func() { // of a test that has failed
		_ = c.Process.Kill()
		d.wait()
	})
	return d
}

// lockedWriter is a dlwb's stderr.
type lockedWriter struct{ d *driven }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.stderr.Write(p)
}

func (d *driven) read(lines *bufio.Reader) {
	defer close(d.news)
	for {
		line, err := lines.ReadBytes('\n')
		d.mu.Lock()
		d.stdout.Write(line)
		d.mu.Unlock()
		var e printedEvent
		if json.Unmarshal(line, &e) == nil {
			e["seen"] = time.Now()
			d.news <- e
		}
		if err != nil {
			return
		}
	}
}

// await waits for an event that fits, from those not awaited past yet.
func (d *driven) await(what string, fits func(printedEvent) bool) printedEvent {
	d.b.t.Helper()
	limit := time.After(storyLimit)
	for {
		select {
		case e, ok := <-d.news:
			if !ok {
				d.b.t.Fatalf("dlwb ended before %s:\n%s", what, d.said())
			}
			d.seen = append(d.seen, e)
			if fits(e) {
				return e
			}
		case <-limit:
			d.b.t.Fatalf("no %s within %s:\n%s", what, storyLimit, d.said())
		}
	}
}

// called fits events of a name.
func called(name string) func(printedEvent) bool {
	return func(e printedEvent) bool { return e["event"] == name }
}

func (d *driven) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return result{0, d.stdout.String(), d.stderr.String()}.story()
}

func (d *driven) signal(s syscall.Signal) {
	d.b.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.b.t.Fatal(err)
	}
}

// wait reads the rest and reaps the process. It may be called again.
func (d *driven) wait() {
	for e := range d.news {
		d.seen = append(d.seen, e)
	}
	_ = d.cmd.Wait()
}

// end waits for the end of dlwb and gives what it has said.
func (d *driven) end() result {
	d.b.t.Helper()
	stuck := time.AfterFunc(storyLimit, func() { _ = d.cmd.Process.Kill() })
	d.wait()
	if !stuck.Stop() {
		d.b.t.Errorf("%v did not end within %s", d.cmd.Args[1:], storyLimit)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return result{d.cmd.ProcessState.ExitCode(), d.stdout.String(), d.stderr.String()}
}

// play runs a command to its end.
func (b *bench) play(c *exec.Cmd) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), storyLimit)
	defer cancel()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	err := c.Wait()
	if !stop() {
		b.t.Errorf("dlwb %v did not end within %s", c.Args[1:], storyLimit)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// one is the only event of a name.
func (r result) one(t testing.TB, name string) printedEvent {
	t.Helper()
	found := r.events(name)
	if len(found) != 1 {
		t.Fatalf("%d events %q, want 1:\n%s", len(found), name, r)
	}
	return found[0]
}

// last is the last event of a name.
func (r result) last(t testing.TB, name string) printedEvent {
	t.Helper()
	found := r.events(name)
	if len(found) == 0 {
		t.Fatalf("no event %q:\n%s", name, r)
	}
	return found[len(found)-1]
}

// says holds that all texts are in what dlwb said.
func (r result) says(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("it does not say %q:\n%s", text, r)
		}
	}
}

// calls counts the calls of an action, without dry runs.
func (b *bench) calls(action string) (n int) {
	for _, c := range b.aws.Calls() {
		if c.Action == action && !c.DryRun {
			n++
		}
	}
	return n
}

// ids are the instances of the account in a state, in order of their making.
func (b *bench) ids(state string) (all []string) {
	for _, line := range b.aws.Instances() {
		var region, id, is string
		if _, err := fmt.Sscan(line, &region, &id, &is); err != nil {
			b.t.Fatal(err)
		}
		if is == state {
			all = append(all, id)
		}
	}
	return all
}

// long skips what starts machines when there is little time.
func long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts machines; run without -short")
	}
}

// needTorch skips where the system's Python has no PyTorch.
func needTorch(t *testing.T) {
	t.Helper()
	if err := exec.Command("/usr/bin/python3", "-c", "import torch").Run(); err != nil {
		t.Skip("NOT RUN: there is no PyTorch for /usr/bin/python3: apt-get install python3-torch")
	}
}

// story is what dlwb said, without what is told every second.
func (r result) story() string {
	var s strings.Builder
	for line := range strings.Lines(r.stdout) {
		var e printedEvent
		if json.Unmarshal([]byte(line), &e) != nil || !often[fmt.Sprint(e["event"])] {
			s.WriteString(line)
		}
	}
	return s.String() + r.stderr
}

var often = map[string]bool{"sample": true, "point": true, "progress": true, "log_line": true}
