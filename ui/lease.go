package ui

import (
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// boundWords say what a bound means to somebody who has not read the manual.
var boundWords = map[string]string{"bootstrap": "unless it is used"}

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
	return sign.Ends(m.looks(), b.At) + m.styles.Dim.Of(" ("+why+")")
}
