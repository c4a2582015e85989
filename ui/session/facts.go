package session

import (
	"errors"
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

// NodeName is what a node is called by its number.
func NodeName(i int) string { return fmt.Sprintf("node%d", i) }

// NodeName is what a node of the cluster is called: by its user, where he has given it
// a name.
func (s *State) NodeName(i int) string {
	if i < 0 || i >= len(s.Nodes) || s.Nodes[i].Name == "" {
		return NodeName(i)
	}
	return s.Nodes[i].Name
}

// Percent is a share in percent; nil when it can't be known.
func Percent(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	p := *part / *whole * 100
	return &p
}

// CleanFault is a fault whose texts may be shown.
func CleanFault(f event.Fault) event.Fault {
	f.What, f.Why, f.Next = text.Word(f.What), text.Word(f.Why), text.Word(f.Next)
	f.Command, f.LastLines = text.Word(f.Command), text.Words(f.LastLines)
	return f
}

// FaultOf is an error as a fault; one that already is keeps what it says.
func FaultOf(what string, err error) event.Fault {
	var f *event.Fault
	if errors.As(err, &f) {
		return CleanFault(*f)
	}
	return event.Fault{What: text.Word(what), Node: -1, Why: text.Word(err.Error())}
}

// Phase is where the cluster is in its life, in one word.
func (s *State) Phase() event.Phase {
	switch {
	case s.Receipt != nil && s.Receipt.Proven:
		return event.PhaseGone
	case s.Receipt != nil:
		return event.PhaseUnresolved
	case s.stepIs(event.StepDown, Active):
		return event.PhaseStopping
	case s.stepIs(event.StepDown, Broken):
		return event.PhaseUnresolved
	case s.Machines.Stopped:
		return event.PhaseStopped
	case s.Account.AllGone():
		return event.PhaseEnded
	case s.Launched != nil && s.Ended == nil:
		return event.PhaseRunning
	case s.Ended != nil || (s.Up && !s.AnyStep(Active)):
		return event.PhaseReady
	}
	return event.PhaseStarting
}

func (s *State) stepIs(name string, st Status) bool {
	for i := range s.Steps {
		if s.Steps[i].Name == name {
			return s.Steps[i].Status == st
		}
	}
	return false
}

// AnyStep reports whether a step is as far as that.
func (s *State) AnyStep(st Status) bool {
	for i := range s.Steps {
		if s.Steps[i].Status == st {
			return true
		}
	}
	return false
}

// brokenStep is the step that failed; nil when none did.
func (s *State) brokenStep() *Step {
	for i := range s.Steps {
		if s.Steps[i].Status == Broken {
			return &s.Steps[i]
		}
	}
	return nil
}

// Exists reports whether there is something that could be torn down.
func (s *State) Exists() bool {
	return s.Phase() != event.PhaseGone && (s.Up || len(s.Steps) > 0 || s.Run != "")
}

// Spent is what the cluster cost until now.
func (s *State) Spent(now time.Time) float64 { return s.Account.Spent(now) }

// Elapsed is how long the run has been going, or took.
func (s *State) Elapsed(now time.Time) time.Duration {
	switch {
	case s.Ended != nil && (s.Ended.Duration > 0 || !s.StartedAt.IsZero()):
		return event.Took(s.StartedAt, &s.endedAt, s.Ended.Duration, now)
	case s.StartedAt.IsZero():
		return 0
	}
	return event.Took(s.StartedAt, nil, 0, now)
}

// ETANow counts the last estimate down between two reports; false when it has
// run out and the run goes on: that is not "0:00 left".
func (s *State) ETANow(now time.Time) (time.Duration, bool) {
	if s.ETA <= 0 || s.Ended != nil {
		return 0, false
	}
	left := text.Seconds(s.ETA) - now.Sub(s.etaAt)
	return left, left > 0
}

// Simulated reports whether any GPU that is shown is not a real one.
func (s *State) Simulated() bool {
	for i := range s.Nodes {
		if s.Nodes[i].Simulated() {
			return true
		}
	}
	return false
}

// Simulated reports whether a GPU of a node is not a real one.
func (n *Node) Simulated() bool {
	return n.SimulatedGPUs > 0 || (n.Sample != nil && n.Sample.Simulated)
}

// Stale says why a node's values can't be trusted now; empty when they can.
func (n *Node) Stale(now time.Time) string {
	switch {
	case n.State == cloud.Gone:
		return "gone since " + text.Hour(n.Since)
	case n.State == cloud.Unknown && !n.Since.IsZero():
		return "unknown since " + text.Hour(n.Since)
	case n.Sample == nil:
		return ""
	case now.Sub(n.sampledAt) > staleAfter:
		return "no news since " + text.Hour(n.sampledAt)
	}
	return ""
}

// LastSeen says of when the values of a node are that is no longer looked at.
func (n *Node) LastSeen() string {
	if n.Sample == nil {
		return "no values were kept"
	}
	return "as it was at the end, " + text.Hour(n.sampledAt)
}

// Ranks lists the ranks whose output exists or will, launchers last.
func (s *State) Ranks() []int {
	seen := map[int]bool{}
	if s.Launched != nil {
		for _, r := range s.Launched.Ranks {
			seen[r.Rank] = true
		}
		for r := range min(s.Launched.WorldSize, 4096) {
			seen[r] = true
		}
	}
	for r := range s.LogSizes {
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

// RankName is "rank 3", or "launcher node1" for a launcher's own output.
func RankName(r int) string {
	if r < 0 {
		return "launcher " + NodeName(-1-r)
	}
	return fmt.Sprintf("rank %d", r)
}

// Fraction is how far the run is, 0 to 1; false when it does not say how far
// there is to go.
func (s *State) Fraction() (float64, bool) {
	if s.Ended != nil && s.Ended.Verdict == event.Succeeded {
		return 1, true
	}
	return s.Progress.Share()
}

// RankNode is the node a rank runs on; -1 when that is not known.
func (s *State) RankNode(rank int) int {
	if rank < 0 {
		return -1 - rank
	}
	if s.Launched != nil {
		for _, r := range s.Launched.Ranks {
			if r.Rank == rank {
				return r.Node
			}
		}
	}
	return -1
}
