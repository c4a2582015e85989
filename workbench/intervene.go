package workbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// intervene does what a run needs from outside: the peers of a failed rank are
// stopped, a run that hangs is ended, a node that is gone is written off.
func (t *watch) intervene(ctx context.Context) {
	t.findLost(ctx, lostAfter)
	t.mu.Lock()
	why, silent := t.reasonToStop()
	if why != "" || silent != nil {
		t.nextStop = time.Now().Add(time.Hour) // not while this one is under way
	}
	t.mu.Unlock()
	if why == "" && silent == nil {
		return
	}
	// What can't be stopped now, as on a node that is out of reach, is tried
	// again: until then the run has not ended. What it prints meanwhile is
	// stored and told.
	t.group.Go(func() error {
		if silent != nil {
			t.look(ctx, silent)
			why = hungReason(t.stallLimit(), silent)
		}
		err := t.w.stopRanks(ctx, t.link, t.lost(), t.run.ID, why)
		slog.Debug("stopped the ranks", "run", t.run.ID, "why", why, "error", err)
		t.mu.Lock()
		t.nextStop = time.Now().Add(stopAgain)
		t.mu.Unlock()
		return nil
	})
}

// stopAgain is the pause before a stop that did not end the run is repeated.
const stopAgain = 10 * time.Second

// lost tells the nodes that are written off.
func (t *watch) lost() []bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := make([]bool, len(t.nodes))
	for i, n := range t.nodes {
		is[i] = n.lost
	}
	return is
}

// reasonToStop says why the rest of the run is to be stopped from here; empty
// while there is no reason. Of a run that hangs it gives the silent ranks
// instead, at which a closer look is due. The caller holds the lock.
func (t *watch) reasonToStop() (why string, silent []silence) {
	if time.Now().Before(t.nextStop) {
		return "", nil
	}
	for i, n := range t.nodes {
		if n.lost {
			return fmt.Sprintf("node%d is gone", i), nil
		}
	}
	if !t.failed.IsZero() && time.Since(t.failed) > failGrace {
		if first, ok := firstFailure(t.rankEnds()); ok {
			return failureOf(first).Cause, nil
		}
		return "a launcher failed", nil
	}
	return "", t.silent()
}

// startAllowance is how long a run may at least take to its first line:
// importing a framework and finding each other is silent work, and slower on a
// busy machine than what a profile allows between two lines.
const startAllowance = time.Minute

// begun reports whether a rank has printed anything yet.
func (t *watch) begun() bool {
	for _, r := range t.data.Ranks {
		if t.logs[r.Rank].size() > 0 {
			return true
		}
	}
	return false
}

// stallLimit is how long all ranks may be silent.
func (t *watch) stallLimit() time.Duration {
	limit := time.Duration(t.data.Stall * float64(time.Second))
	if limit > 0 && !t.begun() {
		limit = max(limit, startAllowance)
	}
	return limit
}

// silent gives the ranks that still run, when no rank has printed for as long
// as the profile allows; nil while one has. The caller holds the lock.
func (t *watch) silent() []silence {
	limit := t.stallLimit()
	if limit <= 0 || len(t.gone) > 0 { // a node out of reach may well be printing
		return nil
	}
	running := []silence{}
	for _, r := range t.data.Ranks {
		quiet := time.Since(t.printed[r.Rank])
		if quiet < limit {
			return nil
		}
		if _, ended := t.ends[r.Rank]; !ended {
			running = append(running, silence{rank: r.Rank, node: r.Node, since: quiet, does: waiting})
		}
	}
	return running
}

// findLost asks the provider about nodes that have been out of reach for a
// while. Only proof that a node is gone writes it off.
func (t *watch) findLost(ctx context.Context, after time.Duration) {
	t.mu.Lock()
	ask := false
	for i, since := range t.gone {
		ask = ask || time.Since(since) > after && !t.nodes[i].lost
	}
	ask = ask && time.Since(t.probed) > probeAgain
	t.mu.Unlock()
	if ask {
		t.writeOff(ctx)
	}
}

// probeAgain is how often a provider is asked about nodes out of reach.
const probeAgain = 3 * time.Second

// writeOff asks the provider which nodes are gone, and writes those off.
func (t *watch) writeOff(ctx context.Context) {
	is := t.w.proveGone(ctx, t.link)
	var news []int
	t.mu.Lock()
	t.probed = time.Now()
	for i := range t.nodes {
		if is[i] && !t.nodes[i].lost {
			t.nodes[i].lost = true
			news = append(news, i)
		}
	}
	t.mu.Unlock()
	for _, i := range news {
		_ = t.w.publish(t.s, event.NodeChanged{Node: i, State: cloud.Gone, Why: "its provider says so"})
	}
}

// stopLimit bounds a stop beyond the grace that the ranks get.
const stopLimit = 20 * time.Second

// stopRanks stops a run on all nodes at once and says what is left of it. Nodes
// that are lost are passed over.
func (w *Workbench) stopRanks(ctx context.Context, l *link, lost []bool, run, why string) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace+stopLimit)
	defer cancel()
	errs := make([]error, len(l.nodes))
	done := make(chan int)
	for i, n := range l.nodes {
		go func() {
			defer func() { done <- i }()
			if lost != nil && lost[i] {
				return
			}
			left, err := n.StopRun(ctx, run, stopGrace, why)
			if err == nil && left > 0 {
				err = fmt.Errorf("%d of its processes do not end", left)
			}
			if err != nil {
				errs[i] = &event.Fault{What: "stop run " + run, Node: i, Why: err.Error()}
			}
		}()
	}
	for range l.nodes {
		<-done
	}
	return errors.Join(errs...)
}

// stopGrace is what ranks get between TERM and KILL, to save a checkpoint.
const stopGrace = 10 * time.Second
