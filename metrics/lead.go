package metrics

import (
	"cmp"
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// lead reads a counter that has no name, at the beginning of a line: "[18] ",
// "[1,800] ", "<10> ", "250:\t", " 10) ".
func (s *scanner) lead(i int) int {
	line := s.line
	at := lexis.SkipBlanks(line, i)
	if at+2 >= len(line) {
		return i
	}
	if next := s.beforeUnit(at); next > 0 {
		return next
	}
	if next := cmp.Or(s.pair(at), s.ofData(at)); next > 0 {
		return next
	}
	if n, ok := lexis.Share(line); ok && i == 0 { // what so long a part of a run has a line of its own for
		s.found.counters = append(s.found.counters, counterOf(n, unitEpoch))
		s.mark("/")
		return len(line)
	}
	c := counter{unit: unitStep}
	open, close := line[at] == '[' || line[at] == '<', byte(']')
	if line[at] == '<' {
		close = '>'
	}
	if open {
		at = lexis.BehindNo(line, lexis.SkipBlanks(line, at+1))
	}
	if c, next := s.leads(at, open); next > 0 {
		s.found.counters = append(s.found.counters, c)
		s.mark("[")
		s.phrase = next
		return next
	}
	end := lexis.Thousands(line, at, lexis.Digits(line, at))
	if end == at || end-at > 9 || end+1 >= len(line) {
		return i
	}
	next, number := line[end], line[at:end]
	if open && next == ' ' { // "[10 epochs]: TRAIN:[loss=0.5]"
		start, stop := lexis.NextKey(line, end)
		if u, _ := unitOf(line[start:max(start, stop)]); u != noUnit && start == end+1 && stop < len(line) && line[stop] == close {
			c.unit, end, next = u, stop, close
		}
	}
	if end+1 >= len(line) {
		return i
	}
	behind := line[end+1]
	switch {
	case open && next == close && (behind == ' ' || behind == '\t' || c.unit != unitStep && behind == ':'):
	case !open && next == ':' && behind == '\t':
	case !open && next == ')' && behind == ' ':
	default:
		return i
	}
	c.n, c.at = float64(lexis.SmallInt(strings.ReplaceAll(number, ",", ""))), at
	if step, after, ok := ofTotal(line, lexis.SkipBlanks(line, end+1)); open && ok && c.unit == unitStep && step.n == math.Trunc(step.n) && strings.HasPrefix(line[after:], " |") { // "[  3]    120 || loss"
		c.unit, step.unit, step.global = unitEpoch, unitStep, true
		s.found.counters = append(s.found.counters, c, step)
		s.mark("[")
		s.phrase = after
		return after
	}
	c.global = c.unit == unitStep
	c.bare = c.global
	s.found.counters = append(s.found.counters, c)
	s.mark("[")
	s.phrase = end + 1
	return end + 1
}

// leads reads a counter with its word in a bracket, "[E=1] ", or with its total before a colon,
// "40/1000: "; next is 0 where there is none at i.
func (s *scanner) leads(i int, open bool) (c counter, next int) {
	line, unit := s.line, unitStep
	if open {
		word := i
		for word < len(line) && lexis.IsLetter(line[word]) {
			word++
		}
		if c, next, ok := ofTotal(line, i); word == i && ok && s.epochs && c.total > 0 && c.n <= c.total && strings.HasPrefix(line[next:], "]\t") { // [80/320]	[L1: 20.6]
			c.unit, c.inEpoch, c.restarts = unitStep, true, true
			return c, next + 1
		}
		if unit = gluedUnits[strings.ToLower(line[i:word])]; unit == noUnit || word == len(line) || line[word] != '=' {
			return c, 0
		}
		i = word + 1
	}
	c, next, ok := ofTotal(line, i)
	c.unit, c.vague = unit, !open
	switch {
	case !ok || next+1 >= len(line) || c.total > 0 && c.n > c.total:
	case !open && c.total > 0 && strings.HasPrefix(line[next:], " (epoch "): // 10/200 (epoch 1)
		return c, next
	case line[next+1] == ' ' && (open && line[next] == ']' || !open && line[next] == ':' && c.total > 0):
		return c, next + 1
	case !open && strings.HasPrefix(line[next:], " | ") && next+3 < len(line) && lexis.IsLetter(line[next+3]) && c.total == 0 && c.times == 0:
		c.global, c.bare = true, true
		return c, next + 1
	}
	return c, 0
}

// beforeUnit reads "1/3 * Epoch (train):" and "12/100 steps", where the word for
// what is counted stands behind; 0 when it is not there.
func (s *scanner) beforeUnit(at int) int {
	line := s.line
	if !lexis.IsDigit(line[at]) {
		return 0
	}
	c, next, ok := ofTotal(line, at)
	if !ok || c.total == 0 && c.times == 0 { // 2.5k steps
		return 0
	}
	word := next
	for word < len(line) && word-next < 4 && strings.IndexByte(" *-|", line[word]) >= 0 {
		word++
	}
	start, end := lexis.NextKey(line, word)
	if word == next || start != word || end < 0 {
		return 0
	}
	u, _ := unitOf(line[start:end])
	if u == noUnit {
		return 0
	}
	c.unit = u
	s.found.counters = append(s.found.counters, c)
	s.mark(line[start:end])
	s.phrase = end
	return end
}

// ofData reads "[ Train | 001/020 ]" and "[ Val | Epoch 01/10 ]", of which data the line is and the epoch; 0 when
// it is not there.
func (s *scanner) ofData(at int) int {
	start, end := lexis.NextKey(s.line, at)
	if s.line[at] != '[' || start != lexis.SkipBlanks(s.line, at+1) || splits[strings.ToLower(s.line[start:end])] == "" {
		return 0
	}
	wall := lexis.SkipBlanks(s.line, end)
	if wall >= len(s.line) || s.line[wall] != '|' {
		return 0
	}
	number := lexis.SkipBlanks(s.line, wall+1)
	if word, stop := lexis.NextKey(s.line, number); word == number {
		if u, _ := unitOf(s.line[word:stop]); u != unitEpoch {
			return 0
		}
		number = lexis.SkipBlanks(s.line, stop)
	}
	epoch, next, ok := ofTotal(s.line, number)
	if next = lexis.CloseBracket(s.line, next); !ok || next == 0 || epoch.total == 0 {
		return 0
	}
	epoch.unit = unitEpoch
	s.found.counters = append(s.found.counters, epoch)
	s.sticky = splits[strings.ToLower(s.line[start:end])]
	s.mark("|")
	s.phrase = next
	return next
}

// pair reads "[0/25][50/1583]", which is epoch and step; 0 when it is not there.
func (s *scanner) pair(at int) int {
	line := s.line
	if line[at] != '[' {
		return 0
	}
	epoch, next, ok := ofTotal(line, lexis.InBracket(line, at))
	switch {
	case ok && epoch.total == 0 && strings.HasPrefix(line[next:], ": "): // [0: 10/100]
		at = lexis.SkipBlanks(line, next+1)
	case !ok || epoch.total == 0 || next+1 >= len(line) || line[next] != ']' || line[next+1] != '[':
		return 0
	default:
		at = lexis.InBracket(line, next+1)
	}
	step, end, ok := ofTotal(line, at)
	if !ok || step.total == 0 || end >= len(line) || line[end] != ']' {
		return 0
	}
	epoch.unit, step.unit, step.inEpoch = unitEpoch, unitStep, true
	s.found.counters = append(s.found.counters, epoch, step)
	s.mark("[")
	s.phrase = end + 1
	return end + 1
}

// evaluated reads the counters of "Epoch(val) [1][20/120]": the
// first is where the training is.
func (s *scanner) evaluated(at int) int {
	at = lexis.SkipBlanks(s.line, at)
	if at >= len(s.line) || s.line[at] != '[' {
		return at
	}
	c, next, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, at+1))
	if !ok || next+1 >= len(s.line) || s.line[next] != ']' {
		return at
	}
	s.evaluates = true
	if s.line[next+1] == '[' {
		c.unit = unitEpoch
		s.found.counters = append(s.found.counters, c)
		s.mark("epoch")
		if _, end, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, next+2)); ok {
			next = end
		}
	}
	return min(next+1, len(s.line))
}

