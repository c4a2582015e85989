package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// compareView is what runs that lie over each other have beside their curves.
// The curves are those of a session of their own, so that charts are looked at
// here as everywhere.
type compareView struct {
	gen   int
	runs  []string
	facts history.Comparison
	read  bool
	busy  bool
	since time.Time
	fault *event.Fault

	wanted []string // series that are still to be read
	series int      // how many there are to draw
	points int      // how many were read
	whole  bool     // the facts alone, all of them
	charts chart.Kept
	next   manner   // how the curves will be drawn
	turn   int      // counts what was asked to be made of them
	turned int      // the newest that is shown
	list   []fact   // the facts, made when they came
	drawn  factPage // and as they were drawn last
}

// factPage is the facts drawn for a width and a theme.
type factPage struct {
	w    int
	dark bool
	rows []string
}

// mostPoints bounds the points of a comparison: a quarter of a gigabyte.
const mostPoints = 8_000_000

func (m *Model) compareRuns() tea.Cmd { return m.compareThese(m.runs.Marked()) }

// compareThese shows runs over each other. Everything is read in the
// background, series by series.
func (m *Model) compareThese(runs []string) tea.Cmd {
	m.openSession("")
	m.ses.Past, m.ses.Follow = true, false
	m.comp = compareView{gen: m.gens, runs: slices.Clone(runs), busy: true, since: m.now, charts: chart.Kept{}}
	m.goTo(atCompare)
	gen, bench, ids := m.gens, m.bench, m.comp.runs
	return func() tea.Msg {
		facts, err := bench.Compare(ids)
		return compared{gen, facts, err}
	}
}

// comparing reports whether news is about the comparison that is shown.
func (m *Model) comparing(gen int) bool { return m.ses != nil && m.ses.Gen == gen && m.comp.gen == gen }

func (m *Model) takeComparison(msg compared) tea.Cmd {
	if !m.comparing(msg.gen) {
		return nil
	}
	v := &m.comp
	if msg.err != nil {
		f := session.FaultOf("compare the runs", msg.err)
		v.fault, v.busy = &f, false
		return nil
	}
	v.facts, v.read = msg.facts, true
	v.list = m.factsOf(&v.facts)
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
	slices.SortStableFunc(v.wanted, func(a, b string) int { return session.ChartRank(a) - session.ChartRank(b) })
	v.series = len(v.wanted)
	return m.readOverlay()
}

// readOverlay reads the next series of all runs and makes curves of it.
func (m *Model) readOverlay() tea.Cmd {
	v := &m.comp
	v.busy = len(v.wanted) > 0 && v.points < mostPoints
	if !v.busy {
		return nil
	}
	name := v.wanted[0]
	v.wanted = v.wanted[1:]
	gen, bench, runs := v.gen, m.bench, v.facts.Runs
	asked, factor := m.charts.Asked, m.charts.Factor()
	return func() tea.Msg {
		curves, err := overlay(bench, runs, name)
		for _, p := range session.Prepare(session.Unprepared([][]*session.Curve{curves}, asked), factor) {
			p.Keep()
		}
		return overlaid{gen, curves, err}
	}
}

