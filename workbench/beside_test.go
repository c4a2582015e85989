package workbench

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/trusttest"
)

// bare is a Kubernetes that starts no Ray, or one that does.
type bare struct {
	cloud.JobProvider
	beside bool
}

func (bare) Kind() string    { return "kubernetes" }
func (bare) Steps() []string { return nil }
func (b bare) Check(context.Context, cloud.Spec) cloud.Preflight {
	return cloud.Preflight{Beside: b.beside}
}

// How many nodes a run has follows from what its service was found to start: the head of
// Ray is one more only where the service makes it.
func TestAPlanHasTheNodesThatItsServiceGivesIt(t *testing.T) {
	for beside, want := range map[bool]int{false: 3, true: 2} {
		dir := t.TempDir()
		for name, text := range map[string]string{"dlwb.yaml": "name: x\nprovider: kubernetes\nmachines: {count: 2}\nrun: {engine: ray, command: train.py}\n", "train.py": ""} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w := newBench(t, t.TempDir())
		w.jobs["kubernetes"] = bare{beside: beside}
		trusttest.Trust(w.dir, dir)
		plan, err := w.plans.Plan(t.Context(), filepath.Join(dir, "dlwb.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if plan.Nodes != want || plan.Beside != beside || !plan.OK() {
			t.Errorf("beside %v: %d nodes, %v: %+v", beside, plan.Nodes, plan.Beside, plan.Findings)
		}
	}
}
