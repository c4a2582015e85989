package metrics

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/decimal"
	"github.com/dlwb/dlwb/metrics/gauge"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/screen"
)

// bars follows progress bars. Of several frames at one position the last
// counts, so one is held until the next comes.
type bars struct {
	n, total            float64 // of the bar without a title that is longest: the run, often
	lived               bool    // values came while that bar went on
	open                string  // a row of rich's bar that ends inside a value
	pending             bool
	frame               gauge.Bar
	frames              int     // of the bar, with values, that were seen
	told                bool    // of them, one was read
	endless             bool    // it has no end, and says itself of which epoch it is
	steady              bool    // before its first step the bar shows a value of its own
	ahead               bool    // and so before each
	belowBar            bool    // the line before was a row of the bar
	began               float64 // the epoch in which the first came
	rank                int
	values              []value
	shape               uint64
	epoch               counter
	wholeAt, wholeTotal float64               // epoch and length of the last bar of an epoch
	stale               map[string]shownValue // values of validation that were seen last
	first               []string              // names that it showed at first; of the end of an epoch alone, none
	last                lastFrame
	epochs              epochBar
	closed, anew        bool   // the frame that is held ended its row; and is of another bar than the one before
	whole               string // the title, but for numbers, of the bar that came to its end last
}

// lastFrame is where a bar was, and in which epoch.
type lastFrame struct {
	title           string
	n, total, epoch float64
	through         bool
}

// shownValue is a value that a bar showed, and in which epoch.
type shownValue struct{ value, epoch float64 }

// mostStale bounds the names of validation values that are remembered.
const mostStale = 1024

// joined puts a row that rich wrapped inside a value back together. It returns
// "" when more has to come.
func (b *bars) joined(line string) string {
	if b.open != "" {
		line = b.open + " " + strings.TrimLeft(line, " ")
		b.open = ""
		return line
	}
	if n := len(line); n > 0 && n < screen.MaxLine && line[n-1] == ':' && strings.Contains(line, "━") && strings.Contains(line, "it/s") {
		b.open = strings.Clone(line)
		return ""
	}
	return line
}

// bar takes a frame of a progress bar.
func (r *Reader) bar(b gauge.Bar, rank int) {
	if r.barTable(b, rank) {
		return
	}
	if strings.HasSuffix(b.Title, "||") { // AllenNLP's, whose averages a table behind them tells
		return
	}
	place, said := barPlace(b.Title)
	f := r.scanner.scanAs(b.Body, 0, said, strings.ContainsAny(b.Body, "=:"))
	if len(f.values) == 0 { // torchtune's "1|10|Loss: 1.2"
		f = r.scanner.scanAs(b.Title, 0, said, true)
		if b.Begins && slices.ContainsFunc(f.values, func(v value) bool { return v.kind >= weak }) { // a line of values, and a bar at its end
			r.message(b.Title, b.Title, rank, false, 0)
			f, b.Title, place = found{}, "", counter{}
		} else if len(f.values) > 0 {
			b.Title, b.Titled = gauge.Form(b.Title), true
		}
	}
	if b.Share && !slices.ContainsFunc(f.values, func(v value) bool { return v.kind >= weak }) {
		return
	}
	if place.unit == noUnit {
		b.Title = gauge.Uncounted(b.Title, b.N)
	}
	if len(f.values) == 0 {
		r.silentBar(b, place)
	} else {
		for _, c := range f.counters { // "avg. loss [51-100]" stays until the next, whatever the bar is at; one without an end may say more of the run
			if c.global && c.unit == unitStep && (b.Total == 0 || c.n <= b.N && strings.HasPrefix(b.Body[lexis.Digits(b.Body, c.at):], "]: ")) {
				b.N = c.n
			} else if c.unit == unitEpoch && b.Total == 0 && place.unit == noUnit { // 99it [00:10, loss=0.5, epoch=3]
				place = c
			}
		}
		r.loudBar(b, place, f, rank)
	}
	if strings.TrimSpace(b.Rest) != "" {
		r.flushBar()
		r.message(b.Rest, b.Rest, rank, false, 0)
	}
}

