package follow

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
)

// activity is what a rank's process does at one moment. The order is that of
// suspicion, when ranks have fallen silent together: the one that hangs sleeps
// or turns in circles, those that need it wait for a message.
type activity int

const (
	heldUp   activity = iota // stopped by a signal (state T)
	onDevice                 // in an uninterruptible wait (state D)
	sleeping
	computing
	waiting
)

var activityText = map[activity]string{
	heldUp: "is stopped by a signal", onDevice: "waits for a disk or a device",
	sleeping: "sleeps", computing: "computes", waiting: "waits",
}

// activityOf reads a process state and the kernel function that it waits in,
// as in /proc/PID/stat and /proc/PID/wchan (proc(5)).
func activityOf(state, wchan string) activity {
	switch {
	case state == "T" || state == "t":
		return heldUp
	case state == "D":
		return onDevice
	case state == "R":
		return computing
	case strings.Contains(wchan, "nanosleep") || strings.Contains(wchan, "pause") || strings.Contains(wchan, "sigtimedwait"):
		return sleeping
	}
	return waiting
}

// silence is how long a rank has printed nothing, how long ago it had printed before
// that, and what it does now.
type silence struct {
	rank, node    int
	since, before time.Duration
	does          activity
}

func (s silence) String() string { return fmt.Sprintf("rank %d on node%d", s.rank, s.node) }

// together is how close ranks may have fallen silent to be told apart no more:
// when one hangs, those that wait for it in a collective stop at that moment.
const together = time.Second

// wentOn reports whether all others went on without a rank: each printed, and then once
// more, when that had been silent for a while. What was printed once may be the last
// word of the one that hangs, which came late, to those that waited for it already. late
// is how late news of them may be.
func wentOn(without silence, others []silence, late time.Duration) bool {
	return !slices.ContainsFunc(others, func(s silence) bool { return without.since-s.before < together+late })
}

// hungReason names the rank that hangs, of those still running: the one without
// which the others clearly went on, else the one whose process does what a
// hanging one does. Where none stands out it names none: a wrong rank costs
// more of a person's time than no rank.
func hungReason(limit time.Duration, ranks []silence, late time.Duration) string {
	if len(ranks) == 0 {
		return reasonHung + fmt.Sprintf("no rank has printed anything for %s", units.Duration(limit))
	}
	sort.SliceStable(ranks, func(i, j int) bool { return ranks[i].since > ranks[j].since })
	worst := ranks[0]
	if wentOn(worst, ranks[1:], late) {
		return reasonHung + fmt.Sprintf("%s has printed nothing for %s, and no other rank for %s; it %s",
			worst, units.Clock(worst.since), units.Duration(limit), activityText[worst.does])
	}
	sort.SliceStable(ranks, func(i, j int) bool { return ranks[i].does < ranks[j].does })
	if ranks[0].does < ranks[1].does {
		return reasonHung + fmt.Sprintf("%s has printed nothing for %s and %s, while the others fell silent with it and seem to need it",
			ranks[0], units.Duration(limit), activityText[ranks[0].does])
	}
	return reasonHung + fmt.Sprintf("all ranks have printed nothing for %s, and at least two fell silent together: "+
		"their last lines tell which one hangs and which wait for it", units.Duration(limit))
}

// glanceLimit bounds the look at the processes of a run that hangs. It is long:
// a rank that is stopped unseen is one that nobody can name afterwards.
const glanceLimit = 15 * time.Second

// look finds out what each silent rank does now, on all nodes at once. What
// can't be found out, as on a node without /proc, counts as waiting: it puts
// nobody under suspicion. It took a while, and so long news of them may be on their way.
func (t *Watch) look(ctx context.Context, ranks []silence) (took time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, glanceLimit)
	defer cancel()
	t.mu.Lock()
	pids := make([]int, len(ranks))
	for i, r := range ranks {
		pids[i] = t.pids[r.rank]
	}
	t.mu.Unlock()
	var all sync.WaitGroup
	for i, r := range ranks {
		ranks[i].does = waiting
		if pids[i] == 0 {
			slog.Debug("no process to look at", "rank", r.rank)
			continue
		}
		there, can := t.run.Replicas[r.node].(job.Execer)
		if !can {
			continue
		}
		all.Go(func() {
			out, err := there.Output(ctx, fmt.Sprintf(
				`p=%d; sed 's/.*) //; s/ .*//' /proc/$p/stat && cat /proc/$p/wchan`, pids[i]))
			f := strings.Fields(string(out))
			slog.Debug("looked at a silent rank", "rank", r.rank, "pid", pids[i], "state and wait", f, "error", err)
			if err == nil && len(f) > 0 {
				ranks[i].does = activityOf(f[0], strings.Join(f[1:], " "))
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
