package follow

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

func TestTheRankThatHangsIsToldFromThoseThatWaitForIt(t *testing.T) {
	const limit = 5 * time.Second
	for _, c := range []struct {
		name  string
		ranks []silence
		late  time.Duration
		rank  int
		says  string
	}{
		{
			name: "silent clearly before the others", rank: 1, says: "rank 1 on node1 has printed nothing for 40s",
			ranks: []silence{{0, 0, 6 * time.Second, 6 * time.Second, waiting}, {1, 1, 40 * time.Second, 40 * time.Second, waiting}},
		}, {
			name: "sleeps while the other waits", rank: 1, says: "and sleeps",
			ranks: []silence{{0, 0, 6 * time.Second, 6 * time.Second, waiting}, {1, 1, 6 * time.Second, 6 * time.Second, sleeping}},
		}, {
			name: "turns in circles while the others wait", rank: 2, says: "and computes",
			ranks: []silence{{0, 0, 6 * time.Second, 6 * time.Second, waiting}, {1, 0, 6 * time.Second, 6 * time.Second, waiting}, {2, 1, 6 * time.Second, 6 * time.Second, computing}},
		}, {
			name: "stopped by a signal while the others spin, as with NCCL", rank: 0, says: "stopped by a signal",
			ranks: []silence{{0, 0, 6 * time.Second, 6 * time.Second, heldUp}, {1, 1, 6 * time.Second, 6 * time.Second, computing}},
		}, {
			name: "nothing tells them apart", rank: -1, says: "fell silent together",
			ranks: []silence{{0, 0, 6 * time.Second, 6 * time.Second, waiting}, {1, 1, 6 * time.Second, 6 * time.Second, waiting}},
		}, {
			name: "sleeps behind its only word, which came when the other waited for it already", rank: 1, says: "and sleeps",
			ranks: []silence{{0, 0, 9 * time.Second, 9 * time.Second, waiting}, {1, 1, 6 * time.Second, time.Hour, sleeping}},
		}, {
			name: "a last word that came late tells nothing", rank: -1, says: "fell silent together",
			ranks: []silence{{0, 0, 9 * time.Second, 9 * time.Second, waiting}, {1, 1, 6 * time.Second, time.Hour, waiting}},
		}, {
			name: "two of three went on", rank: -1, says: "fell silent together",
			ranks: []silence{{0, 0, 40 * time.Second, 40 * time.Second, waiting}, {1, 1, 6 * time.Second, 6 * time.Second, waiting}, {2, 1, 39 * time.Second, 40 * time.Second, waiting}},
		}, {
			name: "silent before the others, on a machine that answers as late", late: 4 * time.Second, rank: 1, says: "and sleeps",
			ranks: []silence{{0, 0, 9 * time.Second, 9 * time.Second, waiting}, {1, 1, 6 * time.Second, 6 * time.Second, sleeping}},
		}, {
			name: "the last one that runs", rank: 1, says: "rank 1 on node1",
			ranks: []silence{{1, 1, 6 * time.Second, 6 * time.Second, waiting}},
		}, {
			name: "a launcher that does not end", rank: -1, says: "no rank has printed anything", ranks: []silence{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, ok := judgeStop([]nodeEnd{{stopping: []string{hungReason(limit, c.ranks, c.late)}}})
			if !ok || v.Verdict != event.Hung || v.ExitCode != 124 || v.Rank != c.rank || !strings.Contains(v.Cause, c.says) {
				t.Errorf("got %+v, want rank %d and %q", v, c.rank, c.says)
			}
		})
	}
}

func TestWhatAProcessDoesIsReadFromItsStateAndWait(t *testing.T) {
	for _, c := range []struct {
		state, wchan string
		want         activity
	}{
		{"S", "hrtimer_nanosleep", sleeping}, {"S", "do_nanosleep", sleeping}, {"S", "sys_pause", sleeping},
		{"S", "futex_do_wait", waiting}, {"S", "wait_woken", waiting}, {"S", "0", waiting},
		{"R", "0", computing}, {"T", "do_signal_stop", heldUp}, {"D", "folio_wait_bit", onDevice},
	} {
		if got := activityOf(c.state, c.wchan); got != c.want {
			t.Errorf("%s %s: %v, want %v", c.state, c.wchan, got, c.want)
		}
	}
}
