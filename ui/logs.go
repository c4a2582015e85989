package ui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/logview"
	"github.com/dlwb/dlwb/ui/session"
)

// logsScreen is the output of one rank.
func logsScreen() screen {
	return screen{at: atLogs, name: "logs", draw: func(m *Model, w, h int) []string { return m.watch().Logs(w, h) }, move: (*Model).scrollLog,
		copy: (*Model).logText, back: (*Model).logBack, digit: (*Model).pickRank}
}

func (m *Model) toggleFollow() tea.Cmd {
	v := m.ses.View
	if v.Follow = !v.Follow; v.Follow {
		v.End()
	}
	return nil
}

func (m *Model) toggleWrap() tea.Cmd {
	m.ses.View.SetWrap(!m.ses.View.Wrap())
	return nil
}

func (m *Model) askSearch() tea.Cmd {
	m.ask = &prompt{label: "search", line: line.New(m.ses.View.Query()), done: func(m *Model, text string) tea.Cmd {
		if m.ses.View.Query() == "" {
			m.ses.Followed = m.ses.View.Follow
		}
		found := m.ses.View.Search(text)
		m.ses.View.Scan(scanAtOnce)
		if !found && text != "" {
			return m.say("warning", fmt.Sprintf("%q is not in the output of %s", text, session.RankName(m.ses.Rank)))
		}
		return nil
	}}
	return nil
}

// scanAtOnce is how many lines a search counts before the next frame: some
// milliseconds. The rest is counted frame by frame.
const scanAtOnce = 100_000

func (m *Model) nextMatch() tea.Cmd {
	m.ses.View.Next()
	return nil
}

func (m *Model) prevMatch() tea.Cmd {
	m.ses.View.Prev()
	return nil
}

func (m *Model) nextRank() tea.Cmd { return m.turnRank(1) }
func (m *Model) prevRank() tea.Cmd { return m.turnRank(-1) }

func (m *Model) turnRank(d int) tea.Cmd {
	ranks := m.ses.State.Ranks()
	for i, r := range ranks {
		if r == m.ses.Rank {
			return m.pickRank(ranks[(i+d+len(ranks))%len(ranks)])
		}
	}
	return nil
}

// pickRank shows another rank's output, and reads it if that was not done.
func (m *Model) pickRank(rank int) tea.Cmd {
	for _, r := range m.ses.State.Ranks() {
		if r == rank {
			m.ses.Chose = true
			m.ses.Show(rank)
			return m.readLogs()
		}
	}
	return m.say("warning", fmt.Sprintf("there is no %s", session.RankName(rank)))
}

func (m *Model) noSearch() string {
	if m.ses == nil || m.ses.View.Query() == "" {
		return "nothing is searched for; / searches"
	}
	return ""
}

func (m *Model) scrollLog(d int) {
	switch v := m.ses.View; {
	case d >= far:
		v.End()
	case d <= -far:
		v.Top()
	default:
		v.Scroll(d)
	}
}

// logText is the part of the log that is seen.
func (m *Model) logText() string {
	return m.ses.View.Draw(m.bodyWidth(), m.bodyHeight(), logview.Styles{})
}

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
