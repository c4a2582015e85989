package ui

import (
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// boundWords say what a bound means to somebody who has not read the manual.
var boundWords = map[string]string{"bootstrap": "unless it is used"}

// Countdowns turn to a warning, then to an alarm, when so little is left.
const (
	warnLeft  = 30 * time.Minute
	alarmLeft = 5 * time.Minute
)

// countdown says when the machines end by themselves; empty when they don't.
func (m *Model) countdown() string {
	s := m.ses
	b, ok := s.State.Account.Next()
	if !ok || s.Over() || s.State.Phase() == event.PhaseStopping {
		return ""
	}
	why := text.Word(b.Why)
	if w := boundWords[why]; w != "" {
		why = w
	}
	if b.Node >= 0 {
		why += ", " + session.NodeName(b.Node)
	}
	return m.endsText(b.At) + m.styles.Dim.Of(" ("+why+")")
}

// endsText counts down to a moment.
func (m *Model) endsText(at time.Time) string {
	switch left := at.Sub(m.now); {
	case left <= 0:
		return m.styles.Bad.Of("! overdue " + units.Clock(-left))
	case left < alarmLeft:
		return m.styles.Bad.Of("! ends in " + units.Clock(left))
	case left < warnLeft:
		return m.styles.Warn.Of("ends in " + units.Clock(left))
	default:
		return m.styles.Dim.Of("ends in ") + units.Clock(left)
	}
}
