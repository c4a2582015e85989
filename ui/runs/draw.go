package runs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

const (
	// runMarks is what stands before a row: the cursor, and the mark.
	runMarks = 4
	// seriesW is the width of a column of a series.
	seriesW = 13
	// leastRunNotes is the least room for notes beside the columns.
	leastRunNotes = 12
	// runDetails is what is said of the picked run below the table.
	runDetails = 4
	// runsWithDetails is the least height of a table that has them.
	runsWithDetails = 15
)

// Page is the table as it is drawn.
type Page struct {
	text.Look
	*Table
}

// Draw is the table of runs in h rows.
func (p Page) Draw(w, h int) []string {
	v := p.Table
	out := p.head(w)
	if len(v.rows) == 0 {
		return append(out, p.none(w)...)
	}
	columns := v.columnsFor(w)
	out = append(out, v.headRow(p.Look, columns, w))
	_, n := p.room(w, h)
	v.top = text.Window(v.top, v.picked, len(v.rows), n)
	for i := v.top; i < min(v.top+n, len(v.rows)); i++ {
		out = append(out, p.row(i, columns, w))
	}
	if h >= runsWithDetails {
		out = append(text.Exactly(out, w, h-runDetails), p.detail(v.Pick(), w)...)
	}
	return out
}

// room is the first row of the body with a run, and how many have one.
func (p Page) room(w, h int) (top, n int) {
	top = len(p.head(w)) + 1
	if h >= runsWithDetails {
		h -= runDetails
	}
	return top, max(h-top, 1)
}

// Click picks the row at a y of the body; again is true when it was picked
// already.
func (p Page) Click(y, w, h int) (again bool) {
	v := p.Table
	top, n := p.room(w, h)
	row := y - top + v.top
	if y < top || y >= top+n || row >= len(v.rows) {
		return false
	}
	again = row == v.picked
	v.picked = row
	return again
}

// head says what is asked for, and under it why it has no answer.
func (p Page) head(w int) []string {
	v, s := p.Table, p.Styles
	left := text.Plural(len(v.rows), "run")
	if v.filter != "" {
		left += "  " + s.Warn.Of("/"+text.Word(v.filter))
	}
	if n := len(v.marked); n > 0 {
		left += "  " + s.Good.Of(fmt.Sprintf("✓ %d marked", n))
	}
	right := "newest first"
	if v.by != "" {
		right = "by " + text.Word(v.by)
	}
	if v.sort > 0 {
		right = "by " + v.columns()[v.sort-1]
	}
	if v.reverse {
		right += ", reversed"
	}
	right = s.Dim.Of(right)
	if v.busy && v.read {
		right = s.Accent.Of(p.Spinner()) + " " + right
	}
	out := []string{text.Spread(left, right, w)}
	if v.fault == nil {
		return append(out, "")
	}
	for i, l := range text.Wrap("✗ "+v.fault.Why, w) {
		if i < 2 {
			out = append(out, s.Bad.Of(l))
		}
	}
	for i, l := range text.Wrap(v.fault.Next, w) {
		if i < 2 {
			out = append(out, s.Dim.Of(l))
		}
	}
	return append(out, "")
}

// none says why there is no row, and what would make one.
func (p Page) none(w int) []string {
	v, s := p.Table, p.Styles
	switch {
	case v.fault != nil && v.filter+v.by != "":
		return []string{s.Key.Of("/") + "  changes the conditions", s.Key.Of("esc") + "  shows all runs again"}
	case v.fault != nil:
		return []string{s.Key.Of("r") + "  reads them again"}
	case !v.read:
		return []string{s.Dim.Of(p.Spinner() + " reading the runs, for " + text.Since(p.Now, v.since))}
	case v.filter != "":
		return []string{"No run is like that.", "", s.Key.Of("/") + "  changes the conditions", s.Key.Of("esc") + "  shows all runs again"}
	}
	return append([]string{s.Strong.Of("No run yet."), ""}, text.Wrap("Each run is kept with its output, curves and all that it was made of. dlwb demo makes one on this machine.", min(w, 72))...)
}

