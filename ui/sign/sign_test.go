package sign

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

func look(now time.Time) text.Look {
	styles := text.NewStyles(true)
	return text.Look{Styles: &styles, Now: now}
}

func TestAnEndThatComesNearIsAnAlarmWithoutColourToo(t *testing.T) {
	now := time.Unix(1e6, 0)
	for left, alarm := range map[time.Duration]bool{time.Hour: false, warnLeft - time.Second: false, alarmLeft - time.Second: true, -time.Second: true} {
		got := ansi.Strip(Ends(look(now), now.Add(left)))
		if strings.HasPrefix(got, "! ") != alarm {
			t.Errorf("%s before the end it says %q", left, got)
		}
		if overdue := strings.Contains(got, "overdue"); overdue != (left < 0) {
			t.Errorf("%s before the end it says %q", left, got)
		}
	}
}

func TestAFaultSaysWhatWhyAndWhatNext(t *testing.T) {
	f := session.FaultOf("start", errors.Join(&event.Fault{What: "copy", Node: 1, Why: "disk is full", Next: "free some", LastLines: make([]string, 99)}))
	rows := Fault(look(time.Now()), f, 60)
	all := ansi.Strip(strings.Join(rows, "\n"))
	if !strings.Contains(all, "copy on node1: disk is full") || !strings.Contains(all, "next  free some") || len(rows) != 1+faultLines+1 {
		t.Errorf("%d rows:\n%s", len(rows), all)
	}
}
