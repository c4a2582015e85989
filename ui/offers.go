package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
)

// offerColumn is one column of the table of machines.
type offerColumn struct {
	name  string
	w     int
	rank  int // which columns are given room first
	left  bool
	cell  func(o *cloud.Offer, spot bool) string
	value func(o *cloud.Offer, spot bool) float64 // to sort by; nil: the text
	most  bool                                    // the largest comes first
}

// offerColumns are all columns, from left to right.
var offerColumns = []offerColumn{
	{name: "machine", w: 17, rank: 0, left: true, cell: func(o *cloud.Offer, _ bool) string { return text.Word(o.Instance) }},
	{name: "region", w: 15, rank: 6, left: true, cell: func(o *cloud.Offer, _ bool) string { return text.Word(o.Region) }},
	{name: "GPUs", w: 14, rank: 1, left: true, cell: func(o *cloud.Offer, _ bool) string { return gpusText(o) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.GPUs) * o.GPUShare }},
	{name: "each", w: 8, rank: 5, cell: func(o *cloud.Offer, _ bool) string { return text.OrDash(o.GPUMemory > 0, units.Binary(o.GPUMemory)) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.GPUMemory) }},
	{name: "vCPU", w: 6, rank: 8, cell: func(o *cloud.Offer, _ bool) string { return fmt.Sprint(o.VCPUs) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.VCPUs) }},
	{name: "RAM", w: 10, rank: 9, cell: func(o *cloud.Offer, _ bool) string { return units.Binary(o.Memory) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(o.Memory) }},
	{name: "$/h", w: 8, rank: 2, cell: func(o *cloud.Offer, _ bool) string { return cents(o.OnDemand.PerHour) },
		value: func(o *cloud.Offer, _ bool) float64 { return o.OnDemand.PerHour }},
	{name: "spot", w: 8, rank: 3, cell: func(o *cloud.Offer, _ bool) string { return cents(o.Spot.PerHour) },
		value: func(o *cloud.Offer, _ bool) float64 { return o.Spot.PerHour }},
	{name: "saves", w: 7, rank: 10, cell: func(o *cloud.Offer, _ bool) string {
		return text.OrDash(o.SpotSaving() > 0, fmt.Sprintf("%.0f%%", 100*o.SpotSaving()))
	}, most: true, value: func(o *cloud.Offer, _ bool) float64 { return o.SpotSaving() }},
	{name: "$/GPU-h", w: 9, rank: 4, cell: func(o *cloud.Offer, spot bool) string { return cents(o.PerGPUHour(spot)) },
		value: func(o *cloud.Offer, spot bool) float64 { return o.PerGPUHour(spot) }},
	{name: "$/GB-h", w: 8, rank: 11, cell: func(o *cloud.Offer, spot bool) string { return cents(o.PerGBHour(spot)) },
		value: func(o *cloud.Offer, spot bool) float64 { return o.PerGBHour(spot) }},
	{name: "quota", w: 7, rank: 7, cell: func(o *cloud.Offer, spot bool) string { return quotaText(o, spot) }, most: true,
		value: func(o *cloud.Offer, spot bool) float64 { return float64(quotaOf(o, spot).Left) }},
	{name: "zones", w: 7, rank: 12, cell: func(o *cloud.Offer, _ bool) string { return text.OrDash(len(o.Zones) > 0, fmt.Sprint(len(o.Zones))) }, most: true,
		value: func(o *cloud.Offer, _ bool) float64 { return float64(len(o.Zones)) }},
}

// compare orders two offers by a column. What is not known comes last, also in
// reverse.
func (c *offerColumn) compare(a, b *cloud.Offer, spot, reverse bool) int {
	if c.value == nil {
		if order := cmp.Compare(c.cell(a, spot), c.cell(b, spot)); !reverse {
			return order
		}
		return cmp.Compare(c.cell(b, spot), c.cell(a, spot))
	}
	x, y := c.value(a, spot), c.value(b, spot)
	switch {
	case x == y:
		return 0
	case x == 0:
		return 1
	case y == 0:
		return -1
	case c.most != reverse:
		return cmp.Compare(y, x)
	}
	return cmp.Compare(x, y)
}

// cents is a price for a column; a dash when it is not known.
func cents(v float64) string { return text.OrDash(v > 0, units.Cents(v)) }