// place is where a line goes on behind what a logger says of the place in the
// code or on the network that the line comes from, when a key ends at i:
// "yolox.core.trainer:246 - ", "worker-17:0 "; 0 where it says nothing of that.
func (s *scanner) place(key string, i int) int {
	if len(s.found.counters)+len(s.found.values) > 0 || i+1 >= len(s.line) || s.line[i] != ':' || !lexis.IsDigit(s.line[i+1]) ||
		!strings.ContainsAny(key, ".-") || sense.Of(strings.ToLower(key)) > never {
		return 0
	}
	end := lexis.Digits(s.line, i+1)
	if end == len(s.line) || strings.IndexByte(" \t]", s.line[end]) < 0 {
		return 0
	}
	return end
}

// rateAlone reads the rate that is all a line says of a step: "Iter #0: 310.1 img/sec per GPU".
func (s *scanner) rateAlone() {
	c := s.found.counters[0]
	colon := strings.IndexByte(s.line[c.at:], ':')
	if colon < 0 || colon > 12 {
		return
	}
	at := lexis.SkipBlanks(s.line, c.at+colon+1)
	f, ok := lexis.Number(s.line, at)
	if !ok || !lexis.IsRateUnit(s.line, f.Next) {
		return
	}
	start := lexis.SkipBlanks(s.line, f.Next)
	end := start
	for end < len(s.line) && lexis.IsKeyByte(s.line[end]) {
		end++
	}
	s.phrase = start
	s.value(start, end, value{figure: f})
}

