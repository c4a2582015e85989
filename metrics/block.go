package metrics

import (
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/decimal"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/recipe"
)

// block is a piece of output whose first line says what the lines below it are.
type block struct {
	kind string    // as recipes call it; "" is none
	rank int       // of the trial that a result is of
	path []nesting // the keys that the next line is below
	rows []row
}

// nesting is a key with the blanks before it.
type nesting struct {
	key    string
	indent int
}

// beginBlock begins a block with its first line.
func (r *Reader) beginBlock(kind, line string) {
	r.endBlock()
	r.block.kind, r.block.rank = kind, unlabelled
	if kind == recipe.BlockResult {
		r.block.rank = r.sources.Of(line)
	}
}

// inBlock takes a line that belongs to a block; false for any other.
func (r *Reader) inBlock(line string) bool {
	b := &r.block
	if b.kind == "" {
		return false
	}
	indent := lexis.SkipBlanks(line, 0)
	key, value, ok := strings.Cut(line[indent:], " = ")
	if b.kind == recipe.BlockResult {
		key, value, ok = strings.Cut(line[indent:], ":")
	}
	if !ok || indent == 0 {
		r.endBlock()
		return false
	}
	switch key, value = strings.Trim(strings.TrimSpace(key), `'"`), strings.TrimSpace(value); b.kind {
	case recipe.BlockSummary:
		r.said(key, value)
	case recipe.BlockResult:
		b.result(key, value, indent)
	}
	return true
}

// said takes a line of a summary, unless its series has just that value.
func (r *Reader) said(key, value string) {
	f, ok := lexis.Number(value, 0)
	if !ok || f.Next != len(value) {
		return
	}
	v := known(r.scanner.names.term(key, ""), f)
	if c, ok := dictCounter(braces.Pair{Key: key, Value: f.Value}); ok || v.kind < weak || v.show == "" {
		if ok && c.unit == unitEpoch && !r.counters.hasEpoch {
			r.counters.take([]counter{c})
		}
		return
	}
	if s := r.series[v.show]; s != nil && s.ordinal > 0 && (sameValue(s.last.Value, v.Value) || decimal.RoundsTo(s.last.Value, v.Value)) {
		return
	}
	r.rule = "summary"
	r.place()
	r.value(v.show, v, AxisNone, 0, unlabelled)
}

// known is a value that needs no second line to be one.
func known(t term, f figure) value { return value{term: t, figure: f, sure: t.kind >= weak} }

// result takes a line of a result: a number, or the key of those below it.
func (b *block) result(key, text string, indent int) {
	for len(b.path) > 0 && b.path[len(b.path)-1].indent >= indent {
		b.path = b.path[:len(b.path)-1]
	}
	if text == "" {
		if len(b.path) < braces.Deepest {
			b.path = append(b.path, nesting{strings.Clone(key), indent})
		}
		return
	}
	f, ok := lexis.Number(text, 0)
	if !ok || f.Next != len(text) || len(b.rows) >= mostRows {
		return
	}
	name := strings.Clone(key)
	for i := len(b.path) - 1; i >= 0 && len(name) < longestName; i-- {
		name = b.path[i].key + "/" + name
	}
	b.rows = append(b.rows, row{key: name, value: f.Value, real: f.Real})
}

// endBlock reads the result that the last lines were.
func (r *Reader) endBlock() {
	b := &r.block
	if len(b.rows) > 0 {
		s := &r.scanner
		s.found = found{counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}
		for _, row := range b.rows {
			if c, ok := dictCounter(braces.Pair{Key: row.key, Value: row.value}); ok {
				if c.global && !strings.Contains(row.key, "/") {
					s.found.counters = append(s.found.counters, c)
				}
				continue
			}
			v := known(s.names.term(row.key, ""), figure{Value: row.value, Real: row.real})
			if v.kind >= measure && v.show != "" && len(v.show) <= longestName && !math.IsNaN(v.Value) {
				v.sure = true
				s.found.values = append(s.found.values, v)
				s.mark(v.show)
			}
		}
		r.rule = "result"
		r.take(s.found, b.rank, false)
	}
	*b = block{rows: b.rows[:0], path: b.path[:0]}
}
