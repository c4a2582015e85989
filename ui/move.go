package ui

import (
	tea "charm.land/bubbletea/v2"
)

// here is the screen that is shown.
func (m *Model) here() place { return m.path[len(m.path)-1] }

// goTo shows a screen. One that is already on the way back is returned to, so
// that esc never goes in circles.
func (m *Model) goTo(p place) {
	for i, q := range m.path {
		if q == p {
			m.path = m.path[:i+1]
			return
		}
	}
	m.scroll[p] = 0
	m.path = append(m.path, p)
}

// goer makes the command that goes to a screen; from then on a person decides
// where to be.
func goer(p place) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if m.ses != nil && p != atHelp {
			m.ses.Follow = false
		}
		m.goTo(p)
		return nil
	}
}

func (m *Model) cannotBack() string {
	if len(m.path) == 1 && m.home.Filter() == "" {
		return "this is home; q quits"
	}
	return ""
}

// back goes one step back. Leaving the last screen of a session ends it.
func (m *Model) back() tea.Cmd {
	if sc := m.screen(); sc.back != nil {
		if cmd, went := sc.back(m); went {
			return cmd
		}
	}
	m.path = m.path[:len(m.path)-1]
	if !m.anySession() {
		m.leaveSession()
	}
	return m.reread()
}

func (m *Model) anySession() bool {
	for _, p := range m.path {
		if p.inSession() || p == atCompare {
			return true
		}
	}
	return false
}

// page is how far a page key goes: a screen less two lines of context.
func (m *Model) page() int { return max(m.bodyHeight()-2, 1) }

// wheel scrolls three lines a notch, as terminals do.
func (m *Model) wheel(e tea.Mouse) tea.Cmd {
	if len(m.dialogs) > 0 {
		return nil
	}
	if m.wheelCharts(e) {
		return nil
	}
	switch e.Button {
	case tea.MouseWheelUp:
		return m.move(-m.notch())
	case tea.MouseWheelDown:
		return m.move(m.notch())
	}
	return nil
}

// notch is one row where a row is picked, three where text is read.
func (m *Model) notch() int {
	if m.here()&(atHome|atForwards|atNew|atRuns) != 0 {
		return 1
	}
	return 3
}

// click is of the charts or of a row of the body.
func (m *Model) click(e tea.Mouse) tea.Cmd {
	if e.Button != tea.MouseLeft || len(m.dialogs) > 0 {
		return nil
	}
	if m.here()&onCharts != 0 {
		m.grab(e)
	}
	if sc := m.screen(); sc.click != nil {
		return sc.click(m, e.Y-m.bodyTop())
	}
	return nil
}