// barPlace reads what a bar's title says: "Epoch 1/4", "Train [1/3]", "Epoch 0", "0/4(t)".
func barPlace(title string) (epoch counter, said string) {
	if c, next, ok := ofTotal(title, 0); ok && c.total > 0 && (next == len(title) || title[next] == '(') {
		epoch, epoch.unit = c, unitEpoch
	}
	for i := 0; ; {
		start, end := lexis.NextKey(title, i)
		if end < 0 {
			break
		}
		word := title[start:end]
		if split := splits[strings.ToLower(word)]; split != "" {
			said = split
		}
		i = end
		at := lexis.SkipBlanks(title, end)
		u, _ := unitOf(word)
		opened := at < len(title) && title[at] == '['
		if u == unitEpoch || opened && (said != "" || start == 0) {
			if opened || at < len(title) && (title[at] == ':' || title[at] == '#') {
				at = lexis.SkipBlanks(title, at+1)
			}
			if c, _, ok := ofTotal(title, at); ok && (u == unitEpoch || c.total > 0) {
				c.unit = unitEpoch
				epoch = c
			}
		}
	}
	if said == "train" {
		said = ""
	}
	return epoch, said
}

// loudBar holds a frame that has values and lets go of the one before.
func (r *Reader) loudBar(b gauge.Bar, epoch counter, f found, rank int) {
	p := &r.bars
	if r.redrawn.up && b.N == b.Total && epoch.unit == unitEpoch && epoch.n < p.epoch.n {
		return // it stays on the screen and is drawn again with the one below it
	}
	now := r.counters.progress.Epoch
	another := p.frames == 0 || p.frame.Total != b.Total || b.N < p.frame.N || p.frame.Title != b.Title || epoch.n != p.epoch.n || epoch.unit == noUnit && p.began != now
	if p.closed && !another && b.N == b.Total && p.frame.N == b.N && p.rank == rank && !b.Whole && epoch.unit == noUnit && !p.shows(f.values) {
		r.flushBar() // each bar shows only its end
		another, p.anew = true, true
	}
	p.closed = !r.redrawn.here
	p.ahead = p.ahead || !another && p.pending && p.steady && p.frame.N == 0 && b.N == 1
	if p.frame.Whole && b.N < p.frame.N && b.Total == p.frame.Total {
		r.endBar()
	}
	if p.pending && (p.frame.N != b.N || p.frame.Total != b.Total || p.frame.Title != b.Title || p.epoch.n != epoch.n || p.rank != rank) {
		r.flushBar()
	}
	if another {
		p.frames, p.told, p.began, p.ahead, p.first = 0, false, now, false, p.first[:0]
		for i := 0; !(b.Whole && b.N == b.Total) && i < len(f.values); i++ {
			p.first = append(p.first, f.values[i].show)
		}
	}
	p.endless = b.Total == 0 && slices.Contains(f.counters, epoch)
	p.steady = b.N == 0 && b.Total > 0 && r.isSteady(f.values, b.Titled)
	p.frames++
	p.pending, p.belowBar, p.rank, p.shape, p.epoch = true, true, rank, f.shape, epoch
	p.values = append(p.values[:0], f.values...)
	if p.frame.Title != b.Title {
		p.frame.Title = strings.Clone(b.Title)
	}
	p.frame.N, p.frame.Total, p.frame.Whole = b.N, b.Total, b.Whole
}

// shows reports whether the held frame has these values.
func (p *bars) shows(values []value) bool {
	return slices.EqualFunc(p.values, values, func(a, b value) bool { return a.show == b.show && sameValue(a.Value, b.Value) })
}

