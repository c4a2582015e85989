package profiles

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dlwb/dlwb/internal/pattern"
)

// The YAML library names a line, often the wrong one, no column, and the state
// of its parser. People make a handful of mistakes; the scanner below looks
// for those in the text itself, and the library's words are what is left.

// scanner walks over a text that is not YAML and stops at the first thing that
// explains why.
type scanner struct {
	src     *source
	open    []bracket
	indents []int // of the open block levels
	found   *Error
	skip    int  // block scalar: lines indented deeper than this are its text
	inText  bool // within a block scalar
}

type bracket struct {
	r            rune
	line, column int
	colon        bool // the present entry has its key
}

// explain says in our words why the text is not YAML.
func (s *source) explain(err error) *Error {
	sc := &scanner{src: s}
	for n := range s.lines {
		if sc.line(n+1, s.line(n+1)); sc.found != nil {
			return sc.found
		}
	}
	if len(sc.open) > 0 {
		b := sc.open[len(sc.open)-1]
		return s.fault(b.line, b.column, quote(string(b.r)), "this bracket is never closed", fmt.Sprintf("add %q", closing[b.r]))
	}
	return s.fromLibrary(err)
}

var (
	closing  = map[rune]rune{'[': ']', '{': '}'}
	keyLine  = pattern.New(`^(?:- +)*("[^"]*"|'[^']*'|[^\s#'"\[\]{},&*!|>%@-][^#:]*):(?: |$)`)
	tightKey = pattern.New(`^(?:- +)*([A-Za-z_][\w-]*):[^\s:/]`)
	blockEnd = pattern.New(`(?:^|[\s:-])[|>][+-]?[1-9]?[+-]?\s*(#.*)?$`)
)

func (sc *scanner) fail(line, column int, what, why, next string) {
	if text := sc.src.line(line); maskNamed(text) != text {
		what, next = "the value", "write it as \"${env:NAME}\""
	}
	if sc.found == nil {
		sc.found = sc.src.fault(line, column, what, why, next)
	}
}

func (sc *scanner) line(n int, text string) {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	if body == "" {
		return
	}
	if sc.inText {
		if indent > sc.skip {
			return
		}
		sc.inText = false
	}
	if body[0] == '#' {
		return
	}
	if n == 1 && text[0] == '%' {
		sc.fail(n, 1, quote(strings.TrimSpace(text)), "a profile has no directives of YAML", "remove the line, and the --- below it")
		return
	}
	if rest := strings.TrimLeft(body, " \t"); body[0] == '\t' && rest != "" && len(sc.open) == 0 {
		sc.fail(n, indent+1, "a tab", "YAML does not allow tabs before the first word of a line", "indent with spaces, two for each level")
		return
	}
	if len(sc.open) == 0 {
		sc.block(n, indent, body)
	}
	sc.characters(n, indent, text)
	if len(sc.open) == 0 && blockEnd.MatchString(text) {
		sc.inText, sc.skip = true, indent
	}
}

// block checks a line that is in no bracket: its indentation and its key.
func (sc *scanner) block(n, indent int, body string) {
	for len(sc.indents) > 0 && sc.indents[len(sc.indents)-1] > indent {
		sc.indents = sc.indents[:len(sc.indents)-1]
		if len(sc.indents) > 0 && sc.indents[len(sc.indents)-1] < indent || len(sc.indents) == 0 && indent > 0 {
			sc.fail(n, indent+1, "the indentation", "this line is in line with none of those above it",
				"keys of one mapping, and items of one list, begin in the same column")
			return
		}
	}
	if strings.HasPrefix(body, "- ") && (len(sc.indents) == 0 || sc.indents[len(sc.indents)-1] < indent) {
		sc.indents = append(sc.indents, indent)
	}
	if m := tightKey.FindStringSubmatchIndex(body); m != nil && !strings.HasPrefix(body, "- ") && !strings.Contains(body, ": ") {
		sc.fail(n, indent+m[3]+1, quote(strings.TrimSpace(body)), "a colon needs a space after it",
			fmt.Sprintf("write %s: %s", body[m[2]:m[3]], excerpt(body[m[3]+1:])))
		return
	}
	if m := keyLine.FindStringSubmatchIndex(body); m != nil {
		sc.key(n, indent, body, m)
		return
	}
	if !strings.HasPrefix(body, "-") && !strings.ContainsAny(body, "\"'[]{}:%|>&*!") && len(sc.indents) > 0 &&
		indent <= sc.indents[len(sc.indents)-1] {
		sc.fail(n, indent+1, quote(body), "this is no key with a value", "write key: value")
	}
}

