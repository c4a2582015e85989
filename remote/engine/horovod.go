package engine

import (
	_ "embed" // the server and the look
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// horovodServer is where the ranks tell each other their addresses.
//
//go:embed horovodserver.py
var horovodServer string

// HorovodLook is a program for the Python of a node: it prints "gloo" where Horovod can
// use Gloo and no MPI. See Job.NoMPI.
//
//go:embed horovodlook.py
var HorovodLook string

// horovodVars are those by which Horovod's ranks find each other without MPI.
var horovodVars = []string{
	"HOROVOD_HOSTNAME", "HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_RANK", "HOROVOD_CROSS_SIZE",
	"HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT",
}

const (
	withHorovod    = "horovod"
	horovodTimeout = "HOROVOD_GLOO_TIMEOUT_SECONDS"
	// horovodPatience is for how many seconds a rank waits for the others: Horovod's own
	// 30 end a run whose ranks do not come to hvd.init() together.
	horovodPatience = "300"
	// horovodServing is for how many seconds the ranks wait for the server.
	horovodServing = 120
	// horovodThere exits with 0 once the server is there.
	horovodThere = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"
)

// horovod starts mpirun, as horovodrun does where there is MPI. Without it each rank
// is started, and asks a server of Horovod's on the first node for the others.
func horovod(l layout) [][]Proc {
	if !l.byGloo() {
		plan := mpi(l)
		for i := range plan {
			plan[i][0].Env = append(plan[i][0].Env, l.glooInterface(i)...)
		}
		return plan
	}
	plan := l.eachRank(l.glooEnv)
	slots := make([]string, len(l.nodes))
	for i, procs := range plan {
		slots[i] = nodeName(i) + ":" + strconv.Itoa(l.procs[i])
		for local := range procs {
			procs[local].After = &Ready{What: "Horovod's server on node0", Limit: horovodServing,
				Argv: []string{l.job.Python, "-c", horovodThere, l.nodes[0].Host, l.port}}
		}
	}
	plan[0] = slices.Insert(plan[0], 0, Proc{Name: withHorovod, Env: l.commonEnv(0), Log: "agent.log", Helper: true,
		Argv: []string{l.job.Python, path.Join(l.runDir(), "horovodserver.py"), l.nodes[0].Host, l.port, strings.Join(slots, ",")}})
	return plan
}

// byGloo reports whether Horovod's ranks find each other without MPI. Its Gloo
// knows no IPv6.
func (l layout) byGloo() bool {
	return (l.job.NoMPI || l.job.gloo) && !l.job.Given && !strings.Contains(l.nodes[0].Host, ":")
}

// glooEnv is what horovodrun would tell a rank.
func (l layout) glooEnv(node, local int) []string {
	cross, size := 0, 0 // among the ranks that have this place on their node
	for i, n := range l.procs {
		if n > local {
			size++
			if i < node {
				cross++
			}
		}
	}
	values := []string{nodeName(node), strconv.Itoa(l.first[node] + local), strconv.Itoa(l.world), strconv.Itoa(local), strconv.Itoa(l.procs[node]),
		strconv.Itoa(cross), strconv.Itoa(size), l.nodes[0].Host, l.port}
	for i, name := range horovodVars {
		values[i] = name + "=" + values[i]
	}
	values = append(values, "DLWB_RANK_VAR=HOROVOD_RANK", "HOROVOD_CONTROLLER=gloo")
	return append(append(values, unset([]string{"HOROVOD_CPU_OPERATIONS=gloo", horovodTimeout + "=" + horovodPatience}, l.job.Env)...), l.glooInterface(node)...)
}

// glooInterface tells Horovod's Gloo where the other nodes are: with MPI too it may be
// what carries the sums between processors.
func (l layout) glooInterface(node int) []string {
	if l.nodes[node].Interface == "" {
		return nil
	}
	return unset([]string{"HOROVOD_GLOO_IFACE=" + l.nodes[node].Interface}, l.job.Env)
}

// horovodMore are the programs of the plan.
func horovodMore(l layout, p *Plan) {
	if !l.byGloo() {
		mpiFiles(l, p)
		return
	}
	p.Files = make([][]File, len(l.nodes))
	p.Files[0] = []File{{"horovodserver.py", horovodServer}}
	p.Notes = append(p.Notes, "Horovod's ranks find each other by Gloo, without MPI")
}

var horovodCommand = launcherCommand{
	program: []string{"horovodrun"},
	options: map[string]option{
		"np": takes(procsInAll), "num_proc": takes(procsInAll), "H": dropValue, "hosts": dropValue, "hostfile": dropValue,
		"p": dropValue, "ssh_port": dropValue, "i": dropValue, "ssh_identity_file": dropValue, "network_interfaces": dropValue,
		"network_interface": dropValue, "start_timeout": dropValue, "mpi": dropFlag, "gloo": takesFlag(func(j *Job) { j.gloo = true }), "verbose": dropFlag, "output_filename": dropValue,
		"gloo_timeout_seconds": takesVariable(horovodTimeout), "disable_cache": dropFlag, "log_level": takesVariable("HOROVOD_LOG_LEVEL"), "timeline_filename": takesVariable("HOROVOD_TIMELINE"),
		"cycle_time_ms": takesVariable("HOROVOD_CYCLE_TIME"), "cache_capacity": takesVariable("HOROVOD_CACHE_CAPACITY"),
		"autotune": takesFlag(func(j *Job) { j.fronts = append(slices.Clip(j.fronts), "env", "HOROVOD_AUTOTUNE=1") }),
		"fusion_threshold_mb": takes(func(j *Job, value string) error {
			mb, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("this is no number of megabytes")
			}
			return takesVariable("HOROVOD_FUSION_THRESHOLD").take(j, strconv.Itoa(mb<<20))
		}),
	},
}

// takesVariable is an option that each rank is told by a variable.
func takesVariable(name string) option {
	return takes(func(j *Job, value string) error {
		j.fronts = append(slices.Clip(j.fronts), "env", name+"="+value)
		return nil
	})
}

func unwrapHorovod(j *Job) ([]string, bool, error) {
	_, notes, ok, err := horovodCommand.unwrap(j)
	return notes, ok, err
}
