package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The keys of a profile that set Options.
const (
	optRendezvous = "run.rendezvous"
	optMinNodes   = "run.min_nodes"
	optRestarts   = "run.restarts"
	optServers    = "run.parameter_servers"
	optEvaluator  = "run.evaluator"
)

// given are the keys that a job has set.
func (o Options) given() []string {
	var keys []string
	for _, k := range []struct {
		key string
		set bool
	}{
		{optRendezvous, o.Rendezvous != "" && o.Rendezvous != RendezvousStatic}, {optMinNodes, o.MinNodes > 0},
		{optRestarts, o.Restarts > 0}, {optServers, o.ParameterServers > 0}, {optEvaluator, o.Evaluator},
	} {
		if k.set {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// Having lists the engines that have an option, by its key in a profile.
func Having(key string) []string {
	var names []string
	for _, e := range engines {
		if slices.Contains(e.options, key) {
			names = append(names, e.name)
		}
	}
	return names
}

// refuseOptions refuses what would be ignored, and what can't be.
func (e engine) refuseOptions(l layout) error {
	o := l.job.Options
	for _, key := range o.given() {
		if !slices.Contains(e.options, key) {
			return fmt.Errorf("%s means nothing to it: remove the key, or use engine %s", key, strings.Join(Having(key), " or "))
		}
	}
	roles := o.ParameterServers
	if o.Evaluator {
		roles++
	}
	switch {
	case o.Rendezvous != "" && o.Rendezvous != RendezvousStatic && o.Rendezvous != RendezvousC10d:
		return fmt.Errorf("%s is %q: write %s or %s", optRendezvous, o.Rendezvous, RendezvousStatic, RendezvousC10d)
	case o.MinNodes > len(l.nodes):
		return fmt.Errorf("%s is %d, and there are %d nodes", optMinNodes, o.MinNodes, len(l.nodes))
	case o.MinNodes > 0 && o.Rendezvous == RendezvousStatic:
		return fmt.Errorf("%s needs %s: %s", optMinNodes, optRendezvous, RendezvousC10d)
	case roles > 0 && roles >= workers(l.nodes):
		return fmt.Errorf("%d of %d nodes would not train: at least one must", roles, workers(l.nodes))
	}
	return nil
}

// refuseOwned refuses variables that the engine sets itself.
func (e engine) refuseOwned(env []string) error {
	for _, name := range e.owns {
		if isSet(env, name) {
			return fmt.Errorf("run.env sets %s, which the engine itself sets for every rank: remove it", name)
		}
	}
	return nil
}

// unwrapped takes a launcher off the command. One of another engine would start
// ranks of its own below those that this one starts.
func (e engine) unwrapped(job *Job) ([]string, error) {
	if path.Base(word(job.Command, 0)) == "srun" && Launcher(job.Command) == "" {
		return nil, fmt.Errorf("run.command begins with srun, and dlwb itself starts the processes of all nodes: write only what follows it and its options")
	}
	cut, rest := cutFronts(job.Command)
	job.Command, job.fronts = rest, cut.kept
	job.Env = append(slices.Clip(job.Env), cut.assigned...)
	for _, other := range engines {
		if other.unwrap == nil {
			continue
		}
		as := *job
		notes, is, err := other.unwrap(&as)
		switch {
		case !is:
		case other.name != e.name:
			return nil, fmt.Errorf("run.command starts %s, which is engine %s: set run.engine to that, or write only the script and its arguments", launcherWord(job.Command), other.name)
		case err != nil:
			return nil, err
		default:
			*job = as
			return append(cut.notes, notes...), nil
		}
	}
	return e.refuseWithin(job)
}

// word is one of some words; empty where there are not so many.
func word(words []string, i int) string {
	if i >= len(words) {
		return ""
	}
	return words[i]
}

// Launcher gives the engine whose launcher a command begins with; empty where it
// begins with none.
func Launcher(command []string) string {
	_, rest := cutFronts(command)
	return launcherAt(rest)
}

// launcherAt is Launcher for a command with nothing before its launcher.
func launcherAt(command []string) string {
	for _, e := range engines {
		if e.unwrap == nil {
			continue
		}
		if _, is, _ := e.unwrap(&Job{Command: command}); is {
			return e.name
		}
	}
	return ""
}

// joinHostPort writes an address with its port.
func joinHostPort(host, port string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]:" + port
	}
	return host + ":" + port
}
