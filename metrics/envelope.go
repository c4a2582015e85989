package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/envelope"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// deepestEnvelope is how many envelopes lie in each other at most: journald
// keeps what docker prints.
const deepestEnvelope = 3

// enveloped reads what lies in an envelope as the stream that it was; false for
// a line that is none.
func (r *Reader) enveloped(line string) bool {
	if r.depth >= deepestEnvelope || line[0] != '{' && !lexis.IsDigit(line[0]) {
		return false
	}
	inside, whole, ok := envelope.Unwrap(line)
	if !ok {
		return false
	}
	r.depth++
	defer func() { r.depth-- }()
	f := &r.inner[r.depth-1]
	for {
		part, rest, more := strings.Cut(inside, "\n")
		f.Add([]byte(part), r.onPassed)
		if more || whole {
			r.onFrame(f.End())
		}
		if !more {
			return true
		}
		inside = rest
	}
}
