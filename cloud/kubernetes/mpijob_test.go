package kubernetes

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/planning"
)

// laid is a job as an engine lays it out for pods with so many GPUs.
func laid(t *testing.T, name string, pods, gpus int, j engine.Job) cloud.Job {
	t.Helper()
	nodes := make([]engine.Node, pods)
	for i := range nodes {
		nodes[i].GPUs = gpus
	}
	made := laidOn(t, name, nodes, j)
	made.Spec.Own = &options.Machines{GPUs: gpus}
	return made
}

func laidOn(t *testing.T, name string, nodes []engine.Node, j engine.Job) cloud.Job {
	t.Helper()
	j.RankScript, j.RunDir, j.Run = "~/.dlwb/bin/rank", "~/.dlwb/runs/run", "run"
	plan, err := engine.Make(name, nodes, j)
	if err != nil {
		t.Fatal(err)
	}
	made := cloud.Job{Run: "run", Replicas: len(nodes), Command: plan.Command, Engine: plan.Engine,
		Spec: cloud.Spec{Name: "run", Count: len(nodes), Engine: plan.Engine}}
	made.Procs, made.Ranks = planning.Parts(plan)
	return made
}

// The options of mpirun are the engine's and the user's, the hosts are the operator's,
// and the command of the ranks stays as it is.
func TestMPIRunInAPodHasTheOptionsOfItsEngineAndTheHostsOfTheOperator(t *testing.T) {
	j := laid(t, "mpi", 2, 4, engine.Job{Command: []string{"mpirun", "-np", "8", "-H", "a:4,b:4", "-x", "NCCL_DEBUG=INFO", "python", "train.py", "-H", "high"}})
	nodes := mpiNodes(j, []string{"run-launcher.run", "run-worker-0.run"})
	head := strings.Join(nodes[0].Procs[0].Argv, " ")
	for _, want := range []string{"sh /dlwb/work/mpi.sh run --allow-run-as-root -np 8 -bind-to none -map-by slot", " -x NCCL_DEBUG=INFO ", " sh /dlwb/work/mpi.sh rank python3 train.py -H high"} {
		if !strings.Contains(head, want) {
			t.Errorf("%q is not in %s", want, head)
		}
	}
	if strings.Contains(head, "localhost") || strings.Contains(head, "node1") || strings.Contains(head, "sh -c") {
		t.Error(head)
	}
	if got := nodes[1].Procs[0].Argv; !slices.Equal(got, []string{"sh", "/dlwb/work/mpi.sh", "node"}) {
		t.Error(got)
	}
	for i, n := range nodes {
		if p := n.Procs[0]; !p.Launcher || len(p.Ranks) != 4 || p.Ranks[0] != 4*i || !slices.Contains(p.Env, "DLWB_RANK_VAR=OMPI_COMM_WORLD_RANK") {
			t.Errorf("pod %d: %+v", i, p)
		}
	}
}

// Which object a job can become follows from what it needs beside its ranks.
func TestAJobBecomesAnObjectThatHasWhatItNeeds(t *testing.T) {
	servers := need{tasks: []task{{"chief", 0}, {taskWorker, 0}, {taskServer, 0}}}
	workers := need{tasks: []task{{taskWorker, 0}, {taskWorker, 1}}}
	for _, c := range []struct {
		name string
		n    need
		want []string
	}{
		{"ranks", need{}, []string{options.PyTorchJob, options.TrainJob, options.Job}},
		{"mpirun", need{mpi: true}, []string{options.MPIJob}},
		{"workers of TensorFlow", workers, []string{options.TFJob, options.TrainJob, options.Job}},
		{"parameter servers", servers, []string{options.TFJob}},
		{"a Ray that KubeRay starts", need{ray: true}, []string{options.RayJob}},
		{"a Ray that is not laid out yet", need{ray: true, helps: true}, []string{options.RayJob, options.Job}},
		{"helpers", need{helps: true}, []string{options.Job}},
	} {
		var fit []string
		for _, k := range kinds {
			if k.fits(c.n) {
				fit = append(fit, k.name)
			}
		}
		if !slices.Equal(fit, c.want) {
			t.Errorf("%s: %v, not %v", c.name, fit, c.want)
		}
	}
}
