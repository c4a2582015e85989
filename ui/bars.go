package ui

import (
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
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
	if row := m.machineRow(w); row != "" {
		out = append(out, row)
	}
	out = append(out, m.bars(w)...)
	if len(out) == 1 || m.h >= airyFrom {
		out = append(out, "")
	}
	return out
}

// machineRow says which machines are paid for, and when they end.
func (m *Model) machineRow(w int) string {
	if m.ses == nil || !m.here().inSession() || m.ses.State.Machines.Instance == "" {
		return ""
	}
	st := m.ses.State
	left := m.styles.Dim.Of(st.Machines.String())
	if st.Phase() == event.PhaseStopped {
		left += "  " + m.styles.Warn.Of("○ stopped") + m.styles.Dim.Of("; disks cost ") + units.PerHour(st.Account.Rate())
	}
	return text.Spread(left, m.countdown(), w)
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

// spotActions is what a provider does to a machine that it takes back.
var spotActions = map[string]string{"stop": "stopped", "hibernate": "hibernated"}

// spotText counts down to the moment at which the provider takes machines
// away; empty when it has not announced that.
func (m *Model) spotText() string {
	if m.ses == nil || m.ses.Over() || !m.here().inSession() && m.here() != atHelp {
		return ""
	}
	l := &m.ses.State.Account
	var names []string
	var first event.SpotNotice
	for _, n := range slices.Sorted(maps.Keys(l.Notices)) {
		names = append(names, session.NodeName(n))
		if b := l.Notices[n]; first.At.IsZero() || b.At.Before(first.At) {
			first = b
		}
	}
	if len(names) == 0 {
		return ""
	}
	who, what := strings.Join(names, ", "), spotActions[first.Action]
	if what == "" {
		what = "taken away"
	}
	left := first.At.Sub(m.now)
	if left <= 0 {
		return who + ": was to be " + what + " " + units.Clock(-left) + " ago (spot)"
	}
	return who + " will be " + what + " in " + units.Clock(left) + " (spot): checkpoint now"
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
		names, perHour = append(names, text.Word(s.Cluster)), perHour+s.State.Account.Rate()
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
