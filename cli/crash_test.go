package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// crashSteps is how many steps the trainings of the crash matrix have.
const crashSteps = 40

// crashScript trains for less than a second and leaves a result.
var crashScript = fmt.Sprintf(lossScript, crashSteps, 0.015) + `
os.makedirs("outputs", exist_ok=True)
open("outputs/done", "w").write("done")
`

// moments are where dlwb is killed: behind an event, and up to so many
// milliseconds later.
var moments = []struct {
	event, step string
	more        int
}{
	{"plan", "", 0},
	{"step_started", "cluster", 300},
	{"step_ended", "cluster", 0},
	{"step_started", "environment", 100},
	{"step_ended", "environment", 0},
	{"step_started", "sync", 60},
	{"step_started", "launch", 0},
	{"step_started", "launch", 60},
	{"step_started", "launch", 150},
	{"step_started", "launch", 300},
	{"step_started", "launch", 500},
	{"run_started", "", 0},
	{"step_ended", "launch", 0},
	{"step_started", "train", 300},
	{"point", "", 600},
	{"rank_ended", "", 0},
	{"run_ended", "", 0},
	{"run_ended", "", 15},
	{"step_ended", "train", 0},
	{"step_started", "fetch", 0},
	{"step_started", "fetch", 50},
	{"step_ended", "fetch", 0},
	{"step_started", "down", 0},
	{"step_started", "down", 150},
}

// afterwards is what somebody may do who finds what was left.
var afterwards = []string{"run", "attach", "down", "ls", "stop"}

