package ui

import (
	"sort"
	"strings"

	"github.com/dlwb/dlwb/metrics"
)

// base is a series' name without its split: val/loss → loss.
func base(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

// chartGroups puts the curves of one quantity together: loss with val/loss.
// Groups with a loss come first and the learning rate, which is no news, last;
// the others keep the order they appeared in.
func (s *state) chartGroups() [][]*curve {
	if len(s.curves) == s.grouped { // asked for often, and changes only with a new name
		return s.groups
	}
	s.groups, s.grouped = groupsOf(s.curves), len(s.curves)
	return s.groups
}

func groupsOf(curves []*curve) [][]*curve {
	var groups [][]*curve
	at := map[string]int{}
	for _, c := range curves {
		b := base(c.name)
		i, ok := at[b]
		if !ok {
			i = len(groups)
			at[b] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	sort.SliceStable(groups, func(i, j int) bool {
		return chartRank(groups[i][0].name) < chartRank(groups[j][0].name)
	})
	return groups
}

func chartRank(name string) int {
	switch b := strings.ToLower(base(name)); {
	case isLoss(name):
		return 0
	case b == "lr" || strings.Contains(b, "learning_rate"):
		return 2
	}
	return 1
}

func isLoss(name string) bool { return strings.Contains(strings.ToLower(base(name)), "loss") }

// extreme is how the best value of a quantity is called.
func extreme(g metrics.Goal) string {
	return map[metrics.Goal]string{metrics.Least: "lowest", metrics.Most: "highest"}[g]
}
