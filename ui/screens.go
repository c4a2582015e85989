package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/logview"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// screen is one row of the table of screens. What a row leaves out is done as
// for most screens.
type screen struct {
	at   place
	name string // in the title, the help and the key table

	// draw fills the body. A screen without it is one page that scrolls.
	draw func(m *Model, w, h int) []string
	// page is the whole text of a screen that scrolls as one page.
	page func(m *Model, w int) []string
	// title stands behind "dlwb" and at the right; nil: the session's.
	title func(m *Model) (left, right string)
	// move goes up or down; nil scrolls the page.
	move func(m *Model, d int)
	// copy is what y copies; nil: the page.
	copy func(m *Model) string
	// back takes back one step inside the screen, before esc leaves it.
	back func(m *Model) (tea.Cmd, bool)
	// reread reads what is shown once more: after coming back, after a change.
	reread func(m *Model) tea.Cmd
	// click takes a click on a row of the body.
	click func(m *Model, row int) tea.Cmd
	// digit takes a digit key that the key table has no use for.
	digit func(m *Model, n int) tea.Cmd
}

// screens is the table of screens, in the order of the help.
func screens() []screen {
	return []screen{
		{at: atHome, name: "home", draw: (*Model).drawHome, title: (*Model).homeTitle, move: (*Model).moveHome,
			copy: (*Model).homeText, back: (*Model).homeBack, reread: (*Model).readHome, click: (*Model).clickHome},
		{at: atPlan, name: "plan", page: func(m *Model, w int) []string { return m.plan.Draw(m.looks(), w) }, title: (*Model).planTitle},
		{at: atSteps, name: "steps", page: (*Model).stepsPage},
		{at: atTrain, name: "train", draw: (*Model).drawTrain, move: (*Model).scrollLog, copy: (*Model).logText,
			back: (*Model).chartsBack, digit: (*Model).pickRank},
		{at: atCharts, name: "charts", draw: (*Model).drawCharts, move: (*Model).moveCharts, copy: func(m *Model) string { return m.charts.Text() },
			back: (*Model).chartsBack},
		{at: atHeat, name: "GPUs", draw: (*Model).drawHeat, move: (*Model).moveHeat},
		{at: atLogs, name: "logs", draw: func(m *Model, w, h int) []string { return m.watch().Logs(w, h) }, move: (*Model).scrollLog, copy: (*Model).logText,
			back: (*Model).logBack, digit: (*Model).pickRank},
		{at: atNodes, name: "nodes", page: (*Model).drawNodes},
		{at: atForwards, name: "forwards", page: (*Model).drawForwards, move: (*Model).moveForwards},
		{at: atReceipt, name: "receipt", page: func(m *Model, w int) []string { return m.watch().Receipt(w) }, copy: (*Model).receiptText},
		{at: atNew, name: "new", draw: (*Model).drawNew, title: (*Model).newTitle, move: (*Model).moveNew,
			copy: (*Model).newText, back: (*Model).newBack, digit: (*Model).newDigit},
		{at: atRuns, name: "runs", draw: (*Model).drawRuns, title: (*Model).noTitle, move: (*Model).moveRuns,
			copy: func(m *Model) string { return m.runs.Text() }, back: (*Model).runsBack, reread: (*Model).readRuns, click: (*Model).clickRun},
		{at: atCompare, name: "compare", draw: (*Model).drawCompare, title: (*Model).noTitle, move: (*Model).moveCompare,
			copy: func(m *Model) string { return m.comp.Text() }, back: (*Model).compareBack},
		{at: atHelp, name: "help", page: (*Model).drawHelp},
	}
}

// screen is the row of the screen that is shown.
func (m *Model) screen() *screen {
	for i := range m.screens {
		if m.screens[i].at == m.here() {
			return &m.screens[i]
		}
	}
	return &m.screens[0]
}

// body is the own part of the present screen.
func (m *Model) body(w, h int) []string {
	sc := m.screen()
	if sc.draw != nil {
		return sc.draw(m, w, h)
	}
	return m.looks().Scrolled(sc.page(m, w), m.scroll[sc.at], h)
}

