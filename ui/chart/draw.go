package chart

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/ui/meaning"
	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// DrawRow draws the picked curves, and others beside them where there is
// room.
func (p Page) DrawRow(w, h int) []string {
	spots := p.Row(w, h)
	if len(spots) == 0 {
		return text.Exactly(p.Empty(w), w, h)
	}
	var blocks []text.Block
	for i, s := range spots {
		blocks = append(blocks, text.Block{W: s.W, Lines: p.one(s.group, s.W, s.H, i == 0)})
	}
	return text.Beside(Gap, blocks...)
}

// Empty says why there are no charts, and what would make some.
func (p Page) Empty(w int) []string {
	s := p.Styles
	if f := p.View.Filter; f != "" && len(p.Of.State.Curves) > 0 {
		return []string{"No chart matches " + s.Strong.Of(text.Word(f)) + ".", "", s.Key.Of("esc") + "  shows all of them again"}
	}
	why := "no values yet"
	if p.Of.State.Ended != nil {
		why = "no values were found"
	}
	return append([]string{s.Dim.Of("curves"), ""}, text.WrapIn(s.Dim, why+"; they are read from lines like  loss: 4.61  or  step=20 loss=4.61", w)...)
}

// one is the curves of one quantity, their values above. The first chart
// of a screen says how all are looked at.
func (p Page) one(group []*session.Curve, w, h int, first bool) []string {
	a := session.AxisOf(group, p.View.Asked)
	c := p.plot(group, a)
	view := ""
	if first {
		view = p.ViewText(a)
	}
	title := p.title(group, a, view, w)
	return append([]string{title}, strings.Split(c.Draw(max(w, 1), max(h-1, 1)), "\n")...)
}

// plot is the chart of one quantity.
func (p Page) plot(group []*session.Curve, a session.Axis) plot.Chart {
	s, v := p.Styles, p.View
	c := plot.Chart{ASCII: p.ASCII, NoLegend: true, XLabel: a.String(), Whole: a != session.AxisTime, AxisStyle: s.Axis, RuleStyle: s.Rule, GapStyle: s.Gap,
		Empty: "no value that is a number", LogY: v.logY, Ends: true, FormatY: text.Number}
	if a == session.AxisTime {
		c.Seconds, c.FormatX = true, a.Number
	}
	if from, to, lo, hi, ok := p.View.Window(a); ok && (a != session.AxisOrder || v.windows[a].on) && hi > lo {
		c.XMin, c.XMax = from, to
	}
	if x, ok := p.View.readAt(a, group); ok {
		c.Cursor = &x
	}
	axes := p.valueAxes(group)
	if session.IsRate(group[0].Name) && !c.LogY { // how fast: only from zero up does a dip look its size
		for i, cv := range group {
			if _, hi, ok := cv.Points.Range(); ok && hi > 0 && axes[i] == 0 {
				c.YMax = max(c.YMax, hi*1.15)
			}
		}
	}
	for i, cv := range group {
		for _, l := range p.linesOf(cv, a, i) {
			l.Axis = axes[i]
			c.Series = append(c.Series, l)
		}
	}
	return c
}

// linesOf is one curve, or its average with the values themselves behind it.
func (p Page) linesOf(cv *session.Curve, a session.Axis, i int) []plot.Line {
	color := p.Styles.Series[i%len(p.Styles.Series)]
	line := plot.Line{Name: cv.Name, Series: cv.By(a), Style: lipgloss.NewStyle().Foreground(color)}
	if of := cv.Recorded(); of.Has(a) && of.N > 1 {
		if at, ok := of.Best(); ok {
			line.Best = &plot.Mark{X: of.X(a, at), Y: of.Value(at)}
		}
	}
	f := p.View.factorFor(cv, a)
	if b := p.View.bandOf(cv); b != nil {
		if f > 0 {
			line.Series, line.Values = cv.Smoothed(a, f), cv.By(a)
		}
		return []plot.Line{p.bandLine(b, a, i), line}
	}
	if f == 0 {
		return []plot.Line{line}
	}
	raw := line
	raw.Behind, raw.Best = true, nil
	raw.Style = lipgloss.NewStyle().Foreground(p.Styles.Behind[i%len(p.Styles.Behind)])
	line.Series, line.Values = cv.Smoothed(a, f), raw.Series
	return []plot.Line{raw, line}
}

