// Package pattern has regular expressions that are compiled when they are first
// used. The program has more than a hundred, and one command uses a few: to
// compile them all would take more time than many a command.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression, for a variable of a package. Its methods are
// those of regexp.Regexp.
type Pattern struct {
	text    string
	compile func() *regexp.Regexp
}

// New makes a pattern. The text must be right: its first use panics otherwise,
// and a test compiles every pattern of the source.
func New(text string) *Pattern {
	return &Pattern{text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// String is the expression's text.
func (p *Pattern) String() string { return p.text }

// Match reports whether b contains a match.
func (p *Pattern) Match(b []byte) bool { return p.compile().Match(b) }

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// FindString gives the first match in s.
func (p *Pattern) FindString(s string) string { return p.compile().FindString(s) }

// FindSubmatch gives the first match in b and those of its groups.
func (p *Pattern) FindSubmatch(b []byte) [][]byte { return p.compile().FindSubmatch(b) }

// FindStringSubmatch gives the first match in s and those of its groups.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }

// FindAllSubmatch gives the first n matches in b with their groups; below zero,
// all.
func (p *Pattern) FindAllSubmatch(b []byte, n int) [][][]byte {
	return p.compile().FindAllSubmatch(b, n)
}

// FindStringSubmatchIndex gives the places of the first match in s and of its groups.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.compile().FindStringSubmatchIndex(s)
}

// FindAllStringSubmatch gives the first n matches in s with their groups; below
// zero, all.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

// Split cuts s at its first n matches; below zero, at all.
func (p *Pattern) Split(s string, n int) []string { return p.compile().Split(s, n) }

// ReplaceAllString puts a text, which may name groups, in place of each match in s.
func (p *Pattern) ReplaceAllString(s, text string) string {
	return p.compile().ReplaceAllString(s, text)
}

// ReplaceAllStringFunc puts what f gives in place of each match in s.
func (p *Pattern) ReplaceAllStringFunc(s string, f func(string) string) string {
	return p.compile().ReplaceAllStringFunc(s, f)
}
