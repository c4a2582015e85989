package ui

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// chartGap is the air between charts side by side.
	chartGap = 3
	// leastChartW and leastChartH are the smallest charts of a grid.
	leastChartW, leastChartH = 46, 8
	// legendFrom is the height from which a full chart has a table below it.
	legendFrom = 18
)

// spot is where a chart lies in the body of a screen: what is drawn there and
// what the mouse hits are made from the same.
type spot struct {
	index      int // among the charts that are shown
	group      []*session.Curve
	x, y, w, h int
}

// trainSpots are the picked chart and, where there is room, those after it.
// The picked one is the largest: the others keep it company.
func (m *Model) trainSpots(w, h int) []spot {
	groups := m.ses.State.Groups()
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
		rest = (w - chartGap*(n-1)) * 2 / (2*n + 1)
	}
	var spots []spot
	x := 0
	for i := range n {
		cw := rest
		if i == 0 {
			cw = w - (n-1)*(rest+chartGap)
		}
		at := pick(m.charts.picked+i, len(groups))
		spots = append(spots, spot{at, groups[at], x, 0, cw, h})
		x += cw + chartGap
	}
	return spots
}

// grid is how many charts stand side by side and below each other: as wide as
// they can be while all fit, else as many as fit.
func grid(n, w, h int) (across, down int) {
	most := text.Clamp((w+chartGap)/(leastChartW+chartGap), 1, 6)
	deep := text.Clamp((h+1)/(leastChartH+1), 1, 8)
	for across = 1; across < most && across*deep < n; across++ {
	}
	return across, text.Clamp((n+across-1)/across, 1, deep)
}

// gridSpots are the charts of the present page.
func (m *Model) gridSpots(w, h int) []spot {
	v, groups := &m.charts, m.charts.shownCharts()
	if len(groups) == 0 || h < 1 {
		return nil
	}
	v.picked = pick(v.picked, len(groups))
	if v.full {
		if h >= legendFrom {
			h -= len(groups[v.picked]) + 3
		}
		return []spot{{v.picked, groups[v.picked], 0, 0, w, h}}
	}
	across, down := grid(len(groups), w, h)
	page := across * down
	v.top = v.picked / page * page
	cw, ch := (w-chartGap*(across-1))/across, (h-(down-1))/down
	var spots []spot
	for i := v.top; i < min(v.top+page, len(groups)); i++ {
		k := i - v.top
		spots = append(spots, spot{i, groups[i], k % across * (cw + chartGap), k / across * (ch + 1), cw, ch})
	}
	return spots
}

// drawCharts is every chart in a grid, or one on the whole screen.
func (m *Model) drawCharts(w, h int) []string {
	if m.ses.Lost != "" && m.ses.State.Run == "" {
		return m.lostRows(w)
	}
	out := []string{m.chartsHead(w, h), ""}
	spots := m.gridSpots(w, h-len(out))
	if len(spots) == 0 {
		return append(out, m.noCurves(w)...)
	}
	out = append(out, m.gridRows(spots)...)
	if m.charts.full && h-2 >= legendFrom {
		out = append(append(out, ""), m.chartTable(spots[0].group, w)...)
	}
	return out
}

// gridRows are the charts of a page, row by row.
func (m *Model) gridRows(spots []spot) []string {
	var out []string
	for i := 0; i < len(spots); {
		var row []text.Block
		for y := spots[i].y; i < len(spots) && spots[i].y == y; i++ {
			row = append(row, text.Block{W: spots[i].w, Lines: m.gridChart(spots[i])})
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, text.Beside(chartGap, row...)...)
	}
	return out
}

// gridChart is a chart of the grid, with a sign at the picked one.
func (m *Model) gridChart(s spot) []string {
	mark := "  "
	if s.index == m.charts.picked {
		mark = m.styles.Picked.Of("› ")
	}
	w := max(s.w-2, 1)
	drawn := m.gridDrawn(s, w)
	rows := make([]string, len(drawn))
	for i := range rows {
		if i > 0 {
			mark = "  "
		}
		rows[i] = mark + drawn[i]
	}
	return rows
}

