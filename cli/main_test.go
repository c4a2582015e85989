package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/store"
)

// asDlwb makes the test binary behave as dlwb itself: as the program that the
// tests start, and as the nodes of their clusters.
const asDlwb = "DLWB_TEST_AS_DLWB"

func TestMain(m *testing.M) {
	args := os.Args[1:]
	part := false
	if len(args) > 0 {
		_, part = parts[args[0]]
	}
	if part || os.Getenv(asDlwb) != "" { // without arguments it is dlwb too
		shortenBounds()
		os.Exit(Main(args))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

// bed is a fresh home with a project in it.
type bed struct {
	t    *testing.T
	home string
	dir  string // of the project
	env  []string
	// stranger leaves the profiles of the project untrusted; see command.
	stranger bool
	nodes    int // that a profile of the bed asks for
}

// newBed makes one; its test runs beside others.
func newBed(t *testing.T) *bed {
	t.Helper()
	t.Parallel()
	return newBedAlone(t)
}

// newBedAlone makes one for a test that needs certain ports of this machine.
func newBedAlone(t *testing.T) *bed {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real clusters; run without -short")
	}
	home := t.TempDir()
	b := &bed{t: t, home: home, dir: filepath.Join(home, "project"), nodes: 2}
	b.env = append(os.Environ(), asDlwb+"=1", "HOME="+home, "DLWB_HOME="+filepath.Join(home, "state"), "DLWB_KEEPER="+cmp.Or(os.Getenv("DLWB_KEEPER"), "off"),
		"XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "TERM=dumb")
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.cleanUp)
	return b
}

// withOneNode is for a story in which a second node would only be started and
// ended once more: what it holds is between dlwb and one node.
func (b *bed) withOneNode() *bed {
	b.nodes = 1
	return b
}

// cleanUp removes whatever a failed test left, and holds the last promise: no
// process of the bed is there any more.
func (b *bed) cleanUp() {
	if b.hasClusters() {
		_ = b.command("down", "--all", "--plain").Run()
	}
	if left := b.processes(); len(left) > 0 {
		b.t.Errorf("processes are left: %v", left)
	}
}

// hasClusters reads the record of the bed, without another dlwb; what can't be read may
// have some.
func (b *bed) hasClusters() bool {
	file := filepath.Join(b.home, "state", "dlwb.sqlite")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return false
	}
	db, err := store.Open(file)
	if err != nil {
		return true
	}
	defer db.Close()
	live, err := db.LiveClusters()
	return err != nil || len(live) > 0
}

func (b *bed) write(name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// profile writes a profile of the bed's local nodes that run a script. It begins to
// train within a second: the plain engine needs nothing but Python.
func (b *bed) profile(script, more string) string {
	b.t.Helper()
	b.write("train.py", script)
	return b.write("dlwb.yaml", fmt.Sprintf("name: bed\nprovider: local\nmachines: {count: %d}\nrun:\n  engine: plain\n  command: train.py\n", b.nodes)+more)
}

// command is dlwb in the project. Every profile in it is trusted as it is now,
// as if the user had typed yes: a profile that is written or changed after this
// needs another command, or trusttest.Trust. A bed whose stranger is set, or a
// profile outside b.dir, has to be trusted by the test itself (dlwb trust
// --hash, --trust=HASH), as everywhere.
func (b *bed) command(args ...string) *exec.Cmd {
	if !b.stranger {
		trusttest.TrustEnv(b.env, b.dir)
	}
	exe, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	c := exec.Command(exe, args...)
	c.Env, c.Dir = b.env, b.dir
	return c
}

// result is what a dlwb that has ended said.
type result struct {
	code   int
	stdout string
	stderr string
	events []printedEvent
}

type printedEvent map[string]any

func (r result) all(name string) []printedEvent {
	var found []printedEvent
	for _, e := range r.events {
		if e["event"] == name {
			found = append(found, e)
		}
	}
	return found
}

func (r result) one(t *testing.T, name string) printedEvent {
	t.Helper()
	found := r.all(name)
	if len(found) != 1 {
		t.Fatalf("%d events %q, want 1\n%s%s", len(found), name, r.stdout, r.stderr)
	}
	return found[0]
}

// run runs dlwb to its end.
func (b *bed) run(args ...string) result {
	b.t.Helper()
	var out, errs bytes.Buffer
	c := b.command(args...)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return resultOf(c.ProcessState.ExitCode(), out.String(), errs.String())
}

// resultOf is a result with the events that are in what dlwb wrote.
func resultOf(code int, stdout, stderr string) result {
	r := result{code: code, stdout: stdout, stderr: stderr}
	for line := range strings.SplitSeq(stdout, "\n") {
		var e printedEvent
		if json.Unmarshal([]byte(line), &e) == nil && e["event"] != nil {
			r.events = append(r.events, e)
		}
	}
	return r
}

// started is a dlwb that goes on, and the events it has printed so far.
type started struct {
	*bed
	cmd  *exec.Cmd
	news chan printedEvent
}

func (b *bed) start(args ...string) *started {
	b.t.Helper()
	s := &started{bed: b, cmd: b.command(args...), news: make(chan printedEvent, 10_000)}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(s.news)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var e printedEvent
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				s.news <- e
			}
		}
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			panic("dlwb said an event of more than a megabyte")
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	return s
}

// await waits for an event that fits.
func (s *started) await(what string, fits func(printedEvent) bool) printedEvent {
	s.t.Helper()
	limit := time.After(2 * time.Minute)
	var last printedEvent
	for {
		select {
		case e, ok := <-s.news:
			if !ok {
				s.t.Fatalf("dlwb ended before %s, after %v", what, last)
			}
			last = e
			if fits(e) {
				return e
			}
		case <-limit:
			s.t.Fatalf("waited two minutes for %s; the last event: %v", what, last)
		}
	}
}

// awaitStep waits until the training has come to a step.
func (s *started) awaitStep(n float64) {
	s.t.Helper()
	s.await(fmt.Sprintf("step %v", n), func(e printedEvent) bool {
		step, ok := e["step"].(float64)
		return e["event"] == "point" && ok && step >= n
	})
}

func (s *started) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the process and gives its exit code.
func (s *started) end() int {
	for range s.news {
	}
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

// processes lists what runs with this bed's home in its environment: nodes,
// ranks, and whatever those started.
func (b *bed) processes() []string {
	entries, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(entries) == 0 {
		return nil // no /proc: the receipt is all there is to go by
	}
	var found []string
	for _, path := range entries {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(b.home+"/state/")) || bytes.Contains(env, []byte(asDlwb+"=1\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}

// lossScript prints a loss that falls, a step every pause.
const lossScript = `
import os, sys, time
steps, pause = %d, %g
rank = int(os.environ["RANK"])
for i in range(1, steps + 1):
    if rank == 0:
        print(f"epoch 1/1 step {i}/{steps} loss: {4 / i ** 0.5:.4f} lr: 1e-3", flush=True)
    time.sleep(pause)
`
