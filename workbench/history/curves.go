package history

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/store"
)

// A quantity that a run both prints and writes into files is one curve. What is
// printed is rounded and comes at once; what is in files is exact and comes when
// its writer flushes. docs/metrics.md tells the rule that is kept here.

// curve is what is shown of one quantity: the points of one source and, where
// those are behind, what another one has beyond them.
type curve struct {
	name    string
	main    store.Series
	tail    *store.Series
	tailAt  int64 // the ordinal from which on the tail is shown
	sources []store.Series
}

// fineness is how exact a format tells a value, the more the better. Event
// files have 32 bits; trainers write their state seldom; lines round.
var fineness = map[string]int{string(metrics.CSV): 5, string(metrics.JSONLines): 4, string(metrics.EventFile): 3,
	string(metrics.TrainerState): 2}

// denser is how much more often a rounded source must tell a value to be shown
// instead of an exact one.
const denser = 1.5

// seriesReader reads points of series, and remembers which series tell the same:
// a curve that grows is put together again and again.
type seriesReader struct {
	read   func(v store.Series, from int64, limit int) ([]store.Point, error)
	agreed *sync.Map // of pairs of series, see pair
}

// pair is two series as they were when they were compared.
type pair struct{ a, aEdition, b, bEdition int64 }

// curvesOf says what is shown of the series of a run.
func curvesOf(all []store.Series, read seriesReader) ([]curve, error) {
	var curves []curve
	for _, g := range quantities(bySource(all)) {
		c := curve{name: g.name, main: g.series[0], sources: g.series}
		for _, other := range g.series[1:] {
			if err := c.join(other, read); err != nil {
				return nil, err
			}
		}
		curves = append(curves, c)
	}
	return curves, nil
}

// bySource puts series in the order in which they are listed: what was printed
// first, then file by file, those of one source as they appeared in it. Which source
// told first is a matter of when its file was looked at, and two runs of one program
// would differ by it.
func bySource(all []store.Series) []store.Series {
	return slices.SortedStableFunc(slices.Values(all), func(a, b store.Series) int {
		return cmp.Or(printedFirst(a.Source)-printedFirst(b.Source), cmp.Compare(a.Source, b.Source))
	})
}

// printedFirst is 0 for what was printed and 1 for what files have.
func printedFirst(source string) int {
	if source == store.Stdout {
		return 0
	}
	return 1
}

// quantity is one quantity with the series that tell it.
type quantity struct {
	name   string
	series []store.Series
}

// quantities puts together what is one quantity: series of one name from
// different sources; "train/loss" is "loss" where no source has both. Series of
// one format from different directories are different: they may be of several
// models.
func quantities(all []store.Series) []quantity {
	names := map[string]bool{}
	for _, v := range all {
		names[v.Source+"\x00"+v.Name] = true
	}
	both := map[string]bool{}
	for _, v := range all {
		if base, ok := strings.CutPrefix(v.Name, "train/"); ok && names[v.Source+"\x00"+base] {
			both[base] = true
		}
	}
	var found []quantity
	at := map[string]int{}
	for _, v := range all {
		key := v.Name
		if base, ok := strings.CutPrefix(v.Name, "train/"); ok && !both[base] {
			key = base
		}
		name := v.Name
		if i, ok := at[key]; ok && found[i].otherPlace(v) {
			name = path.Base(path.Dir(v.Source)) + "/" + v.Name
			key = path.Dir(v.Source) + "/" + key
		}
		i, ok := at[key]
		if !ok {
			i = len(found)
			at[key] = i
			found = append(found, quantity{name: name})
		}
		found[i].series = append(found[i].series, v)
	}
	return found
}

// otherPlace reports whether a quantity has a series of the same format from
// another directory.
func (q quantity) otherPlace(v store.Series) bool {
	for _, s := range q.series {
		if s.Format == v.Format && path.Dir(s.Source) != path.Dir(v.Source) {
			return true
		}
	}
	return false
}

