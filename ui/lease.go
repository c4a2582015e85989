package ui

import (
	"fmt"
	"sort"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// machines is what a cluster consists of, where it is paid for.
type machines struct {
	count    int
	instance string  // its type; empty where there is no such thing
	place    string  // zone, or region
	perHour  float64 // while they run, US dollars
	spot     bool
	stopped  bool
}

func (c machines) String() string {
	text := fmt.Sprintf("%d × %s", c.count, c.instance)
	if c.spot {
		text += " spot"
	}
	if c.place != "" {
		text += " in " + c.place
	}
	return text
}

func sortedKeys[V any](m map[int]V) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	return keys
}

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
	b, ok := s.st.account.Next()
	if !ok || s.over() || s.st.phase() == event.PhaseStopping {
		return ""
	}
	why := text.Word(b.Why)
	if w := boundWords[why]; w != "" {
		why = w
	}
	if b.Node >= 0 {
		why += ", " + nodeName(b.Node)
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