// walled reads the value behind a wall that is all a line says of a step: "Step  100: eval  Accuracy |  0.71".
func (s *scanner) walled() {
	start, end, number := remark.Walled(s.line, s.found.counters[0].at)
	if f, ok := lexis.Number(s.line, number); ok && end > start {
		s.phrase, s.split = start, ""
		s.value(start, end, value{figure: f})
	}
}

// nameless reads the number that is all a line says of a step: "Step 1000: 0.2331", "epoch 3 - 1.5459". It is
// called a value, and has to come more often than one with a name.
func (s *scanner) nameless() {
	c := s.found.counters[0]
	_, next, _ := ofTotal(s.line, c.at)
	at := remark.Nameless(s.line, next)
	if f, ok := lexis.Number(s.line, at); ok && at > 0 && c.leads && c.unit != unitBatch && f.Real && f.Next == len(s.line) && len(s.found.values) == 0 {
		s.found.values = append(s.found.values, value{term: term{show: "value", kind: unknown}, figure: f, bare: true})
		s.mark("value")
	}
}

// ends reads what only the end of a line tells: how far the epoch is, behind a value,
// "loss: 2.30  [  640/60000]", or what the sentence was about that begins at i.
func (s *scanner) ends(i int) {
	if n := len(s.found.values); n > 0 && len(s.found.counters) == 0 {
		if at := remark.Behind(s.line); at > 0 && s.epochs && !strings.Contains(s.found.values[n-1].show, "acc") {
			c, _, _ := ofTotal(s.line, at)
			c.unit, c.inEpoch = unitStep, true
			s.found.counters = append(s.found.counters, c)
			s.mark("]")
		}
		return
	}
	if len(s.found.values)+len(s.found.counters) > 0 {
		return
	}
	end, behind, number := remark.Sentence(s.line, i)
	if end == 0 {
		return
	}
	f, _ := lexis.Number(s.line, number)
	said := ""
	for word := range strings.FieldsSeq(s.line[behind : number-1]) {
		said = cmp.Or(said, splits[strings.Trim(word, ":,")])
	}
	if v := known(s.names.term(s.line[i:end], said), f); v.kind >= weak && v.show != "" {
		s.found.values, s.found.sentence = append(s.found.values, v), true
		s.mark(v.show)
	}
}

// beforePlace are what stands between the name of a value and its place.
var beforePlace = [...]string{" at end of ", " at the end of ", " at ", " after ", " for ", " in ", " (", " @ ", " @", " "}