// join takes another source of the same quantity into a curve.
func (c *curve) join(other store.Series, read seriesReader) error {
	agree, err := c.agrees(other, read)
	if err != nil {
		return err
	}
	better := cmp.Compare(fineness[other.Format], fineness[c.main.Format])
	if !agree {
		// They count differently and can't be put together: the exact one,
		// when it is not behind.
		if better > 0 && other.Count >= c.main.Count || better <= 0 && other.Count > c.main.Count {
			c.main, c.tail = other, nil
		}
		return nil
	}
	switch d := density(other) / density(c.main); {
	case sameDir(c.main, other):
		better = cmp.Compare(*c.main.First.Step, *other.First.Step)
	case d >= denser:
		better = 1
	case d <= 1/denser:
		better = -1
	}
	main, rest := c.main, other
	if better > 0 {
		main, rest = other, c.main
	}
	if c.tail != nil && stepOf(c.tail.Last) > stepOf(rest.Last) {
		rest = *c.tail
	}
	c.main, c.tail = main, nil
	if stepOf(rest.Last) <= stepOf(main.Last) {
		return nil
	}
	return c.prolong(rest, read)
}

func stepOf(p store.Point) int64 {
	if p.Step == nil {
		return math.MinInt64
	}
	return *p.Step
}

// density is how many points a series has for each step.
func density(v store.Series) float64 {
	return float64(v.Count) / float64(max(1, *v.Last.Step-*v.First.Step+1))
}

// sameDir reports whether two series are from files of one directory, which
// follow each other: a writer that was opened again begins a new file.
func sameDir(a, b store.Series) bool {
	return a.Format == b.Format && a.Source != b.Source && path.Dir(a.Source) == path.Dir(b.Source)
}

// joint is how far back two sources are compared.
const joint = 512

// agrees reports whether two sources place a quantity by the same steps: where
// both have a value it is the same, but for rounding.
func (c *curve) agrees(other store.Series, read seriesReader) (bool, error) {
	if c.main.First.Step == nil || c.main.Last.Step == nil || other.First.Step == nil || other.Last.Step == nil {
		return false, nil
	}
	if sameDir(c.main, other) {
		return true, nil
	}
	key := pair{c.main.ID, c.main.Edition, other.ID, other.Edition}
	if _, ok := read.agreed.Load(key); ok {
		return true, nil
	}
	first, last := c.main, other
	if stepOf(first.Last) > stepOf(last.Last) {
		first, last = last, first
	}
	values := map[int64]float64{}
	points, err := read.read(first, max(0, first.Count-joint), joint)
	if err != nil {
		return false, err
	}
	for _, p := range points {
		values[stepOf(p)] = p.Value
	}
	from, err := before(last, stepOf(first.Last), read)
	if err != nil {
		return false, err
	}
	points, err = read.read(last, max(0, from-joint), joint+1)
	shared, same := 0, 0
	for _, p := range points {
		if v, ok := values[stepOf(p)]; ok {
			shared++
			if alike(v, p.Value) {
				same++
			}
		}
	}
	agree := shared > 0 && same*10 >= shared*9
	if agree && shared >= 8 {
		read.agreed.Store(key, true)
	}
	return agree, err
}

// alike reports whether of two values one may be the other, rounded.
func alike(a, b float64) bool {
	if a == b || a != a && b != b {
		return true
	}
	return math.Abs(a-b) <= 0.02*math.Max(math.Abs(a), math.Abs(b)) || math.Abs(a-b) <= 5e-4
}

