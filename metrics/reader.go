package metrics

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/dlwb/dlwb/metrics/behind"
	"github.com/dlwb/dlwb/metrics/echo"
	"github.com/dlwb/dlwb/metrics/gauge"
	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/label"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/recipe"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/screen"
	"github.com/dlwb/dlwb/metrics/spread"
)

// Bounds of what a run can make a reader remember.
const (
	mostSeries = 4096 // series that were seen at all
	mostHeld   = 1024 // of them, names that have not proved themselves yet
)

// Reader turns the output of a training process into points. It takes bytes as
// they come, in any cuts, and gives the same points for the same bytes. On its
// way the output passes frames (bytes → what a terminal showed), sources (who
// printed it), bars, tables, dictionaries and scanner (line → found), counters
// (where the run is) and series (which names are metrics).
type Reader struct {
	user     userMetrics
	book     *recipe.Book
	frames   screen.Frames
	sources  label.Sources
	scanner  scanner
	counters counters
	tables   tables
	bars     bars
	pass     pass
	block    block
	heading  heading
	phase    phase
	shapes   shapes
	order    behind.Order[late]
	latest   latePlaces
	series   map[string]*series
	held     int
	hosts    hosts
	dull     [1 << 12]uint64 // skeletons of lines that say nothing
	usual    [1 << 10]uint64 // skeletons of lines that no recipe knows
	forms    forms
	seed     maphash.Seed
	recent   echo.Lines // with values
	step     *int64     // where the run is, for the points of a line
	epoch    *float64
	room     struct { // for the next of them, so that a line costs no allocation
		steps  []int64
		epochs []float64
	}
	at       time.Time
	out      []Point
	taken    []int // where the user's expressions found numbers, from the end of the line
	hits     []userHit
	told     func(Reading) // see Explain
	rule     string
	near     bool // the line before, of a form that is known, was a name of a metric and a number alone
	nextNear bool // this one is
	goesOn   bool // the lines to come that are indented go on with one that counts
	above    above
	next     above // of the line to come
	best     bool  // the next line is of an iteration before
	counted  bool  // a line said where the run is since the last best iteration
	beside   bool  // the line counts steps in the epoch beside those of the run
	first    bool  // nothing was read yet
	ended    bool  // no frame of a bar follows the one that is held
	began    Progress

	depth   int                            // of the envelopes that the line lies in
	inner   [deepestEnvelope]screen.Frames // what was in envelopes of each depth, and has not ended
	open    spread.Dict
	torn    loghead.Torn
	redrawn redrawn

	onFrame, onPassed, onText func([]byte)
}

// Reading says what was made of one line, and by which rule.
type Reading struct {
	Rule   string
	Text   string
	Points []Point
}

// NewReader makes a reader. Expressions that do not compile are left out: the profile was checked before.
func NewReader(user []UserMetric) *Reader {
	r := &Reader{book: book(), series: map[string]*series{}, scanner: scanner{names: understood{}}, user: compile(user), seed: maphash.MakeSeed(), first: true, sources: label.Sources{Counts: countsWord}}
	for _, u := range r.user {
		r.series[u.name] = &series{user: true, sure: true, rank: unlabelled}
	}
	r.onFrame = func(frame []byte) {
		r.sources.Colour = label.ColourOf(frame)
		r.draws(frame)
		screen.Pieces(frame, r.onText)
	}
	r.onPassed = func(frame []byte) {
		r.redrawn.here = true
		r.onFrame(frame)
		r.redrawn.here = false
	}
	r.onText = r.text
	return r
}

// Explain has told called for each line that gave points or said where the run is.
func (r *Reader) Explain(told func(Reading)) {
	if r.told = told; told != nil {
		r.scanner.passedOver = passedOver{}
	}
}

// Progress is how far the run has said it is.
func (r *Reader) Progress() Progress {
	p := r.counters.progress
	if p.Steps == 0 && p.Epochs == 0 && p.Step == 0 && r.bars.total <= largestCount {
		p.Step, p.Steps = int64(r.bars.n), int64(r.bars.total)
	}
	p.Begun = p.Begun && p.Steps == 0 && p.Epochs > 0
	return p
}

// Began is the first place of which the run has said how far it is (see
// Progress.Share). A run that goes on from a checkpoint does not begin at 0.
func (r *Reader) Began() Progress { return r.began }

