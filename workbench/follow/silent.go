package follow

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// A node that dies says nothing, and neither does one whose network is away: a
// failed look proves nothing, and the node stays unknown. But a run of which a
// node was not heard of for limits.lost, while others are, does not come to its
// end any more by itself: it is ended without that node, in words that say what
// is known. Where no node at all is heard of, this machine's own network may be the
// cause: then something else on the same way has to answer, or nothing is ended. A node
// that refuses a login does answer; it is never lost for that, and what runs there is not
// known: it keeps no run from ending that others end.

const (
	// heardMost is how long before a node was found to be out of reach it may have
	// been heard last: a connection is asked for an answer every few seconds.
	heardMost = 20 * time.Second
	// goingLost is how long a node has to answer where the cluster is being removed:
	// what can be reached does not wait for it.
	goingLost = 3 * time.Second
	// hungLost is how long a node may not be heard of where all others were stopped
	// because the run hangs.
	hungLost = 30 * time.Second
	// surveyLimit bounds the question to those that can be reached, before others
	// are given up.
	surveyLimit = 5 * time.Second
)

// writtenOff reports whether nothing more is expected of a node.
func (n nodeEnd) writtenOff() bool { return n.lost || !n.silent.IsZero() }

// goes reports whether the cluster of the run is being removed. The caller holds
// the lock.
func (t *Watch) goes() bool { return t.toldToStop(TakenDown) }

// toldToStop reports whether a node was told to stop for a reason that begins like
// this. The caller holds the lock.
func (t *Watch) toldToStop(reason string) bool {
	return slices.ContainsFunc(t.nodes, func(n nodeEnd) bool {
		return slices.ContainsFunc(n.stopping, func(why string) bool { return strings.HasPrefix(why, reason) })
	})
}

// lostLimit is how long a node may not be heard of. The caller holds the lock.
func (t *Watch) lostLimit() time.Duration {
	if t.toldToStop(reasonHung) {
		return min(t.run.Lost, hungLost)
	}
	return t.run.Lost
}

// quietSince is when a node was last heard that is out of reach now, as far as
// that is known. The caller holds the lock.
func (t *Watch) quietSince(node int) time.Time {
	at := t.heard[node]
	if away, is := t.gone[node]; is && at.Before(away.Add(-heardMost)) {
		at = away.Add(-heardMost)
	}
	if _, refused := t.refuses(node); at.Before(refused) {
		return refused
	}
	return at
}

// findSilent gives up nodes that were not heard of for too long, if one that can
// be reached answers just then: else it is we who are cut off. Where the cluster is
// being removed all are asked: who does not answer is not waited for.
func (t *Watch) findSilent(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.findAlone(ctx)
	goes := t.run.Lost > 0 && t.goes()
	if t.asking || !goes && !t.overdue() {
		return
	}
	t.asking = true
	t.group.Go(func() error {
		answered := t.survey(ctx, goes)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.asking = false
		if slices.Contains(answered, true) && (goes || t.overdue()) {
			t.giveUp(answered)
		}
		return nil
	})
}

// overdue reports whether a node was not heard of for too long, while others could
// be reached. The caller holds the lock.
func (t *Watch) overdue() bool {
	limit := t.lostLimit()
	for node := range t.gone {
		if refuses, _ := t.refuses(node); refuses {
			continue
		}
		if n := t.nodes[node]; n.ended || n.writtenOff() {
			continue
		}
		if limit > 0 && !t.company.IsZero() && time.Since(t.quietSince(node)) > limit && time.Since(t.company) > limit {
			return true
		}
	}
	return false
}

// refuses reports whether a node is out of reach only because a login there, or on the
// way, is refused: a certificate that is over, a second factor that ssh has no more. It
// may be as well as any. Last is when one was refused last.
func (t *Watch) refuses(node int) (now bool, last time.Time) {
	if node >= len(t.run.Replicas) {
		return false, time.Time{}
	}
	if r, can := t.run.Replicas[node].(job.Refuser); can {
		return r.Refused()
	}
	return false, time.Time{}
}

// giveUp writes off the nodes that have not answered now: where one of them is
// overdue, the run is over for all, also for those that refuse a login. The caller
// holds the lock.
func (t *Watch) giveUp(answered []bool) {
	for i := range t.nodes {
		if n := &t.nodes[i]; !answered[i] && !n.ended && !n.writtenOff() {
			n.silent = t.quietSince(i)
			n.refuses, _ = t.refuses(i)
		}
	}
	t.nextStop = time.Time{}
}

