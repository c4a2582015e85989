package ui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// asideFrom is the width from which the facts stand beside the charts.
	asideFrom = 150
	// leastFactW and mostFactW bound a cell of the facts.
	leastFactW, mostFactW = 13, 36
	// leastFacts is the least rows of facts that are worth a place.
	leastFacts = 3
)

// comparePlan is where the grid of charts and the facts lie in the body; the
// facts have no height where there is no room for them.
func (m *Model) comparePlan(w, h int) (charts, facts chart.Spot) {
	top := m.compareTop(w)
	rest := max(h-top, 1)
	charts = chart.Spot{X: 0, Y: top, W: w, H: rest}
	switch {
	case m.charts.Full || !m.comp.read:
	case w >= asideFrom:
		side := text.Clamp(w*2/5, 56, 96)
		charts.W = w - side - chart.Gap
		facts = chart.Spot{X: charts.W + chart.Gap, Y: top, W: side, H: rest}
	default:
		n := min(len(m.factRows(w)), max(rest*2/5, rest-1-3*(chart.LeastH+1)))
		if n >= leastFacts && rest-n-1 >= chart.LeastH {
			charts.H = rest - n - 1
			facts = chart.Spot{X: 0, Y: top + charts.H + 1, W: w, H: n}
		}
	}
	return charts, facts
}

// gridRoom is where the grid of charts lies in the body.
func (m *Model) gridRoom() chart.Spot {
	w, h := m.bodyWidth(), m.bodyHeight()
	if m.here() == atCompare {
		if m.comp.whole {
			return chart.Spot{}
		}
		charts, _ := m.comparePlan(w, h)
		return charts
	}
	return chart.Spot{X: 0, Y: 2, W: w, H: h - 2}
}

// compareTop is how many rows stand above: what is compared, and an empty one.
func (m *Model) compareTop(w int) int { return 1 + len(m.runNumbers(w)) + 1 }

// drawCompare is runs over each other, and what differs between them.
func (m *Model) drawCompare(w, h int) []string {
	v, s := &m.comp, m.styles
	out := append(append([]string{m.compareHead(w, h)}, m.runNumbers(w)...), "")
	switch {
	case v.fault != nil:
		return append(append(out, sign.Fault(m.looks(), *v.fault, w)...), "", s.Key.Of("r")+" reads them again")
	case !v.read:
		return append(out, s.Dim.Of(m.spinner()+" looking at what differs, for "+text.Since(m.now, v.since)))
	case v.whole:
		return append(out, m.looks().Scrolled(m.factRows(w), m.scroll[atCompare], h-len(out))...)
	}
	charts, facts := m.comparePlan(w, h)
	rows := m.chartPage().Rows(m.charts.Spots(charts.W, charts.H))
	if len(rows) == 0 {
		rows = m.noOverlays(charts.W)
	}
	if m.charts.Full && charts.H >= chart.TableFrom && len(m.charts.Shown()) > 0 {
		rows = append(append(rows, ""), m.chartPage().Table(m.charts.PickedGroup(), w)...)
	}
	if facts.H == 0 {
		return append(out, rows...)
	}
	table := m.factRows(facts.W)
	if facts.X > 0 {
		return append(out, text.Beside(chart.Gap, text.Block{W: charts.W, Lines: rows}, text.Block{W: facts.W, Lines: m.someFacts(table, facts.H)})...)
	}
	out = append(out, text.Exactly(rows, w, charts.H)...)
	return append(append(out, ""), m.someFacts(table, facts.H)...)
}

// someFacts are those that there is room for, and how to see all.
func (m *Model) someFacts(rows []string, h int) []string {
	if len(rows) <= h {
		return rows
	}
	return append(append([]string(nil), rows[:h-1]...), m.styles.Key.Of("d")+m.styles.Dim.Of("  "+text.Plural(len(rows)-h+1, "more row")))
}

// noOverlays says why there are no charts.
func (m *Model) noOverlays(w int) []string {
	v, s := &m.comp, m.styles
	switch {
	case m.charts.Filter != "":
		return m.chartPage().Empty(w)
	case v.busy:
		return []string{s.Dim.Of(m.spinner() + " reading the curves")}
	}
	out := []string{}
	for _, l := range text.Wrap("No series is in two of these runs: there is nothing to lay over each other.", w) {
		out = append(out, s.Dim.Of(l))
	}
	return out
}

