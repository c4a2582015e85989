package metrics

import "strings"

// Two ranks may write into one line: "[rank 0] step 2: loss 0.5[rank 1] step 2:
// loss 0.4", and the end of the first one's line behind that of the second.

// mostTorn bounds the ranks that write into one line.
const mostTorn = 16

// torn is what stood in a line before the label of another rank. That it is
// whole shows when nothing but the ends of lines follow, one for each: else a
// number may have been cut, and it is left out.
type torn struct {
	pieces []string
	ends   int
}

func (t *torn) add(piece string) {
	if len(t.pieces) < mostTorn {
		t.pieces = append(t.pieces, strings.Clone(piece))
	}
}

// ended takes the end of a line that has nothing else, and reads the pieces when
// it was the last that is missing.
func (t *torn) ended(r *Reader) {
	if t.ends++; len(t.pieces) == 0 || t.ends < len(t.pieces) || len(t.pieces) == mostTorn {
		return
	}
	pieces := t.pieces
	*t = torn{}
	for _, piece := range pieces {
		r.line(piece)
	}
}
