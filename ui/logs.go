package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// drawLogs is the output of one rank over the whole screen.
func (m *Model) drawLogs(w, h int) []string {
	out := []string{m.rankBar(w), ""}
	return append(out, m.logRows(w, h-2)...)
}

// rankBar shows whose output this is, and who else there is.
func (m *Model) rankBar(w int) string {
	s := m.ses
	ranks := s.State.Ranks()
	var names []string
	for _, r := range ranks {
		name := fmt.Sprint(r)
		if r < 0 {
			name = "launcher " + fmt.Sprint(-1-r)
		}
		if e, ok := s.State.RankEnds[r]; ok && e.ExitCode != 0 && !e.ByUs {
			name += "✗"
		}
		if r == s.Rank {
			names = append(names, m.styles.Cursor.Of(" "+name+" "))
		} else {
			names = append(names, m.styles.Dim.Of(" "+name+" "))
		}
	}
	left := m.styles.Dim.Of("rank ") + strings.Join(names, "")
	if text.Wide(left) > w/2 {
		left = m.styles.Dim.Of("rank ") + m.styles.Cursor.Of(" "+session.RankName(s.Rank)+" ") +
			m.styles.Dim.Of(fmt.Sprintf(" of %d; tab next, 0–9 picks", len(ranks)))
	}
	return text.Spread(left, m.logState(), w)
}

// logState says how the log is looked at.
func (m *Model) logState() string {
	v := m.ses.View
	var parts []string
	if q := v.Query(); q != "" {
		n, total, all := v.Matches()
		text := fmt.Sprintf("%q %s of %s", q, text.Count(int64(n)), text.Count(int64(total)))
		if !all {
			text += "+"
		}
		if total == 0 && all {
			text = fmt.Sprintf("%q is not in it", q)
		}
		parts = append(parts, m.styles.Warn.Of(text))
	}
	if v.Wrap() {
		parts = append(parts, "wrapped")
	}
	if v.Follow {
		parts = append(parts, m.styles.Good.Of("▼ following"))
	} else {
		parts = append(parts, m.styles.Warn.Of("held"))
	}
	parts = append(parts, m.styles.Dim.Of(text.Plural(v.Log.Lines(), "line")))
	return strings.Join(parts, "  ")
}

// logRows draws the shown rank's output, or says why there is none yet.
func (m *Model) logRows(w, h int) []string {
	s := m.ses
	if h <= 0 || w <= 0 {
		return nil
	}
	if s.Output(s.Rank).Off == 0 {
		began := s.State.StartedAt
		if began.IsZero() {
			began = s.Asked
		}
		text := "nothing was printed yet, for " + text.Since(m.now, began)
		if s.Past || s.State.Ended != nil {
			text = "it printed nothing"
		}
		return []string{m.styles.Dim.Of(text)}
	}
	return strings.Split(s.View.Draw(w, h, m.styles.Log), "\n")
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
