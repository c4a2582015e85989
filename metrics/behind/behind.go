// Package behind finds out, by the order in which lines come, which values a training
// tells before the line that says where they belong:
//
//	train loss 0.5
//	val loss 0.6
//	epoch 3 done
//
// The first place may have a beginning and an end, and those behind it an end alone: what came between
// the two is told before its place from then on.
//
// It knows lines by their shape alone, which is the same for lines with the same names.
package behind

import (
	"slices"
	"strings"
	"unicode"
)

// most bounds the lines that wait for a place.
const most = 64

// Line is a line with values that does not say where they belong.
type Line[T any] struct {
	Shape uint64
	Of    Data
	What  T
}

// Data is what the values of a line are of. A validation is told before the first place
// where a training is validated before it begins, too.
type Data uint8

// The data, the surer the later that a line of it is of the training that goes on.
const (
	Validation Data = iota
	Unsaid
	Training
)

// Told are lines that wait no longer, by where they belong: where the run was when they
// came, where it is now, or where the line that was just taken says that it is.
type Told[T any] struct{ Then, Now, Next []T }

// Order is what is known of the order of a stream. Its zero value knows nothing.
type Order[T any] struct {
	state  state
	early  []Line[T] // that came before any place
	held   []Line[T]
	behind []uint64 // shapes of lines that are told before their place
	others bool     // since the first place, lines came that were not among the early ones
	framed bool     // the first place had a beginning and an end
	last   []uint64 // shapes of the lines of the last place, where the first was framed
}

// state is how far the order is known.
type state uint8

const (
	nowhere state = iota // no place was told
	once                 // one was, and lines had come before it
	begun                // the first place begins, and what stands in it is looked at
	known                // some lines are told before their place
	ahead                // all places are told before their lines
)

// Settled reports whether all places are told before their lines: then there is nothing to do.
func (o *Order[T]) Settled() bool { return o.state == ahead }

// Known reports whether some lines are told before their place.
func (o *Order[T]) Known() bool { return o.state == known }

// Waiting reports whether lines wait for the place that is known to be told behind them.
func (o *Order[T]) Waiting() bool { return o.state == known && len(o.held) > 0 }

// Waits takes a line without a place. It reports whether the line is kept until its place is
// told; those that were kept for nothing are told.
func (o *Order[T]) Waits(l Line[T]) (waits bool, told Told[T]) {
	switch {
	case o.state == ahead:
		return false, told
	case o.state == begun:
		if len(o.behind) < most && !slices.Contains(o.behind, l.Shape) {
			o.behind = append(o.behind, l.Shape)
		}
		return false, told
	case o.state == nowhere:
		if has(o.early, l.Shape) || len(o.early) == most {
			return false, o.Settle()
		}
		o.early = append(o.early, l)
		return true, told
	case o.state == once && !has(o.early, l.Shape), o.state == known && !slices.Contains(o.behind, l.Shape):
		o.others = true
		return false, told
	}
	if has(o.held, l.Shape) { // it came twice without a place between
		if o.state == once {
			return false, o.Settle()
		}
		told.Then, o.held = whats(o.held, nil), nil
	}
	o.held = append(o.held, l)
	return true, told
}

// Place takes a line that says where the run is. In doubt, only what is surely of the training belongs
// to a place that was told behind it: where the line has values of its place itself, or is a bare
// heading. Lines that the caller kept itself since the stream began, because nothing was known of them,
// are early, too.
func (o *Order[T]) Place(says Says, doubt bool, early ...Line[T]) (told Told[T]) {
	switch o.state {
	case nowhere:
		o.early = append(o.early, early...)
		if len(o.early) == 0 || says == Begins {
			if told = o.Settle(); says == Begins {
				o.state = begun
			}
			return told
		}
		o.state = once
	case begun:
		return o.Settle()
	case once:
		o.judge(says, doubt)
		if len(o.behind) == 0 {
			return o.Settle()
		}
		o.state = known
		in := func(l Line[T]) bool { return slices.Contains(o.behind, l.Shape) }
		told.Now, told.Next = whats(o.early, in), whats(o.held, in)
		out := func(l Line[T]) bool { return !in(l) }
		told.Then = append(whats(o.early, out), whats(o.held, out)...)
		o.early, o.held = nil, nil
	case known:
		if o.framed && says == Begins { // each has a beginning
			return o.Settle()
		}
		o.last = o.last[:0]
		for _, l := range o.held {
			o.last = append(o.last, l.Shape)
		}
		told.Next, o.held = whats(o.held, nil), nil
	}
	return told
}