const (
	// valueRoom is what a curve's number and value need in a title beside its name.
	valueRoom = 14
	// leastName is how much of a name is always seen.
	leastName = 6
)

// title names the curves with their newest values, or with those at the
// cursor; at the right what is best, as far as there is room. A warning has room
// before the names of many curves.
func (p Page) title(group []*session.Curve, a session.Axis, view string, w int) string {
	left := p.namesText(group, a, w)
	if text.Wide(left) > w { // rather the ends of the names than no values
		left = p.namesText(group, a, max(w/len(group)-valueRoom, leastName))
	}
	right := ""
	add := func(forms ...string) (added bool) { // the longest that fits
		for _, txt := range forms {
			sep := ""
			if right != "" {
				sep = "  "
			}
			if txt != "" && text.Wide(left)+2+text.Wide(txt+sep+right) <= w {
				right = txt + sep + right
				return true
			}
		}
		return false
	}
	warn := func(forms ...string) {
		if len(forms) == 0 || forms[0] == "" || add(forms...) {
			return
		}
		short := forms[len(forms)-1]
		if room := w - 4 - text.Wide(short+right); short != "" && room >= 8 {
			left = text.Cut(left, room)
			add(short)
		}
	}
	add(p.placeText(group, a))
	warn(p.weakText(group)...)
	warn(p.ranksText(group)...)
	warn(p.gapText(group, " NaN or inf"), p.gapText(group, ""))
	warn(p.scaleText(group)...)
	add(p.lightText(group, a)...)
	add(p.bestText(group, a)...)
	add(view)
	if right == "" {
		return text.Cut(left, w)
	}
	return text.Spread(left, right, w)
}

// namesText is the curves with their values. What they all are of stands before them,
// where they are of several runs or ranks. Of a name at most so many cells are seen:
// its end, where the quantity stands.
func (p Page) namesText(group []*session.Curve, a session.Axis, most int) string {
	var names []string
	if group[0].Run > 0 {
		names = append(names, tailOf(group[0].Name, most))
	}
	axes, of := p.valueAxes(group), ""
	for i, cv := range group {
		if cv.Rank != "" && cv.Of != of {
			of = cv.Of
			names = append(names, tailOf(of, most))
		}
		names = append(names, p.curveTitle(group, i, cv, a, most)+p.sideText(axes, i))
	}
	return strings.Join(names, "   ")
}

// tailOf is the end of a name that has at most so many cells.
func tailOf(name string, most int) string {
	if w := text.Wide(name); w > most {
		return ansi.TruncateLeft(name, w-most+1, "…")
	}
	return name
}

// curveTitle is a curve's sign, name and value. With several the sign is the
// number that stands in the curve: colour is not all that tells them apart.
func (p Page) curveTitle(group []*session.Curve, i int, cv *session.Curve, a session.Axis, most int) string {
	sign := "━"
	if p.ASCII {
		sign = "*" // as the curve is drawn
	}
	if len(group) > 1 {
		sign = fmt.Sprint(i + 1)
	}
	style := lipgloss.NewStyle().Foreground(p.Styles.Series[i%len(p.Styles.Series)]).Bold(true)
	value := cv.Last
	if _, y, ok := p.View.read(cv, a, group); ok {
		value = y
	}
	txt := style.Render(sign) + " "
	switch {
	case cv.Rank != "":
		txt += cv.Rank + " "
	case cv.Run == 0: // of runs over each other the name stands before all
		txt += tailOf(cv.Name, most) + " "
	}
	txt += p.Styles.Strong.Of(text.OrDash(cv.N > 0, text.Number(value)))
	if p.View.bandOf(cv) != nil {
		txt += p.Styles.Dim.Of(" median")
	}
	if f := p.View.factorFor(cv, a); f > 0 && cv.Run == 0 {
		s := cv.Smoothed(a, f)
		_, y, ok := s.Last()
		if at, on := p.View.readAt(a, group); on {
			if i, some := s.Near(at); some {
				_, y = s.At(i)
			}
		}
		if ok {
			txt += p.Styles.Dim.Of(" ~" + text.Number(y))
		}
	}
	return txt
}

// placeText says where the values in the title are from.
func (p Page) placeText(group []*session.Curve, a session.Axis) string {
	x, _, ok := p.View.read(longest(group), a, group)
	if !ok {
		return ""
	}
	return p.Styles.Accent.Of("at " + a.String() + " " + a.Number(x))
}

