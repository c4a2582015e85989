//go:build unix

package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/dlwb/dlwb/internal/sample"
)

// nodePID is the process that a node is.
func (b *bed) nodePID(i int) int {
	b.t.Helper()
	var s struct{ PID int }
	text, err := os.ReadFile(filepath.Join(b.nodeDir(i), "serving.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil || s.PID <= 1 {
		b.t.Fatalf("node%d: %v, %s", i, err, text)
	}
	return s.PID
}

func TestANodeThatIsGoneEndsTheRunAsLost(t *testing.T) {
	t.Parallel()
	for _, attached := range []bool{false, true} {
		t.Run(fmt.Sprintf("seen by a later dlwb: %v", attached), func(t *testing.T) {
			b := newBed(t)
			b.profile(fmt.Sprintf(lossScript, 4000, 0.2), "") // what is watched for long says little
			first := b.start("run", "--json")
			first.awaitStep(3)
			if attached {
				first.signal(syscall.SIGKILL)
				first.end()
			}
			if err := syscall.Kill(b.nodePID(1), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			watching := first
			if attached {
				watching = b.start("attach", "--json")
			}
			unknown := false
			end := watching.await("the verdict", func(e printedEvent) bool {
				unknown = unknown || e["event"] == "node" && e["node"] == 1.0 && e["state"] == "unknown"
				return e["event"] == "run_ended"
			})
			if end["verdict"] != "lost" || end["node"] != 1.0 || !strings.Contains(fmt.Sprint(end["cause"]), "node1 is gone") {
				t.Errorf("%v", end)
			}
			if !unknown {
				t.Error("it was not said before that nothing is known of the node")
			}
			if code := watching.end(); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
			if took := time.Since(began); took > time.Minute { // nor is what the node wrote waited for
				t.Errorf("it took %s", took)
			}
			// What ran on the node that is gone, down finds.
			for _, left := range b.ranks() {
				if strings.Contains(left, b.nodeDir(0)) {
					t.Errorf("a rank of the other node is left: %v", left)
				}
			}
			b.nothingIsLeft()
		})
	}
}

func TestANodeThatIsOutOfReachForAWhileLosesNothing(t *testing.T) {
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 1000, 0.02), "")
	s := b.start("run", "--json")
	s.awaitStep(3)
	pid := b.nodePID(0)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	is := func(state string) func(printedEvent) bool {
		return func(e printedEvent) bool { return e["event"] == "node" && e["node"] == 0.0 && e["state"] == state }
	}
	s.await("the node is unknown", is("unknown"))
	// Its rank goes on, for longer than it takes until the provider is asked, which
	// finds no proof.
	b.awaitPrinted(0, 900)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.await("the node is alive", is("alive"))
	end := s.await("the end", func(e printedEvent) bool { return e["event"] == "run_ended" })
	if end["verdict"] != "succeeded" || s.end() != 0 {
		t.Errorf("%v", end)
	}
	b.logsAreWhole(end["run"].(string))
	b.nothingIsLeft()
}

// awaitPrinted waits until the rank of a node has printed a step, whoever reads it.
func (b *bed) awaitPrinted(node, step int) {
	b.t.Helper()
	logs := filepath.Join(b.nodeDir(node), "home", ".dlwb", "runs", "*", fmt.Sprintf("rank-%d.log", node))
	want := fmt.Sprintf("step %d/", step)
	for limit := time.Now().Add(60 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		found, _ := filepath.Glob(logs)
		for _, path := range found {
			if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), want) {
				return
			}
		}
	}
	b.t.Fatalf("rank %d did not print %q within a minute", node, want)
}

// logsAreWhole compares what is stored with what the ranks wrote.
func (b *bed) logsAreWhole(run string) {
	b.t.Helper()
	for rank := range b.nodes {
		name := fmt.Sprintf("rank-%d.log", rank)
		stored, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, name))
		there, err2 := os.ReadFile(filepath.Join(b.nodeDir(rank), "home", ".dlwb", "runs", run, name))
		if err != nil || err2 != nil || sha256.Sum256(stored) != sha256.Sum256(there) {
			b.t.Errorf("rank %d: %d bytes stored, %d on the node (%v, %v)", rank, len(stored), len(there), err, err2)
		}
	}
}

func TestAStoreThatSomebodyHoldsForAWhileLosesNothing(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 150, 0.03), "")
	s := b.start("run", "--json")
	s.awaitStep(10)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.home, "state", "dlwb.sqlite")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, do := range []string{"BEGIN IMMEDIATE", "ROLLBACK"} {
		if _, err := conn.ExecContext(context.Background(), do); err != nil {
			t.Fatal(err)
		}
		if do == "BEGIN IMMEDIATE" {
			b.awaitPrinted(0, 100) // which can't be stored now
		}
	}
	end := s.await("the end", func(e printedEvent) bool { return e["event"] == "run_ended" })
	if code := s.end(); code != 0 || end["verdict"] != "succeeded" {
		t.Errorf("exit code %d, %v", code, end)
	}
	b.logsAreWhole(end["run"].(string))
	points := 0
	for _, e := range b.within(3*time.Minute, "attach", "--json").all("point") {
		if e["name"] == "loss" {
			points++
		}
	}
	if points != 150 {
		t.Errorf("%d points, want 150", points)
	}
	b.nothingIsLeft()
}