// survey asks the nodes whether they are there, those that are out of reach only
// where the cluster goes: else one answer of the others is enough.
func (t *Watch) survey(ctx context.Context, goes bool) []bool {
	limit := surveyLimit
	if goes {
		limit = goingLost
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t.mu.Lock()
	answered, away, asked := make([]bool, len(t.nodes)), make([]bool, len(t.nodes)), 0
	for i := range t.gone {
		away[i] = true
	}
	t.mu.Unlock()
	answers := make(chan int, len(away))
	for i, r := range t.run.Replicas {
		if away[i] && !goes {
			continue
		}
		asked++
		go func() {
			if _, err := r.State(ctx); err == nil {
				answers <- i
			}
		}()
	}
	for range asked {
		select {
		case i := <-answers:
			answered[i] = true
		case <-ctx.Done():
			return answered
		}
	}
	return answered
}

// aloneAgain is the pause between two questions whether this machine is cut off.
const aloneAgain = 15 * time.Second

// findAlone gives up all nodes where none is heard of for limits.lost, if something
// shows that it is not this machine that is cut off. Else that is said, and nothing is
// ended. The caller holds the lock.
func (t *Watch) findAlone(ctx context.Context) {
	if t.asking || !t.aloneTooLong() || time.Now().Before(t.askAlone) {
		return
	}
	t.asking = true
	t.group.Go(func() error {
		t.mu.Lock()
		proof, doubt := t.refusalProves(), ""
		t.mu.Unlock()
		if proof == "" && t.owner.Alone != nil {
			proof, doubt = t.owner.Alone(ctx)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.asking, t.askAlone = false, time.Now().Add(aloneAgain)
		switch {
		case ctx.Err() != nil || !t.aloneTooLong():
		case proof != "":
			t.proof = proof
			t.giveUp(make([]bool, len(t.nodes)))
		default:
			t.tellCutOff(doubt)
		}
		return nil
	})
}

// refusalProves says which node refused a login when the others had not been heard of
// for limits.lost: then this machine was not cut off. Empty: none did. The caller holds
// the lock.
func (t *Watch) refusalProves() string {
	var quiet time.Time
	for node := range t.gone {
		if refuses, _ := t.refuses(node); refuses || t.nodes[node].ended {
			continue
		}
		if at := t.quietSince(node); at.After(quiet) {
			quiet = at
		}
	}
	for node := range t.nodes {
		if refuses, at := t.refuses(node); refuses && at.Sub(quiet) > t.run.Lost {
			return fmt.Sprintf("a login on node%d is refused", node)
		}
	}
	return ""
}

// aloneTooLong reports whether no node at all was heard of for longer than limits.lost,
// but for those that refuse a login. The caller holds the lock.
func (t *Watch) aloneTooLong() bool {
	if t.run.Lost <= 0 || len(t.gone) < len(t.nodes) {
		return false
	}
	left := false
	for node := range t.gone {
		if refuses, _ := t.refuses(node); refuses {
			continue
		}
		if n := t.nodes[node]; n.ended || n.writtenOff() {
			continue
		}
		if left = true; time.Since(t.quietSince(node)) < t.run.Lost {
			return false
		}
	}
	return left
}

// tellCutOff says, the first time and then ever more seldom, that no node is heard of,
// for how long, and that nothing is ended for that. The caller holds the lock.
func (t *Watch) tellCutOff(doubt string) {
	since := time.Now()
	for node := range t.gone {
		if at := t.quietSince(node); at.Before(since) {
			since = at
		}
	}
	quiet := time.Since(since)
	if quiet < 2*t.toldAlone {
		return
	}
	t.toldAlone = quiet
	text := fmt.Sprintf("no node of the run has been heard of for %s: they are gone, or this machine has no way to them", units.Duration(quiet))
	if doubt != "" {
		text += "; which of the two can't be told: " + doubt
	}
	go func() {
		_ = t.owner.Publish(event.Noticed{Level: "warning", Text: text,
			Next: "the run is not ended for that; dlwb down " + t.run.Cluster + " ends it, as far as it can be reached"})
	}()
}

// silentCause says which nodes were given up, with their ranks, and then which refuse a
// login; empty: none was.
func silentCause(nodes []nodeEnd) string {
	var said, refuse []string
	for i, n := range nodes {
		switch {
		case n.silent.IsZero():
		case n.refuses:
			refuse = append(refuse, fmt.Sprintf("node%d (%s) refuses a login", i, ranksText(n.ranks)))
		default:
			said = append(said, fmt.Sprintf("node%d (%s) has not been heard of since %s", i, ranksText(n.ranks), n.silent.UTC().Format("15:04:05 UTC")))
		}
	}
	said = append(said, refuse...)
	if len(said) == 0 {
		return ""
	}
	if len(said) == 1 {
		return said[0] + ", and whether it still runs is not known"
	}
	return strings.Join(said, ", ") + ", and whether they still run is not known"
}

// silentNodes are the nodes that were given up.
func silentNodes(nodes []nodeEnd) (silent []int) {
	for i, n := range nodes {
		if !n.silent.IsZero() {
			silent = append(silent, i)
		}
	}
	return silent
}

// ranksText is "rank 3", or "ranks 2, 3".
func ranksText(ranks []int) string {
	if len(ranks) == 0 {
		return "no rank"
	}
	var all []string
	for _, r := range ranks {
		all = append(all, strconv.Itoa(r))
	}
	if len(all) == 1 {
		return "rank " + all[0]
	}
	return "ranks " + strings.Join(all, ", ")
}

// judgeSilent says how a run ended of which nodes were given up: by them, unless a
// rank had failed before that by itself. What other nodes were told then counts
// for a dlwb that comes later.
func judgeSilent(nodes []nodeEnd, first rankEnd, failed bool) (event.RunEnded, bool) {
	v := event.RunEnded{ExitCode: 1, Verdict: event.Lost, Rank: -1, Node: -1, Cause: silentCause(nodes)}
	at := time.Time{}
	for i, n := range nodes {
		if !n.silent.IsZero() && !n.refuses && (at.IsZero() || n.silent.Before(at)) {
			v.Node, at = i, n.silent
		}
	}
	for _, n := range nodes {
		for _, why := range n.stopping {
			if said, is := strings.CutPrefix(why, reasonSilent); is && v.Node < 0 {
				v.Cause = said
				_, _ = fmt.Sscanf(said, "node%d", &v.Node)
			}
		}
	}
	if v.Node < 0 && v.Cause == "" {
		return v, false
	}
	if !failed {
		return v, true
	}
	if before := !at.IsZero() && first.at+2 < at.Unix() && weight(first, first.at) == 0; before {
		f := failureOf(first)
		f.Cause += "; " + v.Cause
		return f, true
	}
	v.Cause += "; then " + failureOf(first).Cause
	return v, true
}
