package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
)

// What it says goes into a file of the project, as `dlwb run --json >events.jsonl`
// writes it: that file grows with every line about its own sync.
func TestRunGoesFromProfileToReceipt(t *testing.T) {
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 30, 0.02)+`
os.makedirs("outputs", exist_ok=True)
open("outputs/done", "w").write(os.environ["WORLD_SIZE"])
open("outputs/whose", "w").write(open(os.environ["DLWB_RUN_DIR"] + "/life").read())
`, "results: {paths: [outputs/]}\n")
	r := b.runInto(filepath.Join(b.dir, "events.jsonl"), "run", "--down", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	var steps []string
	for _, e := range r.all("step_ended") {
		steps = append(steps, e["step"].(string))
		if e["ok"] != true {
			t.Errorf("step %v: %v", e["step"], e)
		}
		if _, ok := e["duration_s"].(float64); !ok {
			t.Errorf("step %v has no duration", e["step"])
		}
	}
	if want := []string{"cluster", "environment", "sync", "launch", "train", "fetch", "down"}; !reflect.DeepEqual(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	var loss []float64
	for i, e := range r.all("point") {
		if e["name"] == "loss" {
			loss = append(loss, e["value"].(float64))
			if e["step"].(float64) != float64(len(loss)) {
				t.Errorf("point %d: %v", i, e)
			}
		}
	}
	if len(loss) != 30 || loss[0] != 4 || loss[29] >= 1 {
		t.Errorf("loss %v", loss)
	}
	end := r.one(t, "run_ended")
	if end["exit_code"] != 0.0 || end["verdict"] != "succeeded" {
		t.Errorf("run_ended %v", end)
	}
	receipt := r.one(t, "receipt")
	if receipt["proven"] != true || receipt["processes_left"] != 0.0 || receipt["files_left"] != 0.0 {
		t.Errorf("receipt %v", receipt)
	}
	if got, err := os.ReadFile(filepath.Join(r.one(t, "results")["dir"].(string), "outputs", "done")); err != nil || string(got) != "2" {
		t.Errorf("results: %q, %v", got, err)
	}
	// A machine that others use too tells whose a run is by this.
	if got, err := os.ReadFile(filepath.Join(r.one(t, "results")["dir"].(string), "outputs", "whose")); err != nil || len(strings.TrimSpace(string(got))) < 8 {
		t.Errorf("the life that the run names: %q, %v", got, err)
	}
	if left := b.processes(); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if entries, err := os.ReadDir(filepath.Join(b.home, "state", "local")); err == nil && len(entries) > 0 {
		t.Errorf("files left: %v", entries)
	}
}

// runInto is run with a file as its standard output.
func (b *bed) runInto(path string, args ...string) result {
	b.t.Helper()
	f, err := os.Create(path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	var errs strings.Builder
	c := b.command(args...)
	c.Stdout, c.Stderr = f, &errs
	if err := c.Run(); err != nil {
		b.t.Errorf("%v: %s", err, errs.String())
	}
	said, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return resultOf(c.ProcessState.ExitCode(), string(said), errs.String())
}

func TestKilledDlwbLosesNothing(t *testing.T) {
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 150, 0.03), "")
	first := b.start("run", "--json")
	run := first.await("the run", func(e printedEvent) bool { return e["event"] == "run_started" })["run"].(string)
	first.awaitStep(20)
	first.signal(syscall.SIGKILL)
	first.end()

	const unwatched = "nobody watches run "
	r := b.run("ls")
	if !strings.Contains(r.stdout, unwatched+run) || !strings.Contains(r.stdout, "dlwb attach bed") {
		t.Errorf("dlwb ls says:\n%s", r.stdout)
	}
	for _, args := range [][]string{{"logs"}, {"metrics", run}, {"export"}, {"runbook"}} {
		if r := b.run(args...); !strings.Contains(r.stderr, unwatched+run) || !strings.Contains(r.stderr, "dlwb attach bed") {
			t.Errorf("dlwb %s shows what is old, and says:\n%s", args, r.stderr)
		}
	}
	r = b.run("attach", "--json")
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	var steps []float64
	for _, e := range r.all("point") {
		if e["name"] == "loss" {
			steps = append(steps, e["step"].(float64))
		}
	}
	for i, s := range steps {
		if s != float64(i+1) {
			t.Fatalf("the chart has a gap: point %d is step %v", i, s)
		}
	}
	if len(steps) != 150 {
		t.Errorf("%d points, want 150", len(steps))
	}
	if r := b.run("logs"); strings.Contains(r.stderr, unwatched) {
		t.Errorf("dlwb logs of a run that has ended says:\n%s", r.stderr)
	}
	for node, rank := range []int{0, 1} {
		name := fmt.Sprintf("rank-%d.log", rank)
		stored, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, name))
		if err != nil {
			t.Fatal(err)
		}
		there := b.command("ssh", "bed", fmt.Sprint(node), "--", "cat", ".dlwb/runs/"+run+"/"+name)
		original, err := there.Output()
		if err != nil || string(original) != string(stored) {
			t.Errorf("rank %d: %d bytes stored, %d on the node (%v)", rank, len(stored), len(original), err)
		}
	}
	if r = b.run("ls"); strings.Contains(r.stdout, unwatched) {
		t.Errorf("of a run that has ended dlwb ls says:\n%s", r.stdout)
	}
}

