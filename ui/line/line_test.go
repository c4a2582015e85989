package line

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/internal/hostile"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/text"
)

// keys are presses by their names; a name of one character types it.
var keys = map[string]tea.KeyPressMsg{
	"left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd},
	"backspace": {Code: tea.KeyBackspace}, "delete": {Code: tea.KeyDelete}, "tab": {Code: tea.KeyTab},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"ctrl+w": {Code: 'w', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "ctrl+k": {Code: 'k', Mod: tea.ModCtrl},
	"ctrl+a": {Code: 'a', Mod: tea.ModCtrl}, "ctrl+e": {Code: 'e', Mod: tea.ModCtrl}, "ctrl+v": {Code: 'v', Mod: tea.ModCtrl},
	"alt+b": {Code: 'b', Mod: tea.ModAlt}, "alt+f": {Code: 'f', Mod: tea.ModAlt}, "alt+d": {Code: 'd', Mod: tea.ModAlt},
}

func press(l *Line, names ...string) *Line {
	for _, name := range names {
		if k, known := keys[name]; known {
			l.Key(k)
			continue
		}
		for _, r := range name {
			l.Key(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return l
}

// shown is a line as it is drawn, the cursor in brackets.
func shown(l *Line, w int) string {
	s := text.NewStyles(true)
	s.Cursor, s.Key, s.Dim = text.Ink{On: "["}, text.Ink{}, text.Ink{}
	return strings.ReplaceAll(l.Draw(&s, w), "\x1b[m", "]")
}

func TestReadlinesKeysEditTheLine(t *testing.T) {
	for _, c := range []struct {
		start string
		keys  []string
		want  string
	}{
		{"", []string{"ab", "left", "x"}, "ax[b]"},
		{"train.py --lr 1", []string{"ctrl+w"}, "train.py --lr [ ]"},
		{"train.py --lr 1", []string{"ctrl+u"}, "[ ]"},
		{"train.py --lr 1", []string{"alt+b", "alt+b", "ctrl+k"}, "train.py [ ]"},
		{"train.py --lr 1", []string{"home", "alt+f"}, "train.py[ ]--lr 1"},
		{"train.py --lr 1", []string{"ctrl+a", "alt+d", "delete"}, "[-]-lr 1"},
		{"one", []string{"home", "backspace", "left", "x", "ctrl+e", "y"}, "xoney[ ]"},
		{"a   ", []string{"left", "left", "alt+d"}, "a [ ]"},
		{"ab", []string{"left", "alt+d", "alt+d"}, "a[ ]"},
		{"one", []string{"ctrl+v"}, "one[ ]"}, // the terminal pastes, not we
	} {
		l := New(c.start)
		if got := shown(press(&l, c.keys...), 80); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.start, c.keys, got, c.want)
		}
	}
}

func TestCharacterOfSeveralRunesIsOne(t *testing.T) {
	for _, c := range []struct {
		start string
		keys  []string
		want  string
	}{
		{"cafe\u0301", []string{"backspace"}, "caf[ ]"},
		{"cafe\u0301s", []string{"left", "left"}, "caf[e\u0301]s"},
		{"cafe\u0301s", []string{"left", "left", "delete"}, "caf[s]"},
		{"e\u0301e\u0301", []string{"home", "right"}, "e\u0301[e\u0301]"},
		{"caf", []string{"e", "\u0301", "left", "x"}, "cafx[e\u0301]"},
		{"訓練", []string{"left"}, "訓[練]"},
		{"訓練", []string{"backspace"}, "訓[ ]"},
	} {
		l := New(c.start)
		if got := shown(press(&l, c.keys...), 80); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.start, c.keys, got, c.want)
		}
	}
}

func TestLongLineShowsBothSidesOfTheCursor(t *testing.T) {
	l := New("0123456789abcdef")
	if got := shown(&l, 8); got != "…abcdef[ ]" {
		t.Errorf("at the end: %q", got)
	}
	if got := shown(press(&l, "home"), 8); got != "[0]123456…" {
		t.Errorf("at the start: %q", got)
	}
	for range 8 {
		press(&l, "right")
	}
	if got := shown(&l, 8); got != "…567[8]9a…" {
		t.Errorf("in the middle: %q", got)
	}
}

