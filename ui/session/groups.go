package session

import (
	"sort"
	"strings"
)

// base is a series' name without its split: val/loss → loss.
func base(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// AddGroup adds curves of one quantity that are a chart of their own: one of
// each run.
func (s *State) AddGroup(group []*Curve) {
	s.Curves = append(s.Curves, group...)
	s.grouping, s.grouped = append(s.grouping, group), len(s.Curves)
}

// Groups puts the curves of one quantity together: loss with val/loss.
// Groups with a loss come first and the learning rate, which is no news, last;
// the others keep the order they appeared in.
func (s *State) Groups() [][]*Curve {
	if len(s.Curves) == s.grouped { // asked for often, and changes only with a new name
		return s.grouping
	}
	s.grouping, s.grouped = groupsOf(s.Curves), len(s.Curves)
	return s.grouping
}

func groupsOf(curves []*Curve) [][]*Curve {
	var groups [][]*Curve
	at := map[string]int{}
	for _, c := range curves {
		b := base(c.Name)
		i, ok := at[b]
		if !ok {
			i = len(groups)
			at[b] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	sort.SliceStable(groups, func(i, j int) bool {
		return ChartRank(groups[i][0].Name) < ChartRank(groups[j][0].Name)
	})
	return groups
}

// ChartRank is where a series stands among the charts: those of the least rank
// come first.
func ChartRank(name string) int {
	switch b := strings.ToLower(base(name)); {
	case isLoss(name):
		return 0
	case b == "lr" || strings.Contains(b, "learning_rate"):
		return 2
	}
	return 1
}

func isLoss(name string) bool { return strings.Contains(strings.ToLower(base(name)), "loss") }