// Feed reads bytes that arrived at a moment and returns the points in the
// lines that they finish.
func (r *Reader) Feed(p []byte, at time.Time) []Point {
	r.at, r.out = at, make([]Point, 0, min(len(r.out), 4096))
	simple := screen.IsSimple(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			r.frames.Add(p, r.onPassed)
			break
		}
		if r.frames.IsWhole(p[:end], simple) {
			r.sources.Colour = 0
			r.text(p[:end])
		} else {
			r.frames.Add(p[:end], r.onPassed)
			r.onFrame(r.frames.End())
		}
		p = p[end+1:]
	}
	if len(r.out) == 0 {
		return nil
	}
	return r.out
}

// End reads what is left of a last line without a newline, and lets go of what
// was held back: the process has ended, nothing comes any more.
func (r *Reader) End(at time.Time) []Point {
	r.at, r.out = at, nil
	r.onFrame(r.frames.End())
	r.rule = "progress bar"
	r.endBar()
	r.endBars()
	for _, one := range r.open.Drop() {
		r.line(one)
	}
	r.boxEnded()
	r.endBlock()
	r.endRedrawn()
	r.endRow()
	r.endPass(nil)
	r.endLate()
	r.shapes.end(r)
	for _, s := range r.ordered() {
		if s.waits {
			s.waits = false
			if s.sure {
				r.release(s)
			}
		}
	}
	return r.out
}