// isSteady reports whether values that a bar shows before its first step are of that
// step: they are not those of the bar before, and stay until the step is counted. A
// loop that tells of a step and counts it then is always one behind. A title may have
// begun with none.
func (r *Reader) isSteady(values []value, titled bool) bool {
	p, fresh := &r.bars, false
	for _, v := range values {
		if i := indexOf(p.values, v.show); !titled && p.frames > 0 && (i < 0 || !p.steady || !sameValue(p.values[i].Value, v.Value)) {
			return false
		}
		s := r.series[v.show]
		fresh = fresh || v.Value != 0 && (v.kind >= weak || v.kind == unknown) && !ofPass(v.show) && (s == nil || s.bar.frames == 0 || !sameValue(s.bar.last, v.Value))
	}
	return fresh
}

// below takes a row below a bar's that goes on with what the bar shows, as rich
// prints what its row has no room for; false for any other.
func (r *Reader) below(line string) bool {
	p := &r.bars
	if !p.belowBar || !p.pending || lexis.SkipBlanks(line, 0) < deepestIndent {
		p.belowBar = false
		return false
	}
	f := r.scanner.scanAs(line, 0, "", true)
	for _, v := range f.values {
		if indexOf(p.values, v.show) < 0 && len(p.values) < mostColumns {
			p.values = append(p.values, v)
		}
	}
	return len(f.values) > 0
}

// deepestIndent is how far text is indented at most that is no column.
const deepestIndent = 24

// flushBar reads the frame that was held.
func (r *Reader) flushBar() {
	p := &r.bars
	if !p.pending {
		return
	}
	p.pending = false
	if p.frame.N == 0 && !p.ahead || p.frame.Whole && p.frame.N < p.frame.Total && !r.ended {
		return
	}
	r.counters.progress.Begun = false
	axis := r.barTake()
	evaluates, epoch := false, r.counters.progress.Epoch
	if p.frame.Whole { // Keras's evaluate, behind the training
		evaluates = p.wholeTotal > 0 && epoch == p.wholeAt && p.frame.Total != p.wholeTotal
		if !evaluates {
			p.wholeAt, p.wholeTotal = epoch, p.frame.Total
		}
	}
	r.place()
	if p.onlyEnd() && p.epoch.unit == unitEpoch {
		axis = min(axis, AxisEpoch)
	}
	first := !p.told
	p.told = true
	validated := p.validated()
	for _, v := range p.values {
		if evaluates {
			v.show = r.scanner.names.validatedAs("eval/", v.show)
		}
		if ofPass(v.show) {
			if old, ok := p.stale[v.show]; ok && sameValue(old.value, v.Value) && !validated && !(epoch > old.epoch && p.measured(v.show)) {
				continue
			}
			if p.stale == nil || len(p.stale) >= mostStale {
				p.stale = map[string]shownValue{}
			}
			p.stale[v.show] = shownValue{v.Value, epoch}
			now := r.epoch
			if first && now != nil && 2*p.frame.N < p.frame.Total && *now > r.counters.firstEpoch { // what a bar begins with is from before
				r.epoch = new(*now - 1)
			}
			r.value(v.show, v, min(axis, AxisEpoch), p.shape, p.rank)
			if _, said := barPlace(p.frame.Title); said != "" && r.series[v.show] != nil {
				r.series[v.show].bar.ofPass = true
			}
			r.epoch = now
			continue
		}
		v.sure = v.sure || v.kind >= measure
		if p.frame.Whole && v.kind == measure && r.isDrawnAgain(v) {
			continue
		}
		if p.frame.Whole || v.kind == measure {
			r.value(v.show, v, axis, p.shape, p.rank)
		} else {
			r.barred(v, axis)
		}
	}
}

// endBar reads the frame that was held as the last one: of an epoch that was not
// finished it is all there is.
func (r *Reader) endBar() {
	r.ended = true
	r.flushBar()
	r.ended = false
}

