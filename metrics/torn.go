package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

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

// glued is where in a line another rank begins whose label has the form of the
// line's own; 0 when none does. The line's label is what stands before rest.
// Behind a blank it may be a word of the message: then the same must follow.
func glued(line, rest string) int {
	from := len(line) - len(rest)
	if from <= 0 || line[:from] == "" || !strings.HasSuffix(line, rest) {
		return 0
	}
	own := strings.TrimLeft(line[:from], " ")
	number := strings.IndexAny(own, "0123456789")
	if number < 2 { // a number alone is no name
		return 0
	}
	close := own[lexis.Digits(own, number):]
	begins, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	for at := from; ; {
		next := strings.Index(line[at:], own[:number])
		if next < 0 {
			return 0
		}
		at += next
		end := lexis.Digits(line, at+number)
		if end > at+number && close != "" && strings.HasPrefix(line[end:], close) &&
			(line[at-1] != ' ' && line[at-1] != '\t' || strings.HasPrefix(strings.TrimLeft(line[end+len(close):], " "), begins)) {
			return at
		}
		at = end
	}
}
