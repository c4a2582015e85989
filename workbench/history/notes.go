package history

import (
	"fmt"

	"github.com/dlwb/dlwb/workbench/event"
)

// SetNote writes a note to a run; an empty one removes it.
func (h *History) SetNote(run, note string) error {
	const longest = 4 << 10
	if len(note) > longest {
		return &event.Fault{What: "write a note to run " + run, Node: -1, Why: fmt.Sprintf("it has %d bytes, and %d are the most", len(note), longest)}
	}
	defer h.records.Changed()
	return h.db.SetNote(run, note)
}

// SetStar gives a run a star, or takes it away.
func (h *History) SetStar(run string, starred bool) error {
	defer h.records.Changed()
	return h.db.SetStar(run, starred)
}
