package engine

import (
	"path"
	"strconv"
)

// The ways in which torchrun's agents find each other.
const (
	RendezvousStatic = "static"
	RendezvousC10d   = "c10d"
)

// torchrun starts one agent per node. With the static rendezvous it gives each
// node a fixed range of ranks, and the ranks an address instead of the head's
// host name, which the other nodes may not resolve.
func torchrun(l layout) [][]Proc {
	plan := l.eachNode(l.agent)
	if l.job.OldTorch {
		for _, procs := range plan {
			procs[0].Env = append(procs[0].Env, unset(redirectNothing, l.job.Env)...)
		}
	}
	if l.c10d() {
		for i, procs := range plan {
			// The agents deal out the ranks in an order of their own, so a log
			// has the number of its place: the first of its node and the local
			// rank.
			procs[0].Env = append(procs[0].Env, "DLWB_RANK_BASE="+strconv.Itoa(l.first[i]))
			// Each life of the ranks has a store of its own. The agents' store tells
			// lives apart by how often an agent has started its ranks again, which
			// differs between agents: the ranks of a second life would find the
			// addresses of the first.
			procs[0].Env = append(procs[0].Env, unset([]string{"TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1",
				// Else the ranks get the host's name as MASTER_ADDR, which the other
				// nodes may not resolve. It is --local_addr, which PyTorch before 2.0
				// does not know and would refuse.
				"PET_LOCAL_ADDR=" + l.nodes[i].Host}, l.job.Env)...)
		}
	}
	return plan
}

// redirectNothing has the agents redirect and tee nothing. PyTorch 1.13 on Python
// 3.11 can't be told so: it looks for the zero value by iterating over a flag type,
// which left it out from 3.11 on, and crashes on "0" and on "0:0". A map that names
// only local rank 9 makes all others take the default by another way. A real rank 9
// loses nothing: its wrapper writes its output to the rank's own log. It goes by
// environment (torch/distributed/argparse_util.py), so that the command is the same
// for every PyTorch, as the plan has shown it.
var redirectNothing = []string{"PET_REDIRECTS=9:1", "PET_TEE=9:1"}

// c10d reports whether the agents find each other by themselves: only then may
// the number of nodes change, and only then do those of several nodes start their
// ranks again together. With the static rendezvous the ranks of a second life
// meet what is left of the first.
func (l layout) c10d() bool {
	return l.job.Rendezvous == RendezvousC10d || l.job.MinNodes > 0 || l.restartsTogether()
}

func (l layout) restartsTogether() bool {
	return l.job.Rendezvous == "" && l.job.Restarts > 0 && len(l.nodes) > 1
}

// elastic says what of a plan is not fixed.
func elastic(l layout, p *Plan) {
	p.Restarts = l.job.Restarts > 0
	if l.restartsTogether() {
		p.Notes = append(p.Notes, "run.restarts on several nodes: run.rendezvous is c10d, by which their ranks are started again together")
	}
}

func (l layout) agent(node int) []string {
	// The long flags are written with underscores: PyTorch before 2.0 knows no
	// others, and every later one still takes them.
	argv := []string{l.job.Python, "-m", "torch.distributed.run"}
	argv = append(argv, l.meeting(node)...)
	if l.job.Restarts > 0 {
		argv = append(argv, "--max_restarts="+strconv.Itoa(l.job.Restarts))
	}
	// How often the agent looks at its ranks. The default was 5 s before PyTorch
	// 2.3, and every end of a run, good or bad, came that late.
	argv = append(argv, "--monitor_interval=0.2")
	if l.job.RunDir != "" {
		// Else it leaves a /tmp/torchelastic_* behind for each run. The path is
		// a word of its own, so that a ~ in front of it can be expanded.
		argv = append(argv, "--log_dir", path.Join(l.job.RunDir, "torchrun"))
	}
	argv = append(argv, l.job.launcherArgs...)
	return append(argv, "--no_python")
}

// meeting are the flags by which the agents find each other.
func (l layout) meeting(node int) []string {
	nodes, procs := strconv.Itoa(len(l.nodes)), "--nproc_per_node="+strconv.Itoa(l.procs[node])
	if !l.c10d() {
		return []string{"--nnodes=" + nodes, procs, "--node_rank=" + strconv.Itoa(node),
			"--master_addr=" + l.nodes[0].Host, "--master_port=" + l.port}
	}
	if l.job.MinNodes > 0 {
		nodes = strconv.Itoa(l.job.MinNodes) + ":" + nodes
	}
	return []string{"--nnodes=" + nodes, procs, "--rdzv_backend=c10d",
		"--rdzv_endpoint=" + joinHostPort(l.nodes[0].Host, l.port), "--rdzv_id=" + l.job.Run,
		// Only the first node opens the store. Else each agent finds that out by
		// its host's name, which two nodes may share.
		"--rdzv_conf=is_host=" + strconv.FormatBool(node == 0)}
}
