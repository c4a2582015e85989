package ui

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// leastW and leastH are what the smallest useful screen needs.
	leastW, leastH = 48, 14
	// bodyFoot is what note and footer take.
	bodyFoot = 2
)

// margin is the air at both sides.
func (m *Model) margin() int {
	if m.w >= 100 {
		return 2
	}
	return 1
}

func (m *Model) bodyWidth() int  { return max(m.w-2*m.margin(), 1) }
func (m *Model) bodyHeight() int { return max(m.h-m.bodyTop()-bodyFoot, 1) }

// bodyTop is the first row of a screen's own part.
func (m *Model) bodyTop() int { return len(m.head(m.bodyWidth())) }

// looks is what drawing needs to know of the screen.
func (m *Model) looks() text.Look {
	return text.Look{Styles: &m.styles, Now: m.now, Spin: m.spin, ASCII: m.ascii, Colourless: m.colourless}
}

// View draws a frame of exactly h rows, none wider than w.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Frame())
	v.AltScreen = true
	v.WindowTitle = m.windowTitle()
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
		if m.here()&onCharts != 0 { // the charts are read where the mouse is
			v.MouseMode = tea.MouseModeAllMotion
		}
	}
	return v
}

func (m *Model) windowTitle() string {
	t := sanitize.Word(strings.TrimSuffix("dlwb "+m.ses.Title(), " "))
	if m.ascii {
		return text.InASCII(t)
	}
	return t
}

// Frame is the text of the present frame, styled.
func (m *Model) Frame() string {
	if m.ascii {
		return text.InASCII(m.frame())
	}
	return m.frame()
}

func (m *Model) frame() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	if m.w < leastW || m.h < leastH {
		return m.tooSmall()
	}
	w := m.bodyWidth()
	lines := m.head(w)
	h := max(m.h-len(lines)-bodyFoot, 1)
	notes := m.noteRows(w)
	over := min(len(notes)-1, h) // a note of several rows stands before the last of the body
	lines = append(lines, text.Exactly(m.body(w, h), w, h)[:h-over]...)
	lines = append(append(lines, notes...), m.footer(w))
	if n := len(m.dialogs); n > 0 {
		box := m.dialogs[n-1].draw(m, w, m.h)
		lines = text.Over(lines, box.Lines, box.W, w)
	}
	return sheet(text.Indent(lines, m.margin()), m.w, m.h)
}

// sheet is a whole frame: h rows of at most w cells, each of them text and SGR
// only. What comes from elsewhere was made a word where it came in; this is the
// last door, and also holds where that was forgotten.
func sheet(lines []string, w, h int) string {
	rows := text.Exactly(lines, w, h)
	for y, row := range rows {
		safe := sanitize.Line(row)
		if strings.Contains(safe, "\t") {
			safe = strings.ReplaceAll(safe, "\t", "  ")
		}
		if safe != row {
			rows[y] = text.Cut(safe, w)
		}
	}
	return strings.Join(rows, "\n")
}

// tooSmall says what size is needed, in whatever room there is.
func (m *Model) tooSmall() string {
	txt := fmt.Sprintf("dlwb needs %d×%d here, has %d×%d", leastW, leastH, m.w, m.h)
	for _, alarm := range []string{m.spotText(), m.unresolvedText()} {
		if alarm != "" { // first: it has little room, and matters most
			txt = alarm + ". " + txt
		}
	}
	return sheet(text.Wrap(txt, m.w), m.w, m.h)
}

// titleRow says where we are, and at the right how things stand.
func (m *Model) titleRow(w int) string {
	s := m.styles
	left, right := m.screenTitle()
	left = s.Strong.Of("dlwb") + left
	left += "  " + s.Faint.Of("› ") + s.Dim.Of(m.screen().name)
	if m.opts.ReadOnly {
		left += "  " + s.Warn.Of("read-only")
	}
	return text.Spread(left, right, w)
}

// noteMost is how many rows a note has that stands nowhere else.
const noteMost = 4

// noteRows is what is being done, else the newest note. There is one row at least.
func (m *Model) noteRows(w int) []string {
	if len(m.doing) > 0 || m.note.text == "" {
		return []string{m.standingRow(w)}
	}
	mark := m.styles.Accent.Of("· ")
	if m.note.level == "warning" {
		mark = m.styles.Warn.Of("! ")
	}
	if !m.note.notice {
		rows := text.Hang(mark, m.note.text, text.Ink{}, w)
		return rows[:min(len(rows), noteMost)]
	}
	rest := ""
	if text.Wide(m.note.text)+2 > w && m.here() != atSteps {
		rest = "  s shows all of it"
	}
	return []string{text.Cut(mark+m.note.text, w-text.Wide(rest)) + m.styles.Dim.Of(rest)}
}

// standingRow is what is being done, else what holds for as long as it is so.
func (m *Model) standingRow(w int) string {
	if len(m.doing) > 0 {
		newest := m.doing[slices.Max(slices.Collect(maps.Keys(m.doing)))]
		return text.Cut(m.styles.Accent.Of(m.spinner())+" "+newest.text+m.styles.Dim.Of(", for "+text.Since(m.now, newest.since)), w)
	}
	if m.ses != nil && m.here().inSession() {
		if f := m.ses.State.Failed; f != nil && m.here() != atSteps {
			return text.Cut(m.styles.Bad.Of("✗ ")+f.What+": "+f.Why, w)
		}
		if pid := m.watcher(); pid != 0 {
			return text.Cut(m.styles.Dim.Of(fmt.Sprintf("process %d watches this cluster; what you see is what it sees", pid)), w)
		}
	}
	return ""
}

// footer is the few keys that matter here, from the key table.
func (m *Model) footer(w int) string {
	if m.ask != nil {
		return m.ask.draw(m, w)
	}
	var shown []*command
	for i := range m.table {
		c := &m.table[i]
		if c.inFooter(m.here()) && (m.refusal(c) == "" || m.lack(c) != nil) {
			shown = append(shown, c)
		}
	}
	sort.SliceStable(shown, func(i, j int) bool { return shown[i].foot < shown[j].foot })
	keys := make([]key.Binding, len(shown))
	for i, c := range shown {
		keys[i] = c.bind
		if m.lack(c) != nil {
			h := c.bind.Help()
			keys[i].SetHelp(m.styles.Faint.Of(h.Key), m.styles.Faint.Of(h.Desc))
		}
	}
	return m.foot.Row(&m.styles, keys, w)
}

// watcher is another process that watches the cluster that is shown, by the
// newest look at what exists; 0 for none. This process is no other one.
func (m *Model) watcher() int {
	if m.ses.Over() || m.ses.State.Ended != nil {
		return 0
	}
	for _, c := range m.home.Clusters() {
		if c.Name == m.ses.Cluster && c.Owner != m.opts.PID {
			return c.Owner
		}
	}
	return 0
}

func (m *Model) spinner() string { return m.looks().Spinner() }

// spinning reports whether anything on the screen turns.
func (m *Model) spinning() bool {
	if len(m.doing) > 0 || m.here() == atHome && m.home.Unread() || m.here() == atRuns && m.runs.Busy() || m.here() == atCompare && m.comp.Busy() {
		return true
	}
	if m.here() == atNew {
		return m.wiz.Waits()
	}
	if m.here() == atPlan {
		return m.plan.Waits()
	}
	return m.ses != nil && m.here() == atSteps && m.ses.State.Failed == nil &&
		(m.ses.State.AnyStep(session.Active) || len(m.ses.State.Steps) == 0)
}
