// Package spread puts a dictionary that is printed over several lines, one member in
// each, back into one line.
package spread

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Bounds of a dictionary that is printed over several lines.
const (
	mostOpenLines = 256
	mostOpenBytes = 32 << 10
)

// Dict is the dictionary whose lines have come so far.
type Dict struct {
	lines []string
	bytes int
	depth int
}

// Begun reports whether a line of one has come, and not its last.
func (o *Dict) Begun() bool { return len(o.lines) > 0 }

// Opens reports whether a line begins a dictionary that goes on: "{" alone at its end, or a first
// member, as pprint prints it: "{'loss': 0.5,".
func Opens(line string) bool {
	switch line[len(line)-1] {
	case '{':
		return true
	case ',':
		open := strings.IndexByte(line, '{')
		return open >= 0 && open+2 < len(line) && (line[open+1] == '\'' || line[open+1] == '"') && braces(line[open:]) > 0
	}
	return false
}

// Add takes a line that begins or continues a dictionary. When it ends there, it
// returns the one line that it was, or one for each record that lies in it; when it turns out to be none, the lines.
func (o *Dict) Add(line string) (lines []string, ended bool) {
	body := strings.TrimSpace(line)
	if o.Begun() && !isMember(body) || len(o.lines) >= mostOpenLines || o.bytes > mostOpenBytes {
		return append(o.Drop(), strings.Clone(line)), true
	}
	if o.Begun() {
		line = body
		o.depth += braces(body)
	} else { // what stands before it may close a bracket: "I0102 03:04:05.6 12 train.py:70] {'loss': 0.5,"
		o.depth += braces(body[max(strings.IndexByte(body, '{'), 0):])
	}
	o.lines = append(o.lines, strings.Clone(line))
	o.bytes += len(line)
	if o.depth > 0 {
		return nil, false
	}
	whole := strings.Join(o.Drop(), " ")
	if all := records(whole); all != nil {
		return all, true
	}
	return []string{whole}, true
}

// Drop forgets what is open, and returns its lines.
func (o *Dict) Drop() []string {
	lines := o.lines
	*o = Dict{}
	return lines
}

// isMember reports whether a line is a member of a dictionary or closes one.
func isMember(body string) bool {
	if body == "" {
		return true
	}
	switch body[0] {
	case '"', '\'':
		return strings.IndexByte(body, ':') > 0 || body[len(body)-1] == ',' || body[len(body)-1] == body[0]
	case '}', ']', '{', '[':
		return true
	}
	f, ok := lexis.Number(body, 0) // of a list
	return ok && strings.Trim(body[f.Next:], ",") == ""
}

// braces is how much deeper a line leads.
func braces(body string) (depth int) {
	eachBracket(body, func(_ int, opens bool) {
		if opens {
			depth++
		} else {
			depth--
		}
	})
	return depth
}

// eachBracket tells of each bracket of a text that is in no quotes: where it is, and whether it opens.
func eachBracket(text string, tell func(at int, opens bool)) {
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("{[}]", c) >= 0:
			tell(i, c == '{' || c == '[')
		}
	}
}
