package follow

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// torchrun's agents may count their restarts differently: the one of node0, whose ranks
// lost their peer, gives up while that of node1 would start rank 3 again.
func TestARankWhoseLauncherWasStoppedBeforeItGaveUpIsStillTheFirstThatFailed(t *testing.T) {
	type line struct {
		node int
		job.Status
	}
	at := time.Unix(1_800_000_000, 0)
	fell := line{1, job.Status{Kind: job.RankFailed, Rank: 1, Code: 1, Time: at.Add(9 * time.Second), Uptime: 9 * time.Second}}
	began := line{1, job.Status{Kind: job.RankStarted, Rank: 1, PID: 5, Time: at, Uptime: time.Second}}
	for name, c := range map[string]struct {
		first []line
		blame int
	}{
		"in the last life":     {[]line{began, fell}, 1},
		"and it is told again": {[]line{began, fell, {0, job.Status{Kind: job.RankFailed, Rank: 0, Code: 1, Time: at.Add(9 * time.Second), Uptime: 70 * time.Hour}}, began, fell}, 1},
		"in an earlier life":   {[]line{began, fell, {1, job.Status{Kind: job.RankStarted, Rank: 1, PID: 6, Time: at.Add(9 * time.Second), Uptime: 10 * time.Second}}}, 0},
		"by another end":       {[]line{began, {1, job.Status{Kind: job.RankFailed, Rank: 1, Code: 3, Time: at, Uptime: 2 * time.Second}}}, 0},
	} {
		w := watchOf(t, 2)
		for _, l := range append(c.first,
			line{0, job.Status{Kind: job.RankFailed, Rank: 0, Code: 1, Time: at.Add(9 * time.Second), Uptime: 70 * time.Hour}},
			line{0, job.Status{Kind: job.RankEnded, Rank: 0, Code: 1, Time: at.Add(10 * time.Second), Uptime: 70*time.Hour + time.Second}},
			line{0, job.Status{Kind: job.Ended, Rank: -1, Code: 1, Time: at.Add(10 * time.Second)}},
			line{1, job.Status{Kind: job.Stopping, Rank: -1, Why: "rank 0 on node0 exited with code 1"}},
			line{1, job.Status{Kind: job.RankEnded, Rank: 1, Code: 1, Time: at.Add(14 * time.Second), Uptime: 14 * time.Second}},
			line{1, job.Status{Kind: job.Ended, Rank: -1, Code: 143, Time: at.Add(14 * time.Second)}}) {
			w.status(l.node, l.Status)
		}
		if v := judge(w.nodes, w.rankEnds()); v.Rank != c.blame || v.ExitCode != 1 {
			t.Errorf("%s: rank %d is blamed: %s", name, v.Rank, v.Cause)
		}
	}
	// Its supervisor has left no word of the end: the rank's record has.
	w := watchOf(t, 2)
	w.status(1, fell.Status)
	w.status(1, job.Status{Kind: job.Stopping, Rank: -1, Why: "rank 0 on node0 exited with code 1"})
	w.unrecorded(1, &job.UnrecordedError{State: job.State{Ranks: map[int]job.Exit{1: {Code: 1, End: at.Add(9 * time.Second)}}}, Err: errors.New("it is gone")})
	if e := w.ends[1]; e.code != 1 || e.byUs {
		t.Errorf("what its record tells: %+v", e)
	}
}

// What a command had left running is told once for each node, as a notice.
func TestWhatACommandHasLeftRunningIsTold(t *testing.T) {
	w := watchOf(t, 2)
	for _, why := range []string{"python3, sleep", "another"} {
		w.status(1, job.Status{Kind: job.Left, Rank: -1, Why: why})
	}
	if len(w.notes) != 1 || !strings.Contains(w.notes[0].Text, "node1, and what it left running there is ended with it: python3, sleep") || !strings.Contains(w.notes[0].Next, "nohup") {
		t.Errorf("%+v", w.notes)
	}
}
