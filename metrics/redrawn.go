package metrics

import (
	"slices"
	"strings"
)

// redrawn is a line that a program writes over again and again as it goes on, without
// the form of a bar: "Epoch 0 | Training | Steps: 30 | Loss: 12.3". Of frames that
// only an epoch places the last counts.
type redrawn struct {
	here  bool // the present line is written over by what follows
	line  string
	cut   int // what stands before its message
	from  int
	rank  int
	found found
}

// passes takes a line of which the next frame may say more; false for any other.
func (r *Reader) passes(line, rest string, from int, f found, rank int) bool {
	if r.redrawn.here || r.redrawn.line != "" {
		here := r.redrawn.here
		r.endRedrawn(f.shape)
		inner, epoch := within(f.counters)
		if here && epoch && !inner && len(f.counters) == 1 && len(f.values) > 0 && f.pass.total == 0 {
			f.counters, f.values = slices.Clone(f.counters), slices.Clone(f.values)
			r.redrawn = redrawn{here: true, line: strings.Clone(line), cut: len(line) - len(rest), from: from, rank: rank, found: f}
			return true
		}
	}
	return false
}

// endRedrawn reads the frame that is held, unless a line of the same shape follows.
func (r *Reader) endRedrawn(shape uint64) {
	held := r.redrawn
	if held.line == "" {
		return
	}
	r.redrawn = redrawn{}
	if held.found.shape != shape {
		r.understood(held.line, held.line[min(held.cut, len(held.line)):], held.from, held.found, held.rank)
	}
	r.redrawn.here = held.here
}
