package ui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/money"
)

// What a person can do with machines that are paid for: let them live longer,
// stop them and start them again.

// extendBy is how much longer E lets machines live.
const extendBy = time.Hour

func (m *Model) cannotExtend() string {
	if why := m.noCluster(); why != "" {
		return why
	}
	if m.ses.State.Account.Ends.IsZero() {
		return "these machines have no lease: they end when they are torn down"
	}
	return ""
}

// askExtend asks before a machine lives longer: until when, and for how much.
func (m *Model) askExtend() tea.Cmd {
	cluster, st := m.ses.Cluster, m.ses.State
	until := st.Account.Ends.Add(extendBy)
	m.openDialog(&choice{
		title: "Let the machines of " + cluster + " live an hour longer?",
		body: func(m *Model, w int) []string {
			rows := [][2]string{
				{"ends now", m.moment(st.Account.Ends)},
				{"then", m.moment(until)},
				{"costs", "at most " + units.USD(st.Account.Rate(m.now)*extendBy.Hours()) + " more; the budget stays the limit"},
			}
			if b, ok := st.Account.Next(); ok && b.Why != money.BoundLifetime {
				rows = append(rows, [2]string{"but", fmt.Sprintf("what ends them first is another bound (%s), in %s: it stays", text.Word(b.Why), units.Clock(b.At.Sub(m.now)))})
			}
			return m.looks().Labelled(w, rows...)
		},
		answers: []answer{{name: "Cancel"}, {name: "Extend", do: func(m *Model) tea.Cmd {
			return m.task("extend the lease of "+cluster, func() (string, string, error) {
				return "the machines live until " + m.moment(until), "", m.bench.Extend(m.ctx, cluster, extendBy)
			})
		}}},
		opened: m.clock.Now(), swallow: true,
	})
	return nil
}

// moment is a time to come, with how far off it is.
func (m *Model) moment(at time.Time) string {
	at = at.In(m.now.Location())
	form := "15:04"
	if at.YearDay() != m.now.YearDay() {
		form = "Mon 15:04"
	}
	return at.Format(form) + ", in " + units.Clock(max(at.Sub(m.now), 0))
}

func (m *Model) cannotStopMachines() string {
	if why := m.noCluster(); why != "" {
		return why
	}
	if m.ses.State.Account.Rate(m.now) == 0 {
		return "they cost nothing"
	}
	return ""
}

func (m *Model) cannotStartMachines() string {
	if m.ses == nil || m.ses.Past || m.ses.State.Phase() != event.PhaseStopped {
		return "its machines are not stopped"
	}
	return ""
}

// askStartMachines says what machines cost again when they start.
func (m *Model) askStartMachines() tea.Cmd {
	cluster, c := m.ses.Cluster, m.ses.State.Machines
	m.openDialog(&choice{
		title: "Start the machines of " + cluster + "?",
		body: func(m *Model, w int) []string {
			costs := "as before"
			if c.PerHour > 0 {
				costs = units.PerHour(c.PerHour) + " again"
			}
			return m.looks().Labelled(w, [2]string{"starts", c.String()}, [2]string{"costs", costs},
				[2]string{"then", "R runs on them; their files are as they were"})
		},
		answers: []answer{{name: "Cancel"}, {name: "Start the machines", do: func(m *Model) tea.Cmd {
			return m.task("start the machines of "+cluster, func() (string, string, error) {
				return "the machines of " + cluster + " are up", "", m.bench.StartMachines(m.ctx, cluster)
			})
		}}},
		opened: m.clock.Now(), swallow: true,
	})
	return nil
}

// costRows are the parts of a price, each with where it is from.
func (m *Model) costRows(w int) []string {
	b := &m.ses.State.Account
	if len(b.Parts) == 0 {
		return nil
	}
	out := []string{"", m.styles.Dim.Of("what it costs")}
	for _, c := range b.Parts {
		out = append(out, plan.Cost(m.looks(), c.PerHour, c.What, c.Source, w))
	}
	return out
}
