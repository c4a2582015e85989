package loghead

import "strings"

// mostTorn bounds the ranks that write into one line.
const mostTorn = 16

// Torn is what stood in a line before the label of another rank (see Glued): "[rank 0]
// step 2: loss 0.5[rank 1] step 2: loss 0.4", and the end of the first one's line behind
// that of the second. That it is whole shows when nothing but the ends of lines follow,
// one for each: else a number may have been cut, and it is left out.
type Torn struct {
	pieces []string
	ends   int
}

// Add takes a piece that stood before another rank's.
func (t *Torn) Add(piece string) {
	if len(t.pieces) < mostTorn {
		t.pieces = append(t.pieces, strings.Clone(piece))
	}
}

// Ended takes the end of a line that has nothing else, and returns the pieces when it was
// the last that was missing.
func (t *Torn) Ended() []string {
	if t.ends++; len(t.pieces) == 0 || t.ends < len(t.pieces) || len(t.pieces) == mostTorn {
		return nil
	}
	pieces := t.pieces
	*t = Torn{}
	return pieces
}
