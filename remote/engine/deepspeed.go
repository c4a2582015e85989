package engine

import "strconv"

// deepspeedVars are those that DeepSpeed's own launcher sets.
var deepspeedVars = append(append([]string{}, rankVars...), "CROSS_RANK", "CROSS_SIZE", "LOCAL_SIZE")

// deepspeed starts every rank with what DeepSpeed's launcher would tell it. That
// launcher logs in to the other nodes, needs a list of hosts and numbers the GPUs
// itself; init_distributed reads nothing but these variables.
func deepspeed(l layout) [][]Proc {
	return l.eachRank(func(node, local int) []string {
		return append(l.rankEnv(node, local), "CROSS_RANK="+strconv.Itoa(node),
			"CROSS_SIZE="+strconv.Itoa(len(l.nodes)), "LOCAL_SIZE="+strconv.Itoa(l.procs[node]))
	})
}

var deepspeedCommand = launcherCommand{
	program: []string{"deepspeed"}, modules: []string{"deepspeed.launcher.runner"},
	options: map[string]option{
		"num_gpus": takes(procsEach), "num_accelerators": takes(procsEach), "num_nodes": dropValue, "H": dropValue, "hostfile": dropValue, "i": dropValue, "include": dropValue,
		"e": dropValue, "exclude": dropValue, "master_addr": dropValue, "master_port": dropValue, "node_rank": dropValue,
		"launcher": dropValue, "launcher_args": dropValue, "ssh_port": dropValue, "no_ssh": dropFlag, "no_ssh_check": dropFlag,
		"no_python": dropFlag, "force_multi": dropFlag, "save_pid": dropFlag, "enable_each_rank_log": dropValue,
		"bind_cores_to_rank": dropFlag, "bind_core_list": dropValue, "venv_script": dropValue,
		"no_local_rank": takesFlag(func(j *Job) { j.localRankArg = "" }),
	},
}

// unwrapDeepspeed: the launcher tells a script its local rank, unless it is told
// not to.
func unwrapDeepspeed(j *Job) ([]string, bool, error) {
	as := *j
	as.localRankArg = "--local_rank"
	_, notes, ok, err := deepspeedCommand.unwrap(&as)
	if ok {
		*j = as
	}
	return notes, ok, err
}
