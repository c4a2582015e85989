package planning

import (
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
)

// Parts are the processes and the ranks of a run, as a job has them.
func Parts(made engine.Plan) (procs []cloud.JobProc, ranks []cloud.JobRank) {
	for node, all := range made.Nodes {
		for _, p := range all {
			proc := cloud.JobProc{Replica: node, Name: p.Name, Ranks: p.Ranks, Env: p.Env, Argv: p.Argv, Log: p.Log, Helper: p.Helper}
			if a := p.After; a != nil {
				proc.After = &cloud.JobReady{What: a.What, Argv: a.Argv, Limit: a.Limit}
			}
			procs = append(procs, proc)
			for _, rank := range p.Ranks {
				ranks = append(ranks, cloud.JobRank{Rank: rank, Replica: node, Env: p.Env})
			}
		}
	}
	return procs, ranks
}

// Files are those that the nodes of a run need, as a job has them.
func Files(made engine.Plan) (all []cloud.JobFile) {
	for node, files := range made.Files {
		for _, f := range files {
			all = append(all, cloud.JobFile{Replica: node, Name: f.Name, Text: f.Text})
		}
	}
	return all
}

// CheckpointWord stands in run.resume for the path of the checkpoint to go on from,
// as the ranks see it from the code directory.
const CheckpointWord = "{checkpoint}"

// Command is a command with what its profile adds for going on. Where that names a
// checkpoint and there is none, the run begins anew.
func Command(command, resume string, have bool) string {
	if resume == "" || !have && strings.Contains(resume, CheckpointWord) {
		return command
	}
	return command + " " + resume
}

// resumed is a profile whose command has what run.resume adds to it where nobody
// knows of a checkpoint; the profile itself where that adds nothing.
func resumed(p *profiles.Profile) *profiles.Profile {
	command := Command(p.Run.Command, p.Run.Resume, false)
	if p.Run.Command == "" || command == p.Run.Command {
		return p
	}
	own := *p
	own.Run.Command = command
	return &own
}

// Resuming sets what the processes of a job are when a queue starts it once more:
// with what run.resume adds to the command.
func Resuming(procs []cloud.JobProc, p *profiles.Profile, s Site) error {
	own := resumed(p)
	if own == p {
		return nil
	}
	made, err := LayRanks(own, s)
	if err != nil {
		return err
	}
	anew, _ := Parts(made)
	for i := range min(len(procs), len(anew)) {
		procs[i].Again = anew[i].Argv
	}
	return nil
}