func gpusText(o *cloud.Offer) string {
	switch {
	case o.GPUs == 0:
		return "-"
	case o.GPUShare > 0 && o.GPUShare < 1:
		return fmt.Sprintf("1/%.0f %s", 1/o.GPUShare, text.Word(o.GPU))
	}
	return fmt.Sprintf("%d × %s", o.GPUs, text.Word(o.GPU))
}

func quotaOf(o *cloud.Offer, spot bool) cloud.Quota {
	if spot {
		return o.SpotQuota
	}
	return o.Quota
}

// quotaText is how many machines the quota still allows.
func quotaText(o *cloud.Offer, spot bool) string {
	if q := quotaOf(o, spot); q.Known {
		return fmt.Sprint(q.Left)
	}
	return "?"
}

func offerPrice(o *cloud.Offer, spot bool) float64 {
	if spot && o.Spot.Known() {
		return o.Spot.PerHour
	}
	return o.OnDemand.PerHour
}

const (
	// offerNeeded is the rank up to which columns come before the notes.
	offerNeeded = 9
	// notesW is what the notes need to say something.
	notesW = 26
	// leastNotes is less than which they are left out.
	leastNotes = 10
)

// columnsFor are the columns that fit, those that say most first.
func (k *market) columnsFor(w int) []int {
	order := make([]int, len(offerColumns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return offerColumns[a].rank - offerColumns[b].rank })
	if k.sort > 0 { // what it is sorted by is seen
		order = slices.Insert(slices.DeleteFunc(order, func(i int) bool { return i == k.sort-1 }), 1, k.sort-1)
		if k.sort == 1 {
			order = append([]int{0}, slices.DeleteFunc(order, func(i int) bool { return i == 0 })...)
		}
	}
	var out []int
	for _, i := range order {
		if offerColumns[i].name == "region" && !k.manyRegions() {
			continue
		}
		c := &offerColumns[i]
		spare := 0
		if c.rank > offerNeeded && k.sort != i+1 {
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

func (k *market) manyRegions() bool {
	all := k.offers.Offers
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

// drawMarket is the table of machines in h rows.
func (m *Model) drawMarket(w, h int) []string {
	k, s := &m.wiz.market, m.styles
	switch {
	case k.fault != nil:
		out := append(sign.Fault(m.looks(), *k.fault, w), "", s.Key.Of("r")+" asks again, "+s.Key.Of("enter")+" takes a machine type by its name")
		return out
	case k.busy && len(k.offers.Offers) == 0:
		where := "your own region"
		if r := m.wiz.draft.Region; r != "" {
			where = r
		}
		return append([]string{m.spinner() + " asking " + text.Word(m.wiz.draft.Provider) + " for the machines of " + text.Word(where) + s.Dim.Of(", for "+text.Since(m.now, k.since))},
			text.Indent(text.Wrap("Types, zones, prices on demand and spot, and quotas are asked for at once. Then the answer is remembered.", max(w-2, 1)), 2)...)
	}
	out := []string{m.marketState(w)}
	out = append(out, m.marketNotes(w, h/5)...)
	columns := k.columnsFor(w - offerMarks)
	out = append(out, m.offerHead(columns, w))
	rows := h - len(out)
	details := rows >= detailRows+5
	if details {
		rows -= detailRows
	}
	rows = max(rows, 1)
	top := text.Window(0, m.wiz.picked, len(k.rows), rows)
	for i := top; i < min(top+rows, len(k.rows)); i++ {
		out = append(out, m.offerRow(k.at(i), columns, i == m.wiz.picked, w))
	}
	if len(k.rows) == 0 {
		out = append(out, m.noMachines(w)...)
	}
	if details {
		if len(k.rows) > 0 {
			out = text.Exactly(out, w, h-detailRows)
		}
		out = append(out, m.offerDetails(k.at(m.wiz.picked), w)...)
	}
	return out
}

// marketNotes are what the provider could not tell, in at most h rows.
func (m *Model) marketNotes(w, h int) []string {
	var out []string
	for _, n := range m.wiz.market.offers.Notes {
		mark := m.styles.Warn.Of("! ")
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

func (m *Model) noMachines(w int) []string {
	if f := m.wiz.market.filter; f != "" {
		return []string{"Nothing matches " + m.styles.Strong.Of(f) + ".", m.styles.Key.Of("esc") + " shows everything again"}
	}
	return text.Wrap("No machine is offered there. tab and shift+tab go to another step; a shows machines without a GPU too.", w)
}

// marketState says how many machines there are, how old the answer is and how
// it is sorted.
func (m *Model) marketState(w int) string {
	k, s := &m.wiz.market, m.styles
	n := text.Plural(len(k.offers.Offers), "machine")
	if len(k.rows) != len(k.offers.Offers) {
		n = fmt.Sprintf("%d of %s", len(k.rows), n)
	}
	if k.filter != "" {
		n += " with " + s.Strong.Of(k.filter)
	}
	left := n + s.Dim.Of("  ")
	switch at := k.offers.At; {
	case k.busy:
		left += m.spinner() + s.Dim.Of(" asking again, for "+text.Since(m.now, k.since))
	case !k.offers.Live:
		left += s.Warn.Of("not live: facts of " + at.Format("2006-01-02"))
	default:
		left += s.Dim.Of("live, asked " + units.Ago(m.now, at))
	}
	right := "best first"
	if k.sort > 0 {
		right = "by " + offerColumns[k.sort-1].name
	}
	if k.reverse {
		right += ", reversed"
	}
	if k.spot {
		right = "spot, " + right
	} else {
		right = "on demand, " + right
	}
	return text.Spread(left, s.Dim.Of(right), w)
}

func (m *Model) offerHead(columns []int, w int) string {
	k := &m.wiz.market
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", offerMarks))
	for _, i := range columns {
		c := &offerColumns[i]
		name := c.name
		ink := m.styles.Dim
		if k.sort == i+1 {
			name, ink = "↓"+name, m.styles.Strong
			if k.reverse {
				name = "↑" + c.name
			}
		}
		b.WriteString(ink.Of(c.fit(name)))
	}
	if w-text.Wide(b.String()) < leastNotes {
		return text.Cut(b.String(), w)
	}
	return text.Cut(b.String()+m.styles.Dim.Of("  notes"), w)
}

// fit sets a text into the column, a blank between it and the next.
func (c *offerColumn) fit(txt string) string {
	if c.left {
		return text.Fit(txt, c.w-1) + " "
	}
	return text.FlushRight(txt, c.w)
}

func (m *Model) offerRow(o *cloud.Offer, columns []int, picked bool, w int) string {
	k, s := &m.wiz.market, m.styles
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
	for _, i := range columns {
		c := &offerColumns[i]
		text := c.fit(c.cell(o, k.spot))
		switch {
		case picked && i == 0:
			text = s.Picked.Of(text)
		case c.name == "quota" && !m.wiz.fitsQuota(o):
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
func (z *wizard) fitsQuota(o *cloud.Offer) bool {
	q := quotaOf(o, z.market.spot)
	return !q.Known || q.Left >= max(z.nodeCount(), 1)
}

func offerNotes(o *cloud.Offer) string {
	notes := o.Notes
	if o.EFA > 0 {
		notes = append(slices.Clone(notes), fmt.Sprintf("EFA × %d", o.EFA))
	}
	return text.Word(strings.Join(notes, "; "))
}

// offerDetails is what the row of the picked machine had no room for.
func (m *Model) offerDetails(o *cloud.Offer, w int) []string {
	if o == nil {
		return nil
	}
	s := m.styles
	zones := make([]string, len(o.Zones))
	for i, z := range o.Zones {
		zones[i] = text.Word(z.Name)
	}
	price := "price not known"
	if o.OnDemand.Known() {
		price = text.Word(o.OnDemand.Source)
	}
	first := s.Strong.Of(text.Word(o.Instance)) + s.Dim.Of(": "+offerText(*o)+"; network: "+text.Word(o.Network))
	second := s.Dim.Of("zones: " + text.OrDash(len(zones) > 0, strings.Join(zones, ", ")) + "; price: " + price)
	third := text.Word(strings.Join(o.Notes, "; "))
	if third != "" {
		third = s.Warn.Of("! ") + third
	}
	return text.Exactly([]string{"", first, second, third}, w, detailRows)
}
