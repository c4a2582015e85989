package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// Lines with values do not always name what counts: "(3/10) - D: 0.5", "#012 ▸
// energy -1.2", "12 epoch, LR 0.1". Of lines of one shape, the number that goes
// up by the same from each to the next is where the run is.

// Bounds of what is remembered of shapes.
const (
	mostShapes = 64
	mostWholes = 8   // whole numbers of a line that are looked at
	proofs     = 3   // lines by which a shape is judged
	leastFrame = 100 // before a line and a colon: what is less may be a rank
)

// shapes follows lines with values that say nothing of where the run is, as
// long as no line has said it.
type shapes []*shape

// shape is what is known of lines with the same names.
type shape struct {
	hash   uint64
	judged bool
	column int     // of its whole numbers the one that counts; -1: none does
	epoch  int     // the one before it that stays, which counts epochs; -1: none
	key    string  // the word before it
	alone  bool    // none counts, and their order is all the place that there is
	total  float64 // up to which it counts; 0: it doesn't say
	held   []heldLine
	first  *late // the line that came once before anything said where the run is
}

// heldLine is a line until its shape is judged.
type heldLine struct {
	came  int // how many were held before it
	rest  string
	rank  int
	from  int
	split string // of the validation that went on
	title string // above it
	whole []counter
}

// wholes are the whole numbers of a line that may count.
func wholes(line string, from int) (all []counter) {
	fold := from + remark.Fold(line[from:])
	for i := from; i < len(line) && len(all) < mostWholes; {
		end := lexis.Digits(line, i)
		if end == i || i == fold {
			i = max(end, i+1)
			continue
		}
		if whole := lexis.Thousands(line, i, end); strings.HasPrefix(line[whole:], "/") { // [1,000/10,000]
			end = whole
		}
		before, after := byte(' '), byte(' ')
		if i > 0 {
			before = line[i-1]
		}
		if end < len(line) {
			after = line[end]
		}
		if after == 'h' || after == 'm' || after == 's' { // 00h 01m 05s
			i = end + 1
			continue
		}
		joined := end+1 < len(line) && lexis.IsDigit(line[end+1]) && strings.IndexByte(".:-,", after) >= 0
		if end-i > 12 || lexis.IsKeyByte(before) || before == ':' && i > 1 && lexis.IsDigit(line[i-2]) || before == ',' && i > 1 && lexis.IsDigit(line[i-2]) || joined || after == 'e' && end+1 < len(line) && (line[end+1] == '-' || line[end+1] == '+') {
			for end < len(line) && (lexis.IsDigit(line[end]) || lexis.IsKeyByte(line[end]) || line[end] == ':' || line[end] == ',') {
				end++
			}
			i = end
			continue
		}
		c, next, ok := ofTotal(line, i)
		frame := i == from && c.n >= leastFrame && strings.HasPrefix(line[next:], ": ") // "756: done 1 games"
		c.numbered = ok && (frame || lexis.CountsOn(line[from:i]))
		if start, stop := lexis.NextKey(line, next); stop > 0 && start == next+1 { // done 3 batches
			u, _ := unitOf(line[start:stop])
			c.numbered = c.numbered || ok && u != noUnit
		}
		if !ok || c.total > 0 && scores(line[from:i]) || c.total == 0 && !c.numbered && owned(line[from:i]) && !oneByOne[strings.ToLower(strings.Trim(line[from:i], " ["))] {
			i = end
			continue
		}
		c.unit, c.global = unitStep, true
		if u, _ := unitOf(strings.ToLower(lexis.WordBefore(line[from:i]))); u == unitEpoch { // Epochs: 3
			c.unit, c.global = unitEpoch, false
		}
		if start, stop := lexis.NextKey(line, next); stop > 0 && start <= next+1 {
			if u, _ := unitOf(line[start:stop]); u == unitEpoch {
				c.unit, c.global = unitEpoch, false
			}
		}
		all = append(all, c)
		i = next
	}
	return all
}

// oneByOne are what is done one after the other: a message that begins with one of
// them and a number may count them.
var oneByOne = set("trial candidate evaluation experiment case run")

// scores reports whether the name before a number and its total is that of a score: "Accuracy: 7228/10000".
func scores(before string) bool {
	name, ok := strings.CutSuffix(strings.TrimRight(before, " ("), ":")
	return ok && sense.Of(strings.ToLower(name[strings.LastIndexByte(name, ' ')+1:])) == score
}

