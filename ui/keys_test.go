package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/ui/text"
)

func TestNoKeyMeansTwoThingsOnOneScreen(t *testing.T) {
	for _, p := range screens() {
		seen := map[string]string{}
		for _, c := range commands() {
			for _, k := range c.bind.Keys() {
				if c.at&p.at == 0 {
					continue
				}
				if other := seen[k]; other != "" {
					t.Errorf("on %s, %q is both %q and %q", p.name, k, other, c.name())
				}
				seen[k] = c.name()
			}
		}
	}
}

func TestLowerCaseKeysLookAndCapitalsAct(t *testing.T) {
	for _, c := range commands() {
		for _, k := range c.bind.Keys() {
			capital := len(k) == 1 && k != strings.ToLower(k)
			if capital != c.acts {
				t.Errorf("%q (%s): acts is %v", k, c.name(), c.acts)
			}
			switch k {
			case "ctrl+a", "ctrl+b", "ctrl+s", "ctrl+q":
				t.Errorf("%q belongs to screen, tmux or the terminal", k)
			case "ctrl+z":
				if c.name() != "suspend" {
					t.Errorf("%q suspends programs, here it does: %s", k, c.help)
				}
			}
		}
		if c.help == "" || c.name() == "" || c.do == nil {
			t.Errorf("%v is not complete", c.bind.Keys())
		}
	}
}

func TestKeyTableNamesEveryKey(t *testing.T) {
	table := KeysPage()
	for _, c := range commands() {
		for _, k := range c.bind.Keys() {
			if !strings.Contains(table, "`"+k+"`") {
				t.Errorf("%q is missing", k)
			}
		}
	}
}

func TestNumbersReadAsPeopleWriteThem(t *testing.T) {
	for got, want := range map[string]string{
		text.Count(12400): "12 400", text.Count(-1234567): "-1 234 567", text.Count(12): "12",
		text.Number(1.9123): "1.912", text.Number(0.00059): "0.00059", text.Number(21873.2): "21 873",
		text.Plural(1, "node"): "1 node", text.Plural(2, "process"): "2 processes",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPlacesAreNamedShort(t *testing.T) {
	for at, want := range map[place]string{
		everywhere: "everywhere", everywhere &^ atHelp: "everywhere but help",
		inSession: "cluster and run screens", inSession &^ atLogs: "cluster and run screens but logs", atHome: "home",
	} {
		if got := whereText(at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWidthIsCountedAsTheTerminalDoes(t *testing.T) {
	for _, s := range []string{"", "plain", "\x1b[1;38;2;1;2;3mbold\x1b[m", "│ ⠋ ▁▂▃ ✓ …", "日本語", "e\u0301", "▁\u0301", "👩‍👩‍👧", "✓\ufe0f", "\x1b[2Jx", "°C ↓ ↑ é ü"} {
		if got, want := text.Wide(s), ansi.StringWidth(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}
