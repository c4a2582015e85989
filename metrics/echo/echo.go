// Package echo knows lines that come again a few lines later: ranks that do not say who
// they are print the same, and some scripts print what they also log.
package echo

// Line is a line, as it is remembered.
type Line struct {
	Whole, Message uint64 // hashes of it, and of what stands behind its head
	Bare           bool   // nothing stood before the message
	Placed         bool   // it says where the run is, and no rank
}

// Lines are those that came last.
type Lines struct {
	recent [16]Line
	oldest int // of them
}

// Heard reports whether a line came a few lines ago, and remembers one that did not.
func (l *Lines) Heard(line Line) bool {
	for _, old := range l.recent {
		if old.Message == line.Message && (old.Bare != line.Bare || line.Placed && old.Whole == line.Whole) {
			return true
		}
	}
	l.recent[l.oldest] = line
	l.oldest = (l.oldest + 1) % len(l.recent)
	return false
}