// overlay is a series as a curve for each run; empty for one that does not
// have it. Time is counted from the start of each.
func overlay(bench Bench, runs []history.ComparedRun, name string) ([]*session.Curve, error) {
	ids := make([]string, len(runs))
	for i, r := range runs {
		ids[i] = r.ID
	}
	all, err := bench.Overlays(ids, []string{name})
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

func (m *Model) takeOverlay(msg overlaid) tea.Cmd {
	if !m.comparing(msg.gen) {
		return nil
	}
	v, st := &m.comp, m.ses.State
	if msg.err != nil {
		f := session.FaultOf("read the curves of the runs", msg.err)
		v.fault, v.busy = &f, false
		return nil
	}
	for _, c := range msg.curves {
		v.points += c.N
	}
	st.AddGroup(msg.curves)
	return m.readOverlay()
}

func (m *Model) noComparison() string {
	if !m.comp.read {
		return "what differs is not known yet"
	}
	return ""
}

func (m *Model) toggleFacts() tea.Cmd {
	m.comp.whole = !m.comp.whole
	m.scroll[atCompare] = 0
	return nil
}

// compareBack goes from the facts back to the charts, or back in these.
func (m *Model) compareBack() (tea.Cmd, bool) {
	if m.ses == nil || !m.comp.whole {
		return m.chartsBack()
	}
	m.comp.whole = false
	return nil, true
}

// moveCompare scrolls the facts, or goes through the charts.
func (m *Model) moveCompare(d int) {
	if !m.comp.whole {
		m.moveCharts(d)
		return
	}
	rows := len(m.factRows(m.bodyWidth()))
	m.scroll[atCompare] = text.Clamp(m.scroll[atCompare]+d, 0, max(rows-m.factRoom(), 0))
}

// factRoom is how many rows the facts have when they are alone.
func (m *Model) factRoom() int { return max(m.bodyHeight()-m.compareTop(m.bodyWidth()), 1) }

// compareText is the comparison as a table with tabs, every value whole.
func (m *Model) compareText() string {
	var b strings.Builder
	c := &m.comp.facts
	b.WriteString("what")
	for _, r := range c.Runs {
		b.WriteString("\t" + text.Word(r.ID))
	}
	for _, f := range m.comp.list {
		b.WriteString("\n" + strings.TrimSpace(f.group+" "+f.name) + "\t" + strings.Join(f.cells, "\t"))
	}
	return b.String()
}

// fact is one row of the comparison: a cell for each run.
type fact struct {
	group, name string
	cells       []string
	best        int // the place of what is best; -1 for none
}

// factsOf are what differs, what the series came to, and how the runs went.
func (m *Model) factsOf(c *history.Comparison) []fact {
	var out []fact
	for _, d := range c.Differences {
		cells := text.Words(d.Values)
		for i := range cells {
			cells[i] = text.OrDash(cells[i] != "", cells[i])
		}
		out = append(out, fact{text.Word(d.Group), text.Word(d.Key), cells, -1})
	}
	for _, s := range c.Metrics {
		out = append(out, metricFacts(s)...)
	}
	row := func(name string, cell func(r *history.ComparedRun) string) {
		f := fact{group: "run", name: name, best: -1}
		some := false
		for i := range c.Runs {
			txt := cell(&c.Runs[i])
			some = some || txt != ""
			f.cells = append(f.cells, text.OrDash(txt != "", txt))
		}
		if some {
			out = append(out, f)
		}
	}
	row("ended", func(r *history.ComparedRun) string {
		if r.Verdict == "" {
			return "running"
		}
		return text.Word(string(r.Verdict))
	})
	row("started", func(r *history.ComparedRun) string { return units.Ago(m.now, r.Started) })
	row("took", func(r *history.ComparedRun) string { return units.Seconds(r.Duration) })
	row("cost", func(r *history.ComparedRun) string { return units.USD(r.Cost) })
	row("note", func(r *history.ComparedRun) string { return text.Word(r.Note) })
	return out
}

// metricFacts are the last values of a series, and the best where one is.
func metricFacts(s history.ComparedMetric) []fact {
	last := fact{group: "last", name: text.Word(s.Name), best: -1}
	best := fact{group: chart.Extreme(s.Goal), name: last.name, best: s.Winner}
	for i := range s.Last {
		l, b := "-", "-"
		if p := s.Last[i]; p != nil {
			l = text.Number(p.Value)
		}
		if i < len(s.Best) && s.Best[i] != nil {
			b = text.Number(s.Best[i].Value)
		}
		last.cells, best.cells = append(last.cells, l), append(best.cells, b)
	}
	if s.Goal == metrics.NoGoal {
		return []fact{last}
	}
	return []fact{last, best}
}

// unread says which charts are missing, and why.
func (v *compareView) unread() string {
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
