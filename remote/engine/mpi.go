package engine

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// mpiRun starts Open MPI's launcher with dlwb's own way to the other nodes: it
// asks the node's agent to start a daemon there, by the key that the nodes have
// for each other, which can do no more than that. Open MPI 3.1.3 hangs, says Horovod
// (docs/mpi.rst), and other MPIs have other options. In a job of Slurm's mpirun would go
// by the names of its allocation, and start its daemons itself.
const mpiRun = `umask 077
case "$(mpirun --version 2>&1 | head -n 1) " in
*"(Open MPI) 3.1.3 "*)
    echo "dlwb: mpirun is Open MPI 3.1.3, which is known to hang; install another version, such as 4.1" >&2
    exit 78
    ;;
*HYDRA* | *MPICH* | *MVAPICH* | *"Intel(R) MPI"*)
    echo "dlwb: mpirun ($(command -v mpirun)) is not that of Open MPI, which the engines mpi and horovod need; put Open MPI's first on the PATH" >&2
    exit 78
    ;;
esac
cat >"$DLWB_RUN_DIR/mpi-rsh" <<'END'
#!/bin/sh
host=$1
shift
exec "$DLWB_AGENT" join "$DLWB_RUN_DIR" "$host" "$*"
END
chmod 700 "$DLWB_RUN_DIR/mpi-rsh"
TMPDIR=$DLWB_RUN_DIR
export TMPDIR
exec mpirun --mca plm ^slurm --mca ras ^slurm --mca plm_rsh_agent "$DLWB_RUN_DIR/mpi-rsh" "$@"
`

// mpiNode waits for the daemon that the launcher wants on a node, and is it then.
const mpiNode = `TMPDIR=$DLWB_RUN_DIR
export TMPDIR
exec "$DLWB_AGENT" joined "$DLWB_RUN_DIR"
`

// mpi starts mpirun on the first node. On each other one a process waits for the
// daemon that mpirun wants there: so it belongs to the run on its node, with the
// environment of the run, and no variable is in an argument list.
func mpi(l layout) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	for i := range l.nodes {
		p := Proc{Name: "agent", Ranks: l.ranks(i), Log: "agent.log",
			Env: append(l.commonEnv(i), "DLWB_RANK_VAR=OMPI_COMM_WORLD_RANK")}
		if i == 0 {
			p.Argv = append(append([]string{"sh", path.Join(l.runDir(), "mpirun.sh")}, l.mpirun()...), l.wrappedAnywhere()...)
		} else {
			p.Argv = []string{"sh", path.Join(l.runDir(), "mpinode.sh")}
			if l.nodes[i].Host == l.nodes[0].Host {
				// By the name of the machine PMIx takes the ranks of the first node for those of
				// this one, and a communicator of what shares memory has other ranks on each of them.
				p.Env = append(p.Env, "PMIX_HOSTNAME="+nodeName(i))
			}
		}
		plan[i] = []Proc{p}
	}
	return plan
}

// wrappedAnywhere is wrapped for a launcher that starts it on nodes with other
// homes, in the directory of the first one.
func (l layout) wrappedAnywhere() []string {
	if l.job.RankScript == "" {
		return l.wrapped()
	}
	own := ""
	if l.sharesMachine() {
		// Ranks of two nodes would take the same file of shared memory.
		own = `export OMPI_MCA_btl_vader_backing_directory="$DLWB_RUN_DIR" OMPI_MCA_btl_sm_backing_directory="$DLWB_RUN_DIR"; `
	}
	return append([]string{"sh", "-c", own + `cd "$(cat "$DLWB_RUN_DIR/dir")" && exec "$DLWB_AGENT" rank "$DLWB_RUN_DIR" "$@"`, "sh"}, l.command...)
}

// sharesMachine reports whether two nodes are the same machine.
func (l layout) sharesMachine() bool {
	seen := map[string]bool{}
	for _, n := range l.nodes {
		if seen[n.Host] {
			return true
		}
		seen[n.Host] = true
	}
	return false
}

func (l layout) runDir() string {
	if l.job.RunDir == "" {
		return "."
	}
	return l.job.RunDir
}

// mpiName is what mpirun calls a node. A name that a machine of the cluster has itself,
// such as node1, it would take for that machine.
func mpiName(node int) string { return "dlwb-" + nodeName(node) }

// mpirun are the documented options, with the ranks of each node.
func (l layout) mpirun() []string {
	hosts := make([]string, len(l.nodes))
	for i, n := range l.procs {
		hosts[i] = mpiName(i) + ":" + strconv.Itoa(n)
	}
	hosts[0] = "localhost:" + strconv.Itoa(l.procs[0])
	argv := []string{"--allow-run-as-root", "-np", strconv.Itoa(l.world), "-H", strings.Join(hosts, ","),
		"-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib",
		// The daemons stay in front, where their node's agent sees them; each is
		// started from here.
		"--leave-session-attached", "-mca", "plm_rsh_no_tree_spawn", "1"}
	if i := l.nodes[0].Interface; i != "" {
		argv = append(argv, "-mca", "btl_tcp_if_include", i, "-mca", "oob_tcp_if_include", i)
	} else {
		// docker0 has the same address everywhere, and Open MPI waits there for ever.
		argv = append(argv, "-mca", "btl_tcp_if_exclude", "lo,docker0", "-mca", "oob_tcp_if_exclude", "lo,docker0")
	}
	return append(argv, l.job.launcherArgs...)
}

// mpiFiles are the programs of the plan.
func mpiFiles(l layout, p *Plan) {
	p.Files = make([][]File, len(l.nodes))
	for i := range l.nodes {
		p.Files[i] = []File{{"mpinode.sh", mpiNode}}
		if i == 0 {
			p.Files[i] = []File{{"mpirun.sh", mpiRun}}
		}
	}
}

var importsMPI4py = pattern.New(`(?m)^\s*(import|from)\s+mpi4py\b`)

// fillMPI runs a script that uses mpi4py by it: else an exception of one rank
// leaves all others waiting for ever.
func fillMPI(l *layout) []string {
	at := len(l.job.fronts) + 1
	if len(l.command) <= at || !strings.HasSuffix(l.command[at], ".py") || !importsMPI4py.MatchString(l.script()) {
		return nil
	}
	l.command = slices.Insert(slices.Clone(l.command), at, "-m", "mpi4py")
	return []string{"added to the command: -m mpi4py, so that an exception of one rank ends all"}
}

var mpiCommand = launcherCommand{
	program: []string{"mpirun"},
	options: map[string]option{
		"np": takes(procsInAll), "n": takes(procsInAll), "c": takes(procsInAll), "H": dropValue, "host": dropValue, "hostfile": dropValue, "machinefile": dropValue,
		"npernode": takes(procsEach), "N": takes(procsEach), "ppn": takes(procsEach), "perhost": takes(procsEach), "f": dropValue, "x": keepValue, "mca": {words: 2}, "map_by": keepValue, "bind_to": keepValue, "rank_by": keepValue,
		"allow_run_as_root": dropFlag, "tag_output": dropFlag, "output_filename": dropValue, "oversubscribe": keepFlag,
		"prefix": keepValue, "wdir": dropValue, "wd": dropValue, "report_bindings": keepFlag, "v": keepFlag, "q": keepFlag,
	},
}

func unwrapMPI(j *Job) ([]string, bool, error) {
	c := mpiCommand
	if len(j.Command) > 0 && path.Base(j.Command[0]) == "mpiexec" {
		c.program = []string{"mpiexec"}
	}
	_, notes, ok, err := c.unwrap(j)
	return notes, ok, err
}
