package ui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/trust"
)

// trustQuestion shows what a profile would do that nobody has trusted, and
// takes a typed yes. Cancel has the focus: enter on anything else leaves
// everything as it is.
type trustQuestion struct {
	path    string
	subject *trust.Subject
	typed   line.Line
	top     int // the first line shown
	most    int // the greatest top, as drawn last
	page    int // how many lines were shown last
	opened  time.Time
}

// askTrust opens the question.
func (m *Model) askTrust(path string, s *trust.Subject) tea.Cmd {
	m.openDialog(&trustQuestion{path: path, subject: s, opened: m.clock.Now()})
	return nil
}

func (q *trustQuestion) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	if m.meantBefore(k, q.opened) {
		return nil
	}
	switch k.String() {
	case "esc":
		m.closeDialog()
	case "ctrl+c":
		m.closeDialog()
		return m.askQuit()
	case "up":
		q.scroll(-1)
	case "down":
		q.scroll(1)
	case "pgup":
		q.scroll(-q.page)
	case "pgdown":
		q.scroll(q.page)
	case "home":
		q.scroll(-far)
	case "end":
		q.scroll(far)
	case "enter":
		m.closeDialog()
		if strings.TrimSpace(q.typed.Text()) == "yes" {
			return m.trust(q.path, q.subject.Key)
		}
		return m.say("info", "the profile is not trusted; nothing was done")
	default:
		q.typed.Key(k)
	}
	return nil
}

func (q *trustQuestion) scroll(by int) { q.top = text.Clamp(q.top+by, 0, q.most) }

// trust keeps the answer, for the profile as it was shown, and makes its plan.
func (m *Model) trust(path, key string) tea.Cmd {
	return func() tea.Msg { return trusted{path, m.bench.Trust(m.ctx, path, key)} }
}

// takeTrust shows the plan of a profile that was trusted. Where the file has
// changed since it was shown, it is the new one that is shown next.
func (m *Model) takeTrust(msg trusted) tea.Cmd {
	if msg.err != nil && trust.Of(msg.err) == nil {
		m.openDialog(m.faultDialog(session.FaultOf("trust "+msg.path, msg.err)))
		return nil
	}
	if m.here() == atPlan {
		m.path = m.path[:len(m.path)-1]
	}
	return m.showPlan(msg.path)
}

func (q *trustQuestion) draw(m *Model, w, h int) text.Block {
	s := m.styles
	inner := text.Clamp(w-8, 1, 96)
	body := plan.Effects(m.looks(), q.subject, inner)
	q.page = text.Clamp(h-8, 1, len(body))
	q.most = len(body) - q.page
	q.top = text.Clamp(q.top, 0, q.most)
	lines := []string{s.Strong.Of(text.Cut("Trust this profile?", inner)), ""}
	lines = append(lines, body[q.top:q.top+q.page]...)
	more := ""
	if q.most > 0 {
		more = s.Dim.Of(fmt.Sprintf("lines %d–%d of %d; the arrows move", q.top+1, q.top+q.page, len(body)))
	}
	answer := s.Cursor.Of(m.focusSign(m.heeds(q.opened))+"Cancel ") + s.Dim.Of("  type ") + s.Key.Of("yes") + s.Dim.Of(" and press enter to trust it: ") + q.typed.Draw(&s, max(inner-51, 1))
	lines = append(lines, more, "", text.Cut(answer, inner))
	return boxed(m, lines[:text.Clamp(len(lines), 1, max(h-2, 1))], inner)
}
