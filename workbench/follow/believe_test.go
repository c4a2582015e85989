package follow

import (
	"errors"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/job"
)

func TestANodeIsBelievedOnlyWhatItSaysOfItsOwnRanks(t *testing.T) {
	w := watchOf(t, 2)
	for rank := range 1000 {
		w.status(1, job.Status{Kind: job.RankStarted, Rank: rank, PID: 5})
		w.status(1, job.Status{Kind: job.RankEnded, Rank: rank, Code: 3})
		w.status(1, job.Status{Kind: job.Stopping, Rank: -1, Why: "x"})
	}
	w.unrecorded(1, &job.UnrecordedError{State: job.State{Ranks: map[int]job.Exit{0: {Code: 9}, 7: {Code: 9}}}, Err: errors.New("it is gone")})
	if len(w.ends) != 1 || w.ends[1].code != 3 || len(w.pids) != 1 || len(w.nodes[1].stopping) > stoppingMost {
		t.Errorf("ends %v, pids %v, %d reasons", w.ends, w.pids, len(w.nodes[1].stopping))
	}
}

// A backend whose look at the node shows no reason tells it in its error.
func TestWhyNothingIsRecordedIsToldInTheBackendsWords(t *testing.T) {
	w := watchOf(t, 2)
	w.unrecorded(1, &job.UnrecordedError{Err: errors.New("the service has forgotten the job")})
	if why := w.nodes[1].why; !strings.Contains(why, "forgotten the job") {
		t.Errorf("told as %q", why)
	}
}
