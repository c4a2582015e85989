package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/text"
)

// prompt asks for one line of text, in the place of the footer.
type prompt struct {
	label string
	line  line.Line
	live  func(m *Model, text string) // after every change; nil when not wanted
	done  func(m *Model, text string) tea.Cmd
	left  func(m *Model) // on esc
}

func (p *prompt) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc", "ctrl+c":
		m.ask = nil
		if p.left != nil {
			p.left(m)
		}
		return nil
	case "enter":
		m.ask = nil
		return p.done(m, strings.TrimSpace(p.line.Text()))
	}
	p.line.Key(k)
	p.changed(m)
	return nil
}

func (p *prompt) changed(m *Model) {
	if p.live != nil {
		p.live(m, p.line.Text())
	}
}

func (p *prompt) draw(m *Model, w int) string {
	return m.styles.Key.Of(p.label) + "  " + p.line.Draw(&m.styles, max(w-text.Wide(p.label)-2, 1))
}

// paste puts pasted text where text is asked for, and nowhere else: a pasted
// command line must never press keys. What agrees to something is typed.
func (m *Model) paste(text string) tea.Cmd {
	changed := func() {}
	var to *line.Line
	if n := len(m.dialogs); n > 0 {
		switch d := m.dialogs[n-1].(type) {
		case *palettePicker:
			to, changed = &d.line, func() { d.picked = 0 }
		case *trial:
			to, changed = d.focused(), func() { d.again(m) }
		}
	} else if m.ask != nil {
		to, changed = &m.ask.line, func() { m.ask.changed(m) }
	}
	switch {
	case to == nil:
		return nil
	case !to.Paste(text):
		return m.say("warning", fmt.Sprintf("nothing was pasted: a line has at most %d characters", line.Most))
	}
	changed()
	return nil
}