// key checks a line that begins with a key.
func (sc *scanner) key(n, indent int, body string, m []int) {
	if dash := m[2]; dash > 0 {
		indent += dash
		body, m = body[dash:], []int{0, m[1] - dash, 0, m[3] - dash}
	}
	if len(sc.indents) == 0 || sc.indents[len(sc.indents)-1] < indent {
		sc.indents = append(sc.indents, indent)
	}
	value := strings.TrimLeft(body[m[3]+1:], " ")
	at := indent + utf8.RuneCountInString(body[:len(body)-len(value)]) + 1
	switch {
	case value == "":
	case strings.ContainsRune("%@`", rune(value[0])):
		sc.fail(n, at, quote(value), fmt.Sprintf("a value can't begin with %c", value[0]), "put it in quotes: '"+excerpt(value)+"'")
	case !strings.ContainsRune("\"'[{|>#", rune(value[0])):
		plain, _, _ := strings.Cut(value, " #")
		if i := strings.Index(plain+" ", ": "); i >= 0 {
			sc.fail(n, at+utf8.RuneCountInString(plain[:i]), quote(plain), "a colon and a space within a value begin another key",
				"put the value in quotes: '"+excerpt(plain)+"'")
		}
	}
}

// excerpt is a piece of the file for a message, on one line and not long.
func excerpt(s string) string {
	q := quote(strings.TrimSpace(s))
	return q[1 : len(q)-1]
}

// characters follows quotes and brackets through a line. A quote that opens
// within a word is an apostrophe.
func (sc *scanner) characters(n, indent int, text string) {
	runes := []rune(text)
	for i := indent; i < len(runes) && sc.found == nil; i++ {
		r := runes[i]
		fresh := i == 0 || strings.ContainsRune(" \t[{,:", runes[i-1])
		switch {
		case r == '#' && (i == 0 || runes[i-1] == ' ' || runes[i-1] == '\t'):
			return
		case (r == '"' || r == '\'') && fresh:
			end := closeQuote(runes, i)
			if end < 0 {
				sc.fail(n, i+1, quote(string(r)), "this quote is not closed on its line", "add "+string(r)+" at the end of the value")
				return
			}
			i = sc.afterQuote(n, runes, i, end)
		case r == '[' || r == '{':
			if fresh || len(sc.open) > 0 {
				sc.open = append(sc.open, bracket{r: r, line: n, column: i + 1})
			}
		case (r == ']' || r == '}') && len(sc.open) > 0:
			sc.close(n, i+1, r)
		case len(sc.open) > 0:
			sc.entry(n, runes, i)
		}
	}
}

// entry follows the keys and values within a bracket.
func (sc *scanner) entry(n int, runes []rune, i int) {
	b := &sc.open[len(sc.open)-1]
	switch r := runes[i]; {
	case r == ',':
		b.colon = false
	case r == ':' && (i+1 == len(runes) || runes[i+1] == ' '):
		if b.colon && b.r == '{' && b.line == n {
			before := strings.TrimRight(string(runes[:i]), " \t")
			word := strings.LastIndexAny(before, " {,") + 1
			sc.fail(n, utf8.RuneCountInString(before[:word])+1, quote(before[word:]), "a second key begins here, and no comma stands before it",
				"put a comma before it, or the value in quotes")
		}
		b.colon = true
	case strings.ContainsRune("%@`", r) && i > 1 && runes[i-1] == ' ' && strings.ContainsRune(":,[{", runes[i-2]):
		sc.fail(n, i+1, quote(string(r)), fmt.Sprintf("a value can't begin with %c", r), "put the value in quotes")
	}
}

// afterQuote checks what stands behind a closed quote and returns where to go on.
func (sc *scanner) afterQuote(n int, runes []rune, from, end int) int {
	sc.escapes(n, runes[from:end+1], from)
	rest := strings.TrimLeft(string(runes[end+1:]), " \t")
	if rest != "" && !strings.ContainsRune(",]}:#", rune(rest[0])) && sc.found == nil {
		sc.fail(n, len(runes)-utf8.RuneCountInString(rest)+1, quote(strings.TrimSpace(rest)), "there is text behind the closing quote",
			"put all of the value in one pair of quotes")
	}
	return end
}