// compareHead says what is compared, and how the charts are looked at.
func (m *Model) compareHead(w, h int) string {
	v, s := &m.comp, m.styles
	left := text.Plural(len(v.runs), "run")
	if groups, all := m.charts.Shown(), m.ses.State.Groups(); len(all) > 0 {
		left += "  " + text.Plural(len(all), "chart")
		if f := m.charts.Filter; f != "" {
			left = fmt.Sprintf("%s  %d of %s  ", text.Plural(len(v.runs), "run"), len(groups), text.Plural(len(all), "chart")) + s.Warn.Of("/"+text.Word(f))
		}
	}
	if text := v.unread(); text != "" {
		left += "  " + s.Dim.Of(text)
	}
	right := ""
	if g := m.charts.PickedGroup(); g != nil && !v.whole {
		right = m.chartPage().ViewText(session.AxisOf(g, m.charts.Asked))
		charts, _ := m.comparePlan(w, h)
		left += m.chartPage().PageText(charts.W, charts.H)
	}
	return text.Spread(left, right, w)
}

// runNumbers say which number is which run.
func (m *Model) runNumbers(w int) []string {
	v := &m.comp
	var out, names []string
	wideName := 0
	for i, id := range v.runs {
		name := m.runSign(i) + " " + text.Word(id)
		if i < len(v.facts.Runs) && v.facts.Runs[i].Starred {
			name += " ★"
		}
		names, wideName = append(names, name), max(wideName, text.Wide(name))
	}
	cw := min(wideName+chart.Gap, w)
	per := max(w/max(cw, 1), 1)
	for len(names) > 0 {
		n := min(per, len(names))
		row := ""
		for _, name := range names[:n] {
			row += text.Fit(name, cw)
		}
		out, names = append(out, text.Cut(strings.TrimRight(row, " "), w)), names[n:]
	}
	return out
}

// runSign is the number of a run in the colour of its curves.
func (m *Model) runSign(i int) string {
	color := m.styles.Series[i%len(m.styles.Series)]
	return lipgloss.NewStyle().Foreground(color).Bold(true).Render(fmt.Sprint(i + 1))
}

// factRows are the facts in rows of w cells. They do not change: what was drawn
// is drawn again.
func (m *Model) factRows(w int) []string {
	if p := &m.comp.drawn; p.rows == nil || p.w != w || p.dark != m.styles.Dark {
		*p = factPage{w, m.styles.Dark, m.drawFacts(w)}
	}
	return m.comp.drawn.rows
}

// drawFacts sets the facts into rows of w cells: each value behind the number of
// its run, as many in a row as there is room for.
func (m *Model) drawFacts(w int) []string {
	s, all := m.styles, m.comp.list
	groupW, nameW := 0, 0
	for _, f := range all {
		groupW, nameW = max(groupW, text.Wide(f.group)+1), max(nameW, text.Wide(f.name)+2)
	}
	groupW = min(groupW, 9)
	nameW = min(nameW, max(w/3-groupW, 8))
	n := max(len(m.comp.facts.Runs), 1)
	room := max(w-groupW-nameW, 1)
	per := text.Clamp(room/leastFactW, 1, n)
	per = (n + (n+per-1)/per - 1) / ((n + per - 1) / per) // rows of the same length
	cw := min(room/per, mostFactW)
	var out []string
	if len(m.comp.facts.Differences) == 0 {
		out = append(out, s.Dim.Of("nothing differs in what is known of how they were run"))
	}
	before := ""
	for _, f := range all {
		group := f.group
		if group == before {
			group = ""
		}
		before = f.group
		label := s.Dim.Of(text.Fit(group, groupW)) + text.Fit(text.EndOf(f.name, max(nameW-2, 2)), nameW)
		cells := text.Differing(f.cells, cw-4)
		for i := 0; i < len(cells); i += per {
			row := label
			for k := i; k < min(i+per, len(cells)); k++ {
				row += m.factCell(cells[k], k, k == f.best, cw)
			}
			out = append(out, text.Cut(row, w))
			label = strings.Repeat(" ", groupW+nameW)
		}
	}
	for _, note := range m.comp.facts.Notes {
		for _, l := range text.Wrap(text.Word(note), w) {
			out = append(out, s.Dim.Of(l))
		}
	}
	return out
}

func (m *Model) factCell(txt string, run int, best bool, w int) string {
	if best {
		return text.Fit(m.runSign(run)+" "+m.styles.Good.Of(text.Cut(txt, w-5)+" ✓"), w)
	}
	return text.Fit(m.runSign(run)+" "+text.Cut(txt, max(w-3, 1)), w)
}