// ofPass reports whether a series is of a validation or of a whole epoch: its last
// value stands in the bar until the next.
func ofPass(show string) bool {
	split := Split(show)
	return split != "" && split != "train" || strings.HasSuffix(show, "_epoch")
}

// validated reports whether the frame that is held shows a new validation: one of its
// values changed, so that the others are new too, even where they are the same.
func (p *bars) validated() bool {
	return slices.ContainsFunc(p.values, func(v value) bool {
		old, known := p.stale[v.show]
		return ofPass(v.show) && Split(v.show) != "" && (!known || !sameValue(old.value, v.Value))
	})
}

// measured reports whether a value stands at the end of a bar that did not show it before: it is of
// this epoch, and may be what it was in the one before.
func (p *bars) measured(show string) bool {
	return p.frame.N == p.frame.Total && !slices.Contains(p.first, show)
}

// onlyEnd reports whether of a bar that has come to its end, or is endless, nothing else was
// shown, as where output is kept and not watched: it says what the epoch came to.
func (p *bars) onlyEnd() bool {
	return p.frames == 1 && (p.frame.N == p.frame.Total || p.endless) && !p.frame.Whole
}

// repeated drops from a bar of which only the end was shown what a line says again, with the epoch.
func (p *bars) repeated(f *found) {
	inner, epoch := within(f.counters)
	if p.pending && len(f.counters) == 0 && len(f.values) == 1 { // nor is it new where nothing places it
		v := f.values[0]
		if i := indexOf(p.values, strings.TrimPrefix(v.show, "average_")); i >= 0 && (sameValue(v.Value, p.values[i].Value) || decimal.RoundsTo(v.Value, p.values[i].Value)) {
			f.values = f.values[:0]
		}
		return
	}
	if !p.pending || !p.onlyEnd() || inner || !epoch {
		return
	}
	p.values = slices.DeleteFunc(p.values, func(b value) bool {
		i := indexOf(f.values, b.show)
		if i < 0 {
			i = indexOf(f.values, "train/"+b.show)
		}
		return i >= 0 && (sameValue(f.values[i].Value, b.Value) || decimal.Rounds(f.values[i].Value, b.Value))
	})
}

// barred is what is remembered of a value that a bar shows. Some show in all
// frames of an epoch what the one before came to: such a value counts when it
// is new.
type barred struct {
	last            float64
	frames, changes int
	jumps           bool // it changed by more than its last digit
	judged          bool
	atOnce          bool       // the first half of the first epoch showed it: it is of no epoch before
	ofPass          bool       // the bar of a validation shows it, and not only what that came to
	held            []barPoint // until it is judged
}

// barPoint is a value of a frame, where the run was.
type barPoint struct {
	value value
	point Point
	shape uint64
	rank  int
	isNew bool
	early bool // in the first half of a bar
}

// barred takes a value that a bar shows.
func (r *Reader) barred(v value, axis Axis) {
	s := r.seriesOf(v.show)
	if s == nil || s.user || v.show == "" {
		return
	}
	b := &s.bar
	isNew := b.frames == 0 || !sameValue(v.Value, b.last)
	if b.frames > 0 && isNew {
		b.changes++
		b.jumps = b.jumps || math.Abs(v.Value-b.last) > 1.5*decimal.ThirdDigit(b.last)
	}
	b.frames++
	b.last = v.Value
	p := r.point(v.show, v.Value)
	p.X = axis
	early := 2*r.bars.frame.N < r.bars.frame.Total
	b.atOnce = b.atOnce || early && p.Epoch != nil && *p.Epoch == r.counters.firstEpoch
	b.held = append(b.held, barPoint{v, p, r.bars.shape, r.bars.rank, isNew, early})
	if b.judged || b.frames >= barFrames || b.frames == 2 && isNew {
		r.endBarred(s)
	}
}

