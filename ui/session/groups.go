package session

import (
	"sort"
	"strings"
	"unicode"
)

// splits are words that say of which data a value is, or over what it was taken,
// and nothing of what it is.
var splits = map[string]bool{
	"train": true, "training": true, "trn": true, "val": true, "valid": true, "validation": true, "dev": true,
	"eval": true, "evaluation": true, "test": true, "testing": true, "heldout": true, "epoch": true, "avg": true,
}

// quantity is what a series is of, whatever the data: loss for Loss/train,
// val_loss and eval/loss. A name of nothing else is itself.
func quantity(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '%' })
	kept := words[:0:0]
	for _, w := range words {
		if w == "acc" {
			w = "accuracy"
		}
		if !splits[w] {
			kept = append(kept, w)
		}
	}
	if len(kept) == 0 {
		return name
	}
	return strings.Join(kept, " ")
}

// AddGroup adds curves of one quantity that are a chart of their own: one of
// each run.
func (s *State) AddGroup(group []*Curve) {
	s.Curves = append(s.Curves, group...)
	s.grouping, s.grouped = append(s.grouping, group), len(s.Curves)
}

// Groups puts the curves of one quantity together: loss with val/loss, Loss/train
// with Loss/test.
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
		b := quantity(c.Name)
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
	switch b := quantity(name); {
	case isLoss(name):
		return 0
	case b == "lr" || strings.Contains(b, "learning rate"):
		return 2
	}
	return 1
}

func isLoss(name string) bool { return strings.Contains(quantity(name), "loss") }
