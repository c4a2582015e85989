package chart

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// Gap is the air between charts side by side.
	Gap = 3
	// leastW and leastChartH are the smallest charts of a grid.
	leastW, LeastH = 46, 8
	// TableFrom is the height from which a full chart has a table below it.
	TableFrom = 18
)

// Spot is where a chart lies in the body of a screen: what is drawn there and
// what the mouse hits are made from the same.
type Spot struct {
	Index      int // among the charts that are shown
	group      []*session.Curve
	X, Y, W, H int
}

// Row are the picked chart and, where there is room, those after it.
// The picked one is the largest: the others keep it company.
func (v *View) Row(w, h int) []Spot {
	groups := v.groups()
	if len(groups) == 0 {
		return nil
	}
	n := 1
	if w >= 100 {
		n = min(2, len(groups))
	}
	if w >= 150 {
		n = min(3, len(groups))
	}
	rest := 0
	if n > 1 {
		rest = (w - Gap*(n-1)) * 2 / (2*n + 1)
	}
	var spots []Spot
	x := 0
	for i := range n {
		cw := rest
		if i == 0 {
			cw = w - (n-1)*(rest+Gap)
		}
		at := pick(v.Picked+i, len(groups))
		spots = append(spots, Spot{at, groups[at], x, 0, cw, h})
		x += cw + Gap
	}
	return spots
}

// grid is how many charts stand side by side and below each other: as wide as
// they can be while all fit, else as many as fit.
func grid(n, w, h int) (across, down int) {
	most := text.Clamp((w+Gap)/(leastW+Gap), 1, 6)
	deep := text.Clamp((h+1)/(LeastH+1), 1, 8)
	for across = 1; across < most && across*deep < n; across++ {
	}
	return across, text.Clamp((n+across-1)/across, 1, deep)
}

// Spots are the charts of the present page.
func (v *View) Spots(w, h int) []Spot {
	groups := v.Shown()
	if len(groups) == 0 || h < 1 {
		return nil
	}
	v.Picked = pick(v.Picked, len(groups))
	if v.Full {
		if h >= TableFrom {
			h -= len(groups[v.Picked]) + 3
		}
		return []Spot{{v.Picked, groups[v.Picked], 0, 0, w, h}}
	}
	across, down := grid(len(groups), w, h)
	page := across * down
	v.top = v.Picked / page * page
	cw, ch := (w-Gap*(across-1))/across, (h-(down-1))/down
	var spots []Spot
	for i := v.top; i < min(v.top+page, len(groups)); i++ {
		k := i - v.top
		spots = append(spots, Spot{i, groups[i], k % across * (cw + Gap), k / across * (ch + 1), cw, ch})
	}
	return spots
}

// Head is how many rows stand above a grid of charts in a screen of h rows.
func (v *View) Head(h int) int {
	n := len(v.Ranks.Waiting())
	if !v.Weak || v.Full || n == 0 {
		return 2
	}
	return 2 + min(n+1, max(h/4, 2))
}

// Draw is every chart in a grid, or one on the whole screen.
func (p Page) Draw(w, h int) []string {
	out := append([]string{p.head(w, h), ""}, p.waitingList(w, p.View.Head(h)-2)...)
	spots := p.Spots(w, h-len(out))
	if len(spots) == 0 {
		return append(out, p.Empty(w)...)
	}
	out = append(out, p.Rows(spots)...)
	if p.View.Full && h-2 >= TableFrom {
		out = append(append(out, ""), p.Table(spots[0].group, w)...)
	}
	return out
}

// Rows are the charts of a page, row by row.
func (p Page) Rows(spots []Spot) []string {
	var out []string
	for i := 0; i < len(spots); {
		var row []text.Block
		for y := spots[i].Y; i < len(spots) && spots[i].Y == y; i++ {
			row = append(row, text.Block{W: spots[i].W, Lines: p.marked(spots[i])})
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, text.Beside(Gap, row...)...)
	}
	return out
}

// marked is a chart of the grid, with a sign at the picked one.
func (p Page) marked(s Spot) []string {
	mark := "  "
	if s.Index == p.View.Picked {
		mark = p.Styles.Picked.Of("› ")
	}
	w := max(s.W-2, 1)
	drawn := p.drawn(s, w)
	rows := make([]string, len(drawn))
	for i := range rows {
		if i > 0 {
			mark = "  "
		}
		rows[i] = mark + drawn[i]
	}
	return rows
}