// TestDlwbMayBeKilledAtAnyMoment kills dlwb at moments drawn by chance and goes
// on with a command drawn by chance. DLWB_CRASH_SEED draws the same ones again,
// DLWB_CRASH_CELLS draws more of them.
func TestDlwbMayBeKilledAtAnyMoment(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	if raced {
		t.Skip("what is killed is dlwb as people have it: make test kills it by itself, without -race")
	}
	seed, err := strconv.ParseUint(os.Getenv("DLWB_CRASH_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64N(1_000_000)
	}
	cells, err := strconv.Atoi(os.Getenv("DLWB_CRASH_CELLS"))
	if err != nil {
		cells = 8
	}
	t.Logf("DLWB_CRASH_SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	order := chance.Perm(len(moments))
	for cell := range cells {
		m := moments[order[cell%len(order)]]
		next := afterwards[(int(seed%100)+cell)%len(afterwards)]
		late := time.Duration(0)
		if m.more > 0 {
			late = time.Duration(chance.IntN(m.more)) * time.Millisecond
		}
		t.Run(fmt.Sprintf("%d %s %s +%s then %s", cell, m.event, m.step, late, next), func(t *testing.T) {
			b := newBed(t)
			b.profile(crashScript, "results: {paths: [outputs/]}\n")
			b.crash(m.event, m.step, late)
			b.goOn(next)
			b.storiesHold()
			b.nothingIsLeft()
		})
	}
}

// crash begins a run that ends with teardown, and kills dlwb some time behind an
// event.
func (b *bed) crash(name, step string, late time.Duration) {
	b.t.Helper()
	s := b.start("run", "--down", "--json")
	s.await(name+" "+step, func(e printedEvent) bool {
		return e["event"] == name && (step == "" || e["step"] == step)
	})
	// The moment is drawn: that is the point of it.
	time.Sleep(late)
	_ = s.cmd.Process.Kill()
	s.end()
}

// within runs dlwb and holds that it ends in time.
func (b *bed) within(limit time.Duration, args ...string) result {
	b.t.Helper()
	type ended struct {
		r    result
		took time.Duration
	}
	done := make(chan ended, 1)
	began := time.Now()
	c := b.command(args...)
	var out strings.Builder
	var errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() {
		_ = c.Wait()
		done <- ended{resultOf(c.ProcessState.ExitCode(), out.String(), errs.String()), time.Since(began)}
	}()
	select {
	case e := <-done:
		return e.r
	case <-time.After(limit):
		_ = c.Process.Signal(syscall.SIGQUIT) // its goroutines tell where it hangs
		e := <-done
		b.t.Fatalf("dlwb %v did not end within %s\n%s%s", args, limit, e.r.stdout, e.r.stderr)
		return e.r
	}
}

// goOn is what comes after a crash. None of it may hang.
func (b *bed) goOn(next string) {
	b.t.Helper()
	var r result
	switch next {
	case "ls":
		if r = b.within(3*time.Minute, "ls", "--json"); r.code != 0 {
			b.t.Errorf("ls: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	case "run":
		r = b.within(3*time.Minute, "run", "--json")
		if strings.Contains(r.stdout, "is going on there") && r.code == 1 {
			b.within(3*time.Minute, "attach", "--json")
			r = b.within(3*time.Minute, "run", "--json")
		}
		if r.code != 0 {
			b.t.Errorf("run: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	case "attach":
		r = b.within(3*time.Minute, "attach", "--json")
	default:
		r = b.within(3*time.Minute, next, "--json")
	}
	for _, run := range b.runs() {
		if run.EndedAt == nil && next != "ls" {
			b.t.Errorf("after %s run %s has no verdict\n%s%s", next, run.ID, r.stdout, r.stderr)
		}
	}
}

// recorded is a run as dlwb runs lists it.
type recorded struct {
	ID      string  `json:"id"`
	EndedAt *string `json:"ended_at"`
	Verdict string  `json:"verdict"`
	Cause   string  `json:"cause"`
	Dir     string  `json:"dir"`
}

func (b *bed) runs() []recorded {
	b.t.Helper()
	var list struct{ Runs []recorded }
	r := b.within(3*time.Minute, "runs", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		b.t.Fatalf("runs: %v\n%s%s", err, r.stdout, r.stderr)
	}
	return list.Runs
}

// storiesHold reads what is told of all runs of the cluster, if it is still
// there: each thing once, nothing missing, and the logs as the nodes have them.
func (b *bed) storiesHold() {
	b.t.Helper()
	r := b.within(3*time.Minute, "attach", "--json")
	count := map[string]map[string]int{}
	steps := map[string][]float64{}
	removed := false // a teardown was begun
	for _, e := range r.events {
		run, _ := e["run"].(string)
		removed = removed || e["event"] == "step_started" && e["step"] == "down"
		if run == "" {
			continue
		}
		if count[run] == nil {
			count[run] = map[string]int{}
		}
		name := e["event"].(string)
		if step, ok := e["step"].(string); ok && name == "step_ended" {
			name += " " + step
		}
		if name == "rank_ended" {
			name += fmt.Sprint(" ", e["rank"])
		}
		count[run][name]++
		if e["event"] == "point" && e["name"] == "loss" {
			steps[run] = append(steps[run], e["step"].(float64))
		}
	}
	for _, run := range b.runs() {
		told := count[run.ID]
		if told == nil {
			continue // of a former life of the cluster
		}
		if run.EndedAt == nil || run.Verdict == "" || told["run_ended"] != 1 {
			b.t.Errorf("run %s: %+v, told %v", run.ID, run, told)
		}
		for name, n := range told {
			once := name == "run_started" || name == "step_ended train" || strings.HasPrefix(name, "rank_ended")
			if once && n != 1 {
				b.t.Errorf("run %s: %s was told %d times", run.ID, name, n)
			}
		}
		if run.Verdict == "succeeded" {
			b.wasComplete(run, told, steps[run.ID], removed)
		}
	}
}

// wasComplete holds what a run must have left that ended well.
func (b *bed) wasComplete(run recorded, told map[string]int, steps []float64, removed bool) {
	b.t.Helper()
	if told["rank_ended 0"] != 1 || told["rank_ended 1"] != 1 || told["run_started"] != 1 {
		b.t.Errorf("run %s: told %v", run.ID, told)
	}
	if len(steps) != crashSteps {
		b.t.Errorf("run %s has %d points", run.ID, len(steps))
	}
	for i, step := range steps {
		if step != float64(i+1) {
			b.t.Errorf("run %s: point %d is step %v", run.ID, i, step)
			break
		}
	}
	if got, err := os.ReadFile(filepath.Join(run.Dir, "results", "outputs", "done")); string(got) != "done" {
		b.t.Errorf("run %s: its results did not come home: %v, told %v", run.ID, err, told)
	}
	for rank := range 2 {
		name := fmt.Sprintf("rank-%d.log", rank)
		stored, err := os.ReadFile(filepath.Join(run.Dir, name))
		there, err2 := os.ReadFile(filepath.Join(b.nodeDir(rank), "home", ".dlwb", "runs", run.ID, name))
		if errors.Is(err2, os.ErrNotExist) && removed {
			continue // that node was removed; another one is in its place
		}
		if err != nil || err2 != nil || string(stored) != string(there) {
			b.t.Errorf("run %s, rank %d: %d bytes stored, %d on the node (%v, %v)", run.ID, rank, len(stored), len(there), err, err2)
		}
	}
}

func (b *bed) nodeDir(i int) string {
	return filepath.Join(b.home, "state", "local", "bed", fmt.Sprintf("node%d", i))
}

// nothingIsLeft takes everything down and holds what that promises.
func (b *bed) nothingIsLeft() {
	b.t.Helper()
	r := b.within(3*time.Minute, "down", "--all", "--json")
	if r.code != 0 {
		b.t.Errorf("down --all: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, e := range r.all("receipt") {
		if e["proven"] != true || e["processes_left"] != 0.0 || e["files_left"] != 0.0 {
			b.t.Errorf("receipt %v", e)
		}
	}
	if left := b.processes(); len(left) > 0 {
		b.t.Errorf("processes left: %v", left)
	}
	if entries, err := os.ReadDir(filepath.Join(b.home, "state", "local")); err == nil && len(entries) > 0 {
		b.t.Errorf("files left: %v", entries)
	}
	for _, run := range b.runs() {
		if run.EndedAt == nil || run.Verdict == "" || run.Cause == "" {
			b.t.Errorf("run %s has no verdict for ever: %+v", run.ID, run)
		}
	}
	if r := b.within(3*time.Minute, "ls", "--json"); !strings.Contains(r.stdout, `"clusters":[]`) {
		b.t.Errorf("ls: %s", r.stdout)
	}
}

// both runs two dlwb at once.
func (b *bed) both(first, second []string) (a, z result) {
	b.t.Helper()
	var all sync.WaitGroup
	all.Go(func() { a = b.within(3*time.Minute, first...) })
	all.Go(func() { z = b.within(3*time.Minute, second...) })
	all.Wait()
	return a, z
}

func TestOfTwoDlwbOneWinsAndTheOtherIsTold(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	t.Run("run twice", func(t *testing.T) {
		b := newBed(t).withOneNode()
		b.profile(fmt.Sprintf(lossScript, 200, 0.02), "")
		x, y := b.both([]string{"run", "--json"}, []string{"run", "--json"})
		if x.code != 0 {
			x, y = y, x
		}
		busy := y.code == ExitBusy && strings.Contains(y.stdout, "changing it just now")
		late := y.code == ExitFailed && strings.Contains(y.stdout, "is going on there") // it waits a little
		if x.code != 0 || !busy && !late {
			t.Errorf("exit codes %d and %d\n%s", x.code, y.code, y.stdout)
		}
		if runs := b.runs(); len(runs) != 1 || runs[0].Verdict != "succeeded" {
			t.Errorf("runs %+v", runs)
		}
		b.nothingIsLeft()
	})
	t.Run("down while up", func(t *testing.T) {
		b := newBed(t).withOneNode()
		b.profile(crashScript, "")
		up := b.start("up", "--json")
		up.await("the cluster step", func(e printedEvent) bool { return e["event"] == "step_started" })
		r := b.within(3*time.Minute, "down", "--json")
		code := up.end()
		switch { // down waits a little, and up may have ended by then
		case r.code == ExitBusy && strings.Contains(r.stdout, "changing it just now") && code == 0:
		case r.code == 0 && r.one(t, "receipt")["proven"] == true:
		default:
			t.Errorf("down: exit code %d, up: %d\n%s", r.code, code, r.stdout)
		}
		b.nothingIsLeft()
	})
	t.Run("stop while attach, down twice", func(t *testing.T) {
		b := newBed(t).withOneNode()
		b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "")
		b.within(3*time.Minute, "run", "--detach", "--json")
		attach := b.start("attach", "--json")
		attach.awaitStep(3)
		if r := b.within(3*time.Minute, "stop", "--json"); r.code != 0 || !strings.Contains(r.stdout, `"stopped"`) {
			t.Errorf("stop: exit code %d\n%s", r.code, r.stdout)
		}
		if code := attach.end(); code != 130 {
			t.Errorf("attach: exit code %d", code)
		}
		// And down twice, on the same node.
		b.within(3*time.Minute, "run", "--detach", "--json")
		x, y := b.both([]string{"down", "--json"}, []string{"down", "--json"})
		if x.code != 0 {
			x, y = y, x
		}
		gone := y.code == 1 && strings.Contains(y.stdout, "there is none") || y.code == 0 // it came a moment too late
		if x.code != 0 || x.one(t, "receipt")["proven"] != true || y.code != ExitBusy && !gone {
			t.Errorf("exit codes %d and %d\n%s\n%s", x.code, y.code, x.stdout, y.stdout)
		}
		b.nothingIsLeft()
	})
}