func TestPastedTextIsOneCleanLineOrNothing(t *testing.T) {
	l := New("--lr ")
	if !l.Paste("\x1b[31m1e-3\x1b[m\u202e\x07\nrm -rf /\r\n") || l.Text() != "--lr 1e-3 rm -rf /" {
		t.Errorf("pasted as %q", l.Text())
	}
	if l.Paste(strings.Repeat("x", Most)) || l.Text() != "--lr 1e-3 rm -rf /" {
		t.Errorf("a paste that does not fit left %d characters", len(l.Text()))
	}
	press(&l, "home")
	if !l.Paste("a ") || shown(&l, 40) != "a [-]-lr 1e-3 rm -rf /" {
		t.Errorf("pasted where the cursor was not: %q", shown(&l, 40))
	}
	g := hostile.New(7)
	for range 500 {
		evil := g.Text(40)
		l := New(evil, evil)
		l.Paste(evil)
		if l.Text() != sanitize.Word(l.Text()) {
			t.Errorf("%q became %q", evil, l.Text())
		}
	}
}

func TestTabTakesTheSuggestionThatIsShown(t *testing.T) {
	l := New("g", "g5.xlarge", "g5.48xlarge", "p5.48xlarge")
	if got := shown(press(&l, "5"), 60); got != "g5[ ]  tab g5.xlarge  ↑↓ of 2 suggestions" {
		t.Error(got)
	}
	if got := shown(press(&l, "down"), 60); !strings.Contains(got, "tab g5.48xlarge") {
		t.Error(got)
	}
	if got := shown(press(&l, "tab"), 60); got != "g5.48xlarge[ ]" {
		t.Error(got)
	}
}

func TestPasteLeavesNoSuggestionOfAnotherText(t *testing.T) {
	l := New("", "ab")
	press(&l, "a")
	l.Paste("xyz")
	if got := shown(press(&l, "tab", "up", "up", "down", "q"), 60); got != "axyzq[ ]" {
		t.Error(got)
	}
}

// Whatever is pressed and pasted: the text is clean and bounded, the cursor
// stands between characters, and no drawing is wider than its room.
func TestAnyKeysLeaveACleanLineThatFits(t *testing.T) {
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	styles := text.NewStyles(false)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.OneOf(rapid.SampledFrom([]string{"e\u0301", "訓練", "a b", "\u0301", " ", "👩‍👩‍👧", "İ", "\x1b[1m", "é"}), rapid.String())
		l := New(texts.Draw(t, "start"), rapid.SliceOfN(texts, 0, 3).Draw(t, "suggestions")...)
		for range rapid.IntRange(1, 25).Draw(t, "presses") {
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				l.Paste(texts.Draw(t, "paste"))
			case 1:
				l.Key(tea.KeyPressMsg{Text: texts.Draw(t, "typed")})
			default:
				l.Key(keys[rapid.SampledFrom(names).Draw(t, "key")])
			}
			if v := l.Text(); v != sanitize.Word(v) || utf8.RuneCountInString(v) > Most {
				t.Fatalf("the text is %q", v)
			}
			if pos := l.input().Position(); pos != clusterStart(l.Text(), pos) {
				t.Fatalf("the cursor is inside a character of %q, at %d", l.Text(), pos)
			}
			w := rapid.IntRange(1, 30).Draw(t, "width")
			if got := ansi.StringWidth(l.Draw(&styles, w)); got > w {
				t.Fatalf("%q in %d cells takes %d", l.Text(), w, got)
			}
		}
	})
}

func BenchmarkKeyInTheLongestLine(b *testing.B) {
	l := New(strings.Repeat("wörd ", Most/5))
	styles := text.NewStyles(true)
	for b.Loop() {
		press(&l, "left")
		l.Draw(&styles, 80)
	}
}