// endBars lets go of what is held of all series, by name.
func (r *Reader) endBars() {
	for _, name := range slices.Sorted(maps.Keys(r.series)) {
		if s := r.series[name]; len(s.bar.held) > 0 {
			r.endBarred(s)
		}
	}
}

// endBarred lets go of what is held of a series: all, or what was new.
func (r *Reader) endBarred(s *series) {
	b := &s.bar
	b.judged = true
	slow := (b.jumps || b.changes == 0) && b.changes*5 <= (b.frames-1)*2 && b.frames > 2
	for _, h := range b.held {
		if !h.isNew && slow {
			continue
		}
		if slow && h.point.Epoch != nil { // what the epoch came to, or the one before where a bar begins with it
			h.point.X = AxisEpoch
			if h.early && !b.atOnce && *h.point.Epoch > r.counters.firstEpoch {
				h.point.Epoch = new(*h.point.Epoch - 1)
			}
		}
		r.add(s, h.point, h.value, h.shape, h.rank)
	}
	b.held = b.held[:0]
}

// barTake goes on to where a bar is.
func (r *Reader) barTake() Axis {
	p := &r.bars
	if p.frame.Whole { // of an epoch
		return AxisEpoch
	}
	var found []counter
	if p.epoch.unit == unitEpoch {
		found = append(found, p.epoch)
	}
	step := counter{unit: unitStep, n: p.frame.N, total: p.frame.Total}
	if p.ahead {
		step.n = min(step.n+1, step.total)
	}
	step.inEpoch = p.epoch.unit == unitEpoch || r.counters.hasEpoch
	if p.epoch.unit != unitEpoch && !r.counters.hasEpoch {
		title := strings.Trim(p.frame.Title, "0123456789.")
		step.restarts = title == p.whole // the bar that has come to its end begins anew
		step.again, p.anew = p.anew, false
		if p.frame.N == p.frame.Total {
			p.whole = strings.Clone(title)
		}
	}
	if p.epoch.unit != unitEpoch && p.through(r.counters.progress.Epoch) {
		step.inEpoch, step.global = false, true
	}
	return r.counters.take(append(found, step))
}

// through reports whether the bar counts through the whole run although a line
// has told of epochs: it was not at its end when a new one began, and went on.
func (p *bars) through(epoch float64) bool {
	f, last := p.frame, p.last
	if f.Title != last.title || f.Total != last.total {
		last.through = false
	} else if epoch > last.epoch {
		last.through = last.through || f.N > last.n && last.n < last.total
	}
	p.last = lastFrame{title: f.Title, n: f.N, total: f.Total, epoch: epoch, through: last.through}
	return last.through
}

// barTable reads a header or a row of a table that a bar stands behind, as
// Ultralytics prints them.
func (r *Reader) barTable(b gauge.Bar, rank int) bool {
	if b.Title == "" {
		return false
	}
	if mayBeHeader(b.Title) && r.tables.header(b.Title, r.scanner.names) {
		return true
	}
	if len(r.tables.columns) == 0 {
		return false
	}
	f, ok := r.tables.read(&r.scanner, b.Title)
	if !ok {
		return false
	}
	if b.N >= b.Total { // before, it shows averages over a part of the epoch
		r.rule = "table"
		r.take(f, rank, true)
	}
	return true
}

// laterEpoch reports whether a line says that a new epoch has begun.
func (r *Reader) laterEpoch(counters []counter) bool {
	return r.counters.hasEpoch && slices.ContainsFunc(counters, func(c counter) bool { return c.unit == unitEpoch && c.n > r.counters.progress.Epoch })
}

// sameEpoch reports whether a line says no more of where the run is than that
// the epoch goes on, as Keras's callbacks do before the last frame of its bar.
func (r *Reader) sameEpoch(counters []counter) bool {
	for _, c := range counters {
		if c.unit != unitEpoch || c.n != r.counters.progress.Epoch {
			return false
		}
	}
	return r.counters.hasEpoch
}