// atPlace reads "Training loss (for one batch) at step 200: 1.2", "Cost after epoch 3 = 0.5", "Loss step 3: 0.5"
// and "The loss for the pretraining iteration 3 is 0.5", whose step begins at start and ends at next.
func (s *scanner) atPlace(start, next int) (v value, end int, ok bool) {
	if n := len(s.found.counters); n > 1 && strings.Trim(s.line[s.placed[1]:start], " ,") == "" { // "loss in epoch 1 iteration 3: 0.7"
		start = s.placed[0]
	}
	s.placed = [2]int{start, next}
	name, of := s.line[min(s.from, start):start], false
	if before, phase, ok := strings.Cut(name, " for the "); ok && strings.Count(phase, " ") == 1 {
		name = strings.TrimPrefix(before, "The ") + " for "
	}
	for _, word := range beforePlace {
		if name, of = strings.CutSuffix(name, word); of {
			break
		}
	}
	if !of || len(s.found.values) > 0 {
		return v, 0, false
	}
	rest := strings.TrimLeft(s.line[next:], ") ")
	end = len(s.line) - len(rest)
	switch {
	case strings.HasPrefix(rest, "is ") || strings.HasPrefix(rest, "is: ") || strings.HasPrefix(rest, "was "): // "Score at iteration 10 is 0.5"
		end += strings.IndexByte(rest, ' ')
	case rest != "" && (rest[0] == ':' || rest[0] == '='):
		end++
	default:
		return v, 0, false
	}
	name, _, _ = strings.Cut(name, " (")
	if i := strings.LastIndexAny(name, ":|]"); i >= 0 {
		name = name[i+1:]
	}
	if name = strings.TrimSpace(name); name == "" || len(name) > longestName {
		return v, 0, false
	}
	v.figure, ok = lexis.Number(s.line, lexis.SkipBlanks(s.line, end))
	v.term = s.names.term(name, "")
	known := v.kind >= weak || v.kind == unknown && v.term.split != "" && !v.bareSplit
	return v, v.figure.Next, ok && known && v.show != "" && v.Real && lexis.StandsAlone(s.line, v.figure.Next)
}

// countedAfter reads the number before a word that counts, which begins at start: "Loss after 10
// iterations: 0.5".
func (s *scanner) countedAfter(start int, u unit) (c counter, at int, ok bool) {
	before := strings.TrimRight(s.line[:start], " ")
	at = len(strings.TrimRight(before, "0123456789"))
	if at == len(before) || len(before) == start || !strings.HasSuffix(before[:at], " after ") {
		return c, 0, false
	}
	c, _, ok = ofTotal(s.line, at)
	c.unit = u
	return c, at, ok
}

// ordinal reads "第3轮", whose number is inside the word that counts.
func (s *scanner) ordinal(key string, end int) bool {
	c, next, ok := ofTotal(s.line, end-len(key)+len("第"))
	if !ok || next > end || unitWords[s.line[next:end]] == noUnit {
		return false
	}
	c.unit = unitWords[s.line[next:end]]
	s.found.counters = append(s.found.counters, c)
	s.mark("第")
	s.phrase = end
	return true
}

// afterCounter reports whether a word in brackets says of what data a line is whose
// place was told before it: "Epoch 1 (train) loss: 0.5".
func (s *scanner) afterCounter(start, end int) bool {
	if n := len(s.found.values); n > 0 && (start < 2 || strings.Trim(s.line[s.found.values[n-1].Next:start-1], " ,;|") != "" || end+2 >= len(s.line) || !lexis.IsLetter(s.line[end+2])) { // "(train) loss: 0.5 (val) loss: 0.6"
		return false
	}
	return len(s.found.counters)+len(s.found.values) > 0 && start > 0 && s.line[start-1] == '(' && end < len(s.line) && s.line[end] == ')' &&
		(end+1 == len(s.line) || s.line[end+1] == ' ')
}

// spoken reads "Avg reward over last 100 episodes: 12.3"; 0 for any other line.
func (s *scanner) spoken(start, end int) int {
	from, stop := remark.Spoken(s.line, s.from, start)
	sep, at := lexis.Separator(s.line, end)
	if f, ok := lexis.Number(s.line, at); ok && stop > from && sep != ' ' && sep != 0 {
		s.phrase, s.mean = from, true
		defer func() { s.mean = false }()
		if s.value(from, stop, value{figure: f}) {
			if last := &s.found.values[len(s.found.values)-1]; strings.HasPrefix(s.line[stop:], " per ") { // beside that of the whole epoch
				last.show = s.names.averaged(last.show)
			}
			return s.behind(f.Next)
		}
	}
	return 0
}
