// Package line is one line of text that is typed: a prompt, a filter, a field.
//
// The keys are those of bubbles' textinput. The drawing is our own: textinput
// draws its cursor between a letter and its accent, and a suggestion past its
// width, told from what was typed by colour alone.
package line

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/text"
)

// Most is how many characters a line can have.
const Most = 4000

// Line is a line of text with a cursor. The zero Line is empty and ready. Its
// text is always what sanitize.Word lets through.
type Line struct{ in *textinput.Model }

// New makes a line with a text, the cursor at its end. Suggestions complete what
// is typed, by tab; up and down choose among those that fit.
func New(text string, suggestions ...string) Line {
	l := Line{}
	in := l.input()
	in.SetValue(sanitize.Word(text))
	in.CursorEnd()
	l.Suggest(suggestions)
	return l
}

// input is the line's textinput, made when it is first needed.
func (l *Line) input() *textinput.Model {
	if l.in == nil {
		in := textinput.New()
		in.CharLimit = Most
		in.SetVirtualCursor(false) // it would blink by messages; Draw sets ours
		// ctrl+v would start xclip or xsel, which know the clipboard of the machine
		// that dlwb runs on. The terminal pastes by itself, also over ssh.
		in.KeyMap.Paste.SetEnabled(false)
		in.Focus()
		l.in = &in
	}
	return l.in
}

// Text is what stands in the line.
func (l *Line) Text() string {
	if l.in == nil {
		return ""
	}
	return l.in.Value()
}

// Suggest sets what may complete the line.
func (l *Line) Suggest(all []string) {
	in := l.input()
	words := make([]string, 0, len(all))
	for _, s := range all {
		if s == sanitize.Word(s) { // nothing is completed to another name than its own
			words = append(words, s)
		}
	}
	in.ShowSuggestions = len(words) > 0
	in.SetSuggestions(words)
	in.KeyMap.NextSuggestion.SetEnabled(in.ShowSuggestions)
	in.KeyMap.PrevSuggestion.SetEnabled(in.ShowSuggestions)
}

// Key takes a key press: a character, or one of readline's keys.
func (l *Line) Key(k tea.KeyPressMsg) {
	in := l.input()
	km, presses := in.KeyMap, 1
	switch {
	case key.Matches(k, km.CharacterBackward, km.DeleteCharacterBackward):
		presses = max(in.Position()-clusterStart(in.Value(), in.Position()-1), 1)
	case key.Matches(k, km.CharacterForward, km.DeleteCharacterForward):
		presses = max(clusterEnd(in.Value(), in.Position())-in.Position(), 1)
	case key.Matches(k, km.DeleteWordForward) && noWordBehind(in.Value(), in.Position()+1):
		k = tea.KeyPressMsg{Code: 'k', Mod: tea.ModCtrl} // to the end; textinput 2.2.1 looks beyond it and panics
	case key.Matches(k, km.NextSuggestion, km.PrevSuggestion) && len(in.MatchedSuggestions()) == 0:
		return // textinput would count to -1, and look there later
	}
	for range presses { // textinput counts in runes: a character may be several
		*in, _ = in.Update(k)
	}
	l.settle()
}

// noWordBehind reports whether nothing but space stands from the rune at pos on.
func noWordBehind(s string, pos int) bool {
	r := []rune(s)
	return strings.TrimSpace(string(r[min(pos, len(r)):])) == ""
}

// Paste puts pasted text at the cursor as one line, and reports whether it did:
// text that does not fit is refused, because half a command is another command.
func (l *Line) Paste(s string) bool {
	in := l.input()
	s = sanitize.Word(strings.Trim(s, "\r\n"))
	if len([]rune(s))+len([]rune(in.Value())) > Most {
		return false
	}
	*in, _ = in.Update(tea.PasteMsg{Content: s})
	l.settle()
	return true
}

// settle holds what is always true of a line: its text is clean, its cursor
// stands between characters, and its suggestions belong to its text.
func (l *Line) settle() {
	in := l.in
	pos := in.Position()
	if was := in.Value(); was != sanitize.Word(was) {
		before := sanitize.Word(string([]rune(was)[:pos]))
		in.SetValue(sanitize.Word(was))
		pos = utf8.RuneCountInString(before)
	}
	in.SetCursor(clusterStart(in.Value(), pos))
	if in.ShowSuggestions { // a paste leaves textinput with those of before
		in.SetSuggestions(in.AvailableSuggestions())
	}
}

// clusterStart is where the character begins that has the rune at pos.
func clusterStart(s string, pos int) int {
	at := 0
	for s != "" {
		first, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		n := utf8.RuneCountInString(first)
		if at+n > pos {
			break
		}
		at, s = at+n, s[len(first):]
	}
	return at
}

// clusterEnd is where the character ends that begins at the rune at pos.
func clusterEnd(s string, pos int) int {
	r := []rune(s)
	if pos < 0 || pos >= len(r) {
		return max(pos, 0)
	}
	first, _ := ansi.FirstGraphemeCluster(string(r[pos:]), ansi.GraphemeWidth)
	return pos + len([]rune(first))
}

// least is the room from which a suggestion is shown beside the line.
const least = 8

// Draw is the line in at most w cells, around its cursor. Behind it stands what
// tab would make of it.
func (l *Line) Draw(s *text.Styles, w int) string {
	in := l.input()
	r, pos := []rune(in.Value()), in.Position()
	end := clusterEnd(in.Value(), pos)
	before, at, after := string(r[:pos]), string(r[pos:end]), string(r[end:])
	if at == "" || text.Wide(at) > w {
		at = " "
	}
	room := w - text.Wide(at)
	before = text.EndOf(before, max(room-text.Wide(after), room*2/3, 0))
	before = text.Cut(before, room)
	after = text.Cut(after, room-text.Wide(before))
	out := before + s.Cursor.Of(at) + after
	if room -= text.Wide(before) + text.Wide(after); room >= least {
		out += text.Cut(l.suggestion(s), room)
	}
	return out
}

// suggestion says what tab would make of the line.
func (l *Line) suggestion(s *text.Styles) string {
	in := l.input()
	all := in.MatchedSuggestions()
	if len(all) == 0 {
		return ""
	}
	best := all[text.Clamp(in.CurrentSuggestionIndex(), 0, len(all)-1)]
	if best == in.Value() && len(all) == 1 {
		return ""
	}
	out := "  " + s.Key.Of("tab") + " " + s.Dim.Of(best)
	if len(all) > 1 {
		out += "  " + s.Key.Of("↑↓") + s.Dim.Of(" of "+text.Plural(len(all), "suggestion"))
	}
	return out
}
