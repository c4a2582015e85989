package ui

import (
	"fmt"
	"sort"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// staleAfter is how old a sample may be before its panel is greyed. Telemetry
// comes once a second; a redial takes a few.
const staleAfter = 6 * time.Second

func nodeName(i int) string { return fmt.Sprintf("node%d", i) }

// ratio is a share in percent; nil when it can't be known.
func ratio(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	p := *part / *whole * 100
	return &p
}

func cleanLines(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = text.Word(l)
	}
	return out
}

func cleanFault(f event.Fault) event.Fault {
	f.What, f.Why, f.Next = text.Word(f.What), text.Word(f.Why), text.Word(f.Next)
	f.Command, f.LastLines = text.Word(f.Command), cleanLines(f.LastLines)
	return f
}

// phase is where the cluster is in its life, in one word.
func (s *state) phase() event.Phase {
	switch {
	case s.receipt != nil && s.receipt.Proven:
		return event.PhaseGone
	case s.receipt != nil:
		return event.PhaseUnresolved
	case s.stepIs(event.StepDown, active):
		return event.PhaseStopping
	case s.stepIs(event.StepDown, broken):
		return event.PhaseUnresolved
	case s.machines.stopped:
		return event.PhaseStopped
	case s.account.AllGone():
		return event.PhaseEnded
	case s.launched != nil && s.ended == nil:
		return event.PhaseRunning
	case s.ended != nil || (s.up && !s.anyStep(active)):
		return event.PhaseReady
	}
	return event.PhaseStarting
}

func (s *state) stepIs(name string, st status) bool {
	for i := range s.steps {
		if s.steps[i].name == name {
			return s.steps[i].status == st
		}
	}
	return false
}

func (s *state) anyStep(st status) bool {
	for i := range s.steps {
		if s.steps[i].status == st {
			return true
		}
	}
	return false
}

// brokenStep is the step that failed; nil when none did.
func (s *state) brokenStep() *stepState {
	for i := range s.steps {
		if s.steps[i].status == broken {
			return &s.steps[i]
		}
	}
	return nil
}

// exists reports whether there is something that could be torn down.
func (s *state) exists() bool {
	return s.phase() != event.PhaseGone && (s.up || len(s.steps) > 0 || s.run != "")
}

// spent is what the cluster cost until now.
func (s *state) spent(now time.Time) float64 { return s.account.Spent(now) }

// elapsed is how long the run has been going, or took.
func (s *state) elapsed(now time.Time) time.Duration {
	switch {
	case s.ended != nil && (s.ended.Duration > 0 || !s.startedAt.IsZero()):
		return event.Took(s.startedAt, &s.endedAt, s.ended.Duration, now)
	case s.startedAt.IsZero():
		return 0
	}
	return event.Took(s.startedAt, nil, 0, now)
}

// etaNow counts the last estimate down between two reports.
func (s *state) etaNow(now time.Time) (time.Duration, bool) {
	if s.eta <= 0 || s.ended != nil {
		return 0, false
	}
	return max(text.Seconds(s.eta)-now.Sub(s.etaAt), 0), true
}

// simulated reports whether any GPU that is shown is not a real one.
func (s *state) simulated() bool {
	for i := range s.nodes {
		if s.nodes[i].simulated() {
			return true
		}
	}
	return false
}

func (n *nodeState) simulated() bool {
	return n.SimulatedGPUs > 0 || (n.sample != nil && n.sample.Simulated)
}

// stale says why a node's values can't be trusted now; empty when they can.
func (n *nodeState) stale(now time.Time) string {
	switch {
	case n.state == cloud.Gone:
		return "gone since " + text.Hour(n.since)
	case n.state == cloud.Unknown && !n.since.IsZero():
		return "unknown since " + text.Hour(n.since)
	case n.sample == nil:
		return ""
	case now.Sub(n.sampledAt) > staleAfter:
		return "no news since " + text.Hour(n.sampledAt)
	}
	return ""
}

// lastSeen says of when the values of a node are that is no longer looked at.
func (n *nodeState) lastSeen() string {
	if n.sample == nil {
		return "no values were kept"
	}
	return "as it was at the end, " + text.Hour(n.sampledAt)
}

// ranks lists the ranks whose output exists or will, launchers last.
func (s *state) ranks() []int {
	seen := map[int]bool{}
	if s.launched != nil {
		for _, r := range s.launched.Ranks {
			seen[r.Rank] = true
		}
		for r := range min(s.launched.WorldSize, 4096) {
			seen[r] = true
		}
	}
	for r := range s.logSizes {
		seen[r] = true
	}
	out := make([]int, 0, len(seen))
	for r := range seen {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool {
		if (out[i] < 0) != (out[j] < 0) {
			return out[j] < 0
		}
		if out[i] < 0 {
			return out[i] > out[j]
		}
		return out[i] < out[j]
	})
	return out
}

// rankName is "rank 3", or "launcher node1" for a launcher's own output.
func rankName(r int) string {
	if r < 0 {
		return "launcher " + nodeName(-1-r)
	}
	return fmt.Sprintf("rank %d", r)
}

// rankNode is the node a rank runs on; -1 when that is not known.
func (s *state) rankNode(rank int) int {
	if rank < 0 {
		return -1 - rank
	}
	if s.launched != nil {
		for _, r := range s.launched.Ranks {
			if r.Rank == rank {
				return r.Node
			}
		}
	}
	return -1
}
