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
			m.ses.follow = false
		}
		m.goTo(p)
		return nil
	}
}

func (m *Model) cannotBack() string {
	if len(m.path) == 1 && m.home.filter == "" {
		return "this is home; q quits"
	}
	return ""
}

// back goes one step back. Leaving the last screen of a session ends it.
func (m *Model) back() tea.Cmd {
	if m.here() == atHome && m.home.filter != "" {
		m.home.filter = ""
		return nil
	}
	if m.here() == atNew {
		if cmd, went := m.wizBack(); went {
			return cmd
		}
	}
	if m.here()&onCharts != 0 && m.ses != nil && m.compareBack() {
		return nil
	}
	if m.here() == atRuns && m.runs.back() {
		return m.readRuns()
	}
	if m.here()&onCharts != 0 && m.ses.chartBack(m.here()) {
		return nil
	}
	if m.here() == atLogs && m.ses.view.Query() != "" {
		m.ses.view.Search("")
		if m.ses.followed {
			m.ses.view.End()
		}
		return nil
	}
	m.path = m.path[:len(m.path)-1]
	if !m.anySession() {
		m.leaveSession()
	}
	switch m.here() {
	case atHome:
		return m.readHome()
	case atRuns:
		return m.readRuns()
	}
	return nil
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

// move goes up or down in whatever is shown.
func (m *Model) move(d int) tea.Cmd {
	switch m.here() {
	case atHome:
		m.home.move(d)
	case atRuns:
		m.runs.move(d)
	case atCompare:
		m.moveCompare(d)
	case atCharts:
		m.moveCharts(d)
	case atHeat:
		m.moveHeat(d)
	case atLogs, atTrain:
		m.scrollLog(d)
	case atNew:
		m.moveWizard(d)
	case atForwards:
		m.scroll[atForwards] = clamp(m.scroll[atForwards]+d, 0, max(len(m.ses.st.forwards)-1, 0))
	default:
		rows := len(m.wholePage(m.here(), m.bodyWidth()))
		m.scroll[m.here()] = clamp(m.scroll[m.here()]+d, 0, max(rows-m.bodyHeight(), 0))
	}
	return nil
}

func (m *Model) scrollLog(d int) {
	switch v := m.ses.view; {
	case d >= far:
		v.End()
	case d <= -far:
		v.Top()
	default:
		v.Scroll(d)
	}
}

// wheel scrolls three lines a notch, as terminals do.
func (m *Model) wheel(e tea.Mouse) tea.Cmd {
	if len(m.dialogs) > 0 {
		return nil
	}
	if cmd, took := m.wheelCharts(e); took {
		return cmd
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

// click picks a row of the home screen; a second click opens it.
func (m *Model) click(e tea.Mouse) tea.Cmd {
	if e.Button != tea.MouseLeft || len(m.dialogs) > 0 {
		return nil
	}
	if m.here()&onCharts != 0 {
		m.grab(e)
	}
	if m.here() == atRuns {
		return m.clickRun(e.Y - m.bodyTop())
	}
	if m.here() != atHome {
		return nil
	}
	i, ok := m.home.rowAt(e.Y-m.bodyTop(), m)
	if !ok {
		return nil
	}
	if i == m.home.picked {
		return m.carryOut(m.find("enter"))
	}
	m.home.picked = i
	return nil
}
