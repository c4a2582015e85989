package results

import (
	"context"
	"slices"
	"testing"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// A node that is gone and ended its run is asked once for what it wrote, of whatever
// provider it is: it isn't waited for as one that breaks off is. Where none was proven
// gone, a provider whose nodes keep their disks isn't asked, which may take a login.
func TestANodeThatEndedItsRunByBeingGoneIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		leased bool
		ended  *event.RunEnded
		want   []bool
	}{
		{"lost", false, &event.RunEnded{Verdict: event.Lost, Node: 1}, []bool{false, true, false}},
		{"lost, of a leased machine", true, &event.RunEnded{Verdict: event.Lost, Node: 1}, []bool{false, true, false}},
		{"lost, as it was not heard of", false, &event.RunEnded{Verdict: event.Lost, Node: 2, Silent: []int{2}}, []bool{false, false, true}},
		{"failed", false, &event.RunEnded{Verdict: event.ExitedBad}, []bool{false, false, false}},
		{"failed, of a leased machine", true, &event.RunEnded{Verdict: event.ExitedBad}, []bool{false, true, false}},
		{"goes on", false, nil, []bool{false, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New(nil, Owner{Told: func(string) (Told, error) { return Told{Ended: c.ended}, nil }})
			at := Site{Nodes: make([]*remote.Node, 3), Leased: c.leased, Gone: func(context.Context) []bool { return []bool{false, true, false} }}
			if got := f.silent(t.Context(), at, "run"); !slices.Equal(got, c.want) {
				t.Errorf("silent are %v, not %v", got, c.want)
			}
		})
	}
}
