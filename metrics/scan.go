package metrics

import (
	"cmp"
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// longestName bounds the text of one name.
const longestName = 64

// found is what one line says: where the run is, and values with names.
type found struct {
	counters []counter
	values   []value
	shape    uint64  // the same for lines that have the same names in the same order
	pass     counter // of a line of a validation pass: "Test: [ 3/10]"
	split    string  // what the line says that it is about
	sentence bool    // a sentence says it, perhaps once more
}

// value is a name with a number beside it.
type value struct {
	term
	figure
	mean    float64 // the running average behind it: "0.3 (0.5)"
	meanAt  int
	hasMean bool
	blank   bool   // only a blank stood between the two
	paired  bool   // the two are a pair in brackets: ('loss', 0.5)
	list    bool   // the first of several
	rate    bool   // a unit such as samples/sec follows
	sure    bool   // a metric at first sight
	doubt   bool   // only a blank stood before it, and its name says nothing
	owner   string // the label before it
	best    string // of the best that there was so far, the name of what it is of
	bare    bool   // nothing names it
	recurs  bool   // it is a metric when it comes at another place, whether it moves or not
}

// scanner finds "key: value", "key=value" and, for words that are known, "key
// value" in a line, and the counters of epochs and steps.
type scanner struct {
	names understood
	passedOver
	pairs     []braces.Pair // reused
	line      string
	found     found
	before    string // the word before the present one, when only a blank is between
	from      int    // where the message begins
	phrase    int    // where the words began that may belong to the present name
	split     string // said right before: "val loss"
	sticky    string // said of all that follows: "val: loss 0.4 acc 0.8"
	aside     string // said in brackets: "(train)0.8s + (eval)0.4s: train loss = 0.2, recall = 0.1"
	assumed   bool   // something else than this line says where the run is
	under     bool   // the line before only counts, and nothing here does
	epochs    bool   // a line before has told of an epoch
	goesOn    bool   // or of a step
	below     bool   // the line before was a name and a number alone, as this one is
	step1     bool   // the first counter is glued to its word, which counts other things too
	placed    [2]int // where the last places begin and end
	mean      bool   // brackets behind the present name say that its value is an average
	inDict    bool   // names and values are told apart by their form
	evaluates bool   // "Epoch(val) [1][20/120]": a line of an evaluation
	group     string // of "tot_loss[loss=0.5, over 10 frames]" what the bracket is of,
	groupEnd  int    // and where it closes
	owner     string // the label before: "pretrained: loss 0.4"
	thing     string // the line is of one of several: "class 0: IoU 0.71"
	torn      string // the name whose number runs into other text: "loss 0.4step 2 loss 0.7" is of two that wrote into one line
}

// scan reads one line from i on, where said is what is known of the data that
// it is about. What it returns is good until the next scan.
func (s *scanner) scan(line string, i int, said string) found {
	return s.scanAs(line, i, said, false)
}

// scanAs reads a line of which it may be known that something else says where
// the run is.
func (s *scanner) scanAs(line string, i int, said string, assumed bool) found {
	*s = scanner{names: s.names, passedOver: s.passedOver, pairs: s.pairs, below: s.below, under: s.under, epochs: s.epochs, goesOn: s.goesOn, line: line, sticky: said, assumed: assumed, from: i, phrase: i, found: found{
		counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}}
	i = s.lead(i)
	first := i
	last := -1
	for {
		start, end := lexis.NextKey(line, i)
		if end < 0 {
			break
		}
		if lexis.IsDigit(line[start]) && sense.CountsBefore(line[start:end]) {
			i = end
			continue
		}
		if last < 0 || !lexis.Continues(line[last:start]) && !s.ofNumber(first, last, start) || line[last-1] == '.' && !sense.Shortened(s.before, lexis.IsBehindNumber(line, last)) {
			s.before, s.split, s.phrase = "", "", start
		}
		if start == lexis.SkipBlanks(line, first) && s.sticky == "" { // "Validation Results - Epoch: 1  Avg loss: 0.2"
			s.sticky = splits[strings.ToLower(line[start:end])]
		}
		i, last = s.key(start, end), end
		if i > end { // it had a value: what follows is about something else
			s.before, s.split, last = "", "", -1
		}
	}
	if remark.TellsBest(line, first, len(s.found.counters) > 0) {
		s.found.values = s.found.values[:0]
		s.bestAlone(first)
	} else if len(s.found.values) > 0 {
		s.beforeKept(remark.Kept(line, first))
	}
	if s.step1 && len(s.found.values) == 0 { // "step1: download the data"
		s.found.counters = s.found.counters[1:]
	}
	s.found.split = s.sticky
	scored := false
	for _, v := range s.found.values {
		scored = scored || v.kind == score || !v.blank && v.Real && (v.kind == weak || v.kind == unknown)
	}
	if len(s.found.values) == 0 && len(s.found.counters) == 1 {
		if s.rateAlone(); len(s.found.values) == 0 {
			s.walled()
			s.nameless()
		}
	}
	if len(s.found.values) == 0 && len(s.found.counters) > 0 {
		s.reversed()
	}
	s.ends(first)
	if len(s.found.values) > 0 && len(s.found.counters) == 0 && !s.assumed && !s.goesOn && remark.Fold(line[first:]) >= 0 {
		s.passedOver.add(s.found.values[0].show, "it is of one fold, and a curve of several is of none")
		s.found.values = s.found.values[:0]
	}
	s.found.counters = positions(s.found.counters, scored, s.epochs)
	s.found.values = s.judged()
	return s.found
}

// key looks at one word and returns where to go on.
func (s *scanner) key(start, end int) int {
	line := s.line
	if name := s.numbered(start, end); name > start {
		start, s.phrase = name, name
	}
	if e := oddKey(line, start, end); e > 0 { // recall@thr=0.5: 0.9
		if f, ok := lexis.Number(line, lexis.SkipBlanks(line, e+1)); ok && lexis.StandsAlone(line, f.Next) {
			if s.value(start, e, value{figure: f}) {
				return s.behind(f.Next)
			}
		}
	}
	key := line[start:end]
	if len(key) > longestName || key == "s" && start > 1 && line[start-1] == '\'' && lexis.IsKeyByte(line[start-2]) || lexis.IsUnitOf(line, start, end) {
		return end
	}
	if remark.IsUnit(key) {
		if next := s.spoken(start, end); next > 0 {
			return next
		}
	}
	if next, ok := s.counted(key, end); ok {
		return next
	}
	if next := s.place(key, end); next > 0 {
		return next
	}
	if next := cmp.Or(s.bracketed(start, end), s.summed(key, end)); next > 0 {
		return next
	}
	named := lexis.NameEnd(line, end)
	if named == end && end < len(line) && line[end] == '|' && start > 0 && line[start-1] == '|' { // |grad|=0.5
		named++
	}
	if named == end && start > 0 && line[start-1] == '[' && strings.HasPrefix(line[end:], "] ") && sense.Of(strings.ToLower(key)) >= weak { // [loss_D] 0.5
		named++
	}
	sep, at := lexis.Separator(line, s.behindNote(line, named))
	if sep != 0 {
		if v, ok := s.valueAt(at); ok && s.accept(start, named, sep, &v) {
			return s.behind(v.Next)
		}
		if at < len(line) && line[at] == '{' && sep != ' ' && settingsWords[key] {
			if close := strings.IndexByte(line[at:], '}'); close > 0 {
				return at + close + 1
			}
		}
	}
	if end < len(line) && line[end] == '[' && end+1 < len(line) && lexis.IsLetter(line[end+1]) {
		if close := strings.IndexByte(line[end:], ']'); close > 0 && strings.IndexByte(line[end:end+close], '=') > 0 {
			s.group, s.groupEnd = key, end+close
		}
	}
	s.context(key, start, end)
	return end
}

// counted reads a word that counts: "epoch 1/3", "Test: [ 3/10]".
func (s *scanner) counted(key string, end int) (next int, ok bool) {
	if next, ok = s.passed(key, end); ok || s.glued(key, end) || strings.HasPrefix(key, "第") && s.ordinal(key, end) {
		return max(next, end), true
	}
	at := end
	u, _ := unitOf(key)
	if u == noUnit && !s.joined(key) {
		if n := len(s.found.counters); n > 0 && len(key) == 1 && key[0] >= 'i' && key[0] <= 'k' && strings.HasPrefix(s.line[end:], ":") && s.found.counters[n-1].unit == unitBatch {
			s.found.counters = s.found.counters[:n-1] // "batch: 0 | i: 100": a loop in a loop counts anew in each
		}
		return 0, false
	}
	if at < len(s.line) && s.line[at] == '(' { // Epoch(train) [1]
		if close := strings.IndexByte(s.line[at:], ')'); close > 0 && splits[s.line[at+1:at+close]] != "" {
			s.sticky = splits[s.line[at+1:at+close]]
			at += close + 1
			if s.sticky != "train" {
				return s.evaluated(at), true
			}
		}
	}
	if strings.HasPrefix(s.line[at:], "#:") { // step#: 100
		at++
	}
	sep, at := lexis.Separator(s.line, lexis.BehindSeen(s.line, at))
	if n := end + len("=="); strings.HasPrefix(s.line[end:], "==") && lexis.Digits(s.line, n) > n { // "Epoch==3 early stop"
		sep, at = '=', n
	}
	c, next, ok := s.counter(key, sep, at)
	if !ok {
		if n, ok := lexis.OrdinalBefore(s.line[:end-len(key)]); ok {
			s.found.counters = append(s.found.counters, counterOf(n, u))
			s.mark(key)
			return end, true
		}
		if c, at, ok := s.countedAfter(end-len(key), u); ok {
			if v, next, ok := s.atPlace(at, end); ok {
				s.found.counters = append(s.found.counters, c)
				s.mark(key)
				s.found.values = append(s.found.values, v)
				s.mark(v.show)
				return next, true
			}
		}
		if _, plural := unitOf(key); plural { // "Val steps: 4" is how many there were
			return 0, false
		}
		if s.sticky == "" && splits[s.before] != "train" { // "val step 20 | loss 1.8"
			s.sticky = splits[s.before]
		}
		return 0, false
	}
	if s.before == "at" && s.counts(c.unit) { // "epoch: 13 dice: 0.78 best dice: 0.91 at epoch: 12"
		return next, true
	}
	if split := splits[strings.TrimSuffix(s.before, ".")]; split != "" { // "eval epoch: 1, loss: 0.5"
		s.sticky = split
	}
	c.leads = len(s.found.counters)+len(s.found.values) == 0 && end-len(key) == lexis.SkipBlanks(s.line, s.from)
	c.first = end == len(key)+1 && s.line[0] == '['
	s.loops(key, c, end-len(key))
	s.found.counters = append(s.found.counters, c)
	s.mark(key)
	if v, end, ok := s.atPlace(end-len(key), next); ok && c.unit != unitBatch {
		s.found.values = append(s.found.values, v)
		s.mark(v.show)
		return end, true
	}
	return s.within(c, next), true
}

// passed reads "Test: [ 3/10]" and "Train: 0 [ 10/99 ( 10%)]".
func (s *scanner) passed(key string, end int) (next int, ok bool) {
	split := splits[strings.ToLower(key)]
	if split == "" || end >= len(s.line) || s.line[end] != ':' && !strings.HasPrefix(s.line[end:], " [") {
		return 0, false
	}
	at := lexis.SkipBlanks(s.line, end+1)
	epoch, at2, hasEpoch := ofTotal(s.line, at)
	if hasEpoch {
		at = lexis.SkipBlanks(s.line, at2)
	}
	if at >= len(s.line) || s.line[at] != '[' {
		return 0, false
	}
	c, next, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, at+1))
	if !ok || hasEpoch && c.total == 0 {
		return 0, false
	}
	if next = lexis.CloseBracket(s.line, next); next == 0 || c.total == 0 && (next >= len(s.line) || s.line[next] != '[') {
		return 0, false
	}
	if !hasEpoch && next < len(s.line) && s.line[next] == '[' { // Train: [0/30][ 10/312]
		if in, end, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, next+1)); ok && in.total > 0 {
			if end = lexis.CloseBracket(s.line, end); end > 0 {
				epoch, hasEpoch, c, next = c, true, in, end
			}
		}
	}
	if c.total == 0 {
		return 0, false
	}
	s.sticky = split
	s.mark(key)
	if hasEpoch {
		epoch.unit = unitEpoch
		s.found.counters = append(s.found.counters, epoch)
	}
	c.unit, c.inEpoch = unitStep, true
	if split != "train" {
		s.found.pass = c
	} else if hasEpoch {
		s.found.counters = append(s.found.counters, c)
	}
	return next, true
}

