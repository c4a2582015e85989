package engine

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
)

// SyntaxError is a command that can't be split into words.
type SyntaxError struct {
	// Column counts characters from 1.
	Column int
	Why    string
}

// Error says what is wrong and at which column.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("command, column %d: %s", e.Column, e.Why)
}

// Split cuts a command into words by the rules of a POSIX shell: blanks, single
// and double quotes, backslashes. No shell will ever see the command, so
// nothing is expanded; what a shell would have expanded or acted upon is an
// error, because handing it on as it stands would surprise.
func Split(command string) ([]string, error) {
	s := splitter{in: []rune(command)}
	for s.pos < len(s.in) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	return s.words, nil
}

type splitter struct {
	in     []rune
	pos    int
	words  []string
	word   strings.Builder
	inWord bool
}

func (s *splitter) fail(at int, why string) error {
	return &SyntaxError{Column: at + 1, Why: why}
}

func (s *splitter) put(r rune) {
	s.word.WriteRune(r)
	s.inWord = true
}

func (s *splitter) end() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

// next takes one character, or one quoted part, from outside of quotes.
func (s *splitter) next() error {
	at, r := s.pos, s.in[s.pos]
	s.pos++
	switch r {
	case ' ', '\t', '\r':
		s.end()
	case '\n':
		s.end()
		return s.nextLine(at)
	case '\'':
		return s.single(at)
	case '"':
		return s.double(at)
	case '\\':
		return s.escaped(at)
	case '|', '&', ';', '<', '>', '(', ')':
		return s.fail(at, fmt.Sprintf("%c needs a shell: quote it if it is meant as text, else write sh -c '…'", r))
	case '#':
		if !s.inWord {
			return s.fail(at, "# begins a comment: leave it out, or quote it if it is meant as text")
		}
		s.put(r)
	case '~':
		if !s.inWord && (s.pos == len(s.in) || strings.ContainsRune("/ \t\n", s.in[s.pos])) {
			return s.fail(at, "~ is not expanded: write the whole path, or sh -c '…'")
		}
		s.put(r)
	default:
		if err := s.lookalike(at, r); err != nil {
			return err
		}
		return s.text(at, r)
	}
	return nil
}

// newCommand are words with which a line begins that is a command of its own.
var newCommand = pattern.New(`^\s*(python[0-9.]*|torchrun|accelerate|deepspeed|mpirun|mpiexec|horovodrun|ray|srun|pip[0-9]*|uv|poetry|conda|cd|export|source|bash|sh)\s`)

// nextLine looks at the line behind one that has words: a shell would take it for
// the next command.
func (s *splitter) nextLine(at int) error {
	if len(s.words) > 0 && newCommand.MatchString(string(s.in[s.pos:min(len(s.in), s.pos+40)])) {
		return s.fail(at, "another command begins in the next line, and run.command is one: end the line with a \\ if it goes on, else write sh -c '…'")
	}
	return nil
}

// lookalike says of a character outside of quotes that it was typed as another one:
// text processors, chats and web pages put dashes in the place of the hyphens of an
// option, and typographic quotes in that of plain ones. Both would be part of the word.
func (s *splitter) lookalike(at int, r rune) error {
	begins := !s.inWord || s.in[at-1] == '='
	alone := s.pos == len(s.in) || strings.ContainsRune(" \t\r\n", s.in[s.pos])
	switch {
	case strings.ContainsRune("‐‑‒–—―−", r) && !s.inWord && !alone:
		return s.fail(at, fmt.Sprintf("this is a dash (U+%04X), and an option begins with hyphens: type - or --, or quote it if it is meant as text", r))
	case strings.ContainsRune("“”„", r) || strings.ContainsRune("‘’‚", r) && begins:
		return s.fail(at, fmt.Sprintf("this quote is typographic (U+%04X), and would be part of the word: type \" or '", r))
	}
	return nil
}

// text takes a character that means itself, unless a shell would expand it.
func (s *splitter) text(at int, r rune) error {
	switch {
	case r == 0:
		return s.fail(at, "a NUL byte can't be part of a command")
	case r == '`' || r == '$' && s.pos < len(s.in) && beginsName(s.in[s.pos]):
		return s.fail(at, fmt.Sprintf("%c is not expanded: leave out an option of a launcher that names nodes, ranks or addresses, as dlwb sets it; put it in single quotes if it is meant as text, else write sh -c '…'", r))
	}
	s.put(r)
	return nil
}

func beginsName(r rune) bool {
	return r == '{' || r == '(' || r == '_' || isDigit(r) || isLetter(r)
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func (s *splitter) single(at int) error {
	s.inWord = true
	for ; s.pos < len(s.in); s.pos++ {
		switch r := s.in[s.pos]; r {
		case '\'':
			s.pos++
			return nil
		case 0:
			return s.fail(s.pos, "a NUL byte can't be part of a command")
		default:
			s.put(r)
		}
	}
	return s.fail(at, "this single quote is never closed: close it, or put a backslash before it")
}

func (s *splitter) double(at int) error {
	s.inWord = true
	for s.pos < len(s.in) {
		r := s.in[s.pos]
		s.pos++
		switch {
		case r == '"':
			return nil
		case r == '\\' && s.pos < len(s.in) && strings.ContainsRune("\\\"$`\n", s.in[s.pos]):
			if s.in[s.pos] != '\n' {
				s.put(s.in[s.pos])
			}
			s.pos++
		default:
			if err := s.text(s.pos-1, r); err != nil {
				return err
			}
		}
	}
	return s.fail(at, "this double quote is never closed: close it, or put a backslash before it")
}

func (s *splitter) escaped(at int) error {
	if s.pos == len(s.in) {
		return s.fail(at, "nothing follows this backslash")
	}
	r := s.in[s.pos]
	s.pos++
	switch r {
	case '\n': // a continued line
		return nil
	case 0:
		return s.fail(s.pos-1, "a NUL byte can't be part of a command")
	}
	if isLetter(r) || isDigit(r) { // which needs none: it is a path of Windows, or an expression
		return s.fail(at, fmt.Sprintf("the backslash goes, and %c is left: write / in a path, or put the word in single quotes", r))
	}
	s.put(r)
	return nil
}

// Join writes words as one line that a POSIX shell, or Split, reads back as
// the same words.
func Join(words []string) string { return shellword.Join(words...) }
