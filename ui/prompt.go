package ui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/text"
)

// prompt asks for one line of text, in the place of the footer.
type prompt struct {
	label string
	text  string
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
		return p.done(m, strings.TrimSpace(p.text))
	}
	p.text = edit(p.text, k)
	p.changed(m)
	return nil
}

func (p *prompt) changed(m *Model) {
	if p.live != nil {
		p.live(m, p.text)
	}
}

func (p *prompt) draw(m *Model, w int) string {
	room := max(w-text.Wide(p.label)-4, 1)
	txt := p.text
	if over := text.Wide(txt) - room; over > 0 {
		txt = ansi.TruncateLeft(txt, over, "")
	}
	return m.styles.Key.Of(p.label) + "  " + txt + m.styles.Cursor.Of(" ")
}

// maxTyped bounds what is typed or pasted into a line.
const maxTyped = 400

// edit is one key's change to a line of text.
func edit(text string, k tea.KeyPressMsg) string {
	switch k.String() {
	case "backspace":
		if r := []rune(text); len(r) > 0 {
			return string(r[:len(r)-1])
		}
	case "ctrl+u":
		return ""
	case "ctrl+w":
		text = strings.TrimRight(text, " ")
		return text[:strings.LastIndexByte(text, ' ')+1]
	}
	return typed(text, k.Text)
}

// typed adds text that came from the keyboard or the clipboard.
func typed(text, more string) string {
	if r := []rune(text + sanitize.Line(more)); len(r) <= maxTyped {
		return string(r)
	}
	return text
}

// paste puts pasted text where text is asked for, and nowhere else: a pasted
// command line must never press keys.
func (m *Model) paste(text string) {
	if n := len(m.dialogs); n > 0 {
		switch d := m.dialogs[n-1].(type) {
		case *palettePicker:
			d.text = typed(d.text, text)
		case *trial:
			d.paste(m, text)
		}
		return
	}
	if m.ask != nil {
		m.ask.text = typed(m.ask.text, text)
		m.ask.changed(m)
	}
}