// faults are training scripts that end badly on rank 1, and what must be said
// of them.
var faults = []struct {
	name, script, more string
	code               int
	verdict            string
	cause              string
	lastLine           string
}{
	{
		name: "exits with a code", code: 3, verdict: "failed", cause: "rank 1 on node1 exited with code 3", lastLine: "no more memory for this",
		script: "    print('no more memory for this', flush=True); sys.exit(3)",
	}, {
		name: "is killed", code: 137, verdict: "killed", cause: "rank 1 on node1 was killed by SIGKILL", lastLine: "goodbye",
		script: "    print('goodbye', flush=True); os.kill(os.getpid(), 9)",
	}, {
		name: "hangs", code: 124, verdict: "hung", cause: "printed nothing", lastLine: "waiting for nothing", more: "limits: {stall: 3s}\n",
		script: "    print('waiting for nothing', flush=True); time.sleep(3600)",
	}, {
		name: "leaves a daemon that ignores TERM", code: 4, verdict: "failed", cause: "rank 1 on node1 exited with code 4", lastLine: "left one",
		script: `    import subprocess
    subprocess.Popen(["sh", "-c", "trap '' TERM; (trap '' TERM; sleep 3600) & sleep 3600"], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print('left one', flush=True); sys.exit(4)`,
	},
}

func TestBadEndsAreToldWithRankAndLastLines(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			b := newBed(t)
			b.profile("import os, sys, time\nif os.environ['RANK'] == '1':\n    time.sleep(0.5)\n"+f.script+"\ntime.sleep(3600)\n",
				f.more)
			r := b.run("run", "--json")
			if r.code != f.code {
				t.Errorf("exit code %d, want %d\n%s", r.code, f.code, r.stderr)
			}
			end := r.one(t, "run_ended")
			if end["verdict"] != f.verdict || !strings.Contains(end["cause"].(string), f.cause) || end["exit_code"] != float64(f.code) {
				t.Errorf("run_ended %v", end)
			}
			if f.verdict != "hung" && end["rank"] != 1.0 {
				t.Errorf("rank %v, want 1", end["rank"])
			}
			if f.verdict != "hung" && !strings.Contains(fmt.Sprint(end["last_lines"]), f.lastLine) {
				t.Errorf("last lines %v, want %q", end["last_lines"], f.lastLine)
			}
			if left := b.ranks(); len(left) > 0 {
				t.Errorf("processes of the run are left: %v", left)
			}
			if d := b.run("down", "--json"); d.code != 0 || d.one(t, "receipt")["proven"] != true {
				t.Errorf("down: exit code %d\n%s", d.code, d.stdout)
			}
		})
	}
}

// ranks are the bed's processes that belong to a run.
func (b *bed) ranks() []string {
	var found []string
	for _, p := range b.processes() {
		if strings.Contains(p, "train.py") || strings.Contains(p, "sleep 3600") {
			found = append(found, p)
		}
	}
	return found
}

func TestSecondDlwbSeesAndDoesNotFight(t *testing.T) {
	sample.Leave(t)
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "")
	first := b.start("run", "--json")
	run := first.await("the run", func(e printedEvent) bool { return e["event"] == "run_started" })["run"].(string)
	first.awaitStep(5)
	second := b.start("attach", "--json")
	second.awaitStep(10)
	// Nor is a run removed that goes on.
	if r := b.run("rm", run); r.code != 1 || !strings.Contains(r.stderr, "it is going on") {
		t.Errorf("rm: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := b.run("rm", "--all-ended"); r.code != 0 || !strings.Contains(r.stdout, "kept "+run) {
		t.Errorf("rm --all-ended: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	second.awaitStep(20)
	if r := b.run("run", "--json"); r.code == 0 || !strings.Contains(r.stdout, "is going on there") {
		t.Errorf("a second run on the same cluster: exit code %d\n%s", r.code, r.stdout)
	}
	if r := b.run("stop", "--json"); r.code != 0 {
		t.Errorf("stop: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, s := range []*started{first, second} {
		if code := s.end(); code != 130 {
			t.Errorf("exit code %d, want 130", code)
		}
	}
	if r := b.run("ls", "--json"); !strings.Contains(r.stdout, `"phase":"ready"`) {
		t.Errorf("after stop: %s", r.stdout)
	}
}

func TestInterruptLeavesTheRunGoingOn(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 100, 0.03), "")
	first := b.start("run", "--json")
	first.awaitStep(5)
	first.signal(syscall.SIGINT)
	if code := first.end(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if r := b.run("attach", "--json"); r.code != 0 || r.one(t, "run_ended")["verdict"] != "succeeded" {
		t.Errorf("attach: exit code %d\n%s", r.code, r.stdout)
	}
}

func TestInterruptWithDownLeavesNothing(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "")
	first := b.start("run", "--down", "--json")
	first.awaitStep(5)
	first.signal(syscall.SIGINT)
	first.await("the receipt", func(e printedEvent) bool { return e["event"] == "receipt" && e["proven"] == true })
	if code := first.end(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}
