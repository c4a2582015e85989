package engine

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// accelerate starts Accelerate's own launcher on every node, so that what a
// configuration of Accelerate says of precision, FSDP or DeepSpeed holds.
func accelerate(l layout) [][]Proc {
	plan := l.eachNode(func(node int) []string {
		argv := []string{l.job.Python, "-m", "accelerate.commands.launch"}
		switch {
		case l.accelerateSaysHow():
		case l.world > 1:
			// Also without GPUs: only this way it starts torchrun's agent, by
			// which ranks on several nodes find each other.
			argv = append(argv, "--multi_gpu")
		case !l.hasGPUs():
			argv = append(argv, "--cpu")
		}
		argv = append(argv,
			"--num_machines", strconv.Itoa(len(l.nodes)), "--num_processes", strconv.Itoa(l.world), "--machine_rank", strconv.Itoa(node),
			"--main_process_ip", l.nodes[0].Host, "--main_process_port", l.port, "--rdzv_backend", "static", "--same_network")
		if len(l.nodes) > 1 && (l.launcherArg("use_deepspeed") || l.launcherArg("config_file")) {
			// Else DeepSpeed's launcher logs in to the other nodes, from each of them.
			argv = append(argv, "--deepspeed_multinode_launcher", "standard")
		}
		return append(append(argv, l.job.launcherArgs...), "--no_python")
	})
	for _, procs := range plan {
		if !l.hasGPUs() {
			procs[0].Env = append(procs[0].Env, "ACCELERATE_USE_CPU=true")
		}
		if l.world == 1 { // its launcher tells a rank alone nothing
			procs[0].Env = append(procs[0].Env, "DLWB_RANK_VAR=DLWB_ONLY_RANK", "DLWB_ONLY_RANK=0")
		}
	}
	return plan
}

var (
	accelerateHow  = []string{"use_fsdp", "use_deepspeed", "use_megatron_lm", "use_parallelism_config"}
	accelerateType = pattern.New(`(?m)(?:^|[{,])\s*"?distributed_type"?\s*:\s*['"]?(\w+)`)
)

// accelerateSaysHow reports whether the command or its configuration says in which
// way the ranks work together. A flag for another way would win over the
// configuration, without a word: what was to be sharded would be whole on each GPU.
func (l layout) accelerateSaysHow() bool {
	if slices.ContainsFunc(accelerateHow, l.launcherArg) {
		return true
	}
	if !l.launcherArg("config_file") {
		return false
	}
	for i, w := range l.job.launcherArgs {
		name, file, inline := strings.Cut(w, "=")
		if optionName(name) == "config_file" && !inline {
			file = word(l.job.launcherArgs, i+1)
		}
		if text, ok := l.job.Sources[path.Clean(file)]; ok && file != "" {
			m := accelerateType.FindStringSubmatch(text)
			return m != nil && m[1] != "NO"
		}
	}
	return true // it lies on the nodes
}

// launcherArg reports whether an option of the launcher was carried over.
func (l layout) launcherArg(name string) bool {
	return slices.ContainsFunc(l.job.launcherArgs, func(w string) bool {
		given, _, _ := strings.Cut(w, "=")
		return strings.HasPrefix(given, "-") && optionName(given) == name
	})
}

func (l layout) hasGPUs() bool {
	for _, n := range l.nodes {
		if n.GPUs > 0 {
			return true
		}
	}
	return false
}

var accelerateCommand = launcherCommand{
	program: []string{"accelerate", "launch"}, modules: []string{"accelerate.commands.launch", "accelerate.launch"},
	options: map[string]option{
		"num_processes": takes(procsInAll), "num_machines": dropValue, "machine_rank": dropValue, "main_process_ip": dropValue,
		"main_process_port": dropValue, "rdzv_backend": dropValue, "same_network": dropFlag, "multi_gpu": dropFlag, "cpu": dropFlag,
		"no_python": dropFlag, "gpu_ids": dropValue, "deepspeed_hostfile": dropValue, "deepspeed_multinode_launcher": dropValue, "log_dir": dropValue, "tee": dropValue,
		"use_deepspeed": keepFlag, "use_fsdp": keepFlag, "use_parallelism_config": keepFlag, "use_megatron_lm": keepFlag,
		"debug": keepFlag, "quiet": keepFlag, "q": keepFlag, "tpu": keepFlag, "use_mps_device": dropFlag, "use_xpu": keepFlag,
		"enable_cpu_affinity": keepFlag,
	},
	others: true, // it has about a hundred, nearly all with a value
}

func unwrapAccelerate(j *Job) ([]string, bool, error) {
	c := accelerateCommand
	if len(j.Command) > 0 && path.Base(j.Command[0]) == "accelerate-launch" {
		c.program = []string{"accelerate-launch"}
	}
	_, notes, ok, err := c.unwrap(j)
	return notes, ok, err
}
