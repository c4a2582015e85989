package csvhead

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// Texts are what the cells of a row say in words.
type Texts struct{ said, first bool }

// Add takes the i-th cell, which is no number.
func (t *Texts) Add(cell string, i int) {
	if cell != "" && lexis.IsLetter(cell[0]) && !nones[strings.ToLower(cell)] && sense.Splits[strings.ToLower(cell)] == "" {
		t.said, t.first = true, t.first || i == 0
	}
}

// nones are words for that there is no number.
var nones = sense.Set("nan inf infinity none null na n/a true false")

// OfThing reports whether a row of which no number says where it belongs is one of a set of data, and not of a
// training: a text that is its first cell says of which thing it is, or it has one elsewhere and no column is called as
// a loss or a score is.
func (t *Texts) OfThing(columns []string) bool {
	if !t.said || t.first && !places[strings.ToLower(columns[0])] {
		return t.said
	}
	return !slices.ContainsFunc(columns, func(name string) bool {
		name = strings.ToLower(name)
		return sense.Of(name) >= sense.Measure || sense.Splits[name] != ""
	})
}

// places are what a column is called whose texts say when or where a row was written, and not what it is of.
var places = sense.Set("phase stage split set mode dataset subset kind type time date datetime timestamp level host run epoch step")
