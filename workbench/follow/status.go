package follow

import (
	"fmt"
	"slices"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// stoppingMost is how often a node is believed that it stops the run: the
// first reasons are those that count.
const stoppingMost = 100

// has reports whether a rank is one of a node's. A node is not believed what it
// says of others.
func (t *Watch) has(node, rank int) bool {
	return slices.ContainsFunc(t.run.Ranks, func(r event.RankInfo) bool { return r.Rank == rank && r.Node == node })
}

// marks are what a node says of a rank that explains how it ends.
type marks struct {
	told bool   // its launcher has told it to end
	gone bool   // it had ended when its node was told to stop
	room string // how little there was when it ended; empty: enough
}

// mark takes in what explains how a rank ends, before or behind that. The caller holds the
// lock.
func (t *Watch) mark(s job.Status) {
	m := t.marks[s.Rank]
	switch {
	case s.Kind == job.RankTold:
		m.told = true
	case s.Kind == job.RankFree && s.Code < fullBelow:
		m.room = units.Bytes(int64(s.Code)) + " were free when it ended"
	case s.Kind == job.RankGone:
		m.gone = true
		if e, known := t.ends[s.Rank]; known && e.byUs {
			e.byUs = false
			t.ends[s.Rank] = e
			t.sawFailure(e)
		}
	}
	t.marks[s.Rank] = m
}

// status takes in one line of a node's status file.
func (t *Watch) status(node int, s job.Status) {
	n := &t.nodes[node]
	if s.Rank >= 0 && !t.has(node, s.Rank) {
		return
	}
	n.begun = s.Kind != job.Waiting
	switch s.Kind {
	case job.Waiting:
		t.notes = append(t.notes, event.Noticed{Text: fmt.Sprintf("node%d waits again: %s", node, s.Why)})
	case job.Started:
		n.from = s.Uptime
		if s.Time.After(n.born) { // a story that is told again from its beginning counts once
			n.lives, n.born = n.lives+1, s.Time
		}
		for _, r := range t.run.Ranks { // what was silent while it waited may be so again
			t.printed[r.Rank] = time.Now()
		}
	case job.RankStarted:
		t.pids[s.Rank] = s.PID
		delete(t.marks, s.Rank)
		if e, ok := t.fell[s.Rank]; ok && after(s, e) {
			delete(t.fell, s.Rank)
		}
	case job.RankStarved:
		t.starved[s.Rank] += s.Code
	case job.RankTold, job.RankFree, job.RankGone:
		t.mark(s)
	case job.RankFailed:
		if e, ok := t.fell[s.Rank]; !ok || after(s, e) { // else it is told again
			t.fell[s.Rank] = t.endOf(node, s)
		}
	case job.RankEnded:
		if _, known := t.ends[s.Rank]; known {
			return
		}
		t.sawFailure(t.final(t.endOf(node, s)))
	case job.Left:
		if !n.left { // once: a node is not believed any number of them
			n.left = true
			t.notes = append(t.notes, event.Noticed{Text: fmt.Sprintf("the command has ended on node%d, and what it left running there is ended with it: %s", node, s.Why),
				Next: "what is in the background (&, nohup) is not waited for: have the command wait for it"})
		}
	case job.Stopping:
		if len(n.stopping) < stoppingMost {
			n.stopping = append(n.stopping, s.Why)
		}
		if len(n.stopping) == 1 {
			n.stopped = s.Uptime
		}
	case job.Ended:
		n.ended, n.code, n.to = true, s.Code, s.Uptime
		if node == 0 && s.Code == 0 {
			t.headOver = time.Now()
		}
		select {
		case t.overNews <- struct{}{}:
		default:
		}
		if s.Code != 0 && t.failed.IsZero() {
			t.failed = time.Now()
			if len(n.stopping) == 0 {
				t.broken = t.failed
			}
		}
	}
}

// sawFailure takes in that a rank may have failed by itself. The caller holds the lock.
func (t *Watch) sawFailure(e rankEnd) {
	if e.code != 0 && !e.byUs && t.failed.IsZero() {
		t.failed, t.broken = time.Now(), time.Now()
	}
}

// endOf is the end of a rank that a node tells now. It may tell it behind a stop that
// came later: the moments say so, or that the stop did not reach the rank any more.
func (t *Watch) endOf(node int, s job.Status) rankEnd {
	t.order++
	n, m := t.nodes[node], t.marks[s.Rank]
	before := m.gone || s.Uptime > 0 && s.Uptime < n.stopped
	return rankEnd{rank: s.Rank, node: node, code: s.Code, signal: s.Signal, at: s.Time.Unix(), up: s.Uptime,
		starved: t.starved[s.Rank], byUs: len(n.stopping) > 0 && !before, told: m.told, room: m.room, order: t.order}
}

// final takes in how a rank ended. An end of which its launcher had not yet made one
// keeps the moment at which it was told first: what came between may have been a stop
// because of another rank, which merely lost this one.
func (t *Watch) final(e rankEnd) rankEnd {
	if was, ok := t.fell[e.rank]; ok && was.code == e.code && was.signal == e.signal {
		e = was
	}
	t.ends[e.rank], t.endSeen[e.rank] = e, time.Now()
	return e
}

// after reports whether a node tells of a moment behind the end of one of its ranks.
func after(s job.Status, e rankEnd) bool {
	if s.Uptime > 0 && e.up > 0 {
		return s.Uptime > e.up
	}
	return s.Time.Unix() > e.at
}