// owned reports whether a name before a number says that it counts
// something else: "class_id = 3", "Trial 4".
func owned(before string) bool {
	at := strings.TrimRight(before, " \t[(#'\"")
	if at == "" {
		return false
	}
	if c := at[len(at)-1]; c == '=' || c == ':' { // but "[0 : 100]" has no name, and what stands first may count: "itr: 50, loss: 0.5"
		if word := strings.ToLower(strings.Trim(at[:len(at)-1], " [(")); lexis.IsWord(word) && (sense.Of(word) == unknown || isCount(word)) && !settingsWords[word] && !ofThings[word] {
			return false
		}
		return c == '=' || !remark.IsCount(strings.TrimSpace(at[strings.LastIndexByte(at, '[')+1:len(at)-1])) || strings.IndexByte(at, '[') < 0
	}
	start := len(at)
	for start > 0 && lexis.IsKeyByte(at[start-1]) {
		start--
	}
	word := strings.ToLower(at[start:])
	u, _ := unitOf(word)
	if settingsWords[word] || ofThings[word] { // "Config 3: lr=0.1", "fold 2: 800 samples"
		return true
	}
	return word != "" && u == noUnit && sense.Of(word) != unknown
}

// unplaced takes a line that says nothing of where the run is. It returns what
// the line says when its shape is known, and whether it is held until then.
func (r *Reader) unplaced(rest string, from, rank int) (f found, held bool) {
	f = r.scanned(rest, from, true)
	if !slices.ContainsFunc(f.values, func(v value) bool { return v.Real || v.kind >= measure }) && !oneByOne[strings.ToLower(remark.Numbered(rest[from:]))] { // "i = 3, Guess = 7, Answer = 1"
		return r.scanned(rest, from, false), false
	}
	s := r.shapes.of(f.shape, !r.placed())
	whole := wholes(rest, from)
	if s == nil || s.column < 0 && (s.judged && !s.alone || r.placed()) {
		c := r.shapes.called(rest, whole)
		f = r.scanned(rest, from, len(c) > 0)
		for _, one := range c {
			f.count(one)
		}
		return f, false
	}
	if s.judged {
		s.place(&f, whole)
		return f, false
	}
	came := 0
	for _, one := range r.shapes {
		came += len(one.held)
	}
	s.held = append(s.held, heldLine{came, strings.Clone(rest), rank, from, r.phase.split, r.heading.title, whole})
	if len(s.held) == proofs {
		if s.judge(); s.column >= 0 {
			s.joins(r.shapes)
		}
		s.alone = s.column < 0 && s.moves(r)
		s.free(r)
	}
	return found{}, true
}

// scanned reads a line of a shape, which may be a dictionary.
func (r *Reader) scanned(rest string, from int, assumed bool) found {
	if f, ok := r.inBraces(rest, from, ""); ok {
		return f
	}
	return r.scanner.scanAs(rest, from, "", assumed)
}

// count reports whether lines of some shape say where the run is.
func (s shapes) count() bool {
	return slices.ContainsFunc(s, func(one *shape) bool { return one.column >= 0 })
}

// called is the whole number of a line of another shape before which the word stands that counts.
func (s shapes) called(line string, whole []counter) []counter {
	for _, one := range s {
		if k := slices.IndexFunc(whole, func(c counter) bool { return one.key != "" && lexis.WordBefore(line[:c.at]) == one.key }); k >= 0 {
			return whole[k : k+1]
		}
	}
	return nil
}

// of finds or begins a shape; nil when there is none, or are too many.
func (s *shapes) of(hash uint64, begins bool) *shape {
	for _, one := range *s {
		if one.hash == hash {
			return one
		}
	}
	if !begins || len(*s) == mostShapes {
		return nil
	}
	one := &shape{hash: hash, column: -1, epoch: -1}
	*s = append(*s, one)
	return one
}

// judge looks which number of the held lines counts.
func (s *shape) judge() {
	s.judged = true
	first := s.held[0].whole
	things := s.ofThings()
	for i, c := range first {
		if things && c.total == 0 && !c.numbered {
			continue
		}
		counts := s.column < 0 || c.total > 0 && first[s.column].total == 0
		stride := 0.0
		for k := 1; k < len(s.held); k++ {
			if i >= len(s.held[k].whole) {
				counts = false
				break
			}
			step := s.held[k].whole[i].n - s.held[k-1].whole[i].n
			counts = counts && step > 0 && (k == 1 || step == stride || c.numbered || c.total > 0 && s.held[k].whole[i].total == c.total)
			stride = step
		}
		if counts {
			s.column, s.total, s.key = i, c.total, lexis.WordBefore(s.held[0].rest[:c.at])
		}
	}
	if k := s.column - 1; k >= 0 && first[k].total == 0 && first[s.column].unit != unitEpoch && s.stays(k) {
		s.epoch = k
	}
}

// ofThings reports whether no two of the held lines have the same words: "1: "age" mean: 38.2" and then
// "2: "height" mean: 1.7" is a list, and its numbers are no place.
func (s *shape) ofThings() bool {
	seen := map[string]bool{}
	for _, l := range s.held {
		seen[lexis.Letters(l.rest)] = true
	}
	return len(seen) == len(s.held)
}

