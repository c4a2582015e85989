package sweep

import (
	"cmp"

	"github.com/dlwb/dlwb/profiles"
)

// jobsAtOnce is how many trials that are jobs wait in a queue, or run, at once where the
// profile does not say.
const jobsAtOnce = 4

// AtOnce is how many trials that are jobs there are at a time; inTurn: each has all of
// the machines.
func AtOnce(s profiles.Sweep, inTurn bool) int {
	if inTurn {
		return 1
	}
	return cmp.Or(s.Parallel, jobsAtOnce)
}

// JobsOf refuses what has no meaning where each trial is a job.
func JobsOf(p *profiles.Profile, inTurn bool) error {
	const shared, instead = "it shares out the nodes of a cluster, and each trial is a job of its own here", "leave it out: machines.count and machines.gpus say what each job has"
	var errs profiles.Errors
	for _, k := range []struct {
		key       string
		given     bool
		why, next string
	}{{"sweep.nodes", p.Sweep.Nodes > 1, shared, instead}, {"sweep.gpus", p.Sweep.GPUs > 0, shared, instead},
		{"sweep.parallel", inTurn && p.Sweep.Parallel > 1, "each trial has all machines of the one cluster, and the next begins when it has ended", "leave it out; a script of Ray Tune shares the machines out by itself, as one run"}} {
		if k.given {
			errs = append(errs, p.Fault(k.key, k.key, k.why, "", k.next))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs
}
