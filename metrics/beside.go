package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// What stands beside names and values: brackets, sentences about models that were kept,
// counters of odd forms.

// bracketed reads a value whose name has brackets behind it that say of which data it
// is, or over how many: "Loss(train) 0.5 (val): 0.6", "acc (last 50): 0.4"; 0 where
// there is none.
func (s *scanner) bracketed(start, end int) int {
	line := s.line
	if next := s.coupled(start, end); next > 0 {
		return next
	}
	if next := s.atMany(start, end); next > 0 {
		return next
	}
	own := start > 0 && line[start-1] == '(' && end < len(line) && line[end] == ')' && splits[strings.ToLower(line[start:end])] != ""
	named, split, average := end, "", false
	if own { // the data alone: what the value before was is said of these
		named++
	} else {
		text, behind := remark.Bracket(line, end)
		if behind == end {
			return 0
		}
		lower := strings.ToLower(text)
		var ok bool
		if split = cmp.Or(splits[lower], shortSplits[lower]); split == "" {
			if average, ok = remark.Window(lower); !ok && !(averages[strings.ToLower(line[start:end])] && remark.IsCount(text)) {
				return 0
			}
		}
		named = behind
	}
	sep, at := lexis.Separator(line, named)
	if sep == 0 {
		return 0
	}
	v, ok := s.valueAt(at)
	if !ok || own && s.noun(start) == "" {
		return 0
	}
	before := s.split
	if split != "" {
		s.split = split
	}
	s.mean = average
	ok = s.accept(start, end, sep, &v)
	if s.mean, s.split = false, before; !ok {
		return 0
	}
	if split != "" {
		s.found.values[len(s.found.values)-1].splitLast = true
	}
	return s.behind(v.Next)
}

// atMany reads a score of the first of what was found, "Recall(k=20): 0.3"; 0 where there is none.
func (s *scanner) atMany(start, end int) int {
	many, named := remark.At(s.line, end)
	if named == end || sense.Of(strings.ToLower(s.line[start:end])) == never {
		return 0
	}
	sep, at := lexis.Separator(s.line, named)
	v, ok := s.valueAt(at)
	if sep != ':' && sep != '=' || !ok || !v.Real || !s.accept(start, end, sep, &v) {
		return 0
	}
	last := &s.found.values[len(s.found.values)-1]
	last.show = s.names.at(last.show, many)
	return s.behind(v.Next)
}

// coupled reads values whose names share words: "mean/median reward 12.1/11.8", "Loss (Train/Val) = 0.5 / 0.6"; 0
// where there are none.
func (s *scanner) coupled(start, end int) int {
	listed := end < len(s.line) && s.line[end] == ',' && start > 0 && (s.line[start-1] == '(' || s.line[start-1] == '[')
	if i := strings.IndexByte(s.line[start:min(len(s.line), end+longestName)], '/'); !listed && (i < 0 || s.line[start+i-1] == ' ') {
		return 0
	}
	if !listed && s.phrase < start && end < len(s.line) && strings.IndexByte(s.line[start:end], '/') < 0 {
		start = s.phrase
	}
	c, ok := remark.Coupled(s.line, start, end, func(word string) string { return cmp.Or(splits[word], shortSplits[word]) })
	if !ok || s.sticky == "" && len(s.found.counters) == 0 && strings.IndexByte(c.Names[0], ' ') < 0 { // "Class_0 result: iou/accuracy 0.5/0.6" is of one class
		return 0
	}
	for i, name := range c.Names {
		f, _ := lexis.Number(s.line, c.At[i])
		if v := known(s.names.term(name, s.sticky), f); v.kind >= weak && v.show != "" {
			s.found.values = append(s.found.values, v)
			s.mark(v.show)
		}
	}
	return c.Next
}

// summed reads the loss of which its line says no more than the data that it is of, and the sum that it is:
// "train==[0.59=0.58 + 0.01]"; 0 where there is none.
func (s *scanner) summed(key string, end int) int {
	split, at := splits[strings.ToLower(key)], end+len("==[")
	f, ok := lexis.Number(s.line, min(at, len(s.line)))
	if split == "" || !ok || !strings.HasPrefix(s.line[end:], "==[") || lexis.Sum(s.line, f.Next) == f.Next || !s.value(end-len(key), end, value{figure: f}) {
		return 0
	}
	s.sticky = split
	return f.Next
}

// lists reports whether a list before, of the same line, is of a score: "recall=[0.1, 0.2], hitrate=[0.3, 0.4]".
func (s *scanner) lists() bool {
	return slices.ContainsFunc(s.found.values, func(v value) bool { return v.list && v.kind >= weak })
}

// beforeKept leaves the values that stand before a sentence about a model that was
// kept, which begins at i: what it says of losses was told before.
func (s *scanner) beforeKept(i int) {
	kept := s.found.values[:0]
	for _, v := range s.found.values {
		if v.Next <= i {
			kept = append(kept, v)
		}
	}
	s.found.values = kept
}

