package profiles

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlwb/dlwb/sanitize"
)

// Error is one fault of a profile: where it is, what is wrong and why, the
// nearest thing that would be right, and what to write instead.
type Error struct {
	Path         string
	Line, Column int    // from 1, columns in characters; 0 for a profile made in memory
	Key          string // "machines.count"; empty for faults of the text itself
	What         string // "machines.count \"two\""
	Why          string
	Nearest      string
	Next         string

	source string // the line, fit to be shown
	width  int    // of what the caret points at
}

// Error gives the fault as one line: file:line:col: what: why; did you mean
// "x"?; what would be right.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Path != "" {
		b.WriteString(e.Path + ":")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.What)
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %s?", quote(e.Nearest))
	}
	if e.Next != "" {
		b.WriteString("; " + e.Next)
	}
	return sanitize.Word(b.String())
}

// detailWidth is how much of a long source line is shown.
const detailWidth = 100

// Detail is Error, the source line and a caret under the fault.
func (e *Error) Detail() string {
	if e.Line == 0 || e.source == "" {
		return e.Error()
	}
	line, column := []rune(e.source), max(e.Column-1, 0)
	if column > detailWidth/2 && len(line) > detailWidth {
		cut := min(column-detailWidth/2, len(line)-detailWidth)
		line, column = line[cut:], column-cut
	}
	line = line[:min(len(line), detailWidth)]
	column = min(column, len(line))
	width := max(1, min(e.width, len(line)-column))
	number := strconv.Itoa(e.Line)
	return fmt.Sprintf("%s\n  %s | %s\n  %s | %s%s", e.Error(), number, strings.TrimRight(string(line), " "),
		strings.Repeat(" ", len(number)), indentLike(line[:column]), strings.Repeat("^", width))
}

// indentLike is blank space as wide as a text is on a terminal.
func indentLike(text []rune) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x1f300:
			b.WriteString("  ")
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Errors are all faults of one profile, in the order of the file.
type Errors []*Error

// Error gives one line for each fault.
func (e Errors) Error() string { return e.join((*Error).Error) }

// Detail gives each fault with its source line.
func (e Errors) Detail() string { return e.join((*Error).Detail) }

func (e Errors) join(text func(*Error) string) string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = text(one)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults one by one.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// maxErrors is how many faults are worth reading at once.
const maxErrors = 100

// finish sorts the faults, drops what is said twice and gives each its line.
func (e Errors) finish(src *source) error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column, cmp.Compare(a.What, b.What))
	})
	e = slices.CompactFunc(e, func(a, b *Error) bool { return a.Error() == b.Error() })
	for _, one := range e {
		one.source = src.show(one.Line)
		if src.noun != "" {
			one.Why = strings.ReplaceAll(one.Why, "a profile", src.noun)
			one.Next = strings.ReplaceAll(one.Next, "a profile", src.noun)
		}
	}
	return e
}

// maxQuote is how much of a value is repeated in a message.
const maxQuote = 60

// quote repeats a piece of the file in a message: in quotes, on one line, with
// nothing that a terminal would obey, and without secrets.
func quote(s string) string {
	s = maskTokens(s)
	if utf8.RuneCountInString(s) > maxQuote {
		s = string([]rune(s)[:maxQuote-1]) + "…"
	}
	if strings.ContainsRune(s, '"') && !strings.ContainsAny(s, "'\\") && printable(s) {
		return "'" + s + "'"
	}
	if q := `"` + s + `"`; printable(s) && !strings.ContainsRune(s, '"') {
		return q // a backslash stays as it was typed
	}
	return strconv.Quote(s)
}

func printable(s string) bool {
	for _, r := range s {
		if !strconv.IsPrint(r) {
			return false
		}
	}
	return utf8.ValidString(s)
}
