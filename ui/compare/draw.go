package compare

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

// Page is a comparison as it is drawn.
type Page struct {
	text.Look
	*Comparison
}

// ChartPage is its charts as they are drawn.
func (p Page) ChartPage() chart.Page {
	return chart.Page{Look: p.Look, View: p.Charts, Grid: true, Names: p.runs, Kept: p.Comparison.Kept}
}

// Scroll scrolls the facts where they are alone.
func (p Page) Scroll(d, w, h int) {
	room := max(h-p.above(w), 1) // how many rows they have
	p.top = text.Clamp(p.top+d, 0, max(len(p.factRows(w))-room, 0))
}

// plan is where the grid of charts and the facts lie in the body; the
// facts have no height where there is no room for them.
func (p Page) plan(w, h int) (charts, facts chart.Spot) {
	top := p.above(w)
	rest := max(h-top, 1)
	charts = chart.Spot{X: 0, Y: top, W: w, H: rest}
	switch {
	case p.Charts.Full || !p.Comparison.read:
	case w >= asideFrom:
		side := text.Clamp(w*2/5, 56, 96)
		charts.W = w - side - chart.Gap
		facts = chart.Spot{X: charts.W + chart.Gap, Y: top, W: side, H: rest}
	default:
		n := min(len(p.factRows(w)), max(rest*2/5, rest-1-3*(chart.LeastH+1)))
		if n >= leastFacts && rest-n-1 >= chart.LeastH {
			charts.H = rest - n - 1
			facts = chart.Spot{X: 0, Y: top + charts.H + 1, W: w, H: n}
		}
	}
	return charts, facts
}

// GridRoom is where the grid of charts lies in a body of w × h cells.
func (p Page) GridRoom(w, h int) chart.Spot {
	if p.whole {
		return chart.Spot{}
	}
	charts, _ := p.plan(w, h)
	return charts
}

// above is how many rows stand above: what is compared, and an empty one.
func (p Page) above(w int) int { return 1 + len(p.runNumbers(w)) + 1 }

// Draw is runs over each other, and what differs between them.
func (p Page) Draw(w, h int) []string {
	v, s := p.Comparison, p.Styles
	out := append(append([]string{p.head(w, h)}, p.runNumbers(w)...), "")
	switch {
	case v.fault != nil:
		return append(append(out, sign.Fault(p.Look, *v.fault, w)...), "", s.Key.Of("r")+" reads them again")
	case !v.read:
		return append(out, s.Dim.Of(p.Spinner()+" looking at what differs, for "+text.Since(p.Now, v.since)))
	case v.whole:
		return append(out, p.Look.Scrolled(p.factRows(w), v.top, h-len(out))...)
	}
	charts, facts := p.plan(w, h)
	rows := p.ChartPage().Rows(p.Charts.Spots(charts.W, charts.H))
	if len(rows) == 0 {
		rows = p.noOverlays(charts.W)
	}
	if p.Charts.Full && charts.H >= chart.TableFrom && len(p.Charts.Shown()) > 0 {
		rows = append(append(rows, ""), p.ChartPage().Table(p.Charts.PickedGroup(), w)...)
	}
	if facts.H == 0 {
		return append(out, rows...)
	}
	table := p.factRows(facts.W)
	if facts.X > 0 {
		return append(out, text.Beside(chart.Gap, text.Block{W: charts.W, Lines: rows}, text.Block{W: facts.W, Lines: p.someFacts(table, facts.H)})...)
	}
	out = append(out, text.Exactly(rows, w, charts.H)...)
	return append(append(out, ""), p.someFacts(table, facts.H)...)
}

// someFacts are those that there is room for, and how to see all.
func (p Page) someFacts(rows []string, h int) []string {
	if len(rows) <= h {
		return rows
	}
	return append(append([]string(nil), rows[:h-1]...), p.Styles.Key.Of("d")+p.Styles.Dim.Of("  "+text.Plural(len(rows)-h+1, "more row")))
}