// text reads one line as a person saw it. The line is only good until it returns.
func (r *Reader) text(b []byte) {
	if r.first {
		r.first = false
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	if len(b) > 0 && r.enveloped(unsafe.String(&b[0], len(b))) {
		return
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	if len(b) == 0 {
		for _, piece := range r.torn.Ended() {
			r.line(piece)
		}
		r.boxEnded()
		r.endBlock()
		r.heading.empty()
		return
	}
	r.torn = loghead.Torn{}
	line := unsafe.String(&b[0], len(b)) // whatever is kept of it is cloned
	if end := line[len(line)-1]; r.open.Begun() || (end == '{' || end == ',') && spread.Opens(line) {
		if all, ends := r.open.Add(line); ends {
			for _, one := range all {
				r.line(one)
			}
			return
		} else if r.open.Begun() {
			return
		}
	}
	r.line(line)
}

// line reads one line of the training.
func (r *Reader) line(line string) {
	before := len(r.out)
	r.rule = ""
	r.near, r.nextNear = r.nextNear, false
	r.above, r.next = r.next, above{}
	if len(r.user) > 0 {
		r.taken = r.taken[:0]
		r.readUser(line)
	}
	if len(r.hits) == 0 { // where an expression of the user found a number, counts from the end of the line
		line = lexis.Narrow(line)
	}
	hash := r.forms.line.Of(line)
	slot := &r.dull[hash&(1<<12-1)]
	plain := len(r.tables.columns) == 0 && r.tables.guess == nil && r.tables.splits == nil && len(r.tables.rows) == 0 && r.bars.open == "" && r.block.kind == "" && !r.best && r.heading == (heading{}) // nothing of the lines before is open
	if *slot == hash && len(r.hits) == 0 && plain && !r.near {
		return
	}
	said := plain && r.replay(line, hash) || r.read(line, hash)
	r.addHits()
	if said && r.began == (Progress{}) {
		p := r.Progress()
		if _, known := p.Share(); known {
			r.began = p
		}
	}
	if !said && len(r.out) == before && r.tables.guess == nil {
		*slot = hash
	} else if r.told != nil && r.rule != "" {
		r.told(Reading{Rule: r.rule, Text: line, Points: r.out[before:]})
	}
}

// read looks for the grammar of a line; false when it says nothing at all.
func (r *Reader) read(line string, hash uint64) bool {
	rest, rank, tentative := r.sources.Peel(line)
	if other := loghead.Glued(line, rest); rank != unlabelled && other > 0 {
		r.torn.Add(line[:other])
		r.line(line[other:])
		return true
	}
	rest = r.bars.joined(remark.BehindBullet(grid.BehindDots(grid.BehindBranch(grid.BehindGauge(rest)))))
	if rest == "" || r.passedOver() {
		return true
	}
	whole := rest
	if tentative { // "250: " and "[250]: " may be a step
		whole = line
	}
	plain, passed := r.odd(whole, hash)
	if plain != whole {
		rest, rank, tentative = plain, unlabelled, false
	}
	if passed {
		return r.best || r.block.kind != ""
	}
	if r.inBlock(rest) || r.below(rest) {
		return true
	}
	if inside, ended := r.tables.box(rest); inside || ended {
		if ended {
			r.boxEnded()
		}
		if inside {
			return true
		}
	}
	if b, ok := gauge.Read(rest); ok {
		at := gauge.Glued(rest)
		r.rule = "progress bar"
		if r.bar(b, rank); at < len(rest) {
			r.line(rest[at:])
		}
		return true
	}
	if tentative && (r.tables.guess != nil || r.tables.guessed) { // "0: " may be where a row is
		if r.table(line, unlabelled) {
			return true
		}
	} else if r.table(rest, rank) {
		return true
	}
	return r.message(line, rest, rank, tentative, hash)
}

func (r *Reader) table(line string, rank int) bool {
	if from := loghead.Of(line); r.tables.splits != nil {
		if f, ok := r.tables.splitRow(&r.scanner, loghead.AfterDash(line[from:])); ok {
			r.rule = "table"
			r.drawn(f, rank, true)
			return true
		}
	} else if r.tables.splitHeader(loghead.AfterDash(line[from:])) {
		return true
	}
	if r.tables.guess == nil {
		r.tables.of = r.heading.split
	}
	line = r.tables.message(line)
	if mayBeHeader(line) && r.tables.header(line, r.scanner.names) {
		r.rule = "table"
		return true
	}
	if r.tables.guess != nil {
		r.tables.proven(line, r.scanner.names)
	}
	if len(r.tables.columns) == 0 {
		r.tables.mayBeGuessed(line)
		return false
	}
	f, ok := r.tables.read(&r.scanner, line)
	if ok {
		r.rule = "table"
		r.drawn(f, rank, true)
	}
	return ok
}

// boxEnded reads the box of names and values that the last lines were.
func (r *Reader) boxEnded() {
	if len(r.tables.rows) > 0 {
		r.flushBar()
		r.rule = "box"
		r.drawn(r.tables.boxed(&r.scanner), unlabelled, false)
	}
}

// message reads a line that is neither a bar nor part of a table.
func (r *Reader) message(line, rest string, rank int, tentative bool, hash uint64) bool {
	from := loghead.Of(rest)
	if _, ok := lexis.Share(rest); ok { // 10/12 is no date
		from = 0
	}
	if r.skipped(rest[from:]) {
		return r.best
	}
	if r.heading.begins(rest[from:], line[0] == 0xe2) || r.phase.begins(rest[from:], r.counters.raw) || r.heading.loosely(rest[from:]) {
		return true
	}
	r.scanner.epochs, r.scanner.goesOn = r.counters.hasEpoch, r.counters.hasEpoch || r.counters.hasStep
	f, ok, held := found{}, false, false
	was := r.heading.split
	about, pairs := r.heading.of(rest[from:])
	alone := remark.IsAlone(rest[from:])
	below, row := r.heading.record && alone, r.heading.record && !alone && remark.IsPairs(rest[from:])
	under := (row || r.heading.record && !alone && !r.heading.rows && (!r.heading.bare || lexis.IsDigit(rest[len(rest)-1]))) && !r.redrawn.here // the line before only counts: this one is of that place
	r.heading.record, r.heading.rows, r.heading.bare, r.heading.epoch = below || row || r.heading.record && remark.IsListed(rest[from:]), row, false, r.heading.epoch && below
	indented := rest[0] == ' ' || rest[0] == '\t'
	r.goesOn = r.goesOn && indented // what a line said that had no room for more
	under = under || r.goesOn
	if title := remark.Title(rest[from:]); title != "" {
		r.heading.title = strings.Clone(lexis.Tidy(title))
		return true
	} else if !alone {
		r.heading.title = ""
	}
	neighbour := alone && (r.heading.scored || r.near)
	r.heading.scored = false
	if f, ok = r.inBraces(rest, from, cmp.Or(about, r.above.split)); ok {
		r.rule = "dictionary"
		if len(f.counters) == 0 && about == "" && len(r.taken) == 0 && (!r.placed() || r.shapes.count()) && slices.ContainsFunc(wholes(rest, from), func(c counter) bool { return c.numbered || c.total > 0 }) {
			if f, held = r.unplaced(rest, from, rank); held {
				return true
			}
		}
	}
	if !ok {
		r.rule = "words and numbers"
		if (r.pass.split != "" || r.counters.anew) && strings.HasPrefix(strings.TrimLeft(rest[from:], " "), "* ") {
			about = "val" // " * Acc@1 71.2": what a validation came to
		}
		r.scanner.below = neighbour || below
		r.scanner.under = under
		f = r.scanner.scanAs(rest, from, about, under || pairs)
		r.scanner.below, r.scanner.under = false, false
		if !neighbour && below {
			f.values = r.heading.recorded(f, indented)
		}
		if under && len(f.counters) == 0 && len(f.values) == 1 && f.values[0].blank && f.values[0].Next == len(rest) { // a name and a number with a blank between
			r.heading.record, r.heading.bare = true, true
		}
		r.heading.scored = len(f.values) == 1 && len(f.counters) == 0 && (neighbour || f.values[0].kind >= weak) && alone
	}
	if tentative && len(f.counters) == 0 { // it was a step, not a rank
		rank = unlabelled
		at := len(line) - len(strings.TrimLeft(line, " \t["))
		if number := lexis.SmallInt(line[at:lexis.Digits(line, at)]); number > 0 && !r.placed() || r.shapes.count() { // ranks begin at 0
			if f, held = r.unplaced(line, 0, rank); held {
				return true
			}
			return r.understood(line, line, 0, f, rank)
		}
		f = r.scanner.scan(line, 0, "")
	} else if tentative {
		r.sources.Labelled = r.sources.Labelled || len(f.counters) > 1 || len(f.counters) == 1 && len(f.values) > 0
	} else if !ok && about == "" {
		if len(f.counters) == 0 && (!r.placed() || r.shapes.count()) && len(r.taken) == 0 {
			if f, held = r.unplaced(rest, from, rank); held {
				return true
			}
		}
		r.forms.learn(hash, line, rest, from, rank == unlabelled && r.sources.Colour == 0, r.heading.scored, f)
	}
	if was != "" && r.heading.split == "" && len(f.values) == 0 && len(f.counters) > 0 && r.sameEpoch(f.counters) { // "[Epoch: 1, images: 1449]"
		defer func() { r.heading.split = was }()
	}
	return r.understood(line, rest, from, f, rank)
}

// understood takes what a line says.
func (r *Reader) understood(line, rest string, from int, f found, rank int) bool {
	if f.pass.total > 0 && len(f.values) == 0 && f.split != "" && f.split != "train" { // a validation goes on
		r.phase.split = f.split
	}
	if len(f.counters) == 0 && len(f.values) == 0 || f.sentence && r.lastWas(f.values[0].Value) {
		return false
	}
	if rest[0] != ' ' && rest[0] != '\t' {
		r.goesOn = len(f.counters) > 0 && len(f.values) > 0
	}
	if rest[len(rest)-1] == ':' && rank == unlabelled {
		r.next = above{strings.TrimSuffix(f.split, "train"), len(f.counters) > 0}
	}
	if len(f.values) == 0 {
		if f.counters = lasting(f.counters); !r.order.Waiting() && r.reports(rest, f.counters) {
			return false
		}
		r.heading.counts(&f, rest[from:])
	} else if f.values[0].bare { // it may be how long it took, and more stands below
		r.heading.counts(&f, rest[from:])
	}
	r.besideEpochBar(&f)
	if len(r.taken) > 0 {
		f.values = r.untaken(f.values, len(rest))
	}
	if r.passes(line, rest, from, &f, rank) {
		return true
	}
	if len(f.values) > 0 && r.recent.Heard(echo.Line{Whole: r.placedHash(line, f.counters), Message: maphash.String(r.seed, rest[from:]), Bare: from == 0, Placed: (len(f.counters) > 0 || r.above.counts && r.rule == "dictionary") && rank == unlabelled}) {
		return true
	}
	if f.pass.total == 0 && !r.inPhase(&f) {
		r.ofAnotherLoop(&f)
	}
	if f.pass.total > 0 {
		r.rule = "validation pass"
		r.collect(f, rank)
		return true
	}
	if r.pass.split != "" && (rank == r.pass.rank || rank == unlabelled) {
		r.endPass(f.values)
	}
	r.bars.repeated(&f)
	if len(f.counters) > 0 && !(r.bars.frame.Whole && r.sameEpoch(f.counters)) {
		if r.laterEpoch(f.counters) {
			r.endBar()
		}
		r.flushBar()
	}
	if !r.isLate(f, rank, rest[from:]) {
		r.take(f, rank, false)
	}
	if len(f.values) > 0 {
		r.bars.outlives()
	}
	return true
}