// accept takes a value of the phrase before named, when it can be one.
func (s *scanner) accept(start, named int, sep byte, v *value) bool {
	line := s.line
	v.rate = lexis.IsRateUnit(line, v.Next)
	if !v.rate && lexis.HasUnit(line, v.Next) && !(sep == ' ' && v.Real && lexis.LeastBehind(line, v.Next)) || v.IsIndex(line) {
		return false
	}
	v.blank, v.paired = sep == ' ', sep == ','
	return !(v.blank && (remark.Names(line, start) || lexis.RowOf(line, v.Next) || line[start:named] == "learn")) && s.value(start, named, *v)
}

func (s *scanner) value(start, end int, v value) bool {
	said, from := cmp.Or(s.split, s.sticky), start
	if s.phrase < start && end-s.phrase <= longestName {
		from = s.phrase
	}
	from = remark.Top(s.line, lexis.BehindUnit(s.line, from, start))
	name := s.line[from:end]
	if s.group != "" && end < s.groupEnd && !v.blank {
		if from = start; strings.HasSuffix(strings.ToLower(s.group), strings.ToLower(s.line[start:end])) {
			name = s.group
		} else {
			name = s.names.owned(s.group, s.line[start:end])
		}
	}
	if of := remark.GroupOf(s.line, start, end); of != "" {
		name = of + "_" + strings.TrimPrefix(name, of+" ")
	}
	if v.term = s.names.term(name, said); v.kind == unknown && strings.Contains(name, " valid ") {
		v.term = s.names.term(name, "")
	}
	if v.weak && !v.blank && strings.HasPrefix(name, "mAP") { // no map of anything
		v.kind, v.weak = score, false
	}
	if s.thing != "" && v.kind >= weak {
		v.show, v.Start = s.names.owned(s.thing, v.show), -1
	}
	if v.bareSplit {
		if noun := s.noun(start); noun != "" { // "loss train: 2.8, val: 2.9"
			v.term = s.names.term(noun, v.term.split)
		} else if !v.blank && s.owner != "" && sense.Of(strings.ToLower(s.owner)) >= weak { // "Loss: train=0.5, val=0.6"
			v.term, s.sticky = s.names.term(s.owner, v.term.split), ""
		} else if !v.Real || v.blank && len(s.found.counters) == 0 {
			return false
		}
	}
	if v.blank && v.Real && s.isCell(v.Next) {
		v.blank = false
	}
	if v.kind == never && v.Real && len(s.found.counters) > 0 && (strings.EqualFold(v.show, "total") && !v.blank || !v.blank && sense.Parted[v.show] || strings.HasSuffix(v.show, "_value") && !v.blank || v.show == "value" && remark.IsValue(s.line, start, v.blank)) { // of losses, not of things
		v.kind = unknown
	}
	if v.kind == never && v.Real && lexis.IsQuantity(v.show) && (!v.blank || s.tiled()) { // D: 0.5, f 12.5
		v.kind = unknown
	}
	if v.weak && v.term.split != "" && !v.Real {
		v.kind = weak
	}
	if v.kind == never || v.show == "" || len(v.show) > longestName || strings.HasSuffix(v.show, "losses") && (v.list || !v.Real) || v.list && v.kind < measure && !(v.kind == unknown && v.Real && s.lists()) || !v.Real && v.kind == unknown && v.term.split == "val" && remark.IsAllowed(name) {
		s.passedOver.add(v.show, "its name is that of a count, a clock, a size or a setting")
		return false
	}
	if v.blank && v.kind < measure {
		if !v.Real || v.bareSplit && len(s.found.counters) == 0 || !s.endsColumn(v.Next) || len(v.show) < 2 && !s.tiled() {
			return false
		}
		v.doubt = true
	}
	if v.term.split != "" && !v.bareSplit { // of the values behind it, too: "train loss 0.5 acc 0.8 | val loss 0.6 acc 0.7"
		s.sticky = v.term.split
		if s.aside != "" && s.sticky == "train" {
			s.sticky = s.aside
		}
	}
	if over, ok := ratio(s.line, v); ok {
		v.figure = over
	} else if times, end := lexis.Thousandfold(s.line, v.Next); end > v.Next && v.kind >= measure && lexis.StandsAlone(s.line, end) { // tokens_per_sec: 212K
		v.Value, v.Start = math.Round(v.Value*times*1e6)/1e6, -1
	} else if !lexis.StandsAlone(s.line, v.Next) && !v.list {
		s.torn = v.show
		return false
	}
	if s.torn != "" && s.torn == v.show {
		return false
	}
	v.owner, v.average = s.owner, v.average || s.mean
	v.rate = v.rate && v.kind < weak // what follows a loss is the name of the next value
	s.found.values = append(s.found.values, v)
	s.mark(v.show)
	return true
}

