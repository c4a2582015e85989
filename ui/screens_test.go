package ui

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A screen is one row of the table of screens, and its keys rows of the key
// table: title, help, scrolling, copying and the way back come from these.
func TestAScreenIsOneRowAndItsKeys(t *testing.T) {
	const atFake = atHelp << 1
	m := New(context.Background(), nil, Options{Theme: "dark"})
	m.w, m.h = 80, 24
	m.screens = append(m.screens, screen{at: atFake, name: "fake", page: func(m *Model, w int) []string {
		return strings.Fields(strings.Repeat("row ", 99) + "last")
	}})
	m.table = append(m.table,
		command{bind: on("fake", "z"), help: "goes to the fake screen", at: atHome, do: goer(atFake)},
		command{bind: on("shout", "u"), help: "says something", at: atFake, foot: 1, do: func(m *Model) tea.Cmd { return m.say("info", "heard") }},
		command{bind: on("end", "end"), help: "to the end", at: atFake, do: func(m *Model) tea.Cmd { return m.move(far) }},
		command{bind: on("back", "esc"), help: "back", at: atFake, do: (*Model).back})
	press := func(key string, code rune) string {
		m.Update(tea.KeyPressMsg{Text: key, Code: code})
		return ansi.Strip(m.Frame())
	}
	if got := press("z", 'z'); !strings.Contains(got, "› fake") || !strings.Contains(got, "more rows") || !strings.Contains(got, "u shout") {
		t.Errorf("its title, its rows or its key is not there:\n%s", got)
	}
	if got := press("u", 'u'); !strings.Contains(got, "heard") {
		t.Errorf("its key does nothing:\n%s", got)
	}
	if got := press("", tea.KeyEnd); !strings.Contains(got, "last") {
		t.Errorf("it does not scroll:\n%s", got)
	}
	if got := m.copyText(); !strings.HasSuffix(got, "last") {
		t.Errorf("y would copy %q", got)
	}
	if press("", tea.KeyEscape); m.here() != atHome {
		t.Errorf("esc leaves it for %v", m.here())
	}
}
