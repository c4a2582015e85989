package planning

import (
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
)

// Parts are the processes and the ranks of a run, as a job has them.
func Parts(made engine.Plan) (procs []cloud.JobProc, ranks []cloud.JobRank) {
	for node, all := range made.Nodes {
		for _, p := range all {
			procs = append(procs, cloud.JobProc{Replica: node, Name: p.Name, Ranks: p.Ranks, Env: p.Env, Argv: p.Argv, Log: p.Log})
			for _, rank := range p.Ranks {
				ranks = append(ranks, cloud.JobRank{Rank: rank, Replica: node, Env: p.Env})
			}
		}
	}
	return procs, ranks
}

// Resumed is a profile whose command has what run.resume adds to it; the profile
// itself where that adds nothing.
func Resumed(p *profiles.Profile) *profiles.Profile {
	if p.Run.Command == "" || p.Run.Resume == "" {
		return p
	}
	again := *p
	again.Run.Command += " " + p.Run.Resume
	return &again
}

// Resuming sets what the processes of a job are when a queue starts it once more:
// with what run.resume adds to the command.
func Resuming(procs []cloud.JobProc, p *profiles.Profile, s Site) error {
	again := Resumed(p)
	if again == p {
		return nil
	}
	made, err := LayRanks(again, s)
	if err != nil {
		return err
	}
	anew, _ := Parts(made)
	for i := range min(len(procs), len(anew)) {
		procs[i].Again = anew[i].Argv
	}
	return nil
}
