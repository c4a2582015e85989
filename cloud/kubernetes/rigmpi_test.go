//go:build linux

package kubernetes

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/remote/engine"
)

// byEngine is a job of two pods that an engine has laid out.
func byEngine(t *testing.T, m options.Machines, name string, pods int, j engine.Job, script string) (cloud.Life, cloud.Job) {
	t.Helper()
	life, made := jobOf(t, m, pods, script)
	j.Command = []string{"sh", "train.sh"}
	plan := laid(t, name, pods, 0, j)
	made.Engine, made.Command, made.Procs, made.Ranks = plan.Engine, plan.Command, plan.Procs, plan.Ranks
	made.Spec.Engine = plan.Engine
	return life, made
}

// sums adds up the ranks by MPI itself.
const sums = `echo "$TOKEN"; exec python3 -c 'import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
handle = lambda name: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
rank, all = int(os.environ["OMPI_COMM_WORLD_RANK"]), ctypes.c_int()
mpi.MPI_Allreduce(ctypes.byref(ctypes.c_int(rank + 1)), ctypes.byref(all), 1, handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), handle("ompi_mpi_comm_world"))
print("rank", rank, "sum", all.value, flush=True)
mpi.MPI_Finalize()'
`

func needsMPI(t *testing.T) {
	t.Helper()
	for _, program := range []string{"mpirun", "sshd"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is missing: apt-get install openmpi-bin openssh-server")
		}
	}
}

// An MPIJob of the real operator, by a real mpirun over a real SSH: ranks of both pods add
// up, with the secrets of the run, each in its own log and with its own end.
func TestRanksOfAnMPIJobReachEachOther(t *testing.T) {
	needsMPI(t)
	realCluster(t)
	life, j := byEngine(t, options.Machines{}, "mpi", 2, engine.Job{Options: engine.Options{}, ProcsPerNode: 2}, sums)
	r := handIn(t, life, j)
	logs, stories := r.all()
	for i := range 2 {
		if want := "rank"; !strings.Contains(logs[i], want) || !strings.Contains(logs[i], "sum 10") || !strings.Contains(logs[i], "hush $(HOME) 'quoted'") {
			t.Errorf("the log of replica %d is %q", i, logs[i])
		}
		if stories[i] != "started rank-ended(0) rank-ended(0) ended(0)" {
			t.Errorf("replica %d: %s", i, stories[i])
		}
	}
	if receipt := r.down(); !hasKind(receipt, "mpijob") {
		t.Errorf("%+v", receipt.Resources)
	}
}

// A rank that fails ends the others, and is the one whose code is told.
func TestARankOfAnMPIJobThatFailsIsTold(t *testing.T) {
	needsMPI(t)
	realCluster(t)
	life, j := byEngine(t, options.Machines{}, "horovod", 2, engine.Job{ProcsPerNode: 1}, `[ "$OMPI_COMM_WORLD_RANK" = 0 ] || { sleep 2; exit 3; }
trap 'exit 0' TERM
while :; do sleep 0.1; done`)
	r := handIn(t, life, j)
	_, stories := r.all()
	if stories[1] != "started rank-ended(3) ended(3)" || !strings.HasPrefix(stories[0], "started rank-ended(") || strings.Contains(stories[0], "ended(0) ended(0)") {
		t.Errorf("%q", stories)
	}
}

// Parameter servers wait for ever: the operator ends them when the chief has ended.
func TestATFJobHasParameterServers(t *testing.T) {
	realCluster(t)
	life, j := byEngine(t, options.Machines{}, "tensorflow", 3, engine.Job{Options: engine.Options{ParameterServers: 1}}, `case $TF_CONFIG in
*'"type":"ps"'*) trap 'exit 0' TERM; while :; do sleep 0.1; done ;;
esac
sleep 2; echo through`)
	r := handIn(t, life, j)
	logs, stories := r.all()
	for i, want := range []string{"through\n", "through\n", ""} {
		if logs[i] != want || !strings.HasSuffix(stories[i], " ended(0)") {
			t.Errorf("replica %d: %q, %s", i, logs[i], stories[i])
		}
	}
}
