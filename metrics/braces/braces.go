// Package braces reads a dictionary as JSON or as Python prints it: its numbers, each with the
// keys that lead to it. Numbers may be quoted, or stand in what a framework prints around them.
package braces

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// Deepest is how deep a dictionary lies in others at most.
const Deepest = 6

// mostPairs bounds what is read of one dictionary.
const mostPairs = 512

// Pair is one number of a dictionary, with the keys that lead to it.
type Pair struct {
	Key   string // joined by '/'
	Value float64
	Text  string // what stood there when it is no number
	Real  bool
}

// dict reads the dictionary that begins at i and ends the line, as JSON or as
// Python prints it. Numbers may be quoted.
type dict struct {
	text  string
	i     int
	pairs []Pair
	keys  []string
}

// Read returns the numbers in a dictionary, in buffer where there is room; false when text is none to its end.
func Read(text string, buffer []Pair) ([]Pair, bool) {
	d := dict{text: text, pairs: buffer[:0]}
	if !d.object(0) || lexis.SkipBlanks(text, d.i) != len(text) {
		return nil, false
	}
	return d.pairs, true
}

// BeginsWithList reports whether the first member of a dictionary is a list of numbers.
func BeginsWithList(text string) bool {
	d := dict{text: text, i: 1}
	if _, ok := d.quoted(); !ok || d.skip() != ':' {
		return false
	}
	d.i++
	if d.skip() != '[' {
		return false
	}
	d.i++
	d.skip()
	_, ok := lexis.Number(d.text, d.i)
	return ok
}

func (d *dict) skip() byte {
	d.i = lexis.SkipBlanks(d.text, d.i)
	if d.i >= len(d.text) {
		return 0
	}
	return d.text[d.i]
}

func (d *dict) object(depth int) bool {
	if d.skip() != '{' || depth > Deepest {
		return false
	}
	d.i++
	if d.skip() == '}' {
		d.i++
		return true
	}
	for {
		key, ok := d.quoted()
		if !ok || d.skip() != ':' {
			return false
		}
		d.i++
		d.keys = append(d.keys, key)
		if !d.item(depth) {
			return false
		}
		d.keys = d.keys[:len(d.keys)-1]
		switch d.skip() {
		case ',':
			d.i++
			if d.skip() == '}' {
				d.i++
				return true
			}
		case '}':
			d.i++
			return true
		default:
			return false
		}
	}
}

// quoted reads a string in either kind of quotes.
func (d *dict) quoted() (string, bool) {
	q := d.skip()
	if q != '"' && q != '\'' {
		return "", false
	}
	start := d.i + 1
	for i := start; i < len(d.text); i++ {
		switch d.text[i] {
		case '\\':
			i++
		case q:
			d.i = i + 1
			return d.text[start:i], true
		}
	}
	return "", false
}

func (d *dict) item(depth int) bool {
	switch c := d.skip(); {
	case c == '{':
		return d.object(depth + 1)
	case c == '[' || c == '(':
		return d.list(depth)
	case c == '"' || c == '\'':
		text, ok := d.quoted()
		if !ok {
			return false
		}
		d.add(text)
		return true
	}
	start := d.i
	for depth := 0; d.i < len(d.text); d.i++ {
		c := d.text[d.i]
		if c == '(' || c == '[' {
			depth++
		} else if c == ')' || c == ']' {
			depth--
		}
		if depth <= 0 && (c == ',' || c == '}') || depth < 0 {
			break
		}
	}
	d.add(strings.TrimSpace(d.text[start:d.i]))
	return d.i > start
}

// list skips a list; its first number stands for it when it is the only one.
func (d *dict) list(depth int) bool {
	start := d.i
	for ; d.i < len(d.text); d.i++ {
		switch d.text[d.i] {
		case '"', '\'':
			if _, ok := d.quoted(); !ok {
				return false
			}
			d.i--
		case '[', '(', '{':
			depth++
		case ']', ')', '}':
			depth--
		}
		if d.i > start && depth <= 0 && strings.IndexByte(")]}", d.text[d.i]) >= 0 {
			break
		}
		if depth > 64 {
			return false
		}
	}
	if d.i >= len(d.text) {
		return false
	}
	d.i++
	if inside := d.text[start+1 : d.i-1]; strings.IndexByte(inside, ',') < 0 {
		d.add(strings.TrimSpace(inside))
	}
	return true
}

func (d *dict) add(text string) {
	if len(d.pairs) >= mostPairs {
		return
	}
	p := Pair{Text: text}
	if inside := lexis.Unwrapped(text, 0); inside > 0 {
		text, _, _ = strings.Cut(strings.Trim(text[inside:], "[)]"), ",")
	}
	if f, ok := lexis.Number(text, 0); ok && f.Next == len(text) {
		p.Value, p.Real, p.Text = f.Value, f.Real, ""
	} else if p.Text == "" {
		return
	}
	p.Key = pathOf(d.keys)
	d.pairs = append(d.pairs, p)
}

// Containers are members that hold what was measured, and not more: what they hold of
// one split has that for its first name.
var Containers = sense.Set(`metrics metric logs scalars results values stats`)

// pathOf is the name of a value below keys: {"metrics": {"val": {"loss": {"value": 0.5}}}}
// is val/loss.
func pathOf(keys []string) string {
	if n := len(keys); n > 1 && keys[n-1] == "value" {
		keys = keys[:n-1]
	}
	if len(keys) > 2 && Containers[keys[0]] && sense.Splits[keys[1]] != "" {
		keys = keys[1:]
	}
	if len(keys) == 1 {
		return keys[0]
	}
	return strings.Join(keys, "/")
}