// columnsFor are the columns that fit, those that say most first. What it is
// sorted by is seen, and the series that were asked for.
func (v *Table) columnsFor(w int) []int {
	rank := func(i int) int {
		switch {
		case i == 0:
			return -2
		case i == v.sort-1:
			return -1
		case i >= len(tableColumns):
			return 1
		}
		return tableColumns[i].rank
	}
	order := make([]int, len(v.columns()))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(a) - rank(b) })
	left := w - runMarks
	var out []int
	for _, i := range order {
		spare := 0
		if rank(i) > 5 {
			spare = leastRunNotes
		}
		if left-v.width(i, w) < spare {
			break
		}
		left -= v.width(i, w)
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// width is that of a column on a screen that is w wide.
func (v *Table) width(column, w int) int {
	switch {
	case column == 0:
		return text.Clamp(v.idW, 8, max(w/3, 8))
	case column >= len(tableColumns):
		return seriesW
	}
	return tableColumns[column].w
}

// place sets a text into a column.
func (v *Table) place(column, w int, txt string) string {
	cw := v.width(column, w)
	if column < len(tableColumns) && tableColumns[column].left {
		return text.Fit(txt, cw-1) + " "
	}
	return text.FlushRight(txt, cw-1) + " "
}

func (v *Table) headRow(l text.Look, columns []int, w int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", runMarks))
	for _, i := range columns {
		name, ink := text.Word(v.columns()[i]), l.Styles.Dim
		if n := v.width(i, w) - 2; i >= len(tableColumns) {
			name = text.EndOf(name, n)
		}
		if v.sort == i+1 {
			sign := "↑"
			if v.largestFirst() {
				sign = "↓"
			}
			name, ink = sign+name, l.Styles.Strong
		}
		b.WriteString(ink.Of(v.place(i, w, name)))
	}
	if w-text.Wide(b.String()) >= leastRunNotes {
		b.WriteString(l.Styles.Dim.Of(" note"))
	}
	return text.Cut(b.String(), w)
}

func (p Page) row(i int, columns []int, w int) string {
	v, s := p.Table, p.Styles
	row := v.rows[i]
	r := &v.table.Runs[row]
	mark := "  "
	if i == v.picked {
		mark = s.Picked.Of("› ")
	}
	if k := slices.Index(v.marked, r.ID); k >= 0 {
		mark += s.Good.Of("✓ ")
	} else {
		mark += "  "
	}
	var b strings.Builder
	b.WriteString(mark)
	for _, c := range columns {
		switch {
		case c >= len(tableColumns):
			b.WriteString(v.place(c, w, text.OrDash(v.series(c-len(tableColumns), row) != "", v.series(c-len(tableColumns), row))))
		case c == 0 && i == v.picked:
			b.WriteString(s.Picked.Of(v.place(c, w, text.Word(r.ID))))
		default:
			b.WriteString(v.place(c, w, tableColumns[c].cell(p.Look, r)))
		}
	}
	if w-text.Wide(b.String()) >= leastRunNotes && r.Note != "" {
		b.WriteString(" " + text.Word(r.Note))
	}
	return text.Cut(b.String(), w)
}

// detail is what the picked run was, and what was written to it.
func (p Page) detail(r *event.RunInfo, w int) []string {
	if r == nil {
		return nil
	}
	s := p.Styles
	out := []string{s.Faint.Of(strings.Repeat("─", w)), s.Dim.Of("command  ") + text.Cut(text.Word(r.Command), max(w-9, 1))}
	note := s.Dim.Of("no note; ") + s.Key.Of("n") + s.Dim.Of(" writes one")
	if r.Note != "" {
		note = s.Dim.Of("note     ") + text.Word(r.Note)
	}
	if r.Starred {
		note = s.Warn.Of("★ ") + note
	}
	out = append(out, text.Cut(note, w))
	if r.Cause != "" {
		out = append(out, text.Cut(s.Dim.Of("ended    ")+text.Word(r.Cause), w))
	}
	return out
}

// Text is the ids of the marked runs, else that of the picked one: what
// other commands are given.
func (v *Table) Text() string {
	if len(v.marked) > 0 {
		return strings.Join(text.Words(v.marked), "\n")
	}
	if r := v.Pick(); r != nil {
		return text.Word(r.ID)
	}
	return ""
}
