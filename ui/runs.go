package ui

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// runsView is the table of runs.
type runsView struct {
	gen   int // counts what was asked
	busy  bool
	since time.Time // when it was asked
	read  bool
	table history.Table
	fault *event.Fault // why the newest question has no answer

	filter  string // conditions, as dlwb runs --filter takes them
	by      string // fields and series, as dlwb runs --sort takes them
	sort    int    // index of a column, plus one; 0 is the order of the answer
	reverse bool
	rows    []int // of the table, as shown
	idW     int   // what the longest id needs
	picked  int
	top     int
	marked  []string // ids, in the order of marking
}

// runColumn is one column of the table. For a number value says what it is
// sorted by; else it is sorted by its text.
type runColumn struct {
	name  string
	w     int
	left  bool
	rank  int  // the least is the last to give way
	most  bool // the largest comes first
	cell  func(m *Model, r *event.RunInfo) string
	value func(r *event.RunInfo) float64 // NaN where there is none
	text  func(r *event.RunInfo) string
}

// runColumns are those that every table has, from left to right.
var runColumns = []runColumn{
	{name: "run", left: true, cell: func(_ *Model, r *event.RunInfo) string { return text.Word(r.ID) }, text: func(r *event.RunInfo) string { return r.ID }},
	{name: "ended", w: 15, left: true, rank: 1, cell: func(m *Model, r *event.RunInfo) string { return sign.Verdict(m.looks(), r.Verdict, r.ExitCode) },
		text: func(r *event.RunInfo) string { return string(r.Verdict) }},
	{name: "loss", w: 9, rank: 2, cell: func(_ *Model, r *event.RunInfo) string {
		if r.LastLoss == nil {
			return "-"
		}
		return text.Number(*r.LastLoss)
	}, value: func(r *event.RunInfo) float64 {
		if r.LastLoss == nil {
			return math.NaN()
		}
		return *r.LastLoss
	}},
	{name: "took", w: 12, rank: 5, most: true, cell: func(m *Model, r *event.RunInfo) string { return units.Duration(r.Took(m.now)) },
		value: func(r *event.RunInfo) float64 {
			if r.EndedAt == nil {
				return math.NaN()
			}
			return r.Took(time.Time{}).Seconds()
		}},
	{name: "cost", w: 10, rank: 6, most: true, cell: func(_ *Model, r *event.RunInfo) string { return units.USD(r.Cost) },
		value: func(r *event.RunInfo) float64 { return r.Cost }},
	{name: "started", w: 14, rank: 4, most: true, cell: func(m *Model, r *event.RunInfo) string { return units.Ago(m.now, r.StartedAt) },
		value: func(r *event.RunInfo) float64 { return float64(r.StartedAt.UnixNano()) }},
	{name: "ranks", w: 7, rank: 8, most: true, cell: func(_ *Model, r *event.RunInfo) string { return text.Count(int64(r.WorldSize)) },
		value: func(r *event.RunInfo) float64 { return float64(r.WorldSize) }},
	{name: "profile", w: 16, left: true, rank: 7, cell: func(_ *Model, r *event.RunInfo) string { return text.Word(r.Profile) }, text: func(r *event.RunInfo) string { return r.Profile }},
	{name: "★", w: 3, rank: 3, most: true, cell: func(m *Model, r *event.RunInfo) string {
		if r.Starred {
			return m.styles.Warn.Of("★")
		}
		return ""
	}, value: func(r *event.RunInfo) float64 {
		if r.Starred {
			return 1
		}
		return 0
	}},
}

// columns are all columns by their names: the runs' own, then the series that
// the question named.
func (v *runsView) columns() []string {
	var names []string
	for i := range runColumns {
		names = append(names, runColumns[i].name)
	}
	return append(names, v.table.Columns...)
}

// set takes an answer. What was picked stays picked.
func (v *runsView) set(t history.Table) {
	id := ""
	if r := v.pick(); r != nil && v.picked > 0 {
		id = r.ID
	}
	v.table, v.read, v.fault, v.idW = t, true, nil, 12
	for i := range t.Runs {
		v.idW = max(v.idW, len(t.Runs[i].ID)+2)
	}
	if v.sort > len(v.columns()) {
		v.sort = 0
	}
	v.arrange()
	v.picked = 0
	for i, row := range v.rows {
		if t.Runs[row].ID == id {
			v.picked = i
		}
	}
}

// arrange puts the rows into the chosen order.
func (v *runsView) arrange() {
	v.rows = v.rows[:0]
	for i := range v.table.Runs {
		v.rows = append(v.rows, i)
	}
	switch {
	case v.sort > 0:
		slices.SortStableFunc(v.rows, v.compare)
	case v.reverse:
		slices.Reverse(v.rows)
	}
}

// compare orders two rows by the chosen column. One without a value comes last,
// also in reverse.
func (v *runsView) compare(a, b int) int {
	var order int
	c := v.sort - 1
	if c < len(runColumns) && runColumns[c].text != nil {
		text := runColumns[c].text
		order = cmp.Compare(strings.ToLower(text(&v.table.Runs[a])), strings.ToLower(text(&v.table.Runs[b])))
	} else {
		x, y := v.value(c, a), v.value(c, b)
		switch {
		case math.IsNaN(x) || math.IsNaN(y):
			return cmp.Compare(boolInt(math.IsNaN(x)), boolInt(math.IsNaN(y)))
		case x != y:
			order = cmp.Compare(x, y)
		}
	}
	if v.largestFirst() {
		return -order
	}
	return order
}

// largestFirst says which way the chosen column is sorted.
func (v *runsView) largestFirst() bool {
	c := v.sort - 1
	return (c >= 0 && c < len(runColumns) && runColumns[c].most) != v.reverse
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// value is the number in a cell; NaN where there is none.
func (v *runsView) value(column, row int) float64 {
	if column < len(runColumns) {
		return runColumns[column].value(&v.table.Runs[row])
	}
	n, err := strconv.ParseFloat(v.series(column-len(runColumns), row), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// series is the text of a cell of a series.
func (v *runsView) series(column, row int) string {
	if row >= len(v.table.Cells) || column >= len(v.table.Cells[row]) {
		return ""
	}
	return v.table.Cells[row][column]
}

// pick is the run that the cursor is on; nil where there is none.
func (v *runsView) pick() *event.RunInfo {
	if v.picked < 0 || v.picked >= len(v.rows) {
		return nil
	}
	return &v.table.Runs[v.rows[v.picked]]
}

func (v *runsView) move(d int) { v.picked = text.Clamp(v.picked+d, 0, max(len(v.rows)-1, 0)) }

// back takes back what esc takes back before it leaves the table: the filter,
// also one that could not be read.
func (v *runsView) back() bool {
	if v.filter == "" && v.by == "" {
		return false
	}
	v.filter, v.by, v.fault = "", "", nil
	return true
}
