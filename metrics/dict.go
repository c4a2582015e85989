package metrics

import (
	"cmp"
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Bounds of what is read of one dictionary.
const (
	deepestDict = 6
	mostPairs   = 512
)

// keyed is one number of a dictionary, with the keys that lead to it.
type keyed struct {
	key   string // joined by '/'
	value float64
	text  string // what stood there when it is no number
	real  bool
}

// dict reads the dictionary that begins at i and ends the line, as JSON or as
// Python prints it. Numbers may be quoted.
type dict struct {
	text  string
	i     int
	pairs []keyed
	keys  []string
}

// readDict returns the numbers in a dictionary; false when text is none to its end.
func readDict(text string, buffer []keyed) ([]keyed, bool) {
	d := dict{text: text, pairs: buffer[:0]}
	if !d.object(0) || lexis.SkipBlanks(text, d.i) != len(text) {
		return nil, false
	}
	return d.pairs, true
}

func (d *dict) skip() byte {
	d.i = lexis.SkipBlanks(d.text, d.i)
	if d.i >= len(d.text) {
		return 0
	}
	return d.text[d.i]
}

func (d *dict) object(depth int) bool {
	if d.skip() != '{' || depth > deepestDict {
		return false
	}
	d.i++
	if d.skip() == '}' {
		d.i++
		return true
	}
	for {
		key, ok := d.quoted()
		if !ok || d.skip() != ':' {
			return false
		}
		d.i++
		d.keys = append(d.keys, key)
		if !d.item(depth) {
			return false
		}
		d.keys = d.keys[:len(d.keys)-1]
		switch d.skip() {
		case ',':
			d.i++
			if d.skip() == '}' {
				d.i++
				return true
			}
		case '}':
			d.i++
			return true
		default:
			return false
		}
	}
}

// quoted reads a string in either kind of quotes.
func (d *dict) quoted() (string, bool) {
	q := d.skip()
	if q != '"' && q != '\'' {
		return "", false
	}
	start := d.i + 1
	for i := start; i < len(d.text); i++ {
		switch d.text[i] {
		case '\\':
			i++
		case q:
			d.i = i + 1
			return d.text[start:i], true
		}
	}
	return "", false
}

func (d *dict) item(depth int) bool {
	switch c := d.skip(); {
	case c == '{':
		return d.object(depth + 1)
	case c == '[' || c == '(':
		return d.list(depth)
	case c == '"' || c == '\'':
		text, ok := d.quoted()
		if !ok {
			return false
		}
		d.add(text)
		return true
	}
	start := d.i
	for depth := 0; d.i < len(d.text); d.i++ {
		c := d.text[d.i]
		if c == '(' || c == '[' {
			depth++
		} else if c == ')' || c == ']' {
			depth--
		}
		if depth <= 0 && (c == ',' || c == '}') || depth < 0 {
			break
		}
	}
	d.add(strings.TrimSpace(d.text[start:d.i]))
	return d.i > start
}

// list skips a list; its first number stands for it when it is the only one.
func (d *dict) list(depth int) bool {
	start := d.i
	for ; d.i < len(d.text); d.i++ {
		switch d.text[d.i] {
		case '"', '\'':
			if _, ok := d.quoted(); !ok {
				return false
			}
			d.i--
		case '[', '(', '{':
			depth++
		case ']', ')', '}':
			depth--
		}
		if d.i > start && depth <= 0 && strings.IndexByte(")]}", d.text[d.i]) >= 0 {
			break
		}
		if depth > 64 {
			return false
		}
	}
	if d.i >= len(d.text) {
		return false
	}
	d.i++
	if inside := d.text[start+1 : d.i-1]; strings.IndexByte(inside, ',') < 0 {
		d.add(strings.TrimSpace(inside))
	}
	return true
}

func (d *dict) add(text string) {
	if len(d.pairs) >= mostPairs {
		return
	}
	p := keyed{text: text}
	if inside := lexis.Unwrapped(text, 0); inside > 0 {
		text, _, _ = strings.Cut(strings.Trim(text[inside:], "[)]"), ",")
	}
	if f, ok := lexis.Number(text, 0); ok && f.Next == len(text) {
		p.value, p.real, p.text = f.Value, f.Real, ""
	} else if p.text == "" {
		return
	}
	p.key = pathOf(d.keys)
	d.pairs = append(d.pairs, p)
}

// containers are members that hold what was measured, and not more: what they hold of
// one split has that for its first name.
var containers = set(`metrics metric logs scalars results values stats`)

// pathOf is the name of a value below keys: {"metrics": {"val": {"loss": {"value": 0.5}}}}
// is val/loss.
func pathOf(keys []string) string {
	if n := len(keys); n > 1 && keys[n-1] == "value" {
		keys = keys[:n-1]
	}
	if len(keys) > 2 && containers[keys[0]] && splits[keys[1]] != "" {
		keys = keys[1:]
	}
	if len(keys) == 1 {
		return keys[0]
	}
	return strings.Join(keys, "/")
}

// dict reads a line whose last part is a dictionary that begins at open. It
// reports false when it is not one, or has nothing to place it by.
func (s *scanner) dict(line string, from, open int, said string) (found, bool) {
	pairs, ok := readDict(strings.TrimSuffix(line[open:], "."), s.pairs)
	if !ok {
		return found{}, false
	}
	s.pairs = pairs[:0]
	*s = scanner{names: s.names, passedOver: s.passedOver, pairs: s.pairs, line: line, sticky: said, inDict: true, found: found{
		counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}}
	if before := strings.TrimRight(line[from:open], " "); before != "" { // "epoch 0: {…}", "train at step 100: {…}"
		f := s.scan(strings.TrimSuffix(before, ":"), 0, said)
		counters, about := append([]counter(nil), f.counters...), f.split
		if c, next, ok := ofTotal(before, 0); ok && c.total > 0 && len(counters) == 0 && strings.Trim(before[next:], " -") == "" { // "1/4 - {…}"
			c.unit, c.restarts = unitStep, true
			counters = append(counters, c)
		}
		values := ofBefore(f.values, from)
		if said == "" {
			if said = about; said == "" && len(values) == 1 {
				said = Split(values[0].show)
			}
		}
		s.inDict, s.line = true, line
		s.found.counters, s.found.values = append(s.found.counters[:0], counters...), append(s.found.values[:0], values...)
	}
	said = eventOf(pairs, line[from:open], said)
	for _, p := range pairs {
		if len(p.key) > longestName {
			continue
		}
		if c, ok := dictCounter(p); ok {
			s.found.counters = append(s.found.counters, c)
			s.mark(p.key)
			continue
		}
		if p.text != "" {
			continue
		}
		v := value{term: s.names.term(p.key, said), figure: figure{Value: p.value, Real: p.real}}
		if v.kind == never || v.show == "" {
			continue
		}
		s.found.values = append(s.found.values, v)
		s.mark(v.show)
	}
	for _, p := range pairs {
		if strings.HasSuffix(p.key, "_runtime") { // of the whole run
			if strings.HasPrefix(p.key, "train") {
				s.found.values = s.found.values[:0]
			}
		}
	}
	s.found.split = said
	s.found.values = s.judged()
	return s.found, true
}

// ofBefore are the losses and scores of the words before a dictionary, which begin at from:
// "Epoch 0 train_vae_loss 0.8: {…}".
func ofBefore(values []value, from int) (kept []value) {
	for _, v := range values {
		if v.kind == score && v.Real {
			v.Start, v.Next, v.meanAt = v.Start+from, v.Next+from, v.meanAt+from
			kept = append(kept, v)
		}
	}
	return kept
}

// eventOf names the value of an event, {"key": "loss", "value": 0.5}, after its
// key, and returns the data that a member says it is of: {"split": "val"}.
func eventOf(pairs []keyed, before, said string) string {
	name, value := "", -1
	if label, ok := strings.CutSuffix(strings.TrimRight(before, " "), ":"); ok { // eval_accuracy: {"value": 0.5}
		name = label[strings.LastIndexByte(label, ' ')+1:]
	}
	for i, p := range pairs {
		switch p.key {
		case "key", "name", "metric", "tag", "metric_name", "series":
			if p.text != "" && strings.IndexByte(p.text, ' ') < 0 {
				name = p.text
			}
		case "value":
			if p.text == "" {
				value = i
			}
		case "split", "phase", "mode", "stage", "subset", "partition", "event", "type", "_type", "kind":
			word, _, _ := strings.Cut(strings.ToLower(p.text), "_") // eval_step
			if split := splits[word]; split != "" && said == "" && (split != "train" || word == p.text) {
				said = split
			}
		}
	}
	if name != "" && value >= 0 {
		pairs[value].key = name
	}
	return said
}

// dictCounter takes a pair that says where the run is.
func dictCounter(p keyed) (counter, bool) {
	c := counter{n: p.value}
	if p.text != "" { // '12/94'
		var next int
		var ok bool
		if c, next, ok = ofTotal(p.text, 0); !ok || c.total == 0 || next < len(p.text) {
			return counter{}, false
		}
	}
	key := strings.TrimSuffix(p.key, maxSteps)
	key = key[strings.LastIndexByte(key, '/')+1:]
	if split, base := cutSplit(key); split != "" && isGlobal(base) { // train_num_updates
		key = base
	}
	u, plural := unitOf(key)
	global := isGlobal(key)
	if u == noUnit || plural && !global || u != unitEpoch && c.n != math.Trunc(c.n) || !(c.n >= 0 && c.n <= largestCount) {
		return counter{}, false
	}
	return counter{unit: u, n: c.n, total: c.total, global: global || u == unitStep && key == "step", inEpoch: u == unitBatch}, true
}

// above is what the line before said of a dictionary below it: "train | step: 100 | output:".
type above struct {
	split  string
	counts bool
}

// inBraces reads a line whose last part is a dictionary; false for any other.
func (r *Reader) inBraces(rest string, from int, about string) (f found, ok bool) {
	open := strings.IndexByte(rest[from:], '{')
	if open < 0 || open >= 160 || !strings.HasSuffix(strings.TrimSuffix(rest, "."), "}") {
		return f, false
	}
	return r.scanner.dict(rest, from, from+open, cmp.Or(splitAlone(rest[from:from+open]), about))
}

// splitAlone is the split that the last word before a dictionary is: "valid | {".
func splitAlone(before string) string {
	before = strings.TrimRight(before, " |:-=")
	word := strings.ToLower(before[strings.LastIndexByte(before, ' ')+1:])
	if split, of, _ := strings.Cut(word, "_"); containers[of] { // val_metrics={
		word = split
	}
	return splits[word]
}
