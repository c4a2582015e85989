package chart

import (
	"fmt"

	"charm.land/lipgloss/v2"

	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/ranks"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// mostSingly bounds the curves of a chart that shows ranks singly: each has a number
// of one digit.
const mostSingly = 9

// groups are the curves of each chart. Where the ranks differ in a series, the middle
// of them stands for it, or some of them do, the farthest first.
func (v *View) groups() [][]*session.Curve {
	all := v.Of.State.Groups()
	if v.Ranks == nil {
		return all
	}
	var out [][]*session.Curve
	for i, g := range all {
		if with := v.withRanks(g); with != nil && out == nil {
			out = append(append(out, all[:i]...), with)
		} else if with != nil {
			out = append(out, with)
		} else if out != nil {
			out = append(out, g)
		}
	}
	if out == nil {
		out = all
	}
	if v.Weak {
		out = append(out[:len(out):len(out)], v.weak()...)
	}
	return out
}

// withRanks is a group with what stands for the series in which the ranks differ; nil
// where they differ in none, and by time: when others printed is not kept.
func (v *View) withRanks(group []*session.Curve) []*session.Curve {
	if session.AxisOf(group, v.Asked) == session.AxisTime {
		return nil
	}
	var out []*session.Curve
	for i, c := range group {
		b := v.Ranks.Of(c.Name)
		switch {
		case b == nil && out != nil:
			out = append(out, c)
		case b == nil:
		default:
			if out == nil {
				out = append(out, group[:i]...)
			}
			b.Median.Record = c
			if !v.Singly {
				out = append(out, b.Median)
				continue
			}
			names, curves := b.Farthest()
			for k, of := range curves[:min(len(curves), max(mostSingly/len(group), 2))] {
				if of.Rank == "" {
					of.Name, of.Rank, of.Of = c.Name+" "+names[k], names[k], c.Name
				}
				out = append(out, of)
			}
		}
	}
	return out
}

// weak are the curves of names that wait to be known as metrics.
func (v *View) weak() (groups [][]*session.Curve) {
	for _, w := range v.Ranks.Waiting() {
		if w.Curve.N > 0 {
			groups = append(groups, []*session.Curve{w.Curve})
		}
	}
	return groups
}

// bandOf is the band of the ranks that a curve is the middle of.
func (v *View) bandOf(c *session.Curve) *ranks.Band {
	if c.Record == nil {
		return nil
	}
	if b := v.Ranks.Of(c.Record.Name); b != nil && b.Median == c {
		return b
	}
	return nil
}

// bandLine is the band around a curve: how far the ranks are apart.
func (p Page) bandLine(b *ranks.Band, a session.Axis, i int) plot.Line {
	return plot.Line{Behind: true, Low: b.Low.By(a), High: b.High.By(a),
		Style: lipgloss.NewStyle().Foreground(p.Styles.Behind[i%len(p.Styles.Behind)])}
}

// ranksText says that the ranks differ, and which is farthest from the others.
func (p Page) ranksText(group []*session.Curve) []string {
	warn := p.Styles.Warn.Of
	if p.View.Singly {
		for _, c := range group {
			if c.Rank != "" {
				return []string{warn("ranks singly, the farthest first; i: together"), warn("ranks singly"), ""} // their names say it too
			}
		}
		return nil
	}
	for _, c := range group {
		b := p.View.Ranks.Of(c.Recorded().Name)
		if b == nil || c.Run > 0 {
			continue
		}
		names, _ := b.Farthest()
		what := "most " + text.Word(names[0])
		if b.Lost() {
			what = text.Word(names[0]) + " has NaN"
		}
		said := fmt.Sprintf("%d ranks differ, %s", b.Count(), what)
		if b.Count() == 2 && !b.Lost() { // neither is the one that is away
			said = fmt.Sprintf("%s and %s differ", text.Word(names[0]), text.Word(names[1]))
		}
		forms := []string{warn(said), warn(fmt.Sprintf("%d ranks differ", b.Count())), warn("ranks differ")}
		if p.View.bandOf(c) != nil {
			forms = append([]string{warn(said + "; i: each")}, forms...)
		}
		return forms
	}
	return nil
}

// weakText is why a curve's name waits to be known as a metric.
func (p Page) weakText(group []*session.Curve) []string {
	for _, w := range p.View.Ranks.Waiting() {
		if w.Curve == group[0] {
			return []string{p.Styles.Warn.Of("? " + text.Word(w.Why)), p.Styles.Warn.Of("? in doubt")}
		}
	}
	return nil
}

// waitingText says at the head of the charts that names wait.
func (p Page) waitingText() string {
	n := len(p.View.Ranks.Waiting())
	switch {
	case p.View.Ranks.Full() && !p.View.Full:
		return p.Styles.Warn.Of("  ranks are compared no further: too many points")
	case n == 0 || p.View.Full:
		return ""
	case p.View.Weak:
		return p.Styles.Dim.Of("  with names in doubt; d hides them")
	}
	return p.Styles.Dim.Of(fmt.Sprintf("  %s in doubt; d: why", text.Plural(n, "name")))
}

// waitingList are the names that wait, each with its reason, in so many rows.
func (p Page) waitingList(w, rows int) (out []string) {
	all := p.View.Ranks.Waiting()
	if !p.View.Weak || p.View.Full || len(all) == 0 || rows < 2 {
		return nil
	}
	for i, wait := range all {
		if len(out) == rows-1 && i < len(all)-1 {
			out = append(out, p.Styles.Dim.Of(fmt.Sprintf("and %d more; dlwb metrics --why names them", len(all)-i)))
			break
		}
		out = append(out, text.Cut(p.Styles.Warn.Of("? ")+text.Word(wait.Name)+"  "+p.Styles.Dim.Of(text.Word(wait.Why)), w))
	}
	return append(out, "")
}