// floods are outputs that no screen could show, and what must be made of them.
var floods = map[string]string{
	"as many lines a second as Python can print": `
line = "x" * 199 + "\n"
for i in range(1, 1001):
    sys.stdout.write(line * 250)
    sys.stdout.write(f"step {i}/1000 loss: {4 / i:.4f}\n")
`,
	"a line of 50 MB": `
print("step 1/2 loss: 4.0")
for i in range(50):
    sys.stdout.write("x" * 1_000_000)
print()
print("step 2/2 loss: 2.0")
`,
	"bytes that are no text": `
sys.stdout.flush()
import random
random.seed(1)
print("step 1/2 loss: 4.0", flush=True)
for i in range(200):
    sys.stdout.buffer.write(random.randbytes(100_000))
print("\nstep 2/2 loss: 2.0")
`,
}

// A teardown during a run brings home what the run has made, then the nodes go.
func TestDownDuringARunBringsItsResultsHomeFirst(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	script := `import os
os.makedirs("outputs", exist_ok=True)
open("outputs/checkpoint", "w").write("so far")
` + fmt.Sprintf(lossScript, 40000, 0.02)
	for _, watched := range []bool{true, false} {
		t.Run(fmt.Sprintf("watched by another dlwb: %v", watched), func(t *testing.T) {
			b := newBed(t).withOneNode()
			b.profile(script, "results: {paths: [outputs/]}\n")
			first := b.start("run", "--json")
			first.awaitStep(3)
			if !watched {
				first.signal(syscall.SIGKILL)
				first.end()
			}
			r := b.within(60*time.Second, "down", "--json")
			if r.code != 0 || r.one(t, "receipt")["proven"] != true {
				t.Errorf("down: exit code %d\n%s", r.code, r.stdout)
			}
			if n := len(r.all("failed")) + len(r.all("notice")); n != 0 {
				t.Errorf("something went wrong on the way:\n%s", r.stdout)
			}
			if code := first.end(); watched && code != 130 {
				t.Errorf("the watching dlwb: exit code %d", code)
			}
			run := b.runs()[0]
			got, err := os.ReadFile(filepath.Join(run.Dir, "results", "outputs", "checkpoint"))
			if string(got) != "so far" || run.Verdict != "stopped" {
				t.Errorf("%q, %v, %+v", got, err, run)
			}
			b.nothingIsLeft()
		})
	}
}

// Where the results can't be fetched any more, that is said.
func TestDownSaysWhichResultsDidNotComeHome(t *testing.T) {
	b := newBed(t)
	b.profile("import os\nos.makedirs('outputs', exist_ok=True)\n"+fmt.Sprintf(lossScript, 40000, 0.02), "results: {paths: [outputs/]}\n")
	first := b.start("run", "--json")
	run := first.await("the run", func(e printedEvent) bool { return e["event"] == "run_started" })["run"].(string)
	first.awaitStep(3)
	first.signal(syscall.SIGKILL)
	first.end()
	if err := syscall.Kill(b.nodePID(0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r := b.within(90*time.Second, "down", "--json")
	if r.code != 0 || r.one(t, "receipt")["proven"] != true {
		t.Errorf("down: exit code %d\n%s", r.code, r.stdout)
	}
	said := false
	for _, e := range r.all("notice") {
		said = said || strings.Contains(e["text"].(string), "the results of run "+run+" did not come home")
	}
	if !said {
		t.Errorf("it was not said:\n%s", r.stdout)
	}
	if runs := b.runs(); runs[0].Verdict == "" {
		t.Errorf("%+v", runs)
	}
	b.nothingIsLeft()
}

func TestAFloodOfOutputIsStoredWholeInLittleMemory(t *testing.T) {
	sample.Leave(t)
	if raced {
		t.Skip("the memory is that of dlwb as people have it: make test tells it by itself, without -race")
	}
	for name, script := range floods {
		t.Run(name, func(t *testing.T) {
			b := newBed(t).withOneNode()
			b.profile("import os, sys\nif os.environ['RANK'] == '0':"+strings.ReplaceAll(script, "\n", "\n    ")+"\n", "")
			c := b.command("run", "--json") // a million lines of JSON, that nobody reads
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- c.Wait() }()
			most, limit := 0, time.After(5*time.Minute)
			for running := true; running; {
				select {
				case err := <-ended:
					running = false
					if err != nil {
						t.Fatal(err)
					}
				case <-limit:
					_ = c.Process.Kill()
					t.Fatalf("no end within the limit: %v", <-ended)
				case <-time.After(50 * time.Millisecond):
					most = max(most, rss(t, c.Process.Pid))
				}
			}
			runs := b.runs()
			if len(runs) != 1 || runs[0].Verdict != "succeeded" {
				t.Fatalf("runs %+v", runs)
			}
			b.logsAreWhole(runs[0].ID)
			points := b.storedPoints()
			want := 2
			if strings.Contains(script, "1001") {
				want = 1000
			}
			if points != want {
				t.Errorf("%d points, want %d", points, want)
			}
			t.Logf("at most %d MB", most>>20)
			if most > 400<<20 {
				t.Errorf("dlwb took %d MB", most>>20)
			}
			b.nothingIsLeft()
		})
	}
}

// storedPoints counts the points of the loss.
func (b *bed) storedPoints() (n int) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.home, "state", "dlwb.sqlite")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	err = db.QueryRow("SELECT count(*) FROM points p JOIN series s ON s.id=p.series WHERE s.name='loss'").Scan(&n)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// rss is what a process has in memory; 0 where nobody tells.
func rss(t *testing.T, pid int) int {
	t.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
