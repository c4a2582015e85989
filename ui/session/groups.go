package session

import (
	"github.com/dlwb/dlwb/ui/meaning"
)

// AddGroup adds curves of one quantity that are a chart of their own: one of
// each run.
func (s *State) AddGroup(group []*Curve) {
	s.Curves = append(s.Curves, group...)
	s.grouping, s.grouped = append(s.grouping, group), len(s.Curves)
}

// Groups puts the curves of one quantity together: loss with val/loss, Loss/train
// with Loss/test.
func (s *State) Groups() [][]*Curve {
	if len(s.Curves) == s.grouped { // asked for often, and changes only with a new name
		return s.grouping
	}
	s.grouping, s.grouped = groupsOf(s.Curves), len(s.Curves)
	return s.grouping
}

func groupsOf(curves []*Curve) [][]*Curve {
	names := make([]string, len(curves))
	for i, c := range curves {
		names[i] = c.Name
	}
	var groups [][]*Curve
	for _, places := range meaning.Groups(names) {
		var group []*Curve
		for _, i := range places {
			group = append(group, curves[i])
		}
		groups = append(groups, group)
	}
	return groups
}
