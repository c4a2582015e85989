package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/workbench/event"
)

// trialScript notes that it ran, in one write, and prints a loss that is the least
// for lr=0.3 and layers=2.
const trialScript = `
import os, sys, time
lr, layers, trial = float(os.environ["DLWB_PARAM_LR"]), int(os.environ["DLWB_PARAM_LAYERS"]), os.environ["DLWB_TRIAL"]
assert sys.argv[1:] == ["--layers=%d" % layers, "--rate", os.environ["DLWB_PARAM_LR"]] or sys.argv[1:] == ["--rate", os.environ["DLWB_PARAM_LR"], "--layers=%d" % layers], sys.argv
fd = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
os.write(fd, ("%s %s\n" % (trial, os.environ["CUDA_VISIBLE_DEVICES"])).encode())
for step in range(1, 11):
    print("step %d loss: %.4f" % (step, abs(lr - 0.3) + abs(layers - 2) + 1 / step), flush=True)
    time.sleep(0.1)
open(os.path.join(os.environ["DLWB_RESULTS"], "trial"), "w").write(trial)
`

// sweeping writes a profile with a sweep of 12 trials on four nodes.
func (b *bed) sweeping(more string) (notes string) {
	b.t.Helper()
	notes = filepath.Join(b.home, "notes")
	b.write("train.py", trialScript)
	b.write("dlwb.yaml", fmt.Sprintf(`name: bed
machines: {count: 4}
run: {engine: plain, command: 'train.py --rate {lr}', env: {NOTES: %s}}
sweep:
  parameters: {lr: [0.1, 0.2, 0.3, 0.4], layers: [1, 2, 3]}
  metric: loss
%s`, notes, more))
	return notes
}

// noted are the trials that ran, sorted.
func noted(t *testing.T, notes string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		trial, _, _ := strings.Cut(line, " ")
		all = append(all, fmt.Sprintf("%02s", trial))
	}
	slices.Sort(all)
	return all
}

func TestASweepThatIsKilledAgainAndAgainRunsEachTrialOnce(t *testing.T) {
	b := newBed(t)
	notes := b.sweeping("")
	kills := sample.Of(t, 3, 20, "deaths of dlwb")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, kills)
	r := rand.New(rand.NewPCG(seed, 1))
	for range kills {
		c := b.start("sweep", "--json")
		time.Sleep(time.Duration(100+r.IntN(2200)) * time.Millisecond) // it may be anywhere by then
		c.signal(syscall.SIGKILL)
		c.end()
	}
	last := b.run("sweep", "--json")
	if last.code != 0 {
		t.Fatalf("exit code %d\n%s%s", last.code, last.stdout, last.stderr)
	}
	var want []string
	for n := range 12 {
		want = append(want, fmt.Sprintf("%02d", n+1))
	}
	if got := noted(t, notes); !slices.Equal(got, want) {
		t.Errorf("the trials that ran are %v", got)
	}
	shown := b.run("sweep", "--show", "--json")
	var board map[string]any
	if err := json.Unmarshal([]byte(shown.stdout), &board); err != nil {
		t.Fatalf("%v\n%s%s", err, shown.stdout, shown.stderr)
	}
	rows := board["rows"].([]any)
	if board["done"] != 12.0 || board["failed"] != 0.0 || len(rows) != 12 {
		t.Fatalf("the leaderboard: %v", board)
	}
	best := rows[0].(map[string]any)
	if best["best"] != true || best["settings"] != "lr=0.3 layers=2" || best["value"] != 0.1 {
		t.Errorf("the best is %v", best)
	}
	for _, row := range rows {
		row := row.(map[string]any)
		home, err := os.ReadFile(filepath.Join(b.home, "state", "runs", row["run"].(string), "results", "node0", "trial"))
		if err != nil || string(home) != fmt.Sprint(row["trial"]) {
			t.Errorf("the results of trial %v: %q, %v", row["trial"], home, err)
		}
	}
	const other = "the code has changed since these trials began"
	if strings.Contains(last.stdout, other) {
		t.Errorf("nobody has changed the code\n%s", last.stdout)
	}
	b.write("train.py", trialScript+"# mended\n")
	if again := b.run("sweep"); again.code != 0 || !strings.Contains(again.stdout, other) || !strings.Contains(again.stdout, "(train.py)") || !strings.Contains(again.stdout, "12 of 12 trials; the best is trial") || !strings.Contains(again.stdout, "* ") {
		t.Errorf("a sweep that is done: exit code %d\n%s%s", again.code, again.stdout, again.stderr)
	}
	if got := noted(t, notes); len(got) != 12 {
		t.Errorf("a sweep that is done ran trials again: %v", got)
	}
	if down := b.run("down"); down.code != 0 {
		t.Errorf("%s%s", down.stdout, down.stderr)
	}
}