// behind reads the average behind the last value: "0.3 (0.5)".
func (s *scanner) behind(next int) int {
	at := lexis.SkipBlanks(s.line, next)
	if strings.HasPrefix(s.line[at:], "% (") {
		return max(s.ofOthers(at+len("% (")), next)
	}
	if at >= len(s.line) || s.line[at] != '(' {
		return lexis.BehindGlued(s.line, next)
	}
	at = lexis.SkipBlanks(s.line, at+1)
	if end := cmp.Or(s.ofSplits(at), s.ofOthers(at)); end > 0 {
		return end
	}
	if start, end := lexis.NextKey(s.line, at); start == at && end > at && averages[s.line[start:end]] { // "0.3 (avg 0.5)"
		at = lexis.SkipBlanks(s.line, end)
		if at < len(s.line) && (s.line[at] == ':' || s.line[at] == '=') {
			at = lexis.SkipBlanks(s.line, at+1)
		}
	}
	f, ok := lexis.Number(s.line, at)
	if !ok || f.Next >= len(s.line) || s.line[f.Next] != ')' {
		return next
	}
	last := &s.found.values[len(s.found.values)-1]
	last.mean, last.meanAt, last.hasMean = f.Value, f.Start, true
	return f.Next + 1
}

// context keeps what a word without a value says about the next one.
func (s *scanner) context(key string, start, end int) {
	if start > 0 && s.line[start-1] == '=' { // split=val, collection=training_eval/c4
		s.phrase = lexis.SkipBlanks(s.line, end)
		for part := range strings.FieldsFuncSeq(strings.ToLower(key), func(r rune) bool { return r == '_' || r == '/' || r == '-' }) {
			if split := splits[part]; split != "" {
				s.sticky = split
			}
		}
	}
	lower := key
	if split := splits[key]; split == "" {
		lower = strings.ToLower(key)
	}
	s.before = lower
	split := splits[lower]
	switch lower {
	case "set", "avg", "average", "mean", "batch", "epoch": // "test set: average loss: 0.3"
		split = s.split
	}
	s.split = split
	if split != "" && split != "train" && start > 0 && s.line[start-1] == '(' && end < len(s.line) && s.line[end] == ')' {
		s.aside = split
	}
	if open := strings.TrimLeft(s.line[end:], " "); split != "" && len(open) > 1 && open[0] == '(' && lexis.IsLetter(open[1]) && strings.ContainsAny(open[:strings.IndexByte(open+")", ')')], ":=") {
		s.sticky = split // test (NDCG@10: 0.3, HR@10: 0.5)
	}
	if key == "CV" { // of a cross-validation
		s.split, s.sticky = "val", "val"
	}
	colon := end < len(s.line) && s.line[end] == ':'
	if split != "" && (colon || s.alone(start, end) || s.afterCounter(start, end) || lexis.IsLabel(s.line[end:]) || remark.Titles(s.line, start)) { // "Val Set - MSE: 0.4", "| valid on 'valid' subset |"
		s.sticky = split
	}
	if n := lexis.Digits(s.line, min(end+1, len(s.line))); n > end+1 && strings.HasPrefix(s.line[n:], ": ") && few[lower] && len(s.found.counters)+len(s.found.values) == 0 {
		s.thing = lower + "_" + s.line[end+1:n]
	} else if name, ok := remark.One(s.line, end); ok && few[lower] && start == lexis.SkipBlanks(s.line, s.from) { // "Task mnli -- dev acc: 84.4"
		s.thing = lower + "_" + name
	}
	s.thing = cmp.Or(s.thing, remark.Party(s.line, start, end))
	if colon && split == "" && end+1 < len(s.line) && s.line[end+1] == ' ' {
		s.owner = key
	}
}

// few are what there are a few of, each with values of its own: a curve of all would be of none.
var few = set(`class fold species task`)

// mark makes a name part of the line's shape (FNV-1a).
func (s *scanner) mark(name string) {
	h := s.found.shape
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	s.found.shape = (h ^ 0xff) * 1099511628211
}
