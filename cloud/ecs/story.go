package ecs

import (
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud/rayjobs"
	"github.com/dlwb/dlwb/internal/job"
)

// storyOf is what became of a replica, in order, told from one look. It is pure: the
// same look gives the same story to whoever looks. ends are how the ranks ended, as
// far as the driver has told; why is dlwb's note of a stop.
func storyOf(ranks []int, j *rayjobs.Job, why string, ends map[int]int) (all []job.Status) {
	add := func(s job.Status) { all = append(all, s) }
	if j.Status == rayjobs.Pending {
		return nil
	}
	if !j.Began().IsZero() {
		add(job.Status{Time: j.Began(), Kind: job.Started, Rank: -1})
	}
	if !j.Over() {
		return all
	}
	at, code := j.Ended(), codeOfJob(j)
	switch {
	case why != "":
		add(job.Status{Time: at, Kind: job.Stopping, Rank: -1, Why: why})
	case j.Status == rayjobs.Stopped:
		add(job.Status{Time: at, Kind: job.Stopping, Rank: -1, Why: job.Cancelled + "the job was stopped in Ray, not by dlwb"})
	case j.Status == rayjobs.Failed && len(ends) == 0:
		add(job.Status{Time: at, Kind: job.Stopping, Rank: -1, Why: job.Failed + "Ray says why the job failed: " + brief(j.Message)})
	}
	for _, rank := range ranks {
		if n, known := ends[rank]; known {
			add(job.Status{Time: at, Kind: job.RankEnded, Rank: rank, Code: n, Signal: job.SignalOf(n)})
		}
	}
	add(job.Status{Time: at, Kind: job.Ended, Rank: -1, Code: code})
	return all
}

func codeOfJob(j *rayjobs.Job) int {
	switch {
	case j.Code != nil && *j.Code < 0:
		return 128 - *j.Code
	case j.Code != nil:
		return *j.Code
	case j.Status == rayjobs.Stopped:
		return 143
	case j.Status == rayjobs.Failed:
		return 1
	}
	return 0
}

// brief is a message in a line, without the middle of a long one: Ray puts the end of
// the log into it.
func brief(text string) string {
	const head, tail = 120, 280
	words := strings.Join(strings.Fields(text), " ")
	if r := []rune(words); len(r) > head+tail+3 {
		return string(r[:head]) + " … " + string(r[len(r)-tail:])
	}
	return words
}

// lost is the story of a job whose cluster is gone.
func lost(at time.Time, why string) []job.Status {
	return []job.Status{{Time: at, Kind: job.Stopping, Rank: -1, Why: why}, {Time: at, Kind: job.Ended, Rank: -1, Code: 1}}
}

// stateOf is a story as a state.
func stateOf(story []job.Status) job.State {
	state := job.State{Phase: job.Running, Ranks: map[int]job.Exit{}}
	for _, s := range story {
		switch s.Kind {
		case job.Started:
			state.Begun = true
		case job.RankEnded:
			state.Ranks[s.Rank] = job.Exit{Code: s.Code, Signal: s.Signal, End: s.Time}
		case job.Ended:
			state.Phase = job.Over
		}
	}
	return state
}