// gluedUnits are words to which scripts glue what they count: "ep005 | loss", "[E01]".
var gluedUnits = map[string]unit{"e": unitEpoch, "ep": unitEpoch, "epoch": unitEpoch, "step": unitStep, "iter": unitStep, "it": unitStep, "round": unitStep}

// innerUnits are words so glued behind an epoch.
var innerUnits = map[string]unit{"i": unitStep, "b": unitStep}

// glued reads a counter whose number is part of its word, before anything else that a
// line says.
func (s *scanner) glued(key string, end int) bool {
	if s.gluedTwo(key, end) {
		return true
	}
	last := key[len(key)-1]
	if !lexis.IsDigit(last) || len(s.found.counters)+len(s.found.values) > 0 {
		return false
	}
	word := strings.TrimRight(key, "0123456789")
	name := strings.TrimRight(word, "-_")
	u := gluedUnits[strings.ToLower(name)]
	start := end - len(key)
	boxed := start > 0 && s.line[start-1] == '[' && end < len(s.line) && s.line[end] == ']'
	if u == noUnit || len(key)-len(word) > 9 || len(word) == 1 && !boxed || !boxed && start != s.phrase {
		return false
	}
	if sep := strings.TrimLeft(s.line[end:], " "); !boxed && name == word && (len(word) < len("iter") || strings.Count(s.line, word) > 1) && sep != "" && sep[0] != '|' && sep[0] != ':' && sep[0] != ',' && sep[0] != '-' {
		return false
	}
	n, _ := lexis.Number(s.line, start+len(word))
	s.found.counters = append(s.found.counters, counter{unit: u, n: n.Value, at: n.Start})
	s.mark(word)
	s.phrase = end
	s.step1 = u != unitEpoch || len(word) <= len("ep")
	return true
}

// numbered reads the counter of "Iter-3-loss: 0.5", which is part of the name, and returns where the rest of
// that begins; start where there is none.
func (s *scanner) numbered(start, end int) int {
	word := start
	for word < end && lexis.IsLetter(s.line[word]) && s.line[word] != '_' {
		word++
	}
	number := lexis.Digits(s.line, min(word+1, end))
	u := gluedUnits[strings.ToLower(s.line[start:word])]
	if u == noUnit || number == word+1 || number+1 >= end || strings.IndexByte("-_", s.line[word]) < 0 || s.line[number] != s.line[word] || len(s.found.counters)+len(s.found.values) > 0 ||
		sense.Of(strings.ToLower(s.line[number+1:end])) < weak {
		return start
	}
	c, _, _ := ofTotal(s.line, word+1)
	c.unit = u
	s.found.counters = append(s.found.counters, c)
	s.mark(s.line[start:word])
	return number + 1
}

// gluedTwo reads "e000-i0001" and "EP0_train": an epoch, and behind it a step or what the line is of.
func (s *scanner) gluedTwo(key string, end int) bool {
	cut := strings.IndexAny(key, "-_")
	if cut < 2 || !lexis.IsDigit(key[cut-1]) || len(s.found.counters)+len(s.found.values) > 0 {
		return false
	}
	count := func(word string, at int) (c counter) {
		name := strings.TrimRight(word, "0123456789")
		c.unit = cmp.Or(gluedUnits[strings.ToLower(name)], innerUnits[name])
		if n, ok := lexis.Number(word, len(name)); ok && c.unit != noUnit {
			c.n, c.at = n.Value, at+len(name)
			return c
		}
		return counter{}
	}
	start := end - len(key)
	epoch, step, split := count(key[:cut], start), count(key[cut+1:], start+cut+1), splits[strings.ToLower(key[cut+1:])]
	if epoch.unit != unitEpoch || step.unit != unitStep && split == "" {
		return false
	}
	if s.found.counters, s.sticky = append(s.found.counters, epoch), cmp.Or(split, s.sticky); step.unit == unitStep {
		s.found.counters = append(s.found.counters, step)
	}
	s.mark(key[:1])
	s.phrase = end
	return true
}

// isCell reports whether the present name and its number, which ends at i, are all that stands
// between two bars: "| total 0.5 |".
func (s *scanner) isCell(i int) bool {
	before, behind := strings.TrimRight(s.line[:s.phrase], " "), strings.TrimLeft(s.line[i:], " ")
	return strings.HasSuffix(before, "|") && (behind == "" || behind[0] == '|')
}

// fewestTiles are the pairs that tell that a line has nothing but pairs.
const fewestTiles = 3

// tiled reports whether the line is a row of pairs of a name and a number, with only
// blanks between: "iter  1 f 1.373e+02 |g| 4.752e+01 CG   2".
func (s *scanner) tiled() bool {
	n := 0
	for word := range strings.FieldsSeq(s.line[s.phrase:]) {
		f, ok := lexis.Number(word, 0)
		name := strings.TrimLeft(word, "|")
		if n%2 == 1 && (!ok || f.Next != len(word)) && word != "True" && word != "False" || n%2 == 0 && (name == "" || !lexis.IsLetter(name[0])) {
			return false
		}
		n++
	}
	return n >= 2*fewestTiles && n%2 == 0
}

