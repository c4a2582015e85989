//go:build linux

package chaos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
)

// lab is a laptop: a home of its own with one project in it.
type lab struct {
	t    *testing.T
	name string // of the cluster
	home string
	env  []string
}

// newLab makes a laptop whose project trains on hosts of an ssh configuration.
func newLab(t *testing.T, name, config string, hosts []string, script, more string) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "dlwb-lab") // short: sockets have at most 100 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &lab{t: t, name: name, home: dir}
	l.env = append(os.Environ(), "HOME="+dir, "DLWB_HOME="+dir+"/state", "XDG_STATE_HOME=", "TERM=dumb", "DLWB_KEEPER="+cmp.Or(os.Getenv("DLWB_KEEPER"), "off"),
		"DLWB_SSH_CONFIG="+config, "DLWB_LOG="+dir+"/dlwb.log", "SSH_AUTH_SOCK=")
	l.write("code/train.py", script)
	l.write("code/dlwb.yaml", fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: system\nrun: {engine: plain, command: train.py}\n%s",
		name, strings.Join(hosts, ", "), more))
	t.Cleanup(func() { // of a test that has failed
		if text, _ := os.ReadFile(l.home + "/dlwb.log"); t.Failed() && len(text) > 0 {
			t.Logf("dlwb's own log ends with:\n%s", text[max(0, len(text)-6000):])
		}
	})
	return l
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// command is dlwb in the project, whose profile is trusted as it is now.
func (l *lab) command(args ...string) *exec.Cmd {
	trusttest.TrustEnv(l.env, filepath.Join(l.home, "code"))
	c := exec.Command(exe, args...)
	c.Env, c.Dir = l.env, filepath.Join(l.home, "code")
	return c
}

// storedLog is where dlwb keeps what a rank has printed.
func (l *lab) storedLog(run any, rank int) string {
	return filepath.Join(l.home, "state", "runs", fmt.Sprint(run), fmt.Sprintf("rank-%d.log", rank))
}

// event is one line of a --json stream.
type event = map[string]any

// often are the events that are only counted.
var often = map[string]bool{"log_line": true, "point": true, "sample": true, "progress": true}

// dlwb is one dlwb that was started, and what it has said so far.
type dlwb struct {
	lab  *lab
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	events []event
	counts map[string]int
	part   []byte
	stderr strings.Builder
}

// Write takes in what dlwb prints.
func (d *dlwb) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.part = append(d.part, p...)
	for {
		line, rest, whole := bytes.Cut(d.part, []byte("\n"))
		if !whole {
			d.part = bytes.Clone(d.part)
			return len(p), nil
		}
		d.part = rest
		var is struct{ Event string }
		if json.Unmarshal(line, &is) != nil {
			continue
		}
		d.counts[is.Event]++
		var e event
		if !often[is.Event] && json.Unmarshal(line, &e) == nil {
			d.events = append(d.events, e)
		}
	}
}

type errWriter struct{ d *dlwb }

func (w errWriter) Write(p []byte) (int, error) {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.d.stderr.Write(p)
}

// start starts dlwb and goes on.
func (l *lab) start(args ...string) *dlwb {
	l.t.Helper()
	d := &dlwb{lab: l, cmd: l.command(args...), done: make(chan struct{}), counts: map[string]int{}}
	d.cmd.Stdout, d.cmd.Stderr = d, errWriter{d}
	if err := d.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(d.done)
		_ = d.cmd.Wait()
	}()
	l.t.Cleanup(d.kill)
	return d
}

// kill ends dlwb at once, and waits until it is reaped.
func (d *dlwb) kill() {
	_ = d.cmd.Process.Kill()
	<-d.done
}

// run runs dlwb to its end, which has to come within a limit.
func (l *lab) run(limit time.Duration, args ...string) *dlwb {
	l.t.Helper()
	d := l.start(args...)
	d.end(limit)
	return d
}

// end waits for the end of dlwb and gives its exit code.
func (d *dlwb) end(limit time.Duration) int {
	d.lab.t.Helper()
	select {
	case <-d.done:
	case <-time.After(limit):
		_ = d.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines tell where it hangs
		select {
		case <-d.done:
		case <-time.After(10 * time.Second):
			d.kill()
		}
		d.lab.t.Fatalf("dlwb %v did not end within %s:\n%s", d.cmd.Args[1:], limit, d.said())
	}
	return d.cmd.ProcessState.ExitCode()
}

// said is what dlwb has told.
func (d *dlwb) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var s strings.Builder
	for _, e := range d.events {
		if e["event"] != "plan" {
			line, _ := json.Marshal(e)
			fmt.Fprintf(&s, "%s\n", line)
		}
	}
	fmt.Fprintf(&s, "%v\n", d.counts)
	text := d.stderr.String()
	return s.String() + text[max(0, len(text)-20_000):]
}

// find gives the first event that fits.
func (d *dlwb) find(fits func(event) bool) event {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if fits(e) {
			return e
		}
	}
	return nil
}

// await waits for an event that fits, also one that has been told already.
func (d *dlwb) await(limit time.Duration, what string, fits func(event) bool) event {
	d.lab.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		over := time.Now().After(end)
		select {
		case <-d.done:
			over = true
		default:
		}
		if e := d.find(fits); e != nil {
			return e
		}
		if over {
			d.lab.t.Fatalf("%s was not told within %s:\n%s", what, limit, d.said())
		}
	}
}

// called fits events of a name.
func called(name string) func(event) bool {
	return func(e event) bool { return e["event"] == name }
}

// nodeIs fits the news that a node is in a state.
func nodeIs(node int, state string) func(event) bool {
	return func(e event) bool { return e["event"] == "node" && e["node"] == float64(node) && e["state"] == state }
}

// eventually waits until something holds; err says what does not yet.
func eventually(t *testing.T, limit time.Duration, holds func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Errorf("after %s: %v", limit, err)
}
