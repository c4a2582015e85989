package metrics

import (
	"cmp"
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/remark"
)

// dict reads a line whose last part is a dictionary that begins at open. It
// reports false when it is not one, or has nothing to place it by.
func (s *scanner) dict(line string, from, open int, said string) (found, bool) {
	pairs, ok := braces.Read(strings.TrimSuffix(line[open:], "."), s.pairs)
	if !ok {
		return found{}, false
	}
	if s.pairs = pairs[:0]; remark.TellsBest(line, from, false) { // "best valid: {…}" was told before
		return found{}, true
	}
	named := s.goesOn && strings.Contains(strings.ToLower(line[from:open]), "metric") // then they are of where the run is
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
		if len(p.Key) > longestName {
			continue
		}
		if c, ok := dictCounter(p); ok {
			s.found.counters = append(s.found.counters, c)
			s.mark(p.Key)
			continue
		}
		if p.Text != "" {
			continue
		}
		v := value{term: s.names.term(p.Key, said), figure: figure{Value: p.Value, Real: p.Real}}
		if v.kind == never || v.show == "" {
			continue
		}
		s.found.values = append(s.found.values, v)
		s.mark(v.show)
	}
	for _, p := range pairs {
		if strings.HasSuffix(p.Key, "_runtime") { // of the whole run
			if strings.HasPrefix(p.Key, "train") {
				s.found.values = s.found.values[:0]
			}
		}
	}
	s.found.split, s.assumed = said, named
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
func eventOf(pairs []braces.Pair, before, said string) string {
	name, value := "", -1
	if label, ok := strings.CutSuffix(strings.TrimRight(before, " "), ":"); ok { // eval_accuracy: {"value": 0.5}
		name = label[strings.LastIndexByte(label, ' ')+1:]
	}
	for i, p := range pairs {
		switch p.Key {
		case "key", "name", "metric", "tag", "metric_name", "series":
			if p.Text != "" && strings.IndexByte(p.Text, ' ') < 0 {
				name = p.Text
			}
		case "value":
			if p.Text == "" {
				value = i
			}
		case "split", "phase", "mode", "stage", "subset", "partition", "event", "type", "_type", "kind":
			word, _, _ := strings.Cut(strings.ToLower(p.Text), "_") // eval_step
			if split := splits[word]; split != "" && said == "" && (split != "train" || word == p.Text) {
				said = split
			}
		}
	}
	if name != "" && value >= 0 {
		pairs[value].Key = name
	}
	return said
}

// dictCounter takes a pair that says where the run is.
func dictCounter(p braces.Pair) (counter, bool) {
	c := counter{n: p.Value}
	if p.Text != "" { // '12/94'
		var next int
		var ok bool
		if c, next, ok = ofTotal(p.Text, 0); !ok || c.total == 0 || next < len(p.Text) {
			return counter{}, false
		}
	}
	key := strings.TrimSuffix(p.Key, maxSteps)
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
	if split, of, _ := strings.Cut(word, "_"); braces.Containers[of] { // val_metrics={
		word = split
	}
	return splits[word]
}
