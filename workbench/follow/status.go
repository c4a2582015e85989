package follow

import (
	"fmt"
	"slices"
	"time"

	"github.com/dlwb/dlwb/internal/job"
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

// status takes in one line of a node's status file.
func (t *Watch) status(node int, s job.Status) {
	n := &t.nodes[node]
	if s.Rank >= 0 && !t.has(node, s.Rank) {
		return
	}
	n.begun = s.Kind != job.Waiting
	switch s.Kind {
	case job.Waiting:
		t.again = append(t.again, fmt.Sprintf("node%d waits again: %s", node, s.Why))
	case job.Started:
		n.from = s.Uptime
		for _, r := range t.run.Ranks { // what was silent while it waited may be so again
			t.printed[r.Rank] = time.Now()
		}
	case job.RankStarted:
		t.pids[s.Rank] = s.PID
	case job.RankStarved:
		t.starved[s.Rank] += s.Code
	case job.RankEnded:
		if _, known := t.ends[s.Rank]; known {
			return
		}
		byUs := len(n.stopping) > 0
		t.ends[s.Rank] = rankEnd{rank: s.Rank, node: node, code: s.Code, signal: s.Signal, at: s.Time.Unix(), up: s.Uptime,
			starved: t.starved[s.Rank], byUs: byUs, order: len(t.ends)}
		t.endSeen[s.Rank] = time.Now()
		if s.Code != 0 && !byUs && t.failed.IsZero() {
			t.failed, t.broken = time.Now(), time.Now()
		}
	case job.Stopping:
		if len(n.stopping) < stoppingMost {
			n.stopping = append(n.stopping, s.Why)
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
