package nodes

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// heatGap is the air between panels of a heatmap.
const heatGap = 3

// heatForm is a way of drawing nodes: the rows that one takes, the narrowest
// panel, what of that is not columns, and what draws one.
type heatForm struct {
	rows, least int
	side        int // cells beside the columns
	draw        func(h *heatPage, n *session.Node, w int) []string
}

// heatPage is what all nodes of one frame have in common.
type heatPage struct {
	Page
	view  *Heat
	gpus  int // of the node with the most
	name  int // cells of the widest name, with its mark
	pace  float64
	shows session.Quantity
	// nowOnly says that there was no room for what was before.
	nowOnly bool
}

// Heatmap is every GPU of every node over time, in the roomiest form that
// holds all nodes.
func (nodes Page) Heatmap(v *Heat, w, h int) []string {
	p := nodes.heatPage(v)
	top := 1
	if h >= 24 {
		top = 2
	}
	room := max(h-top, 1)
	page := func(body []string) []string { return append(text.Exactly([]string{p.legend(w)}, w, top), body...) }
	forms := p.forms()
	if v.detail {
		forms = forms[:1]
	}
	for i, f := range forms {
		most := text.Clamp((w+heatGap)/(f.least+heatGap), 1, 12)
		for panels := 1; panels <= most; panels++ {
			if panels*(room/f.rows) >= len(p.Of.State.Nodes) {
				return page(p.panels(f, panels, room, w))
			}
		}
		if i == len(forms)-1 { // nothing holds all: the narrowest scrolls
			return page(p.scrolledPanels(f, most, room, w))
		}
	}
	return nil
}

func (p Page) heatPage(v *Heat) *heatPage {
	h := &heatPage{Page: p, view: v, shows: v.shows, gpus: 1, name: 7}
	for i := range p.Of.State.Nodes {
		n := &p.Of.State.Nodes[i]
		if n.Sample != nil {
			h.gpus = max(h.gpus, min(len(n.Sample.GPUs), 64))
		}
		h.name = max(h.name, text.Wide(h.label(n)))
	}
	h.name = min(h.name, 20)
	return h
}

// forms lists the ways from the roomiest on.
func (p *heatPage) forms() []heatForm {
	return []heatForm{
		{p.gpus, p.name + 32, p.name + 14, (*heatPage).eachGPU},
		{(p.gpus + 1) / 2, p.name + 20, p.name + 1, (*heatPage).pairs},
		{1, p.name + p.gpus + 18, p.name + p.gpus + 8, (*heatPage).oneRow},
		{1, p.name + 1 + max(p.gpus, 6), 0, (*heatPage).onlyNow},
	}
}

// panels draws all nodes in columns from top to bottom.
func (p *heatPage) panels(f heatForm, panels, room, w int) []string {
	nodes := p.Of.State.Nodes
	pw := (w - heatGap*(panels-1)) / panels
	p.nowOnly = f.side == 0
	p.pace = p.view.paceFor(pw - f.side)
	each := max((len(nodes)+panels-1)/panels, 1) // as even as can be
	var blocks []text.Block
	for i := 0; i < len(nodes); i += each {
		b := text.Block{W: pw}
		for j := i; j < min(i+each, len(nodes)); j++ {
			b.Lines = append(b.Lines, text.Exactly(f.draw(p, &nodes[j], pw), pw, f.rows)...)
			if (f.rows+1)*each <= room && f.rows > 1 && j+1 < min(i+each, len(nodes)) {
				b.Lines = append(b.Lines, "")
			}
		}
		blocks = append(blocks, b)
	}
	return text.Beside(heatGap, blocks...)
}

// scrolledPanels draws the part of all nodes that there is room for.
func (p *heatPage) scrolledPanels(f heatForm, panels, room, w int) []string {
	n := len(p.Of.State.Nodes)
	all := p.panels(f, panels, 0, w)
	v := p.view
	v.top = text.Clamp(v.top, 0, max(len(all)-room, 0))
	rows := p.Scrolled(all, v.top, room)
	if n == 0 {
		return []string{p.Styles.Dim.Of("no node has answered yet; s shows the steps")}
	}
	return rows
}

