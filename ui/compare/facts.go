package compare

import (
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/history"
)

// fact is one row of the comparison: a cell for each run.
type fact struct {
	group, name string
	cells       []string
	best        int // the place of what is best; -1 for none
}

// factsOf are what differs, what the series came to, and how the runs went.
func factsOf(c *history.Comparison, now time.Time) []fact {
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
	row("started", func(r *history.ComparedRun) string { return units.Ago(now, r.Started) })
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
	if s.Goal == goal.None {
		return []fact{last}
	}
	return []fact{last, best}
}