func (p Page) drawn(s Spot, w int) []string {
	if p.Kept != nil {
		return p.keptRows(s, w)
	}
	return p.one(s.group, w, s.H, false)
}

// head says how many charts there are and how they are looked at.
func (p Page) head(w, h int) string {
	v, s := p.View, p.Styles
	groups, all := p.View.Shown(), p.View.groups()
	left := text.Plural(len(all), "chart")
	if v.Filter != "" {
		left = fmt.Sprintf("%d of %s  ", len(groups), text.Plural(len(all), "chart")) + s.Warn.Of("/"+text.Word(v.Filter))
	}
	a := session.AxisAuto
	if g := p.View.PickedGroup(); g != nil {
		a = session.AxisOf(g, v.Asked)
		left += p.PageText(w, h-v.Head(h))
	}
	left += p.waitingText()
	return text.Spread(left, p.ViewText(a), w)
}

// PageText says which of the charts are shown, where not all are.
func (p Page) PageText(w, h int) string {
	v, n, s := p.View, len(p.View.Shown()), p.Styles
	if across, down := grid(n, w, h); !v.Full && across*down < n {
		page := across * down
		return s.Dim.Of(fmt.Sprintf("  page %d of %d", pick(v.Picked, n)/page+1, (n+page-1)/page))
	} else if v.Full && n > 1 {
		return s.Dim.Of(fmt.Sprintf("  number %d; tab shows the next", pick(v.Picked, n)+1))
	}
	return ""
}

// tableCell is how wide a number in Table is, with the gap before it.
const tableCell = 12

// Table is what there is to say of each curve of a chart.
func (p Page) Table(group []*session.Curve, w int) []string {
	s := p.Styles
	a := session.AxisOf(group, p.View.Asked)
	name := 8
	for _, c := range group {
		name = max(name, text.Wide(p.curveName(c))+2)
	}
	name = min(name, max(w/3, 8))
	row := func(first string, cells ...string) string { // those that have room
		for _, c := range cells[:text.Clamp((w-4-name)/tableCell, 0, len(cells))] {
			first += text.FlushRight(c, tableCell)
		}
		return text.Cut(first, w)
	}
	out := []string{s.Dim.Of(row(text.Fit("", 4+name), "here", "newest", "lowest", "highest", "best at", "values", "NaN or inf"))}
	for i, c := range group {
		here := ""
		if _, y, ok := p.View.read(c, a, group); ok {
			here = text.Number(y)
		}
		lo, hi, at := "", "", ""
		if c.Least >= 0 {
			lo, hi = text.Number(c.Value(c.Least)), text.Number(c.Value(c.Most))
		}
		if k, ok := c.Best(); ok {
			at = a.Number(c.X(a, k))
		}
		gaps := ""
		if n := c.Points.Gaps(); n > 0 {
			gaps = text.Count(int64(n))
		}
		sign := text.Ink{On: text.FgOf(p.Styles.Series[i%len(p.Styles.Series)])}.Of(fmt.Sprint(i + 1))
		out = append(out, row("  "+sign+" "+text.Fit(p.curveName(c), name), here, text.OrDash(c.N > 0, text.Number(c.Last)), lo, hi, at, text.Count(int64(c.N)), s.Warn.Of(gaps)))
	}
	return out
}

// Text is the values of all shown charts, to be copied.
func (v *View) Text() string {
	var b strings.Builder
	for _, g := range v.Shown() {
		a := session.AxisOf(g, v.Asked)
		for _, c := range g {
			i := c.N - 1
			if at, ok := v.readAt(a, g); ok {
				i, _ = c.By(a).Near(at)
			}
			if i >= 0 && i < c.N {
				fmt.Fprintf(&b, "%s\t%s %s\t%v\n", v.nameOf(c), a, a.Number(c.X(a, i)), c.Value(i))
			}
		}
	}
	return b.String()
}

// Area is where the plot of a spot lies, in cells of the body.
func (p Page) Area(s Spot) (plot.Area, bool) {
	indent := 0
	if p.Grid {
		indent = 2
	}
	c := p.plot(s.group, session.AxisOf(s.group, p.View.Asked))
	a, ok := c.Area(max(s.W-indent, 1), max(s.H-1, 1))
	a.Left, a.Top = a.Left+s.X+indent, a.Top+s.Y+1
	return a, ok
}
