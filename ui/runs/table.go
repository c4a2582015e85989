// Package runs is the table of runs: sorted, filtered, marked, and drawn as far as
// there is room. What is asked for is answered elsewhere.
package runs

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// Table is the table of runs.
type Table struct {
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

// column is one column of the table. For a number value says what it is
// sorted by; else it is sorted by its text.
type column struct {
	name  string
	w     int
	left  bool
	rank  int  // the least is the last to give way
	most  bool // the largest comes first
	cell  func(l text.Look, r *event.RunInfo) string
	value func(r *event.RunInfo) float64 // NaN where there is none
	text  func(r *event.RunInfo) string
}

// tableColumns are those that every table has, from left to right.
var tableColumns = []column{
	{name: "run", left: true, cell: func(_ text.Look, r *event.RunInfo) string { return text.Word(r.ID) }, text: func(r *event.RunInfo) string { return r.ID }},
	{name: "ended", w: 15, left: true, rank: 1, cell: func(l text.Look, r *event.RunInfo) string { return sign.Verdict(l, r.Verdict, r.ExitCode) },
		text: func(r *event.RunInfo) string { return string(r.Verdict) }},
	{name: "loss", w: 9, rank: 2, cell: func(_ text.Look, r *event.RunInfo) string {
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
	{name: "took", w: 12, rank: 5, most: true, cell: func(l text.Look, r *event.RunInfo) string { return units.Duration(r.Took(l.Now)) },
		value: func(r *event.RunInfo) float64 {
			if r.EndedAt == nil {
				return math.NaN()
			}
			return r.Took(time.Time{}).Seconds()
		}},
	{name: "cost", w: 10, rank: 6, most: true, cell: func(_ text.Look, r *event.RunInfo) string { return units.USD(r.Cost) },
		value: func(r *event.RunInfo) float64 { return r.Cost }},
	{name: "started", w: 14, rank: 4, most: true, cell: func(l text.Look, r *event.RunInfo) string { return units.Ago(l.Now, r.StartedAt) },
		value: func(r *event.RunInfo) float64 { return float64(r.StartedAt.UnixNano()) }},
	{name: "ranks", w: 7, rank: 8, most: true, cell: func(_ text.Look, r *event.RunInfo) string { return text.Count(int64(r.WorldSize)) },
		value: func(r *event.RunInfo) float64 { return float64(r.WorldSize) }},
	{name: "profile", w: 16, left: true, rank: 7, cell: func(_ text.Look, r *event.RunInfo) string { return text.Word(r.Profile) }, text: func(r *event.RunInfo) string { return r.Profile }},
	{name: "★", w: 3, rank: 3, most: true, cell: func(l text.Look, r *event.RunInfo) string {
		if r.Starred {
			return l.Styles.Warn.Of("★")
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
func (v *Table) columns() []string {
	var names []string
	for i := range tableColumns {
		names = append(names, tableColumns[i].name)
	}
	return append(names, v.table.Columns...)
}

// Ask says what is to be asked; what is there stays until the answer comes.
func (v *Table) Ask(now time.Time) (gen int, q history.Query) {
	v.gen++
	v.busy, v.since = true, now
	return v.gen, history.Query{Filter: v.filter, Sort: v.by}
}

// Take takes an answer to the newest question.
func (v *Table) Take(gen int, t history.Table, err error) {
	if gen != v.gen {
		return
	}
	v.busy = false
	if err != nil {
		f := session.FaultOf("read the runs", err)
		v.fault = &f
		return
	}
	v.set(t)
}

// Busy reports whether an answer is waited for.
func (v *Table) Busy() bool { return v.busy }

// Empty reports whether no row is shown.
func (v *Table) Empty() bool { return len(v.rows) == 0 }

// Filter are the conditions, as dlwb runs --filter takes them.
func (v *Table) Filter() string { return v.filter }

// SetFilter shows the runs that meet conditions, once that is asked.
func (v *Table) SetFilter(conditions string) { v.filter, v.picked = conditions, 0 }

// Order is by what it is sorted, as dlwb runs --sort takes it.
func (v *Table) Order() string { return v.by }

// SetOrder sorts by fields and series, once that is asked.
func (v *Table) SetOrder(by string) { v.by, v.sort, v.reverse, v.picked = by, 0, false, 0 }

// NextSort sorts by the next column.
func (v *Table) NextSort() {
	v.sort, v.reverse = (v.sort+1)%(len(v.columns())+1), false
	v.arrange()
	v.picked = 0
}

// Reverse turns the order round.
func (v *Table) Reverse() {
	v.reverse = !v.reverse
	v.arrange()
	v.picked = 0
}

// MostMarked is how many runs may be marked: each has a digit in the charts of a
// comparison.
const MostMarked = 9

// Mark marks the picked run, or takes its mark away, and goes on to the next, as
// file managers do; ok is false when enough are marked.
func (v *Table) Mark() (ok bool) {
	id := v.Pick().ID
	if i := slices.Index(v.marked, id); i >= 0 {
		v.marked = slices.Delete(v.marked, i, i+1)
	} else if len(v.marked) >= MostMarked {
		return false
	} else {
		v.marked = append(v.marked, id)
	}
	v.Move(1)
	return true
}

// Marked are the ids of the marked runs, in the order of marking.
func (v *Table) Marked() []string { return v.marked }

// ClearMarks takes all marks away.
func (v *Table) ClearMarks() { v.marked = nil }

// set takes an answer. What was picked stays picked.
func (v *Table) set(t history.Table) {
	id := ""
	if r := v.Pick(); r != nil && v.picked > 0 {
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
func (v *Table) arrange() {
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
func (v *Table) compare(a, b int) int {
	var order int
	c := v.sort - 1
	if c < len(tableColumns) && tableColumns[c].text != nil {
		text := tableColumns[c].text
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
func (v *Table) largestFirst() bool {
	c := v.sort - 1
	return (c >= 0 && c < len(tableColumns) && tableColumns[c].most) != v.reverse
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// value is the number in a cell; NaN where there is none.
func (v *Table) value(column, row int) float64 {
	if column < len(tableColumns) {
		return tableColumns[column].value(&v.table.Runs[row])
	}
	n, err := strconv.ParseFloat(v.series(column-len(tableColumns), row), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

// series is the text of a cell of a series.
func (v *Table) series(column, row int) string {
	if row >= len(v.table.Cells) || column >= len(v.table.Cells[row]) {
		return ""
	}
	return v.table.Cells[row][column]
}

// Pick is the run that the cursor is on; nil where there is none.
func (v *Table) Pick() *event.RunInfo {
	if v.picked < 0 || v.picked >= len(v.rows) {
		return nil
	}
	return &v.table.Runs[v.rows[v.picked]]
}

// Move moves the cursor by rows.
func (v *Table) Move(d int) { v.picked = text.Clamp(v.picked+d, 0, max(len(v.rows)-1, 0)) }

// Back takes back what esc takes back before it leaves the table: the filter,
// also one that could not be read.
func (v *Table) Back() bool {
	if v.filter == "" && v.by == "" {
		return false
	}
	v.filter, v.by, v.fault = "", "", nil
	return true
}
