package ui

import (
	"github.com/dlwb/dlwb/ui/plot"
)

// glyphs are those of a history.
func (m *Model) glyphs() plot.Glyphs {
	if m.ascii {
		return plot.ASCII
	}
	return plot.Unicode
}
