package workbench

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// paper is a provider that has nothing to say.
type paper struct{ cloud.Provider }

func (paper) Kind() string                                      { return "local" }
func (paper) Check(context.Context, cloud.Spec) cloud.Preflight { return cloud.Preflight{} }

func planOf(t *testing.T, text string) *planning.Plan {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"dlwb.yaml": text, "train.py": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newBench(t, t.TempDir())
	w.providers["local"] = paper{}
	trusttest.Trust(w.dir, dir)
	plan, err := w.plans.Plan(context.Background(), filepath.Join(dir, "dlwb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// What a profile asks for is either in the plan or named as ignored; defaults
// that nothing acts on are no promise and are not listed.
func TestThePlanPromisesOnlyWhatIsDone(t *testing.T) {
	plain := planOf(t, "run: {command: train.py}\n")
	if len(plain.NotActedOn) > 0 || strings.Contains(plain.Text(), "lifetime") || !strings.Contains(plain.Text(), "no output for 30m ends the run") {
		t.Errorf("ignored: %q\n%s", plain.NotActedOn, plain.Text())
	}
	full := planOf(t, `run: {command: train.py}
limits: {budget: 5USD, lifetime: 12h, idle: 20m, stall: 90s}
results: {paths: [out/], checkpoints: out/ckpt}
forward: [jupyter, 8265]
`)
	for _, want := range []string{
		"stall: no output for 1m30s ends the run", "forward      jupyter, 8265 of node0", "ignored      limits.budget: ",
		"ignored      limits.lifetime: only dlwb down ends a cluster", "ignored      limits.idle: ",
	} {
		if !strings.Contains(full.Text(), want) {
			t.Errorf("%q is not said in\n%s", want, full.Text())
		}
	}
	b, err := json.Marshal(plain)
	if err != nil || strings.Contains(string(b), "null") {
		t.Errorf("lists must be lists, also empty ones: %s, %v", b, err)
	}
}

func TestALossThatIsNoNumberDoesNotBreakTheListOfRuns(t *testing.T) {
	for v, want := range map[float64]string{1.5: `"last_loss":1.5`, math.Inf(1): `"last_loss":"inf"`, math.Inf(-1): `"last_loss":"-inf"`, math.NaN(): `"last_loss":"nan"`} {
		b, err := json.Marshal([]event.RunInfo{{ID: "r", LastLoss: &v}})
		if err != nil || !strings.Contains(string(b), want) || strings.Count(string(b), "last_loss") != 1 {
			t.Errorf("%v: %s, %v", v, b, err)
		}
	}
	if b, err := json.Marshal(event.RunInfo{}); err != nil || !strings.Contains(string(b), `"last_loss":null`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestNothingThereIsNotAskedForByAnEmptyName(t *testing.T) {
	w := newBench(t, t.TempDir())
	_, err := w.FindRun("")
	if err == nil || strings.Contains(err.Error(), `""`) {
		t.Errorf("run: %v", err)
	}
	_, err = w.FindCluster("")
	if err == nil || strings.Contains(err.Error(), `""`) {
		t.Errorf("cluster: %v", err)
	}
}