func (m *Model) gridDrawn(s spot, w int) []string {
	if m.here() == atCompare {
		return m.overlayRows(s, w)
	}
	return m.oneChart(s.group, w, s.h, false)
}

// chartsHead says how many charts there are and how they are looked at.
func (m *Model) chartsHead(w, h int) string {
	v, s := &m.charts, m.styles
	groups, all := m.charts.shownCharts(), m.ses.State.Groups()
	left := text.Plural(len(all), "chart")
	if v.filter != "" {
		left = fmt.Sprintf("%d of %s  ", len(groups), text.Plural(len(all), "chart")) + s.Warn.Of("/"+text.Word(v.filter))
	}
	a := session.AxisAuto
	if g := m.charts.pickedChart(); g != nil {
		a = session.AxisOf(g, v.asked)
		left += m.pageText(w, h-2)
	}
	return text.Spread(left, m.viewText(a), w)
}

// pageText says which of the charts are shown, where not all are.
func (m *Model) pageText(w, h int) string {
	v, n, s := &m.charts, len(m.charts.shownCharts()), m.styles
	if across, down := grid(n, w, h); !v.full && across*down < n {
		page := across * down
		return s.Dim.Of(fmt.Sprintf("  page %d of %d", pick(v.picked, n)/page+1, (n+page-1)/page))
	} else if v.full && n > 1 {
		return s.Dim.Of(fmt.Sprintf("  number %d; tab shows the next", pick(v.picked, n)+1))
	}
	return ""
}

// chartTable is what there is to say of each curve of a chart.
func (m *Model) chartTable(group []*session.Curve, w int) []string {
	s := m.styles
	a := session.AxisOf(group, m.charts.asked)
	name := 8
	for _, c := range group {
		name = max(name, text.Wide(m.curveName(c))+2)
	}
	name = min(name, max(w/3, 8))
	cell := func(txt string) string { return text.FlushRight(txt, 12) }
	out := []string{s.Dim.Of(text.Cut(text.Fit("", 4+name)+cell("here")+cell("newest")+cell("lowest")+cell("highest")+cell("best at")+cell("values")+cell("NaN or inf"), w))}
	for i, c := range group {
		here := ""
		if _, y, ok := m.charts.read(c, a, group); ok {
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
		sign := text.Ink{On: text.FgOf(m.styles.Series[i%len(m.styles.Series)])}.Of(fmt.Sprint(i + 1))
		out = append(out, text.Cut("  "+sign+" "+text.Fit(m.curveName(c), name)+cell(here)+cell(orDash(c.N > 0, text.Number(c.Last)))+cell(lo)+cell(hi)+cell(at)+cell(text.Count(int64(c.N)))+s.Warn.Of(cell(gaps)), w))
	}
	return out
}

// chartsText is the values of all shown charts, to be copied.
func (m *Model) chartsText() string {
	var b strings.Builder
	for _, g := range m.charts.shownCharts() {
		a := session.AxisOf(g, m.charts.asked)
		for _, c := range g {
			i := c.N - 1
			if at, ok := m.charts.readAt(a, g); ok {
				i, _ = c.By(a).Near(at)
			}
			if i >= 0 && i < c.N {
				fmt.Fprintf(&b, "%s\t%s %s\t%v\n", c.Name, a, a.Number(c.X(a, i)), c.Value(i))
			}
		}
	}
	return b.String()
}

// area is where the plot of a spot lies, in cells of the body.
func (m *Model) area(s spot) (plot.Area, bool) {
	indent := 0
	if m.here()&inGrid != 0 {
		indent = 2
	}
	c := m.chartOf(s.group, session.AxisOf(s.group, m.charts.asked))
	a, ok := c.Area(max(s.w-indent, 1), max(s.h-1, 1))
	a.Left, a.Top = a.Left+s.x+indent, a.Top+s.y+1
	return a, ok
}