// before is the ordinal of the first point of a series beyond a step, taking
// its steps to rise.
func before(v store.Series, step int64, read seriesReader) (int64, error) {
	low, high := int64(0), v.Count
	for low < high {
		middle := (low + high) / 2
		p, err := read.read(v, middle, 1)
		if err != nil || len(p) == 0 {
			return v.Count, err
		}
		if stepOf(p[0]) > step {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, nil
}

// prolong shows of another source what is beyond the main one.
func (c *curve) prolong(rest store.Series, read seriesReader) error {
	at, err := before(rest, stepOf(c.main.Last), read)
	if err == nil && at < rest.Count {
		c.tail, c.tailAt = &rest, at
	}
	return err
}

// curves says what is shown of a run.
func (h *History) curves(run string) ([]curve, error) {
	all, err := h.db.Series(run)
	if err != nil {
		return nil, err
	}
	return curvesOf(all, seriesReader{h.db.SeriesPoints, &h.agreed})
}

// count is the number of points that are shown.
func (c curve) count() int64 {
	n := c.main.Count
	if c.tail != nil {
		n += c.tail.Count - c.tailAt
	}
	return n
}

// last is the newest point that is shown.
func (c curve) last() store.Point {
	if c.tail != nil {
		return c.tail.Last
	}
	return c.main.Last
}

// curvePoints are the points of a curve from a place on, numbered through.
func (h *History) curvePoints(c curve, from int64) ([]metrics.Point, error) {
	var points []metrics.Point
	if from < c.main.Count {
		rows, err := h.db.SeriesPoints(c.main, from, int(c.main.Count-from))
		if err != nil {
			return nil, err
		}
		points = appendPoints(points, c.name, rows, 0)
	}
	if c.tail == nil {
		return points, nil
	}
	skip := max(0, from-c.main.Count)
	rows, err := h.db.SeriesPoints(*c.tail, c.tailAt+skip, int(max(1, c.tail.Count-c.tailAt-skip)))
	if c.tailAt+skip >= c.tail.Count {
		rows = nil
	}
	return appendPoints(points, c.name, rows, c.main.Count-c.tailAt), err
}

// placed is by what a point was placed: where that was not kept, by its step,
// else by its epoch.
func placed(p store.Point) metrics.Axis {
	switch {
	case p.By != store.Untold:
		return metrics.Axis(p.By - store.Ordinal)
	case p.Step != nil:
		return metrics.AxisStep
	case p.Epoch != nil:
		return metrics.AxisEpoch
	}
	return metrics.AxisNone
}

func appendPoints(points []metrics.Point, name string, rows []store.Point, shift int64) []metrics.Point {
	points = slices.Grow(points, len(rows))
	for _, r := range rows {
		p := metrics.Point{Name: name, Ordinal: r.Ordinal + shift, Step: r.Step, Epoch: r.Epoch, Time: r.Time, Value: r.Value, X: placed(r)}
		if r.Source != store.Stdout {
			p.Source = r.Source
		}
		points = append(points, p)
	}
	return points
}

// Shown is what a reader has of a curve.
type Shown struct {
	main, edition int64
	tail, tailEd  int64
	mainCount     int64
	count         int64
}

// NewPoints are the points of a run that a reader does not have. When what it
// has of a curve holds no longer, because another source took over or a file
// was written anew, the curve comes again, from ordinal 0.
func (h *History) NewPoints(run string, have map[string]Shown) ([]metrics.Point, error) {
	curves, err := h.curves(run)
	if err != nil {
		return nil, err
	}
	var all []metrics.Point
	for _, c := range curves {
		is := Shown{main: c.main.ID, edition: c.main.Edition, mainCount: c.main.Count, count: c.count()}
		if c.tail != nil {
			is.tail, is.tailEd = c.tail.ID, c.tail.Edition
		}
		was := have[c.name]
		if was == is {
			continue
		}
		from := was.count
		if was.main != is.main || was.edition != is.edition ||
			was.tail != 0 && (was.tail != is.tail || was.tailEd != is.tailEd || was.mainCount != is.mainCount) {
			from = 0
		}
		points, err := h.curvePoints(c, from)
		if err != nil {
			return nil, err
		}
		if from == 0 || len(points) > 0 {
			all = append(all, points...)
		}
		have[c.name] = is
	}
	return all, nil
}

// LastLoss is the newest value of the first loss of a run; nil without one.
func (h *History) LastLoss(run string) *float64 {
	curves, err := h.curves(run)
	if err != nil {
		return nil
	}
	for _, name := range []string{"loss", "train/loss", "val/loss"} {
		for _, c := range curves {
			if c.name == name {
				if e, err := h.endsOf(c, goal.None); err == nil {
					return new(e.last.Value)
				}
			}
		}
	}
	return nil
}