// legend says what is shown and what the signs mean.
func (p *heatPage) legend(w int) string {
	s, q := p.Styles, scales[p.shows]
	left := s.Strong.Of(q.name) + "  " + text.Plain(q.lo) + " "
	for i := range 8 {
		v := q.lo + (q.hi-q.lo)*(float64(i)+0.5)/8
		left += p.cell(session.Cell{Value: v, Known: true})
	}
	left += " " + text.Plain(q.hi) + " " + q.unit
	if p.Of.State.Simulated() {
		left += "  " + s.Badge.Of(" SIMULATED ")
	}
	right := "a column is " + units.Seconds(p.pace) + ", now at the right"
	if p.nowOnly {
		right = "now"
	}
	signs := func(gap string) string {
		return s.Dim.Of(gap+"· no news"+gap) + s.Warn.Of("?") + s.Dim.Of(" not known")
	}
	row := left + signs("   ")
	if text.Wide(row)+2+len(right) > w && !p.nowOnly {
		right = "column " + units.Seconds(p.pace)
	}
	for _, gap := range []string{"  ", " "} {
		if text.Wide(row)+2+len(right) > w {
			row = left + signs(gap)
		}
	}
	if text.Wide(row)+2+len(right) > w {
		right = ""
	}
	return text.Spread(row, s.Dim.Of(right), w)
}

// label is a node's name. What is not real says so.
func (p *heatPage) label(n *session.Node) string {
	if n.Simulated() {
		return n.Name + " sim"
	}
	return n.Name
}

func (p *heatPage) title(n *session.Node) string {
	text := text.Fit(p.label(n), p.name)
	switch {
	case p.stale(n) != "":
		return p.Styles.Warn.Of(text)
	case n.Simulated():
		return p.Styles.Warn.Of(text)
	}
	return p.Styles.Strong.Of(text)
}

// absence is why a node has no row of cells; empty when it has.
func (p *heatPage) absence(n *session.Node) string {
	switch {
	case n.Sample == nil && p.stale(n) != "":
		return "? " + p.stale(n)
	case n.Sample == nil:
		return p.noSample()
	case len(n.Sample.GPUs) == 0 && n.WithoutGPUs():
		return gpuAbsence(n.Sample)
	}
	return ""
}

func (p *heatPage) cells(n *session.Node, columns int) [][]session.Cell {
	return n.Heatmap(p.shows, len(n.Sample.GPUs), max(columns, 1), p.Of.Now(p.Now), p.pace)
}

// eachGPU is a row for each GPU: its number, its cells, its value now.
func (p *heatPage) eachGPU(n *session.Node, w int) []string {
	if why := p.absence(n); why != "" {
		return []string{p.title(n) + " " + p.Styles.Dim.Of(text.Cut(why, w-p.name-1))}
	}
	room := w - p.name - 14
	cells := p.cells(n, room)
	var out []string
	for g, row := range cells {
		name := strings.Repeat(" ", p.name)
		if g == 0 {
			name = p.title(n)
		}
		out = append(out, name+p.Styles.Dim.Of(fmt.Sprintf(" %-2d ", n.Sample.GPUs[g].Index))+p.row(row)+" "+p.now1(row))
	}
	return out
}

// now1 is the newest cell as text.
func (p *heatPage) now1(row []session.Cell) string {
	c := row[len(row)-1]
	unit := scales[p.shows].unit[:1]
	if p.shows == session.GPUTemperature {
		unit = " °C"
	}
	switch {
	case !c.Known:
		return p.Styles.Dim.Of(text.FlushRight("no news", 8))
	case c.Value != c.Value:
		return p.Styles.Warn.Of(text.FlushRight("N/A", 8))
	}
	return text.FlushRight(fmt.Sprintf("%.0f%s", c.Value, unit), 8)
}

// pairs sets two GPUs into one row, the upper half of a cell and the lower.
// What the colours say of now stands beside them: the mean and the least.
func (p *heatPage) pairs(n *session.Node, w int) []string {
	if why := p.absence(n); why != "" {
		return []string{p.title(n) + " " + p.Styles.Dim.Of(text.Cut(why, w-p.name-1))}
	}
	side := p.name + 1
	cells := p.cells(n, w-side)
	last := make([]session.Cell, len(cells))
	for g := range cells {
		last[g] = cells[g][len(cells[g])-1]
	}
	texts := []string{p.title(n), p.Styles.Dim.Of(text.Fit(" "+p.short(session.Mean(last)), p.name)), p.leastText(n, last)}
	var out []string
	for g := 0; g < len(cells); g += 2 {
		text := strings.Repeat(" ", p.name)
		if g/2 < len(texts) {
			text = texts[g/2]
		}
		low := cells[min(g+1, len(cells)-1)]
		out = append(out, text+" "+p.halves(cells[g], low))
	}
	return out
}

