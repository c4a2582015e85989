package ui

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// The rows under the title: what the machines are, and in red what can't wait.
// They take the place of the blank row that is there otherwise.

// airyFrom is the height from which there is a blank row below them too.
const airyFrom = 30

// head is the title and all that stands above a screen's own part.
func (m *Model) head(w int) []string {
	out := []string{m.titleRow(w)}
	if m.ses != nil && m.here().inSession() {
		if row := m.watch().Machines(w); row != "" {
			out = append(out, row)
		}
	}
	out = append(out, m.bars(w)...)
	if len(out) == 1 || m.h >= airyFrom {
		out = append(out, "")
	}
	return out
}

// bars are the rows in red: what is about to be lost, what nobody knows.
func (m *Model) bars(w int) []string {
	var out []string
	for _, txt := range []string{m.spotText(), m.unresolvedText()} {
		if txt != "" {
			out = append(out, m.styles.Alarm.Of(text.Fit(" "+txt, w)))
		}
	}
	return out
}

// unresolvedText names the clusters of which nobody knows whether they are
// gone, with what they may cost; empty when there are none.
func (m *Model) unresolvedText() string {
	var names []string
	var perHour float64
	for _, c := range m.home.Clusters() {
		if c.Phase == event.PhaseUnresolved && (m.ses == nil || m.ses.Past || m.ses.Cluster != c.Name) {
			names, perHour = append(names, text.Word(c.Name)), perHour+c.PricePerHour
		}
	}
	if s := m.ses; s != nil && !s.Past && s.Cluster != "" && s.State.Phase() == event.PhaseUnresolved {
		names, perHour = append(names, text.Word(s.Cluster)), perHour+s.State.Account.Rate(m.now)
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	text := "UNRESOLVED: " + strings.Join(names, ", ")
	if perHour > 0 {
		text += ", " + units.PerHour(perHour)
	}
	for i, name := range names {
		sep := ", "
		if i > 0 {
			sep = "; "
		}
		text += sep + "dlwb down " + name
	}
	return text
}