// Closes takes a line that says that the place ends where the run is: what waits is of that.
func (o *Order[T]) Closes() (told Told[T]) {
	if o.state == begun && len(o.behind) > 0 {
		o.state, o.framed = known, true
	} else if o.framed {
		return o.Release()
	}
	return told
}

// IsFramed reports whether the first place had a beginning and an end.
func (o *Order[T]) IsFramed() bool { return o.framed }

// Release tells the lines that wait where the run was when they came.
func (o *Order[T]) Release() (told Told[T]) {
	told.Then, o.held = whats(o.held, nil), nil
	return told
}

// judge decides whether the early lines belong to the place that was told behind them: those that came
// again before the second place, unless they may be of a validation before the training. In doubt, what
// says nothing of its data may be of one, too.
func (o *Order[T]) judge(says Says, doubt bool) {
	needs := Unsaid
	if doubt {
		needs = Training
	}
	if says == Begins || says != Ends && !slices.ContainsFunc(o.held, func(l Line[T]) bool { return l.Of >= needs }) {
		return
	}
	for _, l := range o.held {
		o.behind = append(o.behind, l.Shape)
	}
}

// Settle gives up: places are told before their lines.
func (o *Order[T]) Settle() (told Told[T]) {
	told.Then = append(whats(o.early, nil), whats(o.held, nil)...)
	*o = Order[T]{state: ahead}
	return told
}

// End tells what still waits when nothing more comes. Lines that came before the only place belong
// to it when nothing came behind it; of lines that are told before their place it was not told any
// more, and it is the next; but of the last, where that had an end and no such line.
func (o *Order[T]) End() (told Told[T]) {
	switch {
	case o.state == once && len(o.held) == 0 && !o.others:
		told.Now = whats(o.early, nil)
	case o.state == known:
		of := func(l Line[T]) bool { return !o.framed || slices.Contains(o.last, l.Shape) }
		told.Next = whats(o.held, of)
		told.Then = whats(o.held, func(l Line[T]) bool { return !of(l) })
	default:
		return o.Settle()
	}
	*o = Order[T]{state: ahead}
	return told
}

func has[T any](lines []Line[T], shape uint64) bool {
	return slices.ContainsFunc(lines, func(l Line[T]) bool { return l.Shape == shape })
}

// whats are the contents of the lines that are wanted, or of all.
func whats[T any](lines []Line[T], wanted func(Line[T]) bool) (all []T) {
	for _, l := range lines {
		if wanted == nil || wanted(l) {
			all = append(all, l.What)
		}
	}
	return all
}

// Says is what a line that says where the run is says of that place, beside its number.
type Says uint8

// What it may say.
const (
	Nothing Says = iota
	Begins       // "Starting epoch 3", "Epoch 3:"
	Ends         // "Epoch 3 done", "epoch 3 took 12s"
)

var (
	beginnings = []string{"begin", "start"}
	endings    = []string{"done", "finish", "complete", "end", "took", "elapsed", "over", "after"}
)

// Of reads what a line says of its place.
func Of(line string) Says {
	if strings.HasSuffix(strings.TrimRight(line, " -=*#"), ":") { // "After epoch 3:"
		return Begins
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(line), func(c rune) bool { return (c < 'a' || c > 'z') && c < 0x80 }) {
		for _, end := range endings {
			if rest, ok := strings.CutPrefix(word, end); ok && forms[rest] {
				return Ends
			}
		}
		for _, begin := range beginnings {
			if rest, ok := strings.CutPrefix(word, begin); ok && forms[rest] {
				return Begins
			}
		}
	}
	return Nothing
}

// Stops reports whether a line says that the run ends at its place, before its time.
func Stops(line string) bool {
	lower := strings.ToLower(line)
	return strings.Contains(lower, "early stop") || strings.Contains(lower, "early-stop") || strings.Contains(lower, "earlystop")
}

// Bare reports whether a line has one word and numbers: "Epoch 1", "=== step 1/10 ===".
func Bare(line string) bool {
	words := 0
	for word := range strings.FieldsFuncSeq(line, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			words++
		}
	}
	return words == 1
}

// forms are the ends of words that make another form of the same.
var forms = map[string]bool{"": true, "s": true, "d": true, "ed": true, "es": true, "ing": true, "ning": true, "of": true}