func TestTrialsShareANodeByItsGPUsAndTheWorseHalfIsEndedEarly(t *testing.T) {
	b := newBed(t)
	began := filepath.Join(b.home, "began")
	if err := os.Mkdir(began, 0o755); err != nil {
		t.Fatal(err)
	}
	// None is behind before all have begun: on a busy machine that takes a while.
	b.write("train.py", `
import os, time
began = "`+began+`"
open(os.path.join(began, os.environ["DLWB_TRIAL"]), "w").close()
while len(os.listdir(began)) < 4:
    time.sleep(0.05)
k = float(os.environ["DLWB_PARAM_LR"])
for step in range(1, 201):
    print("step %d loss: %.4f" % (step, k), flush=True)
    time.sleep(0.05)
`)
	b.write("dlwb.yaml", `name: bed
machines: {simulate_gpus: 4}
run: {engine: plain, command: train.py}
sweep: {parameters: {lr: [0.1, 0.2, 0.3, 9]}, args: none, gpus: 1, metric: loss, stop: median, warmup: 3}
`)
	r := b.run("sweep", "--down", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	most := 0.0
	boards := r.all("sweep")
	for _, e := range boards {
		most = max(most, e["running"].(float64))
	}
	last := boards[len(boards)-1]
	if most != 4 || last["early"].(float64) < 1 || last["best"] != 1.0 || last["done"].(float64) < 1 {
		t.Errorf("at most %v at once, in the end %v", most, last)
	}
	for _, e := range r.all("run_started") {
		if e["world_size"] != 1.0 {
			t.Errorf("a trial on one GPU has %v ranks", e["world_size"])
		}
	}
}

func TestASweepWhoseTrialsAllFailIsGivenUp(t *testing.T) {
	b := newBed(t)
	b.write("train.py", "raise SystemExit(3)\n")
	b.write("dlwb.yaml", "name: bed\nrun: {engine: plain, command: train.py}\nsweep: {parameters: {lr: [1, 2, 3, 4, 5, 6]}}\n")
	r := b.run("sweep", "--down")
	if r.code == 0 || !strings.Contains(r.stderr+r.stdout, "the first 3 trials failed") || strings.Count(r.stdout, "  failed   ") != 3 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// Four trials are at it, and eight wait: with the sweep there, and after it was killed.
func TestDownEndsEveryTrialOfASweepAndBringsHomeWhatEachWrote(t *testing.T) {
	sample.Leave(t)
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", killed), func(t *testing.T) {
			b := newBed(t)
			notes := b.sweeping("")
			b.write("train.py", `
import os, time
open(os.path.join(os.environ["DLWB_RESULTS"], "trial"), "w").write(os.environ["DLWB_TRIAL"])
fd = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
os.write(fd, (os.environ["DLWB_TRIAL"] + " -\n").encode())
time.sleep(600)
`)
			c := b.start("sweep", "--json")
			for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				text, _ := os.ReadFile(notes)
				if strings.Count(string(text), "\n") == 4 {
					break
				}
				if time.Since(began) > time.Minute {
					t.Fatalf("the trials that began: %q", text)
				}
			}
			if killed {
				c.signal(syscall.SIGKILL)
				c.end()
			}
			if down := b.run("down", "--json"); down.code != 0 || strings.Contains(down.stdout, "did not come home") {
				t.Errorf("exit code %d\n%s%s", down.code, down.stdout, down.stderr)
			}
			if !killed {
				var board, failed printedEvent
				for e := range c.news {
					switch e["event"] {
					case "sweep":
						board = e
					case "failed":
						failed = e
					}
				}
				if code := c.end(); code == 0 || !strings.Contains(fmt.Sprint(failed), "launch a trial on cluster bed") {
					t.Errorf("exit code %d, %v", code, failed)
				}
				if board["running"] != 0.0 || board["done"].(float64)+board["failed"].(float64) != 4 {
					t.Errorf("the leaderboard: %v", board)
				}
			}
			if got := noted(t, notes); len(got) != 4 {
				t.Errorf("the trials that ran are %v", got)
			}
			runs := b.runs()
			for _, run := range runs {
				home, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run.ID, "results", "node0", "trial"))
				if err != nil || len(home) == 0 || run.Verdict != "stopped" {
					t.Errorf("%+v: home came %q, %v", run, home, err)
				}
			}
			if len(runs) != 4 {
				t.Errorf("%d runs are on record", len(runs))
			}
			b.nothingIsLeft()
		})
	}
}

// Many trials run at once: each line says whose it is, and that a sweep stands as it did
// is no line.
func TestASweepSaysOnceHowItStandsAndWhichTrialEnded(t *testing.T) {
	var out bytes.Buffer
	p := &printer{w: &out, rank: allRanks, skip: ofTrials()}
	stands := func(done int, value float64) event.Event {
		return event.Event{Body: event.SweepChanged{Sweep: "s1", Method: "grid", Metric: "loss", Mode: "min", Trials: 3, Running: 1, Done: done, Best: 1,
			Rows: []event.TrialRow{{Trial: 1, Value: &value, Values: 1}}}}
	}
	ended := event.Event{Run: "lm-s1-t01", Body: event.RunEnded{Verdict: event.Succeeded, Cause: "every rank ended with code 0"}}
	if err := p.print([]event.Event{stands(0, 0.5), stands(0, 0.4), stands(0, 0.3), ended, stands(1, 0.3)}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "\nlm-s1-t01: run succeeded in ") {
		t.Errorf("printed\n%s", got)
	}
}