// escapes checks the backslashes of a text in double quotes.
func (sc *scanner) escapes(n int, text []rune, from int) {
	if text[0] != '"' {
		return
	}
	for i := 1; i < len(text)-1; i++ {
		if text[i] != '\\' {
			continue
		}
		if !strings.ContainsRune("0abt\tnvfre \"/\\N_LPxuU", text[i+1]) {
			sc.fail(n, from+i+1, quote(string(text[i:i+2])), "a backslash in double quotes begins an escape, and this is none",
				"use single quotes: backslashes mean nothing in them")
			return
		}
		i++
	}
}

func (sc *scanner) close(n, column int, r rune) {
	b := sc.open[len(sc.open)-1]
	if closing[b.r] != r {
		sc.fail(n, column, quote(string(r)), fmt.Sprintf("the bracket that is open here is the %q of line %d, column %d", b.r, b.line, b.column),
			fmt.Sprintf("close it with %q", closing[b.r]))
		return
	}
	sc.open = sc.open[:len(sc.open)-1]
}

// closeQuote is where the quote that opens at i closes; -1 for nowhere.
func closeQuote(runes []rune, i int) int {
	q := runes[i]
	for j := i + 1; j < len(runes); j++ {
		switch {
		case q == '"' && runes[j] == '\\':
			j++
		case runes[j] == q && q == '\'' && j+1 < len(runes) && runes[j+1] == q:
			j++ // '' is one apostrophe
		case runes[j] == q:
			return j
		}
	}
	return -1
}

// libraryWords are the library's messages in words for people.
var libraryWords = []struct{ has, why, next string }{
	{"mapping values are not allowed", "there is a colon where no key can stand", "put the value in quotes, or check the indentation"},
	{"did not find expected key", "a key of the same mapping was expected here", "check the indentation and the quotes of this line and the one above"},
	{"did not find expected '-' indicator", "an item of the list was expected here", "begin each item with \"- \" in the same column"},
	{"could not find expected ':'", "a key without a colon", "write key: value"},
	{"did not find expected ',' or", "a comma or the closing bracket was expected here", "check the list or mapping in brackets"},
	{"cannot start any token", "a value can't begin with this character", "put the value in quotes"},
	{"unexpected end of stream", "the file ends within a value", "look for a quote or bracket that is not closed"},
	{"block sequence entries are not allowed", "a list item can't stand here", "put \"- \" on a line of its own, below its key"},
	{"unknown anchor", "aliases (*name) are not allowed in a profile", "write the value out"},
	{"undefined tag handle", "tags (!name) are not allowed in a profile", "leave the tag out"},
	{"document start", "a second document or stray text begins here", "a profile is one document; remove what does not belong to it"},
	{"unknown escape character", "a backslash in double quotes begins an escape, and this is none", "use single quotes"},
}

var libraryLine = pattern.New(`^yaml: (?:line (\d+): )?(.*)$`)

func (s *source) fromLibrary(err error) *Error {
	line, words := 1, err.Error()
	if m := libraryLine.FindStringSubmatch(words); m != nil {
		words = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = min(max(n, 1), len(s.lines))
		}
	}
	text := s.line(line)
	column := len(text) - len(strings.TrimLeft(text, " ")) + 1
	for _, w := range libraryWords {
		if strings.Contains(words, w.has) {
			if w.has == "unknown anchor" {
				line, column = s.find("*", line, column)
			}
			return s.fault(line, column, "the YAML", w.why, w.next)
		}
	}
	return s.fault(line, column, "the YAML", sentence(words), "check this line and the one above")
}

// find is where a text first stands, or the given place.
func (s *source) find(what string, line, column int) (int, int) {
	for i, l := range s.lines {
		if before, _, ok := strings.Cut(l, what); ok && !strings.Contains(before, "#") {
			return i + 1, utf8.RuneCountInString(before) + 1
		}
	}
	return line, column
}

func sentence(s string) string { return excerpt(strings.TrimPrefix(s, "yaml: ")) }
