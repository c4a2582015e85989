package planning

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
)

// Where the service has nothing that starts Ray, its parts run beside the ranks, on the
// nodes that the profile counts.
func TestAClusterThatTheServiceDoesNotStartRunsBesideTheRanks(t *testing.T) {
	p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nprovider: kubernetes\nmachines: {count: 2, gpus: 4}\nrun: {engine: ray, command: train.py}\n"))
	if err != nil {
		t.Fatal(err)
	}
	found := cloud.Preflight{GPUs: []int{4, 4}, Beside: true}
	made, err := launches(p, Site{Nodes: make([]engine.Node, 2), Python: namePython, Run: nameRun, PortIs: namePort, Beside: true}, [][]branch{gpuConditions(t.Context(), p, found)})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(made[0].Notes, "\n"); len(made) != 1 || made[0].WorldSize != 8 || strings.Contains(notes, "node0 is one more") || strings.Contains(notes, ":8265") {
		t.Errorf("%+v", made)
	}
	if lacks := notCarried(p, made); len(lacks) > 0 {
		t.Errorf("%+v", lacks)
	}
	laid, err := LayRanks(p, Site{Nodes: make([]engine.Node, 2), Python: "python3", Run: "run", PortIs: namePort, Beside: true})
	if err != nil || len(laid.Files) != 2 || !laid.Nodes[1][0].Helper || laid.Nodes[1][0].After == nil {
		t.Errorf("%+v, %v", laid, err)
	}
}

// Where the service starts Ray itself, its head is one node more than the profile counts,
// without GPUs and without a rank; one node alone is the head. What the plan says is what
// is handed in: the engine is known also by the launcher that the command begins with.
func TestAClusterThatTheServiceStartsHasItsHeadBesides(t *testing.T) {
	for text, want := range map[string]struct {
		nodes, world int
		engine       string
	}{
		"kubernetes\nmachines: {count: 2, gpus: 4}\nrun: {engine: ray, command: train.py}":               {3, 8, "ray"},
		"kubernetes\nmachines: {count: 2, gpus: 4}\nrun: {command: 'ray job submit -- python train.py'}": {3, 8, "ray"},
		"kubernetes\nmachines: {count: 1, gpus: 4}\nrun: {engine: ray, command: train.py}":               {1, 4, "ray"},
		"kubernetes\nmachines: {count: 2, gpus: 4}\nrun: {command: 'mpirun -np 8 python train.py'}":      {2, 8, "mpi"},
		"kubernetes\nmachines: {count: 2, gpus: 4}\nrun: {engine: torchrun, command: train.py}":          {2, 8, "torchrun"},
		"slurm\nmachines: {count: 2}\nrun: {engine: ray, command: train.py}":                             {2, 2, "ray"},
		"local\nmachines: {count: 2}\nrun: {engine: ray, command: train.py}":                             {2, 2, "ray"},
	} {
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\nprovider: "+text+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := Nodes(p); got != want.nodes {
			t.Errorf("%s: %d nodes, not %d", text, got, want.nodes)
		}
		if got := Spec(p); got.Engine != want.engine || got.Count != p.Machines.Count {
			t.Errorf("%s: the provider is asked for %s on %d", text, got.Engine, got.Count)
		}
		found := cloud.Preflight{GPUs: slices.Repeat([]int{4}, p.Machines.Count)}
		if p.Provider != "kubernetes" {
			found.GPUs = make([]int, p.Machines.Count)
		}
		made, err := launches(p, Site{Nodes: make([]engine.Node, want.nodes), Python: namePython, Run: nameRun, PortIs: namePort}, [][]branch{gpuConditions(t.Context(), p, found)})
		if err != nil {
			t.Fatal(err)
		}
		if len(made) != 1 || made[0].WorldSize != want.world || made[0].Engine != want.engine {
			t.Errorf("%s: %+v", text, made)
		}
		given := strings.Contains(strings.Join(made[0].Notes, "\n"), "127.0.0.1:8265")
		if notes := strings.Join(made[0].Notes, "\n"); given != (p.Provider == "kubernetes" && want.engine == "ray") || strings.Contains(notes, "node0 is one more") != (want.nodes == 3) {
			t.Errorf("%s: the notes are\n%s", text, notes)
		}
	}
}