// moves reports whether the held lines, which have the same words, tell of an error or a cost that is another
// one in each: "Error:0.3025 Prediction:0.25".
func (s *shape) moves(r *Reader) bool {
	if s.ofThings() {
		return false
	}
	seen := map[float64]bool{}
	for _, l := range s.held {
		values := r.scanned(l.rest, l.from, true).values
		k := slices.IndexFunc(values, func(v value) bool { return v.weak && v.Real && !v.blank && goal.Of(v.show) == goal.Least })
		if k < 0 || seen[values[k].Value] {
			return false
		}
		seen[values[k].Value] = true
	}
	return true
}

// stays reports whether a whole number is the same in all held lines, and stands
// in one bracket with the next.
func (s *shape) stays(k int) bool {
	for _, l := range s.held {
		if l.whole[k].n != s.held[0].whole[k].n || strings.Trim(l.rest[lexis.Digits(l.rest, l.whole[k].at):l.whole[k+1].at], " ,/:") != "" {
			return false
		}
	}
	return true
}

// count adds where the run is, which is no value beside: "cycle= 3 dE= -0.02". The values of a
// dictionary do not say where they stand.
func (f *found) count(c counter) {
	f.counters = append(f.counters, c)
	f.values = slices.DeleteFunc(f.values, func(v value) bool { return v.Start == c.at && v.Next > v.Start })
}

// place adds the counters of a line: its step and, where a number that stays stands
// right before that, as in "[1, 2000] loss: 0.5", its epoch.
func (s *shape) place(f *found, whole []counter) {
	if s.column < 0 || s.column >= len(whole) {
		return
	}
	c := whole[s.column]
	if s.epoch >= 0 {
		e := whole[s.epoch]
		e.unit, e.global = unitEpoch, false
		f.count(e)
		c.global = false
	}
	f.count(c)
}

// joins takes the lines of other shapes that have no number that counts, and stand between its own.
func (s *shape) joins(all shapes) {
	for _, one := range all {
		if len(one.held) > 1 && one != s && !slices.ContainsFunc(one.held, func(l heldLine) bool { return len(l.whole) > 0 }) {
			one.judged = true
			s.held, one.held = append(s.held, one.held...), nil
		}
	}
	slices.SortFunc(s.held, func(a, b heldLine) int { return a.came - b.came })
}

// free reads the lines that were held.
func (s *shape) free(r *Reader) {
	held := s.held
	s.held = nil
	defer func(split, title string) { r.phase.split, r.heading.title = split, title }(r.phase.split, r.heading.title)
	for _, l := range held {
		f := r.scanned(l.rest, l.from, s.column >= 0 || s.alone)
		s.place(&f, l.whole)
		r.phase.split, r.heading.title = l.split, l.title
		r.understood(l.rest, l.rest, l.from, f, l.rank)
	}
}

// placed lets go of the lines that are held when another line has said where the
// run is: those of shapes that came more than once. What came once, before
// anything was said of the training, is of a script's own text as often as not.
func (s *shapes) placed(r *Reader) {
	k := slices.IndexFunc(*s, func(one *shape) bool { return one.column >= 0 })
	for _, one := range *s {
		counts := k >= 0 && one.column < 0 && one.countsWith((*s)[k].total)
		if len(one.held) > 1 || counts {
			one.judged = true
			one.free(r)
		} else if len(one.held) == 1 && !one.judged {
			l := one.held[0]
			one.first = &late{found: l.read(r), rank: l.rank, title: l.title, at: r.at}
		}
	}
}

// read is what a line that was held says, of the validation that went on then.
func (l heldLine) read(r *Reader) found {
	f := r.scanned(l.rest, l.from, true).kept()
	if l.split != "" && !slices.ContainsFunc(f.values, func(v value) bool { return Split(v.show) != "" }) {
		r.scanner.names.ofData(f.values, l.split)
	}
	return f
}

// countsWith makes the number that counts up to a total, as the lines of another shape do, the one
// by which this shape is placed: each name has a line of its own, "(100/500) loss: 0.5".
func (s *shape) countsWith(total float64) bool {
	if total == 0 || len(s.held) == 0 {
		return false
	}
	s.column = slices.IndexFunc(s.held[0].whole, func(c counter) bool { return c.total == total })
	return s.column >= 0
}

// end reads what is still held when nothing more comes, of the series that have
// nothing else.
func (s *shapes) end(r *Reader) {
	told := map[string]bool{}
	for name, one := range r.series {
		told[name] = one.ordinal > 0
	}
	for _, one := range *s {
		for _, l := range one.held {
			f := r.scanned(l.rest, l.from, false)
			kept := f.values[:0]
			for _, v := range f.values {
				if !told[v.show] {
					kept = append(kept, v)
				}
			}
			f.values = kept
			if p := &r.latest; one.first != nil && !one.judged && (p.firstStep != nil || p.firstEpoch != nil) { // it is of where the training began, and not of where it ended
				r.tellAt(late{found: f, rank: l.rank, title: l.title, at: r.at}, p.firstStep, p.firstEpoch)
				continue
			}
			r.understood(l.rest, l.rest, l.from, f, l.rank)
		}
	}
	*s = nil
}
