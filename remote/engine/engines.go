package engine

import (
	"fmt"
	"path"
	"strconv"
)

// rankVars are the variables by which torch.distributed finds its peers.
var rankVars = []string{
	"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
}

// torchrun starts one agent per node with a static rendezvous: it gives each
// node a fixed range of ranks, and the ranks an address instead of the head's
// host name, which the other nodes may not resolve.
func torchrun(l layout) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	for i := range l.nodes {
		plan[i] = []Proc{{
			Name:  "agent",
			Ranks: l.ranks(i),
			Env:   l.commonEnv(i),
			Argv:  append(l.agent(i), l.wrapped()...),
			Log:   "agent.log",
		}}
	}
	return plan
}

func (l layout) agent(node int) []string {
	argv := []string{
		// The long flags are written with underscores: PyTorch before 2.0
		// knows no others, and every later one still takes them.
		l.job.Python, "-m", "torch.distributed.run",
		"--nnodes=" + strconv.Itoa(len(l.nodes)),
		"--nproc_per_node=" + strconv.Itoa(l.procs[node]),
		"--node_rank=" + strconv.Itoa(node),
		"--master_addr=" + l.nodes[0].Host,
		"--master_port=" + l.port,
		// How often the agent looks at its ranks. The default was 5 s before
		// PyTorch 2.3, and every end of a run, good or bad, came that late.
		"--monitor_interval=0.2",
		// Redirect and tee nothing. PyTorch 1.13 on Python 3.11 can't say so:
		// it looks for the zero value by iterating over a flag type, which
		// left it out from 3.11 on, and crashes on "0" and on "0:0". A map
		// that names only local rank 9 makes all others take the default by
		// another way. A real rank 9 loses nothing: its wrapper writes its
		// output to the rank's own log.
		"-r", "9:1", "-t", "9:1",
	}
	if l.job.RunDir != "" {
		// Else it leaves a /tmp/torchelastic_* behind for each run. The path is
		// a word of its own, so that a ~ in front of it can be expanded.
		argv = append(argv, "--log_dir", path.Join(l.job.RunDir, "torchrun"))
	}
	return append(argv, "--no_python")
}

// refuseTorchrun catches a torchrun inside torchrun, which would start the
// square of the ranks.
func refuseTorchrun(command []string) error {
	for i, w := range command[:min(len(command), 3)] {
		nested := i == 0 && path.Base(w) == "torchrun" ||
			i > 0 && command[i-1] == "-m" && (w == "torch.distributed.run" || w == "torch.distributed.launch")
		if nested {
			return fmt.Errorf("run.command starts %s, but the engine already does: write only the script and its arguments", w)
		}
	}
	return nil
}

// plain starts every rank itself and tells it its place in the environment.
func plain(l layout) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	for i := range l.nodes {
		for local, rank := range l.ranks(i) {
			name := "rank-" + strconv.Itoa(rank)
			plan[i] = append(plan[i], Proc{
				Name:  name,
				Ranks: []int{rank},
				Env:   append(l.rankEnv(i, local), l.commonEnv(i)...),
				Argv:  l.wrapped(),
				Log:   name + ".log",
			})
		}
	}
	return plan
}

// rankEnv sets rankVars, in their order.
func (l layout) rankEnv(node, local int) []string {
	values := []string{
		l.nodes[0].Host, l.port, strconv.Itoa(l.world), strconv.Itoa(l.first[node] + local),
		strconv.Itoa(local), strconv.Itoa(l.procs[node]), strconv.Itoa(node),
	}
	for i, name := range rankVars {
		values[i] = name + "=" + values[i]
	}
	return values
}
