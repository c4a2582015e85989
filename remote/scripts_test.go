//go:build linux

package remote

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const forever = "while :; do sleep 1; done"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ranks are plain ranks of run r1 that run the given sh programs.
func ranks(programs ...string) []Proc {
	procs := make([]Proc, len(programs))
	for i, program := range programs {
		name := fmt.Sprintf("rank-%d", i)
		procs[i] = Proc{
			Name: name, Ranks: []int{i}, Log: name + ".log",
			Env:  []string{fmt.Sprintf("RANK=%d", i)},
			Argv: []string{"sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", "sh", "-c", program},
		}
	}
	return procs
}

// kinds is a status in short: "rank-ended 1 3".
func kinds(statuses []Status) []string {
	var all []string
	for _, s := range statuses {
		switch s.Kind {
		case RankStarted:
			all = append(all, fmt.Sprintf("%s %d", s.Kind, s.Rank))
		case RankEnded:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %d %s", s.Kind, s.Rank, s.Code, s.Signal)))
		case Ended:
			all = append(all, fmt.Sprintf("%s %d", s.Kind, s.Code))
		case Stopping, PeerTold:
			all = append(all, s.Kind+" "+s.Why)
		default:
			all = append(all, s.Kind)
		}
	}
	return all
}

// wantOrder checks that the statuses hold the given ones in this order.
func wantOrder(t *testing.T, s RunState, want ...string) {
	t.Helper()
	rest := kinds(s.Statuses)
	for _, w := range want {
		i := slices.Index(rest, w)
		if i < 0 {
			t.Errorf("%q is missing, or not in this place, in %q", w, kinds(s.Statuses))
			return
		}
		rest = rest[i+1:]
	}
}