// move goes up or down in whatever is shown.
func (m *Model) move(d int) tea.Cmd {
	sc := m.screen()
	switch {
	case sc.move != nil:
		sc.move(m, d)
	case sc.page != nil:
		rows := len(sc.page(m, m.bodyWidth()))
		m.scroll[sc.at] = text.Clamp(m.scroll[sc.at]+d, 0, max(rows-m.bodyHeight(), 0))
	}
	return nil
}

// copyText is what y copies.
func (m *Model) copyText() string {
	sc := m.screen()
	switch {
	case sc.copy != nil:
		return sc.copy(m)
	case sc.page != nil:
		return strings.Join(sc.page(m, m.bodyWidth()), "\n")
	}
	return ""
}

// reread reads once more what the present screen shows of the disk.
func (m *Model) reread() tea.Cmd {
	if sc := m.screen(); sc.reread != nil {
		return sc.reread(m)
	}
	return nil
}

// screenTitle stands behind "dlwb" and at the right of the first row.
func (m *Model) screenTitle() (left, right string) {
	if sc := m.screen(); sc.title != nil {
		return sc.title(m)
	}
	return m.sessionTitle()
}

// sessionTitle is the cluster or run that is looked at, and its money.
func (m *Model) sessionTitle() (left, right string) {
	if m.ses == nil {
		return "", ""
	}
	s := m.styles
	left = "  " + s.Strong.Of(m.ses.Title())
	if p := m.ses.State.Provider; p != "" {
		left += s.Dim.Of(" on " + text.Word(p))
	}
	right = m.watch().Money()
	if m.ses.State.Phase() == event.PhaseUnresolved {
		right = s.Bad.Of("! UNRESOLVED") + "  " + right
	}
	return left, right
}

// noTitle is for screens of several runs.
func (m *Model) noTitle() (left, right string) { return "", "" }

// drawCharts is every chart in a grid, or why there are none.
func (m *Model) drawCharts(w, h int) []string {
	if m.ses.Lost != "" && m.ses.State.Run == "" {
		return m.watch().Lost(w)
	}
	return m.chartPage().Draw(w, h)
}

func (m *Model) homeTitle() (left, right string) { return m.homePage().Title() }

func (m *Model) planTitle() (left, right string) { return "  " + text.Word(m.plan.Path), "" }

func (m *Model) moveHome(d int) { m.home.Move(d) }
func (m *Model) moveRuns(d int) { m.runs.Move(d) }

func (m *Model) moveForwards(d int) {
	m.scroll[atForwards] = text.Clamp(m.scroll[atForwards]+d, 0, max(len(m.ses.State.Forwards)-1, 0))
}

func (m *Model) homeText() string { return m.home.Text() }

// logText is the part of the log that is seen.
func (m *Model) logText() string {
	return m.ses.View.Draw(m.bodyWidth(), m.bodyHeight(), logview.Styles{})
}

// receiptText has its commands whole, whatever fits on the screen.
func (m *Model) receiptText() string {
	return strings.Join(m.watch().Receipt(max(m.bodyWidth(), copyWidth)), "\n")
}

func (m *Model) drawTrain(w, h int) []string { return m.watch().Train(w, h, m.chartPage()) }

// stepsPage is the steps of a session, or why they can't be read.
func (m *Model) stepsPage(w int) []string {
	p := m.watch()
	if m.ses.Lost != "" {
		return p.Lost(w)
	}
	again := m.find("R")
	p.Retry = again != nil && m.refusal(again) == ""
	return p.Steps(w)
}

func (m *Model) homeBack() (tea.Cmd, bool) {
	return nil, m.home.Back()
}

func (m *Model) runsBack() (tea.Cmd, bool) {
	if m.runs.Back() {
		return m.readRuns(), true
	}
	return nil, false
}

func (m *Model) chartsBack() (tea.Cmd, bool) { return nil, m.charts.Back(m.here()&inGrid != 0) }

// logBack ends a search.
func (m *Model) logBack() (tea.Cmd, bool) {
	if m.ses.View.Query() == "" {
		return nil, false
	}
	m.ses.View.Search("")
	if m.ses.Followed {
		m.ses.View.End()
	}
	return nil, true
}
