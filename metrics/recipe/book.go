package recipe

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Book is recipes, made ready to read with.
type Book struct {
	Recipes []Recipe
	rules   []Rule
}

// Rule is one line of a recipe, made ready.
type Rule struct {
	Of    string // the recipe's name
	Skip  string
	Block string

	re      *regexp.Regexp
	read    string
	literal string // stands in every line that matches
}

// NewBook makes recipes ready. Of two rules that match a line the first one
// counts, so a user's own come first.
func NewBook(recipes []Recipe) *Book {
	b := &Book{Recipes: recipes}
	for _, r := range recipes {
		for _, l := range r.Lines {
			rule := Rule{Of: r.Name, Skip: l.Skip, Block: l.Block, re: regexp.MustCompile(l.Match), literal: Literal(l.Match)}
			if l.Read != nil {
				rule.read = *l.Read
			}
			b.rules = append(b.rules, rule)
		}
	}
	return b
}

// Rule is the rule that a message matches; nil when none does.
func (b *Book) Rule(message string) *Rule {
	for i := range b.rules {
		r := &b.rules[i]
		if strings.Contains(message, r.literal) && r.re.MatchString(message) {
			return r
		}
	}
	return nil
}

// sums are what is added up in what a rule reads.
var sums = pattern.New(`\bsum\([^()]*\)`)

// Plain is a message that the rule matches, in plain words.
func (r *Rule) Plain(message string) string {
	plain := r.re.ReplaceAllString(message, r.read)
	if strings.Contains(r.read, "sum(") {
		plain = sums.ReplaceAllStringFunc(plain, func(list string) string {
			return sum(list[len("sum(") : len(list)-1])
		})
	}
	return plain
}

// sum adds the numbers of a list, "0.5, 0.25"; what is none has no sum.
func sum(list string) string {
	total := 0.0
	for _, one := range strings.Split(list, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(one), 64)
		if err != nil {
			return ""
		}
		total += f
	}
	return strconv.FormatFloat(total, 'g', 6, 64)
}

// Literal is the longest text that stands in every match of an expression, so
// that most lines need not be matched against it.
func Literal(expression string) string {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return ""
	}
	return required(tree.Simplify())
}

func required(re *syntax.Regexp) string {
	longest := ""
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return string(re.Rune)
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l := required(sub); len(l) > len(longest) {
				longest = l
			}
		}
	}
	return longest
}
