//go:build linux

package hostsstory

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
	"github.com/dlwb/dlwb/internal/trusttest"
)

// program is the real dlwb, built once for all stories.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "dlwb-story-")
	if err != nil {
		return "", err
	}
	programDir = dir
	exe := filepath.Join(dir, "dlwb")
	build := exec.Command("make", "-C", "../..", "build", "BIN="+exe)
	build.Env = append(os.Environ(), "GOFLAGS=", "MAKEFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build dlwb: %w: %s", err, out)
	}
	return exe, nil
})

// programDir is where it lies, until TestMain removes it; empty: it was not built.
var programDir string

// laptop is somebody's machine: a home, a project, and real hosts.
type laptop struct {
	t    *testing.T
	exe  string
	home string
	env  []string
}

// newLaptop makes a machine whose project is a profile and its script.
func newLaptop(t *testing.T, config, profile, script string) *laptop {
	t.Helper()
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "dlwb-lap") // short: sockets have at most 100 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &laptop{t: t, exe: exe, home: dir}
	l.env = append(os.Environ(), "HOME="+dir, "DLWB_HOME="+dir+"/state", "XDG_STATE_HOME=", "TERM=dumb", "DLWB_KEEPER="+cmp.Or(os.Getenv("DLWB_KEEPER"), "off"),
		"DLWB_SSH_CONFIG="+config, "DLWB_LOG="+dir+"/dlwb.log", "SSH_AUTH_SOCK=")
	t.Cleanup(func() { // of a story that went wrong
		if text, _ := os.ReadFile(dir + "/dlwb.log"); t.Failed() && len(text) > 0 {
			t.Logf("dlwb's own log ends with:\n%s", text[max(0, len(text)-8000):])
		}
	})
	write(t, filepath.Join(dir, "code", "dlwb.yaml"), profile)
	write(t, filepath.Join(dir, "code", "train.py"), script)
	return l
}

// said is what one dlwb says: events by name, as they come, and its errors.
type said struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu     sync.Mutex
	events []map[string]any
	rest   []byte
	words  bytes.Buffer // that are no events
	errors bytes.Buffer
}

// Write takes in what it prints.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		e := map[string]any{}
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(&s.words, "%s\n", line)
		} else if !often[fmt.Sprint(e["event"])] {
			s.events = append(s.events, e)
		}
		s.rest = rest
	}
}

// often are events that no story asks for.
var often = map[string]bool{"log_line": true, "sample": true, "point": true, "progress": true}

// complaints takes in what it says on stderr.
type complaints struct{ of *said }

func (c complaints) Write(p []byte) (int, error) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.errors.Write(p)
}

// text is all of it.
func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, e := range s.events {
		line, _ := json.Marshal(e)
		if e["event"] != "plan" {
			fmt.Fprintf(&b, "%s\n", line)
		}
	}
	return b.String() + s.words.String() + string(s.rest) + s.errors.String()
}

// start starts dlwb in the project.
func (l *laptop) start(args ...string) *said {
	l.t.Helper()
	trusttest.TrustEnv(l.env, filepath.Join(l.home, "code"))
	s := &said{cmd: exec.Command(l.exe, args...), done: make(chan struct{})}
	s.cmd.Env, s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = l.env, filepath.Join(l.home, "code"), s, complaints{s}
	if err := s.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait()
	}()
	l.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
		if l.t.Failed() {
			l.t.Logf("dlwb %v:\n%s", args, s.text())
		}
	})
	return s
}

// patience is for how long anything is waited for at least, as many stories go on at
// once: where it matters how long something takes, that is looked at by itself.
const patience = 3 * time.Minute

// end waits for the end of dlwb and gives its exit code.
func (l *laptop) end(s *said, limit time.Duration) int {
	l.t.Helper()
	limit = max(limit, patience)
	select {
	case <-s.done:
	case <-time.After(limit):
		l.t.Fatalf("dlwb %v did not end within %s:\n%s", s.cmd.Args[1:], limit, s.text())
	}
	return s.cmd.ProcessState.ExitCode()
}

// do runs dlwb to its end and gives its exit code and what it said.
func (l *laptop) do(limit time.Duration, args ...string) (int, string) {
	l.t.Helper()
	s := l.start(args...)
	code := l.end(s, limit)
	return code, s.text()
}

// down takes a cluster down. How long that took is what the teardown itself tells: until
// it begins, a machine that is busy with other stories takes its time.
func (l *laptop) down(name string) (code int, text string, took time.Duration) {
	l.t.Helper()
	s := l.start("down", name, "--json")
	code = l.end(s, time.Minute)
	e := l.await(s, time.Second, "the end of the teardown", func(e map[string]any) bool { return e["event"] == "step_ended" && e["step"] == "down" })
	seconds, ok := e["duration_s"].(float64)
	if !ok {
		l.t.Errorf("it does not tell how long it took: %v", e)
	}
	return code, s.text(), time.Duration(seconds * float64(time.Second))
}

// await waits for an event that fits.
func (l *laptop) await(s *said, limit time.Duration, what string, fits func(map[string]any) bool) map[string]any {
	l.t.Helper()
	limit = max(limit, patience)
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		over := time.Now().After(end)
		select {
		case <-s.done:
			over = true
		default:
		}
		s.mu.Lock()
		for _, e := range s.events {
			if fits(e) {
				s.mu.Unlock()
				return e
			}
		}
		s.mu.Unlock()
		if over {
			l.t.Fatalf("%s was not told within %s:\n%s", what, limit, s.text())
		}
	}
}

// called fits events of a name.
func called(name string) func(map[string]any) bool {
	return func(e map[string]any) bool { return e["event"] == name }
}

// until waits until something holds.
func until(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	limit = max(limit, patience)
	for end := time.Now().Add(limit); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s it does not hold that %s", limit, what)
		}
	}
}

// realHosts makes real hosts for a story.
func realHosts(t *testing.T, n int) *testbed.Bed {
	t.Helper()
	bed := upHosts(t, n)
	t.Cleanup(func() {
		if err := bed.Down(); err != nil {
			t.Error(err)
		}
	})
	return bed
}

func upHosts(t *testing.T, n int) *testbed.Bed {
	t.Helper()
	if testing.Short() {
		t.Skip("NOT RUN: makes real hosts; run without -short")
	}
	bed, err := testbed.Up(n, testbed.Options{})
	if errors.Is(err, testbed.ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bed
}

// trainsOn reports whether a training runs on a host.
func trainsOn(t *testing.T, bed *testbed.Bed, host int) bool {
	t.Helper()
	out, err := bed.Run(host, "ps -ww -eo user:20=,args= | grep '^"+testbed.User+" .*[t]rain.py' || true")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out) != ""
}

// randomBytes don't get smaller by packing.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