// leastText names the GPU that does least, when it does much less than most.
func (p *heatPage) leastText(n *session.Node, last []session.Cell) string {
	least := -1
	for g, c := range last {
		if c.Known && c.Value == c.Value && (least < 0 || c.Value < last[least].Value) {
			least = g
		}
	}
	if least < 0 || last[least].Value > session.Mean(last).Value-20 {
		return strings.Repeat(" ", p.name)
	}
	return p.Styles.Warn.Of(text.Fit(fmt.Sprintf(" g%d %s", n.Sample.GPUs[least].Index, p.short(last[least])), p.name))
}

func (p *heatPage) short(c session.Cell) string {
	switch {
	case !c.Known:
		return "·"
	case c.Value != c.Value:
		return "N/A"
	case p.shows == session.GPUTemperature:
		return fmt.Sprintf("%.0f °C", c.Value)
	}
	return fmt.Sprintf("%.0f%%", c.Value)
}

// oneRow is a node in a row: its GPUs now, then their mean over time.
func (p *heatPage) oneRow(n *session.Node, w int) []string {
	if why := p.absence(n); why != "" {
		return []string{p.title(n) + " " + p.Styles.Dim.Of(text.Cut(why, w-p.name-1))}
	}
	cells := p.cells(n, w-p.name-p.gpus-8)
	last, mean := make([]session.Cell, len(cells)), make([]session.Cell, len(cells[0]))
	for g := range cells {
		last[g] = cells[g][len(cells[g])-1]
	}
	column := make([]session.Cell, len(cells))
	for i := range mean {
		for g := range cells {
			column[g] = cells[g][i]
		}
		mean[i] = session.Mean(column)
	}
	now := text.Fit(p.row(last), p.gpus)
	return []string{p.title(n) + " " + now + " " + p.row(mean) + text.FlushRight(p.short(mean[len(mean)-1]), 6)}
}

// onlyNow is a cell for each GPU of a node.
func (p *heatPage) onlyNow(n *session.Node, w int) []string {
	if why := p.absence(n); why != "" {
		return []string{p.title(n) + " " + p.Styles.Dim.Of(text.Cut(why, w-p.name-1))}
	}
	cells := p.cells(n, 1)
	row := make([]session.Cell, len(cells))
	for g := range cells {
		row[g] = cells[g][0]
	}
	return []string{p.title(n) + " " + p.row(row)}
}

// shades are the signs of a cell, so that it can be read without colour.
var shades = []string{"░", "▒", "▓", "█"}

// level is a value between nothing and full, 0 to 1.
func (p *heatPage) level(v float64) float64 {
	q := scales[p.shows]
	return min(max((v-q.lo)/(q.hi-q.lo), 0), 1)
}

// heat is which of the colours a value has.
func (p *heatPage) heat(v float64) int {
	n := len(p.Styles.Heat)
	return min(int(p.level(v)*float64(n)), n-1)
}

func (p *heatPage) cell(c session.Cell) string { return p.row([]session.Cell{c}) }

// row is cells beside each other; those of one colour share an escape.
func (p *heatPage) row(cells []session.Cell) string {
	var b strings.Builder
	ink := ""
	for _, c := range cells {
		sign, on := p.sign(c)
		if on != ink {
			b.WriteString("\x1b[m" + on)
			ink = on
		}
		b.WriteString(sign)
	}
	return b.String() + "\x1b[m"
}

// sign is what stands for a cell, and its ink.
func (p *heatPage) sign(c session.Cell) (sign, on string) {
	switch {
	case !c.Known:
		return "·", p.Styles.Faint.On
	case c.Value != c.Value:
		return "?", p.Styles.Warn.On
	}
	f := p.level(c.Value)
	return shades[min(int(f*float64(len(shades))), len(shades)-1)], p.Styles.Heat[p.heat(c.Value)].On
}

// halves sets one row of cells above another. Where either is not known, or
// without colour, the one that is worse off is drawn alone.
func (p *heatPage) halves(up, low []session.Cell) string {
	var b strings.Builder
	ink := ""
	for i := range up {
		sign, on := "▀", ""
		switch u, l := up[i], low[i]; {
		case !u.Known || !l.Known || u.Value != u.Value || l.Value != l.Value, p.Colourless || p.ASCII:
			worse := u
			if !l.Known || l.Value != l.Value || l.Value < u.Value {
				worse = l
			}
			sign, on = p.sign(worse)
		default:
			on = p.Styles.HeatPair[p.heat(u.Value)][p.heat(l.Value)].On
		}
		if on != ink {
			b.WriteString("\x1b[m" + on)
			ink = on
		}
		b.WriteString(sign)
	}
	return b.String() + "\x1b[m"
}