func (p Page) gapText(group []*session.Curve, what string) string {
	n := 0
	for _, c := range group {
		n += c.Recorded().Points.Gaps()
	}
	if n == 0 {
		return ""
	}
	return p.Styles.Warn.Of("× " + text.Count(int64(n)) + what)
}

// bestText is the best value of the curve that is judged, which is that of the
// validation where there is one: in several lengths, the longest first. Which
// way is better is always said.
func (p Page) bestText(group []*session.Curve, a session.Axis) []string {
	judge := group[len(group)-1]
	for _, c := range group {
		if goal.Of(c.Name) == goal.None {
			return nil
		}
		if c.N > 0 && meaning.HeldOut(c.Name) != "" {
			judge = c
		}
	}
	if judge.Run > 0 || judge.Rank != "" {
		judge = BestOf(group)
	}
	number := slices.Index(group, judge) + 1
	judge = judge.Recorded() // what is on record, and in every table
	at, ok := judge.Best()
	if !ok || judge.N < 2 || !judge.Has(a) {
		return nil
	}
	way := goal.Of(judge.Name)
	dim, rule, value := p.Styles.Dim.Of, "◆ "+Extreme(way)+" ", text.Number(judge.Value(at))
	where := " at " + a.Number(judge.X(a, at))
	out := []string{dim(rule + value + where), dim(rule + value)}
	if judge.Run > 0 {
		of := fmt.Sprintf(" in run %d", judge.Run)
		return []string{dim(rule + value + of + where), dim(rule + value + of), dim(fmt.Sprintf("◆ %s %s in %d", way, value, judge.Run))}
	}
	if judge.Rank != "" {
		of := fmt.Sprintf(" of %s", text.Word(judge.Rank))
		return []string{dim(rule + value + of + where), dim(rule + value + of)}
	}
	if len(group) > 1 {
		of := fmt.Sprintf(" in %d", number)
		short, shortest := rule+value+of+where, rule+value+of
		if data := meaning.HeldOut(judge.Name); data != "" {
			short, shortest = rule+data+" "+value+where, rule+data+" "+value
		}
		out = append([]string{dim(rule + judge.Name + " " + value + where), dim(short), dim(shortest)}, out...)
	}
	return append(out, dim("◆ "+string(way)+" "+value))
}

// BestOf is the curve with the best value, of several of one name.
func BestOf(group []*session.Curve) *session.Curve {
	best := group[0]
	for _, c := range group {
		at, ok := c.Best()
		if !ok {
			continue
		}
		was, some := best.Best()
		if !some || goal.Of(c.Name).Better(c.Value(at), best.Value(was)) {
			best = c
		}
	}
	return best
}

// curveName is what a table calls a curve: by its run, where all are of one
// series.
func (p Page) curveName(c *session.Curve) string {
	if c.Run > 0 && c.Run <= len(p.Names) {
		return text.Word(p.Names[c.Run-1])
	}
	return p.View.nameOf(c)
}

// nameOf is what a curve is called where no more is said of it.
func (v *View) nameOf(c *session.Curve) string {
	if v.bandOf(c) != nil {
		return c.Name + ", median"
	}
	return c.Name
}

// ViewText is how all charts are looked at; empty when in no way of note.
func (p Page) ViewText(a session.Axis) string {
	v, s := p.View, p.Styles
	var parts []string
	if v.Asked != session.AxisAuto {
		parts = append(parts, "by "+v.Asked.String())
	}
	if v.logY {
		parts = append(parts, "log axis")
	}
	if f := v.Factor(); f > 0 {
		parts = append(parts, fmt.Sprintf("smoothed %g", f))
	}
	text := s.Dim.Of(strings.Join(parts, "  "))
	if v.windows[a].on {
		from, to, _, _, _ := p.View.Window(a)
		part := a.Number(from) + "–" + a.Number(to)
		state := s.Good.Of("▼ live")
		if v.windows[a].held {
			state = s.Warn.Of("held")
		}
		text = strings.TrimLeft(text+"  ", " ") + part + " " + state
	}
	return text
}

// Extreme is how the best value of a quantity is called.
func Extreme(g goal.Goal) string {
	return map[goal.Goal]string{goal.Least: "lowest", goal.Most: "highest"}[g]
}
