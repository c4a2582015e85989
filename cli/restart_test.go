package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// failingScript writes whole checkpoints on rank 0, and then one that is never
// finished; rank 1 fails when it is told to. A run that has a checkpoint says which
// and ends well.
const failingScript = `
import os, sys, time
rank = os.environ["RANK"]
if len(sys.argv) > 1:
    path = os.environ["DLWB_CHECKPOINT"]
    assert os.path.samefile(path, sys.argv[2]) and os.path.isabs(path), (path, sys.argv)
    print("rank", rank, "goes on from", os.path.basename(path), open(path + "/model").read(), sorted(os.listdir("ckpt")), flush=True)
    sys.exit()
assert "DLWB_CHECKPOINT" not in os.environ
if rank == "1":
    while not os.path.exists(os.environ["FAIL"]):
        time.sleep(0.1)
    sys.exit(3)
for step in "step-1", "step-2":
    os.makedirs("ckpt/" + step)
    open("ckpt/" + step + "/model", "w").write("whole " + step)
    print("step: 1 loss: 0.9", flush=True)
os.makedirs("ckpt/step-3")
half = open("ckpt/step-3/model", "w")
while True:
    half.write("x")
    half.flush()
    time.sleep(0.1)
`

func TestARunThatFailsGoesOnFromItsNewestWholeCheckpoint(t *testing.T) {
	b := newBed(t)
	fail := filepath.Join(b.home, "fail")
	b.profile(failingScript, "  restarts: 2\n  resume: --from {checkpoint}\n  env: {FAIL: "+fail+"}\nresults: {checkpoints: ckpt}\n")
	if plan := b.run("plan"); !strings.Contains(plan.stdout, "DLWB_CHECKPOINT") {
		t.Errorf("the plan does not say who starts the run again:\n%s%s", plan.stdout, plan.stderr)
	}
	d := b.start("run", "--down", "--json")
	saved := d.await("the newest whole checkpoint", func(e printedEvent) bool {
		// A quick look may have seen the first one alone.
		return e["event"] == "checkpoint" && e["name"] != "step-1"
	})
	if saved["name"] != "step-2" {
		t.Errorf("the checkpoint that came home is %v", saved)
	}
	b.ageIsTold(saved)
	// What was seen just before a failure is in doubt.
	since, _ := time.Parse(time.RFC3339, saved["time"].(string))
	d.await("a while of training after it", func(e printedEvent) bool {
		at, err := time.Parse(time.RFC3339, fmt.Sprint(e["time"]))
		return err == nil && at.Sub(since) > 4*time.Second
	})
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var r result
	for e := range d.news {
		r.events = append(r.events, e)
	}
	if code := d.end(); code != 0 || len(r.all("run_started")) != 1 {
		t.Fatalf("exit code %d\n%v", code, r.events)
	}
	again := r.one(t, "run_started")
	for rank := range 2 {
		text, _ := os.ReadFile(filepath.Join(b.home, "state", "runs", again["run"].(string), "rank-"+string(rune('0'+rank))+".log"))
		const goesOn = " goes on from step-2 whole step-2 "
		if !strings.Contains(string(text), goesOn) || strings.Contains(string(text), "step-3") {
			t.Errorf("rank %d says %q", rank, text)
		}
	}
	if verdicts := r.all("run_ended"); verdicts[0]["verdict"] != "failed" || verdicts[1]["verdict"] != "succeeded" {
		t.Errorf("the ends are %v", verdicts)
	}
}

// ageIsTold holds what ls says of a checkpoint against the event of it.
func (b *bed) ageIsTold(saved printedEvent) {
	b.t.Helper()
	var list struct {
		Clusters []struct {
			Checkpoint struct {
				Run, Name, Written string
				Age                *float64 `json:"age_s"`
			}
		}
	}
	r := b.run("ls", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list.Clusters) != 1 {
		b.t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
	}
	c := list.Clusters[0].Checkpoint
	if c.Name != saved["name"] || c.Run != saved["run"] || c.Written != saved["written"] || c.Age == nil || *c.Age <= 0 || *c.Age > 60 {
		b.t.Errorf("ls tells %+v, the event %v", c, saved)
	}
}

func TestARunThatFailsAgainAndAgainIsStartedAsOftenAsTheProfileSays(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile("import sys; sys.exit(3)", "  restarts: 2\n  resume: --from {checkpoint}\nresults: {checkpoints: ckpt}\n")
	r := b.run("run", "--down", "--json")
	if r.code == 0 || len(r.all("run_started")) != 3 || len(r.all("run_ended")) != 3 {
		t.Fatalf("exit code %d, %d starts\n%s%s", r.code, len(r.all("run_started")), r.stdout, r.stderr)
	}
	if !slices.ContainsFunc(r.all("notice"), func(e printedEvent) bool {
		text, _ := e["text"].(string)
		return strings.Contains(text, "2 times, which is run.restarts")
	}) {
		t.Errorf("why there is no other start is not said:\n%s", r.stdout)
	}
}
