package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/home"
	"github.com/dlwb/dlwb/ui/line"
)

// homeScreen is the list of what exists.
func homeScreen() screen {
	return screen{at: atHome, name: "home", draw: (*Model).drawHome, title: (*Model).homeTitle, move: (*Model).moveHome,
		copy: (*Model).homeText, back: (*Model).homeBack, reread: (*Model).readHome, click: (*Model).clickHome}
}

func (m *Model) askFilter() tea.Cmd {
	set := func(m *Model, text string) { m.home.SetFilter(text) }
	m.ask = &prompt{label: "filter", line: line.New(m.home.Filter()), live: set,
		done: func(m *Model, text string) tea.Cmd { set(m, text); return nil },
		left: func(m *Model) { set(m, "") }}
	return nil
}

const (
	// frame is the least time between two batches of events. View is called
	// after every message, so this is what bounds the work of a flood.
	frame = 50 * time.Millisecond
	// logChunk is how much of a log enters at once: a few milliseconds' work.
	logChunk = 256 << 10
	// second is the pace of clocks and staleness.
	second = time.Second
	// spin is the pace of a spinner.
	spin = 120 * time.Millisecond
	// noteStays is how long a note stands above the footer.
	noteStays = 6 * time.Second
	// homeEvery is how often the home screen looks again at what exists.
	homeEvery = 2 * time.Second
	// awayEvery is how often other screens do: what is UNRESOLVED stands on
	// all of them.
	awayEvery = 30 * time.Second
)

// readHome looks at what exists, and takes the place of every look that is
// under way or due.
func (m *Model) readHome() tea.Cmd {
	m.turn++
	turn := m.turn
	return func() tea.Msg {
		h, err := m.bench.Home(m.ctx)
		return homeRead{turn, h, err}
	}
}

func (m *Model) homeLater() tea.Cmd {
	turn, pace := m.turn, awayEvery
	if m.here() == atHome {
		pace = homeEvery
	}
	return m.clock.Tick(pace, func(time.Time) tea.Msg { return homeDue{turn} })
}

// clickHome picks a row; a second click opens it.
func (m *Model) clickHome(row int) tea.Cmd {
	if m.homePage().Click(row, m.bodyWidth(), m.bodyHeight()) {
		return m.carryOut(m.find("enter"))
	}
	return nil
}

// homePage is the list of what exists as it is drawn.
func (m *Model) homePage() home.Page { return home.Page{Look: m.looks(), List: &m.home} }

func (m *Model) drawHome(w, h int) []string { return m.homePage().Draw(w, h) }

func (m *Model) homeTitle() (left, right string) { return m.homePage().Title() }

func (m *Model) moveHome(d int) { m.home.Move(d) }

func (m *Model) homeText() string { return m.home.Text() }

func (m *Model) homeBack() (tea.Cmd, bool) {
	return nil, m.home.Back()
}
