package history

import (
	"fmt"
	"io"
	"slices"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/export"
)

// SeriesInfo is a series of a run as lists show it.
type SeriesInfo struct {
	Name  string        `json:"name"`
	Split string        `json:"split"`
	Count int64         `json:"points"`
	First metrics.Point `json:"first"`
	Last  metrics.Point `json:"last"`
	// Best is the best value; null where no way is better, or none is a number.
	Best  *metrics.Point `json:"best"`
	Goal  goal.Goal      `json:"goal"`   // "min" or "max": which way is better; empty: neither
	Shown string         `json:"source"` // where its points are from: "stdout" or a file
	// Sources are all that tell it; of several, one is shown.
	Sources []SeriesSource `json:"sources"`
}

// SeriesSource is one place that a series is told in.
type SeriesSource struct {
	Source string `json:"source"`
	Format string `json:"format"`
	Count  int64  `json:"points"`
	Shown  string `json:"shown"` // "all", "no", or "beyond step 120"
}

// Series lists the series of a run: what was printed, then file by file, those of
// one source in the order in which they appeared in it.
func (h *History) Series(run string) ([]SeriesInfo, error) {
	curves, err := h.curves(run)
	infos := make([]SeriesInfo, 0, len(curves))
	for _, c := range curves {
		info, err := h.seriesInfo(c)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, err
}

func (h *History) seriesInfo(c curve) (SeriesInfo, error) {
	i := SeriesInfo{Name: c.name, Split: metrics.Split(c.name), Goal: goal.Of(c.name), Shown: c.main.Source}
	e, err := h.endsOf(c, i.Goal)
	if err != nil {
		return i, err
	}
	i.Count, i.First, i.Last, i.Best = e.count, e.first, e.last, e.best
	for _, v := range c.sources {
		s := SeriesSource{Source: v.Source, Format: v.Format, Count: v.Count, Shown: "no"}
		switch {
		case v.ID == c.main.ID:
			s.Shown = "all"
		case c.tail != nil && v.ID == c.tail.ID:
			s.Shown = fmt.Sprintf("beyond step %d", stepOf(c.main.Last))
		}
		i.Sources = append(i.Sources, s)
	}
	return i, nil
}

// best is the best point of a curve; nil where no way is better, or none is a
// number.
func (h *History) best(c curve, way goal.Goal) (best *store.Point, err error) {
	if way == goal.None {
		return nil, nil
	}
	parts, from := []store.Series{c.main}, []int64{0}
	if c.tail != nil {
		parts, from = append(parts, *c.tail), append(from, c.tailAt)
	}
	for i, v := range parts {
		p, greatest, ok, err := h.db.ExtremesFrom(v, from[i])
		if err != nil {
			return nil, err
		}
		if way == goal.Most {
			p = greatest
		}
		if ok && (best == nil || way.Better(p.Value, best.Value)) {
			best = &p
		}
	}
	return best, nil
}

// named is the curve that is meant by a name: of what is shown, of a series in it
// ("train/loss" in loss), or as a training prints it (val_loss).
func named(curves []curve, name string) (curve, bool) {
	for _, wanted := range []string{name, metrics.ShownAs(name)} {
		for _, c := range curves {
			if c.name == wanted {
				return c, true
			}
		}
		for _, c := range curves {
			if slices.ContainsFunc(c.sources, func(v store.Series) bool { return v.Name == wanted }) {
				return c, true
			}
		}
	}
	return curve{}, false
}

// Points are the points of one series of a run, by a name that named knows; an
// error when there is none of that name.
func (h *History) Points(run, name string) ([]metrics.Point, error) {
	curves, err := h.curves(run)
	if err != nil {
		return nil, err
	}
	if c, ok := named(curves, name); ok {
		return h.shown(c)
	}
	var there []string
	for _, c := range curves {
		there = append(there, c.name)
	}
	return nil, &event.Fault{What: fmt.Sprintf("find the series %q of run %s", name, run), Node: -1, Why: "there is none of that name",
		Next: oneOf("series", there, "the run has told none")}
}

// Document is all series of a run with their points, as a file of them would be.
func (h *History) Document(run string) (*metrics.Document, error) {
	r, err := h.records.Run(run)
	if err != nil {
		return nil, err
	}
	curves, err := h.curves(run)
	if err != nil {
		return nil, err
	}
	doc := &metrics.Document{Format: "run", Progress: r.Progress}
	for _, c := range curves {
		points, err := h.shown(c)
		if err != nil {
			return nil, err
		}
		doc.Set.Add(points...)
	}
	return doc, nil
}

// Export writes the series of a run in one of export.Formats.
func (h *History) Export(run, format string, to io.Writer) error {
	curves, err := h.curves(run)
	if err != nil {
		return err
	}
	const some = 20_000
	var rows []metrics.Point
	from := int64(0)
	next := func() (export.Row, error) {
		for len(rows) == 0 {
			if len(curves) == 0 {
				return export.Row{}, io.EOF
			}
			c := curves[0]
			if rows, err = h.curveBlock(c, from, some); err != nil || len(rows) == 0 {
				curves, from = curves[1:], 0
				if err != nil {
					return export.Row{}, err
				}
				continue
			}
			from += int64(len(rows))
		}
		p := rows[0]
		rows = rows[1:]
		source := p.Source
		if source == "" {
			source = store.Stdout
		}
		return export.Row{Series: p.Name, Split: metrics.Split(p.Name), Source: source, Ordinal: p.Ordinal,
			Step: p.Step, Epoch: p.Epoch, Time: p.Time, Value: p.Value, Axis: p.X.String()}, nil
	}
	return export.Write(to, format, next)
}

// curveBlock are at most so many points of a curve from a place on; all of them
// where a point falls back, because any later one may replace it.
func (h *History) curveBlock(c curve, from int64, most int) ([]metrics.Point, error) {
	switch {
	case c.falls() && from == 0:
		return h.shown(c)
	case c.falls() || from >= c.count():
		return nil, nil
	}
	if from < c.main.Count {
		rows, err := h.db.SeriesPoints(c.main, from, int(min(int64(most), c.main.Count-from)))
		return appendPoints(nil, c.name, rows, 0), err
	}
	at := c.tailAt + from - c.main.Count
	rows, err := h.db.SeriesPoints(*c.tail, at, int(min(int64(most), c.tail.Count-at)))
	return appendPoints(nil, c.name, rows, c.main.Count-c.tailAt), err
}

// Overlay is one series as several runs have it.
type Overlay struct {
	Name  string        `json:"name"`
	Goal  goal.Goal     `json:"goal"`
	Lines []OverlayLine `json:"lines"` // of the runs that have it, in the order asked for
}

// OverlayLine is a series of one run.
type OverlayLine struct {
	Run    string          `json:"run"`
	Points []metrics.Point `json:"points"`
}

// Overlays puts the series of several runs over each other, those of the given
// names, or all that at least two of them have, in the order of the first.
func (h *History) Overlays(runs, names []string) ([]Overlay, error) {
	var all []Overlay
	at := map[string]int{}
	for _, run := range runs {
		curves, err := h.curves(run)
		if err != nil {
			return nil, err
		}
		for _, c := range curves {
			if len(names) > 0 && !slices.Contains(names, c.name) {
				continue
			}
			i, ok := at[c.name]
			if !ok {
				i = len(all)
				at[c.name] = i
				all = append(all, Overlay{Name: c.name, Goal: goal.Of(c.name)})
			}
			points, err := h.shown(c)
			if err != nil {
				return nil, err
			}
			all[i].Lines = append(all[i].Lines, OverlayLine{run, points})
		}
	}
	if len(names) == 0 && len(runs) > 1 {
		all = slices.DeleteFunc(all, func(o Overlay) bool { return len(o.Lines) < 2 })
	}
	return all, nil
}

// Explain reads the stored output of a run once more, that which its series
// come from, says what each line gave and by which rule, and returns what
// speaks for its series and which names wait.
func (h *History) Explain(run string, told func(metrics.Reading)) ([]metrics.Evidence, error) {
	r, err := h.records.Run(run)
	if err != nil || len(r.Ranks) == 0 {
		return nil, err
	}
	reader := metrics.NewReader(r.Metrics)
	reader.Explain(told)
	buf := make([]byte, 256<<10)
	for off := int64(0); ; {
		n, err := h.records.ReadLog(run, r.Ranks[0].Rank, off, buf)
		reader.Feed(buf[:n], now())
		off += int64(n)
		if err == io.EOF {
			reader.End(now())
			return reader.Evidence(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the stored log of run %s: %w", run, err)
		}
	}
}
