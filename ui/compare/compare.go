// Package compare lays runs over each other: their charts, read series by series,
// and what differs between them.
package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/meaning"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// Records are where runs that are compared are read from.
type Records interface {
	// Compare says what differs between runs, and what they came to.
	Compare(runs []string) (history.Comparison, error)
	// Overlays are series of several runs, by their names.
	Overlays(runs, names []string) ([]history.Overlay, error)
}

// The messages that its commands end in.
type (
	// Compared is what differs between runs.
	Compared struct {
		gen   int
		facts history.Comparison
		err   error
	}
	// Overlaid is one series of the compared runs. The next is read when it
	// has come.
	Overlaid struct {
		gen    int
		curves []*session.Curve // run by run
		err    error
	}
	// Readied is what was made of the compared curves for another look at
	// them. Turn drops what is not wanted any more.
	Readied struct {
		gen, turn int
		how       manner
		all       []session.Prepared
	}
)

// Comparison is runs that lie over each other, and what differs between them.
// Their curves are those of a session of their own, so that charts are looked at
// here as everywhere.
type Comparison struct {
	Charts *chart.View
	from   Records
	gen    int // of the session
	runs   []string
	facts  history.Comparison
	read   bool
	busy   bool
	since  time.Time
	fault  *event.Fault

	wanted []string   // series that are still to be read
	series int        // how many there are to draw
	points int        // how many were read
	whole  bool       // the facts alone, all of them
	top    int        // how far they are scrolled
	Kept   chart.Kept // its charts as they were drawn last
	next   manner     // how the curves will be drawn
	turn   int        // counts what was asked to be made of them
	turned int        // the newest that is shown
	list   []fact     // the facts, made when they came
	drawn  factPage   // and as they were drawn last
}

// factPage is the facts drawn for a width and a theme.
type factPage struct {
	w    int
	dark bool
	rows []string
}

// mostPoints bounds the points of a comparison: a quarter of a gigabyte.
const mostPoints = 8_000_000

// New compares runs by the charts of a new session. Everything is read
// in the background, series by series.
func New(from Records, charts *chart.View, runs []string, now time.Time) (Comparison, tea.Cmd) {
	v := Comparison{Charts: charts, from: from, gen: charts.Of.Gen, runs: slices.Clone(runs), busy: true, since: now, Kept: chart.Kept{}}
	gen, ids := v.gen, v.runs
	return v, func() tea.Msg {
		facts, err := from.Compare(ids)
		return Compared{gen, facts, err}
	}
}

// Runs are the ids of what is compared.
func (v *Comparison) Runs() []string { return v.runs }

// Busy reports whether something is being read.
func (v *Comparison) Busy() bool { return v.busy }

// Known reports whether it is known what differs.
func (v *Comparison) Known() bool { return v.read }

// Whole reports whether the facts are shown alone.
func (v *Comparison) Whole() bool { return v.whole }

// ShowCharts shows the charts again, where the facts were shown alone.
func (v *Comparison) ShowCharts() { v.whole = false }

// ToggleFacts shows the facts alone, or the charts again.
func (v *Comparison) ToggleFacts() { v.whole, v.top = !v.whole, 0 }

// shown reports whether news is about the comparison that is shown.
func (v *Comparison) shown(gen int) bool {
	return v.Charts != nil && v.Charts.Of != nil && v.Charts.Of.Gen == gen && v.gen == gen
}

// TakeFacts takes what differs, and reads the first series.
func (v *Comparison) TakeFacts(msg Compared, now time.Time) tea.Cmd {
	if !v.shown(msg.gen) {
		return nil
	}
	if msg.err != nil {
		f := session.FaultOf("compare the runs", msg.err)
		v.fault, v.busy = &f, false
		return nil
	}
	v.facts, v.read = msg.facts, true
	v.list = factsOf(&v.facts, now)
	for _, c := range msg.facts.Metrics {
		have := 0
		for _, p := range c.Last {
			if p != nil {
				have++
			}
		}
		if have > 1 {
			v.wanted = append(v.wanted, c.Name)
		}
	}
	slices.SortStableFunc(v.wanted, func(a, b string) int { return meaning.Rank(a) - meaning.Rank(b) })
	v.series = len(v.wanted)
	return v.readOverlay()
}

// readOverlay reads the next series of all runs and makes curves of it.
func (v *Comparison) readOverlay() tea.Cmd {
	v.busy = len(v.wanted) > 0 && v.points < mostPoints
	if !v.busy {
		return nil
	}
	name := v.wanted[0]
	v.wanted = v.wanted[1:]
	gen, from, runs := v.gen, v.from, v.facts.Runs
	asked, factor := v.Charts.Asked, v.Charts.FactorOf()
	return func() tea.Msg {
		curves, err := overlay(from, runs, name)
		for _, p := range session.Prepare(session.Unprepared([][]*session.Curve{curves}, asked), factor) {
			p.Keep()
		}
		return Overlaid{gen, curves, err}
	}
}

// overlay is a series as a curve for each run; empty for one that does not
// have it. Time is counted from the start of each.
func overlay(from Records, runs []history.ComparedRun, name string) ([]*session.Curve, error) {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	all, err := from.Overlays(ids, []string{name})
	if err != nil {
		return nil, err
	}
	curves := make([]*session.Curve, len(runs))
	for i := range runs {
		curves[i] = session.NewCurve(text.Word(name))
		curves[i].Run = i + 1
	}
	for _, o := range all {
		for _, l := range o.Lines {
			i := slices.Index(ids, l.Run)
			if o.Name != name || i < 0 {
				continue
			}
			for _, p := range l.Points {
				curves[i].Add(p, runs[i].Started)
			}
		}
	}
	return curves, nil
}

// TakeOverlay takes a series, and reads the next.
func (v *Comparison) TakeOverlay(msg Overlaid) tea.Cmd {
	if !v.shown(msg.gen) {
		return nil
	}
	if msg.err != nil {
		f := session.FaultOf("read the curves of the runs", msg.err)
		v.fault, v.busy = &f, false
		return nil
	}
	for _, c := range msg.curves {
		v.points += c.N
	}
	v.Charts.Of.State.AddGroup(msg.curves)
	return v.readOverlay()
}

// Text is the comparison as a table with tabs, every value whole.
func (v *Comparison) Text() string {
	var b strings.Builder
	b.WriteString("what")
	for _, r := range v.facts.Runs {
		b.WriteString("\t" + text.Word(r.ID))
	}
	for _, f := range v.list {
		b.WriteString("\n" + strings.TrimSpace(f.group+" "+f.name) + "\t" + strings.Join(f.cells, "\t"))
	}
	return b.String()
}

// unread says which charts are missing, and why.
func (v *Comparison) unread() string {
	switch {
	case !v.read || len(v.wanted) == 0:
		return ""
	case v.busy:
		return fmt.Sprintf("reading %d of %d", v.series-len(v.wanted), v.series)
	case v.fault != nil:
		return ""
	}
	return fmt.Sprintf("%s of them not drawn: these runs have more than %s points; compare fewer", text.Count(int64(len(v.wanted))), text.Count(mostPoints))
}
