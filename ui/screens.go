package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/text"
)

// place is a screen. Places are bits, so that the key table can name several.
type place uint16

const (
	atHome place = 1 << iota
	atPlan
	atSteps
	atTrain
	atCharts
	atHeat
	atLogs
	atNodes
	atForwards
	atReceipt
	atSweep
	atNew
	atRuns
	atCompare
	atHelp

	everywhere = atHelp<<1 - 1
	inSession  = atSteps | atTrain | atCharts | atHeat | atLogs | atNodes | atForwards | atReceipt | atSweep
)

func (p place) inSession() bool { return p&inSession != 0 }

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
	// keys are its rows of the key table; nil: it has those of all screens.
	keys func() []command
}

// screens is the table of screens, in the order of the help. Each is in the file
// that is named for it.
func screens() []screen {
	return []screen{homeScreen(), planScreen(), stepsScreen(), trainScreen(), chartsScreen(), heatScreen(), logsScreen(), nodesScreen(),
		forwardsScreen(), receiptScreen(), sweepScreen(), newScreen(), runsScreen(), compareScreen(), helpScreen()}
}

// screen is the row of the screen that is shown.
func (m *Model) screen() *screen { return m.screenAt(m.here()) }

func (m *Model) screenAt(at place) *screen {
	for i := range m.screens {
		if m.screens[i].at == at {
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
func (m *Model) screenTitle() (left, right string) { return m.titleOf(m.here()) }

func (m *Model) titleOf(at place) (left, right string) {
	if sc := m.screenAt(at); sc.title != nil {
		return sc.title(m)
	}
	return m.sessionTitle()
}
