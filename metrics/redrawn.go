package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/screen"
)

// redrawn is what a program writes over again and again as it goes on, without the
// form of a bar: the line "Epoch 0 | Steps: 30 | Loss: 12.3", a box, or a table whose
// last row changes. Of frames of one place the last counts.
type redrawn struct {
	here  bool // the present line is written over by what follows
	line  string
	cut   int // what stands before its message
	from  int
	rank  int
	found found

	up    bool // boxes and tables are written over
	row   drawnRow
	known bool // a row is held
}

// drawnRow is a box, or a row of a table, that may be drawn again.
type drawnRow struct {
	found     found
	rank      int
	fromTable bool
}

// kept is a copy of what a line says, which the next scan does not change.
func (f found) kept() found {
	f.counters, f.values = slices.Clone(f.counters), slices.Clone(f.values)
	return f
}

// again reports whether one frame tells of the same place as another: all of it, and perhaps more.
func (f *found) again(of *found) bool {
	for _, v := range of.values {
		if indexOf(f.values, v.show) < 0 {
			return false
		}
	}
	return len(f.counters) == 1 && len(of.counters) == 1 && f.counters[0].n == of.counters[0].n
}

// passes takes a line of which the next frame may say more; false for any other.
func (r *Reader) passes(line, rest string, from int, f *found, rank int) bool {
	d := &r.redrawn
	d.up = false
	if !d.here && d.line == "" && !d.known {
		return false
	}
	*f = f.kept() // what is read in between uses the same room
	r.endRow()
	holds := d.here && len(f.counters) == 1 && !f.counters[0].inEpoch && len(f.values) > 0 && f.pass.total == 0
	if same := d.line != "" && f.again(&d.found); same && rank > d.rank && d.rank != unlabelled {
		return holds // of several ranks the lowest counts
	} else if !same {
		r.endRedrawn()
	}
	d.line = ""
	if holds {
		d.line, d.cut, d.from, d.rank, d.found = strings.Clone(line), max(0, len(line)-len(rest)), from, rank, *f
	}
	return holds
}

// endRedrawn reads the frame that is held: another one follows.
func (r *Reader) endRedrawn() {
	held := r.redrawn
	if held.line == "" {
		return
	}
	r.redrawn.here, r.redrawn.line = false, ""
	r.understood(held.line, held.line[min(held.cut, len(held.line)):], held.from, held.found, held.rank)
	r.redrawn.here = held.here
}

// draws takes note of a frame after which boxes and tables are drawn over others.
func (r *Reader) draws(frame []byte) {
	if up, begins := screen.Redraws(frame); begins {
		r.endRow()
		r.redrawn.up = true
	} else if up {
		r.redrawn.up = true
	}
}

// drawn takes a box, or a row of a table. Where it may be drawn again it is held, and
// the rows above that one were told.
func (r *Reader) drawn(f found, rank int, fromTable bool) {
	d := &r.redrawn
	if !d.up || len(f.counters) != 1 {
		r.endRow()
		if fromTable || !r.isLate(f, rank, "") {
			r.take(f, rank, fromTable)
		}
		return
	}
	if d.known && f.shape == d.row.found.shape && f.counters[0].n < d.row.found.counters[0].n {
		return
	}
	f = f.kept()
	if !f.again(&d.row.found) {
		r.endRow()
	}
	d.row, d.known = drawnRow{f, rank, fromTable}, true
}

// endRow reads the box or row that is held.
func (r *Reader) endRow() {
	if d := &r.redrawn; d.known {
		d.known = false
		r.take(d.row.found, d.row.rank, d.row.fromTable)
	}
}