// ofSplits reads the data that the last value is of, which stands in brackets behind it, and the
// same value of others: "loss 0.5 (train) 0.6 (val)"; 0 where a bracket at i says something else.
func (s *scanner) ofSplits(i int) (next int) {
	for {
		close := strings.IndexByte(s.line[i:], ')')
		split := splits[strings.ToLower(s.line[i:i+max(close, 0)])]
		last := &s.found.values[len(s.found.values)-1]
		if split == "" || Split(last.show) != "" {
			return next
		}
		name := last.show
		last.show = s.names.validatedAs(split+"/", name)
		next = i + close + 1
		f, ok := lexis.Number(s.line, lexis.SkipBlanks(s.line, next))
		if !ok || !strings.HasPrefix(s.line[f.Next:], " (") {
			return next
		}
		more := *last
		more.figure, more.show = f, name
		s.found.values = append(s.found.values, more)
		i = f.Next + 2
	}
}

// ofOthers reads the same value of other data in a bracket at i, "test loss: 0.69 (train: 0.71)"; 0 where the
// bracket has anything else.
func (s *scanner) ofOthers(i int) (next int) {
	n := len(s.found.values)
	last := s.found.values[n-1]
	for {
		start, end := lexis.NextKey(s.line, i)
		if start != i || end < 0 {
			break
		}
		split := splits[strings.ToLower(s.line[start:end])]
		sep, at := lexis.Separator(s.line, end)
		f, ok := lexis.Number(s.line, at)
		if split == "" || split == Split(last.show) || sep == 0 || !ok || last.Real && !f.Real {
			break
		}
		more := last
		more.figure, more.show = f, s.names.validatedAs(split+"/", last.show)
		s.found.values = append(s.found.values, more)
		switch end = f.Next + len(s.line[f.Next:]) - len(strings.TrimLeft(s.line[f.Next:], "% ")); {
		case end < len(s.line) && s.line[end] == ')':
			for _, v := range s.found.values[n:] {
				s.mark(v.show)
			}
			return end + 1
		case end < len(s.line) && (s.line[end] == ',' || s.line[end] == '/' || s.line[end] == '|' || s.line[end] == ';'):
			i = lexis.SkipBlanks(s.line, end+1)
			continue
		}
		break
	}
	s.found.values = s.found.values[:n]
	return 0
}

// reversed reads values that stand before their names, when nothing else is told of a place:
// "0.5 loss - 0.8 acc", "0.5 (train loss), 0.6 (val loss)".
func (s *scanner) reversed() {
	for _, p := range remark.Reversed(s.line, s.from) {
		f, _ := lexis.Number(s.line, p.Number)
		if v := known(s.names.term(s.line[p.Start:p.End], s.sticky), f); v.kind >= weak && v.show != "" {
			s.found.values = append(s.found.values, v)
			s.mark(v.show)
		}
	}
}

// noun is the name that the value before a bare split had: what was said of one
// split is said of the next, when only a comma stands between.
func (s *scanner) noun(start int) string {
	if len(s.found.values) == 0 {
		return ""
	}
	last := s.found.values[len(s.found.values)-1]
	if !last.splitLast || strings.Trim(s.line[last.Next:start], " ,|(\t") != "" {
		return ""
	}
	return last.show[strings.IndexByte(last.show, '/')+1:]
}

// ofNumber reports whether a number between two words tells apart what has a name, of indented
// lines below one that counts: "  Style 1 loss: 0.5".
func (s *scanner) ofNumber(first, last, start int) bool {
	return s.below && s.line[first] == ' ' && last+4 > start && lexis.AllDigits(strings.Trim(s.line[last:start], " ")) && s.phrase == lexis.SkipBlanks(s.line, first) && sense.Of(s.before) == unknown
}

// endsColumn reports whether a number that ends at i ends its column: at the end
// of the line, before a separator, or before the next name with a number.
func (s *scanner) endsColumn(i int) bool {
	line := s.line
	if i < len(line) && (line[i] == '%' || line[i] == '*') {
		i++
	}
	at := lexis.SkipBlanks(line, i)
	if at >= len(line) || at > i+1 || strings.IndexByte(",;|)]", line[at]) >= 0 || line[at] >= 0x80 || line[at] == '.' && at+1 == len(line) {
		return true
	}
	start, end := lexis.NextKey(line, at)
	if start == at && lexis.IsMeasure(line[start:end]) { // 1.455 nats
		return s.endsColumn(end)
	}
	if start != at {
		return line[at] == '-' || line[at] == '(' || line[at] == '['
	}
	for range 3 { // of several words
		sep, value := lexis.Separator(line, end)
		if sep == 0 {
			return false
		}
		if _, ok := lexis.Number(line, value); ok {
			return true
		}
		start, end = lexis.NextKey(line, value)
		if end < 0 || start != value {
			return false
		}
	}
	return false
}
