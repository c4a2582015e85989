package ui

import (
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/text"
)

// planScreen is what a profile would do.
func planScreen() screen {
	return screen{at: atPlan, name: "plan", page: func(m *Model, w int) []string { return m.plan.Draw(m.looks(), w) }, title: (*Model).planTitle}
}

// showPlan asks for a plan. It changes nothing.
func (m *Model) showPlan(path string) tea.Cmd {
	m.plan = plan.View{Path: path, Asked: m.now}
	m.goTo(atPlan)
	return m.readPlan(path)
}

func (m *Model) readPlan(path string) tea.Cmd {
	return func() tea.Msg {
		p, err := m.bench.Plan(m.ctx, path)
		return planned{path, p, err}
	}
}

func (m *Model) planTitle() (left, right string) { return "  " + text.Word(m.plan.Path), "" }
