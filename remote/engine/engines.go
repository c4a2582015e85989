package engine

import "strconv"

// rankVars are the variables by which torch.distributed finds its peers.
var rankVars = []string{
	"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
}

// plain starts every rank itself and tells it its place in the environment.
func plain(l layout) [][]Proc {
	return l.eachRank(func(node, local int) []string { return l.rankEnv(node, local) })
}

// composerCommand is the launcher of MosaicML's Composer, which tells the ranks
// what plain does.
var composerCommand = launcherCommand{
	program: []string{"composer"}, modules: []string{"composer.cli.launcher"},
	options: map[string]option{
		"n": takes(procsEach), "nproc": takes(procsEach), "world_size": dropValue, "base_rank": dropValue, "node_rank": dropValue,
		"master_addr": dropValue, "master_port": dropValue, "stdout": dropValue, "stderr": dropValue, "run_directory": dropValue, "v": dropFlag,
		"verbose": dropFlag, "c": dropFlag, "command_mode": dropFlag,
	},
}

func unwrapComposer(j *Job) ([]string, bool, error) {
	_, notes, ok, err := composerCommand.unwrap(j)
	return notes, ok, err
}

// eachRank starts every rank by itself, with what env gives for it.
func (l layout) eachRank(env func(node, local int) []string) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	for i := range l.nodes {
		for local, rank := range l.ranks(i) {
			name := "rank-" + strconv.Itoa(rank)
			plan[i] = append(plan[i], Proc{
				Name:  name,
				Ranks: []int{rank},
				Env:   append(env(i, local), l.commonEnv(i)...),
				Argv:  l.wrapped(),
				Log:   name + ".log",
			})
		}
	}
	return plan
}

// eachNode starts one launcher on every node, which starts the ranks.
func (l layout) eachNode(argv func(node int) []string) [][]Proc {
	plan := make([][]Proc, len(l.nodes))
	for i := range l.nodes {
		plan[i] = []Proc{{
			Name:  "agent",
			Ranks: l.ranks(i),
			Env:   l.commonEnv(i),
			Argv:  append(argv(i), l.wrapped()...),
			Log:   "agent.log",
		}}
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
