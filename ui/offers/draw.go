package offers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// offerNeeded is the rank up to which columns come before the notes.
	offerNeeded = 9
	// notesW is what the notes need to say something.
	notesW = 26
	// leastNotes is less than which they are left out.
	leastNotes = 10
)

// columnsFor are the columns that fit, those that say most first.
func (k *Table) columnsFor(w int) []int {
	order := make([]int, len(columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return columns[a].rank - columns[b].rank })
	if k.Sort > 0 { // what it is sorted by is seen
		order = slices.Insert(slices.DeleteFunc(order, func(i int) bool { return i == k.Sort-1 }), 1, k.Sort-1)
		if k.Sort == 1 {
			order = append([]int{0}, slices.DeleteFunc(order, func(i int) bool { return i == 0 })...)
		}
	}
	var out []int
	for _, i := range order {
		if columns[i].name == "region" && !k.manyRegions() {
			continue
		}
		c := &columns[i]
		spare := 0
		if c.rank > offerNeeded && k.Sort != i+1 {
			spare = notesW // what a person should know comes before these
		}
		if w-c.w < spare {
			break
		}
		w -= c.w
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

func (k *Table) manyRegions() bool {
	all := k.All.Offers
	for i := range all {
		if all[i].Region != all[0].Region {
			return true
		}
	}
	return false
}

// offerMarks is what stands before a row: the cursor and the mark.
const offerMarks = 4

// detailRows are what is said of the picked machine under the table.
const detailRows = 4

// Draw is the table in h rows, with what is said of the picked machine.
func (k *Table) Draw(l text.Look, picked, w, h int) []string {
	out := []string{k.state(l, w)}
	out = append(out, k.notes(l, w, h/5)...)
	shown := k.columnsFor(w - offerMarks)
	out = append(out, k.head(l, shown, w))
	rows := h - len(out)
	tall := rows >= detailRows+5
	if tall {
		rows -= detailRows
	}
	rows = max(rows, 1)
	top := text.Window(0, picked, len(k.rows), rows)
	for i := top; i < min(top+rows, len(k.rows)); i++ {
		out = append(out, k.row(l, k.At(i), shown, i == picked, w))
	}
	if len(k.rows) == 0 {
		out = append(out, k.none(l, w)...)
	}
	if tall {
		if len(k.rows) > 0 {
			out = text.Exactly(out, w, h-detailRows)
		}
		out = append(out, details(l, k.At(picked), w)...)
	}
	return out
}

// notes are what the provider could not tell, in at most h rows.
func (k *Table) notes(look text.Look, w, h int) []string {
	var out []string
	for _, n := range k.All.Notes {
		mark := look.Styles.Warn.Of("! ")
		for _, l := range text.Wrap(text.Word(n), max(w-2, 1)) {
			out = append(out, text.Cut(mark+l, w))
			mark = "  "
		}
	}
	if most := max(h, 1); len(out) > most {
		out = out[:most]
		out[most-1] = text.Cut(out[most-1], w-2) + " …"
	}
	return out
}

// none says why the table is empty.
func (k *Table) none(l text.Look, w int) []string {
	if f := k.Filter; f != "" {
		return []string{"Nothing matches " + l.Styles.Strong.Of(f) + ".", l.Styles.Key.Of("esc") + " shows everything again"}
	}
	return text.Wrap("No machine is offered there. tab and shift+tab go to another step; a shows machines without a GPU too.", w)
}

// state says how many machines there are, how old the answer is and how
// it is sorted.
func (k *Table) state(l text.Look, w int) string {
	s := l.Styles
	n := text.Plural(len(k.All.Offers), "machine")
	if len(k.rows) != len(k.All.Offers) {
		n = fmt.Sprintf("%d of %s", len(k.rows), n)
	}
	if k.Filter != "" {
		n += " with " + s.Strong.Of(k.Filter)
	}
	left := n + s.Dim.Of("  ")
	switch at := k.All.At; {
	case k.Asking:
		left += l.Spinner() + s.Dim.Of(" asking again, for "+text.Since(l.Now, k.Since))
	case !k.All.Live:
		left += s.Warn.Of("not live: facts of " + at.Format("2006-01-02"))
	default:
		left += s.Dim.Of("live, asked " + units.Ago(l.Now, at))
	}
	right := "best first"
	if k.Sort > 0 {
		right = "by " + columns[k.Sort-1].name
	}
	if k.reverse {
		right += ", reversed"
	}
	if k.Spot {
		right = "spot, " + right
	} else {
		right = "on demand, " + right
	}
	return text.Spread(left, s.Dim.Of(right), w)
}

// head names the columns.
func (k *Table) head(l text.Look, shown []int, w int) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", offerMarks))
	for _, i := range shown {
		c := &columns[i]
		name := c.name
		ink := l.Styles.Dim
		if k.Sort == i+1 {
			name, ink = "↓"+name, l.Styles.Strong
			if k.reverse {
				name = "↑" + c.name
			}
		}
		b.WriteString(ink.Of(c.fit(name)))
	}
	if w-text.Wide(b.String()) < leastNotes {
		return text.Cut(b.String(), w)
	}
	return text.Cut(b.String()+l.Styles.Dim.Of("  notes"), w)
}

// row is one machine.
func (k *Table) row(l text.Look, o *cloud.Offer, shown []int, picked bool, w int) string {
	s := l.Styles
	mark := "  "
	if picked {
		mark = s.Picked.Of("› ")
	}
	if slices.Contains(k.marked, offerKey(o)) {
		mark += s.Good.Of("✓ ")
	} else {
		mark += "  "
	}
	var b strings.Builder
	for _, i := range shown {
		c := &columns[i]
		text := c.fit(c.cell(o, k.Spot))
		switch {
		case picked && i == 0:
			text = s.Picked.Of(text)
		case c.name == "quota" && !k.fitsQuota(o):
			text = s.Bad.Of(text)
		}
		b.WriteString(text)
	}
	row := mark + b.String()
	if w-text.Wide(row) < leastNotes {
		return text.Cut(row, w)
	}
	return text.Cut(row+"  "+s.Dim.Of(offerNotes(o)), w)
}

// fitsQuota reports whether the quota, as far as it is known, has room for all
// nodes.
func (k *Table) fitsQuota(o *cloud.Offer) bool {
	q := quotaOf(o, k.Spot)
	return !q.Known || q.Left >= max(k.Nodes, 1)
}

func offerNotes(o *cloud.Offer) string {
	notes := o.Notes
	if o.EFA > 0 {
		notes = append(slices.Clone(notes), fmt.Sprintf("EFA × %d", o.EFA))
	}
	return text.Word(strings.Join(notes, "; "))
}

// details is what the row of the picked machine had no room for.
func details(l text.Look, o *cloud.Offer, w int) []string {
	if o == nil {
		return nil
	}
	s := l.Styles
	zones := make([]string, len(o.Zones))
	for i, z := range o.Zones {
		zones[i] = text.Word(z.Name)
	}
	price := "price not known"
	if o.OnDemand.Known() {
		price = text.Word(o.OnDemand.Source)
	}
	first := s.Strong.Of(text.Word(o.Instance)) + s.Dim.Of(": "+plan.Offer(*o)+"; network: "+text.Word(o.Network))
	second := s.Dim.Of("zones: " + text.OrDash(len(zones) > 0, strings.Join(zones, ", ")) + "; price: " + price)
	third := text.Word(strings.Join(o.Notes, "; "))
	if third != "" {
		third = s.Warn.Of("! ") + third
	}
	return text.Exactly([]string{"", first, second, third}, w, detailRows)
}