// noOverlays says why there are no charts.
func (p Page) noOverlays(w int) []string {
	v, s := p.Comparison, p.Styles
	switch {
	case p.Charts.Filter != "":
		return p.ChartPage().Empty(w)
	case v.busy:
		return []string{s.Dim.Of(p.Spinner() + " reading the curves")}
	}
	out := []string{}
	for _, l := range text.Wrap("No series is in two of these runs: there is nothing to lay over each other.", w) {
		out = append(out, s.Dim.Of(l))
	}
	return out
}

// head says what is compared, and how the charts are looked at.
func (p Page) head(w, h int) string {
	v, s := p.Comparison, p.Styles
	left := text.Plural(len(v.runs), "run")
	if groups, all := p.Charts.Shown(), p.Charts.Of.State.Groups(); len(all) > 0 {
		left += "  " + text.Plural(len(all), "chart")
		if f := p.Charts.Filter; f != "" {
			left = fmt.Sprintf("%s  %d of %s  ", text.Plural(len(v.runs), "run"), len(groups), text.Plural(len(all), "chart")) + s.Warn.Of("/"+text.Word(f))
		}
	}
	if text := v.unread(); text != "" {
		left += "  " + s.Dim.Of(text)
	}
	right := ""
	if g := p.Charts.PickedGroup(); g != nil && !v.whole {
		right = p.ChartPage().ViewText(session.AxisOf(g, p.Charts.Asked))
		charts, _ := p.plan(w, h)
		left += p.ChartPage().PageText(charts.W, charts.H)
	}
	return text.Spread(left, right, w)
}

// runNumbers say which number is which run.
func (p Page) runNumbers(w int) []string {
	v := p.Comparison
	var out, names []string
	wideName := 0
	for i, id := range v.runs {
		name := p.runSign(i) + " " + text.Word(id)
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
func (p Page) runSign(i int) string {
	color := p.Styles.Series[i%len(p.Styles.Series)]
	return lipgloss.NewStyle().Foreground(color).Bold(true).Render(fmt.Sprint(i + 1))
}

// factRows are the facts in rows of w cells. They do not change: what was drawn
// is drawn again.
func (p Page) factRows(w int) []string {
	if d := &p.drawn; d.rows == nil || d.w != w || d.dark != p.Styles.Dark {
		*d = factPage{w, p.Styles.Dark, p.drawFacts(w)}
	}
	return p.drawn.rows
}

// drawFacts sets the facts into rows of w cells: each value behind the number of
// its run, as many in a row as there is room for.
func (p Page) drawFacts(w int) []string {
	s, all := p.Styles, p.Comparison.list
	groupW, nameW := 0, 0
	for _, f := range all {
		groupW, nameW = max(groupW, text.Wide(f.group)+1), max(nameW, text.Wide(f.name)+2)
	}
	groupW = min(groupW, 9)
	nameW = min(nameW, max(w/3-groupW, 8))
	n := max(len(p.Comparison.facts.Runs), 1)
	room := max(w-groupW-nameW, 1)
	per := text.Clamp(room/leastFactW, 1, n)
	per = (n + (n+per-1)/per - 1) / ((n + per - 1) / per) // rows of the same length
	cw := min(room/per, mostFactW)
	var out []string
	if len(p.Comparison.facts.Differences) == 0 {
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
				row += p.factCell(cells[k], k, k == f.best, cw)
			}
			out = append(out, text.Cut(row, w))
			label = strings.Repeat(" ", groupW+nameW)
		}
	}
	for _, note := range p.Comparison.facts.Notes {
		for _, l := range text.Wrap(text.Word(note), w) {
			out = append(out, s.Dim.Of(l))
		}
	}
	return out
}

func (p Page) factCell(txt string, run int, best bool, w int) string {
	if best {
		return text.Fit(p.runSign(run)+" "+p.Styles.Good.Of(text.Cut(txt, w-5)+" ✓"), w)
	}
	return text.Fit(p.runSign(run)+" "+text.Cut(txt, max(w-3, 1)), w)
}
