package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// Which column of a table counts.

// onlyMeasures reports whether all columns are called as losses, scores and rates are.
func (t *tables) onlyMeasures(guess []string, names understood) bool {
	return !slices.ContainsFunc(guess, func(name string) bool { return names.term(name, t.of).kind < measure })
}

// countsIn is the column that counts, by the names and the cells of a row.
func countsIn(names, got []string) int {
	first := got[0]
	if i := slices.IndexFunc(names, isGlobal); i > 0 && grid.IsNumber(first) {
		return i
	} else if i = slices.IndexFunc(names, isCount); i > 0 && (grid.IsMoment(first) || i == 1 && names[0] != "#") {
		return i
	} else if grid.IsClock(first) || grid.IsLabel(first) {
		return 1
	}
	if f, ok := grid.Number(first); ok && f.Real { // none of the first column: "acc  loss  step"
		for i, name := range names {
			if u, plural := unitOf(name); u == unitStep && !plural && lexis.AllDigits(got[i]) {
				return i
			}
		}
	}
	return 0
}

// isCount reports whether a column is called as what counts is, one or many: number_of_trees.
func isCount(name string) bool {
	u, _ := unitOf(name)
	return u != noUnit || strings.HasPrefix(name, "number_of_")
}
