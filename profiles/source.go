package profiles

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlwb/dlwb/sanitize"
)

// The limits of a profile. They hold before anything is parsed: a YAML parser
// can spend seconds on a few thousand brackets.
const (
	MaxSize  = 64 << 10
	MaxDepth = 16
)

// source is the text of a profile by lines.
type source struct {
	path  string
	text  []byte
	lines []string
	// noun is what messages call the file where it is no profile.
	noun string
	// secret is, by line, the column from which it is not shown.
	secret map[int]int
}

func newSource(path string, text []byte) *source {
	return &source{path: path, text: text, lines: strings.Split(string(text), "\n"), secret: map[int]int{}}
}

// line returns a line by its number from 1, without its end.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return strings.TrimSuffix(s.lines[n-1], "\r")
}

// show is a line as it may be put on a terminal: without secrets, and with
// each character that is not for showing replaced by one that is, so that
// columns stay what they are.
func (s *source) show(n int) string {
	line := s.line(n)
	if len(line) > 4096 {
		line = strings.ToValidUTF8(line[:4096], "")
	}
	runes := []rune(line)
	if column, ok := s.secret[n]; ok && column-1 <= len(runes) {
		runes = append(runes[:column-1:column-1], []rune(hidden)...)
	}
	for i, r := range runes {
		switch {
		case r == '\t':
			runes[i] = ' '
		case !unicode.IsPrint(r):
			runes[i] = '�'
		}
	}
	return sanitize.Plain(maskNamed(maskTokens(string(runes))))
}

func (s *source) fault(line, column int, what, why, next string) *Error {
	return &Error{Path: s.path, Line: line, Column: column, What: what, Why: why, Next: next, width: 1}
}

// checkText finds what must not be in the text whatever it means. fatal is set
// when looking any further makes no sense.
func (s *source) checkText() (errs Errors, fatal bool) {
	if len(s.text) > MaxSize {
		return Errors{s.fault(1, 1, "the file", fmt.Sprintf("it has more than %d bytes, the most for a profile", MaxSize),
			"a profile is a page of settings; is this the right file?")}, true
	}
	if bytes.HasPrefix(s.text, []byte{0xff, 0xfe}) || bytes.HasPrefix(s.text, []byte{0xfe, 0xff}) {
		return Errors{s.fault(1, 1, "the file", "it is UTF-16", "save it as UTF-8")}, true
	}
	for i, line := range s.lines {
		errs = append(errs, s.checkLine(i+1, line, i+1 < len(s.lines))...)
		if len(errs) >= maxErrors {
			break
		}
	}
	if len(errs) > 0 {
		return errs, true
	}
	return s.checkNesting()
}

// checkLine reports the first character of a line that does not belong in a
// profile.
func (s *source) checkLine(n int, line string, ended bool) Errors {
	if ended {
		line = strings.TrimSuffix(line, "\r")
	}
	column := 0
	for i, r := range line {
		column++
		why, next := foreign(r, line[i:])
		if why != "" && !(harmless(r) && inComment(line[:i])) {
			return Errors{s.fault(n, column, "a character", why, next)}
		}
	}
	return nil
}

// harmless characters may stand in a comment: people write French and emoji.
func harmless(r rune) bool { return r == 0xa0 || r == 0x200c || r == 0x200d }

func inComment(before string) bool {
	return strings.HasPrefix(strings.TrimLeft(before, " "), "#") || strings.Contains(before, " #")
}

// foreign says why a character does not belong in a profile: it is not text,
// or it makes the file look other than it is.
func foreign(r rune, rest string) (why, next string) {
	switch {
	case r == '\t' || r >= ' ' && r < 0x7f:
		return "", ""
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\uFFFD"):
		return fmt.Sprintf("the byte 0x%02X is not UTF-8", rest[0]), "save the file as UTF-8"
	case r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029:
		return fmt.Sprintf("U+%04X ends a line for some programs and not for others", r), "end lines with a newline"
	case r == 0xa0:
		return "U+00A0 is a no-break space: it looks like a space and is none", "type a space; text copied from a web page often has it"
	case r == 0xfeff || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		return fmt.Sprintf("U+%04X can't be seen, and changes how the line looks", r), "remove it"
	case unicode.IsControl(r):
		return fmt.Sprintf("U+%04X is a control character", r), "remove it"
	}
	return "", ""
}

// roughDepth is the depth at which the count of brackets alone, without
// knowing which of them stand in quotes, ends the reading. It is far more than
// MaxDepth, so no honest text is refused, and small enough to cost nothing.
const roughDepth = 64

// checkNesting refuses what a parser would spend its time on: nests of
// brackets, and rows of "- - -" or "? ? ?", each of which opens a level.
func (s *source) checkNesting() (Errors, bool) {
	open := 0
	for i, line := range s.lines {
		if col := rowOfIndicators(line); col > 0 {
			return Errors{s.tooDeep(i+1, col)}, true
		}
		column := 0
		for _, r := range line {
			column++
			switch r {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open > roughDepth {
				return Errors{s.tooDeep(i+1, column)}, true
			}
		}
	}
	return nil, false
}

func (s *source) tooDeep(line, column int) *Error {
	return s.fault(line, column, "the nesting", fmt.Sprintf("it is deeper than %d levels", MaxDepth),
		"no part of a profile is deeper than 3; look for a bracket that is not closed")
}

// rowOfIndicators returns the column at which a line opens more levels than
// any profile has; 0 when it does not.
func rowOfIndicators(line string) int {
	rest, levels := strings.TrimLeft(line, " "), 0
	for len(rest) > 1 && strings.ContainsRune("-?:", rune(rest[0])) && (rest[1] == ' ' || rest[1] == '\t') {
		if levels++; levels > roughDepth {
			return len(line) - len(rest) + 1
		}
		rest = strings.TrimLeft(rest[1:], " \t")
	}
	return 0
}
