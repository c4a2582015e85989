package metrics

import (
	"hash/maphash"
	"math"
)

// said is a line with values, as it is remembered.
type said struct {
	line, message uint64
	bare          bool // nothing stood before the message
	placed        bool // it has counters, and no rank
}

// seen reports whether a line was read a few lines ago: ranks that do not say
// who they are print the same, and some scripts print what they also log.
func (r *Reader) seen(s said) bool {
	for _, old := range r.recent {
		if old.message == s.message && (old.bare != s.bare || s.placed && old.line == s.line) {
			return true
		}
	}
	r.recent[r.oldest] = s
	r.oldest = (r.oldest + 1) % len(r.recent)
	return false
}

// placedHash is the hash of a line, told apart by the epoch when only that of
// a line before places it.
func (r *Reader) placedHash(line string, counters []counter) uint64 {
	hash := maphash.String(r.seed, line)
	for _, c := range counters {
		if c.unit == unitEpoch || c.global {
			return hash
		}
	}
	if r.above.counts {
		hash += uint64(r.counters.progress.Step)
	}
	return hash + math.Float64bits(r.counters.progress.Epoch)
}
