package kubernetes

import (
	_ "embed" // what the pods run
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
)

// mpiSh is mpirun, the SSH server of the other pods, and what starts each rank.
//
//go:embed mpi.sh
var mpiSh string

// mpiJob has mpirun in its first pod, which has ranks as the others do. The operator
// gives all of them a key for SSH, and the first one a list of the others.
var mpiJob = &kind{
	name: options.MPIJob, object: "MPIJob", container: "mpi",
	resource:   schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"},
	controller: "mpi-operator", controllerApp: "app=mpi-operator",
	indexLabel: labelKubeflow + "replica-index",
	host: func(r ref, i int) string {
		if i == 0 {
			return fmt.Sprintf("%s-launcher.%s", r.Name, r.Name)
		}
		return fmt.Sprintf("%s-worker-%d.%s", r.Name, i-1, r.Name)
	},
	selector: pytorchJob.selector,
	replica: func(r ref, i int) string {
		return fmt.Sprintf("%sjob-name=%s,%sreplica-index=%d", labelKubeflow, r.Name, labelKubeflow, i)
	},
	fits: func(n need) bool { return n.mpi },
	spec: mpiSpec,
	// The operator looks at a deadline when it makes the launcher, and never again.
	stop: `{"spec":{"runPolicy":{"suspend":true}}}`,
}

// byMPI reports whether an engine starts its ranks by mpirun.
func byMPI(engine string) bool { return engine == "mpi" || engine == "horovod" }

// mpiSpec is a launcher with its workers. By backoffLimit the launcher is started once:
// a second one would train again under one id.
func mpiSpec(w work) (map[string]any, error) {
	groups := []group{{"Launcher", 0, 1}}
	if w.replicas > 1 {
		groups = append(groups, group{"Worker", 0, w.replicas - 1}) // their indices go on from the launcher's
	}
	spec, err := kubeflowSpec(w, "mpiReplicaSpecs", groups)
	if err != nil {
		return nil, err
	}
	spec["slotsPerWorker"], spec["runLauncherAsWorker"] = int64(max(w.procs, 1)), true
	spec["runPolicy"].(map[string]any)["backoffLimit"] = int64(0)
	return spec, nil
}

// mpiNodes is what the pods of an MPIJob run: the engine's mpirun with its options,
// where the operator's list of hosts takes the place of the engine's own.
func mpiNodes(j cloud.Job, hosts []string) []pack.Node {
	place := job.Placing(hosts, headPort).Replace
	all := make([]pack.Node, j.Replicas)
	for _, p := range j.Procs {
		made := pack.Proc{Ranks: p.Ranks, Launcher: true, Env: slices.Clone(p.Env), Argv: []string{"sh", path.Join(dirWork, "mpi.sh"), "node"}}
		for i, v := range made.Env {
			made.Env[i] = place(v)
		}
		if p.Replica == 0 {
			made.Argv = append(append(made.Argv[:2], "run"), mpiOptions(p.Argv, len(j.Command))...)
			made.Argv = append(append(made.Argv, "sh", path.Join(dirWork, "mpi.sh"), "rank"), j.Command...)
			made.Own = len(made.Argv) - len(j.Command)
		} else {
			made.Own = len(made.Argv)
		}
		all[p.Replica].Procs = append(all[p.Replica].Procs, made)
	}
	return all
}

// mpiOptions are the options of mpirun in the engine's command: behind the script that
// starts it, and before what wraps each rank, "sh -c LINE sh COMMAND".
func mpiOptions(argv []string, command int) (options []string) {
	for i := 2; i < len(argv)-command-4; i++ {
		if argv[i] == "-H" {
			i++
			continue
		}
		options = append(options, argv[i])
	}
	return options
}
