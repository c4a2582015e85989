package engine

import (
	"fmt"
	"slices"
	"strconv"
)

// layout is a checked job with its ranks dealt out to the nodes.
type layout struct {
	job     Job
	nodes   []Node
	command []string
	port    string
	procs   []int // per node
	first   []int // first rank of each node
	world   int
}

const defaultMasterPort = 29500

func newLayout(nodes []Node, job Job) (layout, error) {
	if len(nodes) == 0 {
		return layout{}, fmt.Errorf("there are no nodes to run on")
	}
	if job.ProcsPerNode < 0 {
		return layout{}, fmt.Errorf("%d processes per node is not possible: give 1 or more, or 0 for one per GPU", job.ProcsPerNode)
	}
	if job.MasterPort == 0 {
		job.MasterPort = defaultMasterPort
	}
	if job.MasterPort < 1 || job.MasterPort > 65535 {
		return layout{}, fmt.Errorf("master port %d is outside 1–65535", job.MasterPort)
	}
	if job.Python == "" {
		job.Python = "python3"
	}
	command, err := executable(job.Command, job.Python)
	if err != nil {
		return layout{}, err
	}
	if job.Run == "" {
		job.Run = "dlwb"
	}
	command = append(slices.Clip(job.fronts), command...)
	l := layout{job: job, nodes: nodes, command: command}
	l.port = l.portAt(0)
	if n := job.procsInAll; n > 0 && job.ProcsPerNode == 0 {
		if n%len(nodes) != 0 {
			return layout{}, fmt.Errorf("run.command asks for %d processes, which %d nodes can't share evenly: set run.procs_per_node", n, len(nodes))
		}
		job.ProcsPerNode = n / len(nodes)
	}
	for _, n := range nodes {
		g := job.ProcsPerNode
		if g == 0 {
			g = max(n.GPUs, 1)
		}
		if n.Head {
			g = 0
		}
		l.procs = append(l.procs, g)
		l.first = append(l.first, l.world)
		l.world += g
	}
	return l, nil
}

// portAt is the port that so many follow the master port.
func (l layout) portAt(k int) string {
	if l.job.PortName == "" {
		return strconv.Itoa(l.job.MasterPort + k)
	}
	if k == 0 {
		return l.job.PortName
	}
	return l.job.PortName + "+" + strconv.Itoa(k)
}

// ranks lists the ranks of a node.
func (l layout) ranks(node int) []int {
	ranks := make([]int, l.procs[node])
	for i := range ranks {
		ranks[i] = l.first[node] + i
	}
	return ranks
}

// wrapped is the command of a rank inside its wrapper.
func (l layout) wrapped() []string {
	command := slices.Clone(l.command)
	if arg := l.job.localRankArg; arg != "" {
		command = append([]string{"sh", "-c", `exec "$@" ` + arg + `="$LOCAL_RANK"`, "sh"}, command...)
	}
	if l.job.RankScript == "" {
		return command
	}
	return append([]string{"sh", l.job.RankScript, l.job.RunDir}, command...)
}

// commonEnv is what every engine sets on a node, save what the user set.
func (l layout) commonEnv(node int) []string {
	n := l.nodes[node]
	env := []string{"PYTHONUNBUFFERED=1"}
	if n.Interface != "" {
		// Without these gloo resolves the node's own host name, and hangs for
		// minutes where nothing answers for it.
		env = append(env, "GLOO_SOCKET_IFNAME="+n.Interface, "NCCL_SOCKET_IFNAME="+n.Interface)
	}
	if n.GPUs > 0 {
		env = append(env, "NCCL_DEBUG=WARN")
	}
	if t := l.threads(node); t > 0 {
		env = append(env, "OMP_NUM_THREADS="+strconv.Itoa(t))
	}
	return unset(env, l.job.Env)
}

// threads is how many threads one rank may use. Each rank would otherwise
// start one per core of the machine, and they would slow each other down.
func (l layout) threads(node int) int {
	g := l.procs[node]
	if l.job.MaxThreads > 0 {
		return max(l.job.MaxThreads/max(g, 1), 1)
	}
	if g > 1 {
		return 1
	}
	return 0
}
