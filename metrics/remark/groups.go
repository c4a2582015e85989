package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// GroupOf is the first word of the group in brackets in which the key from start to end stands, where another group of
// the line has the same key under another first word: "[D loss: 0.4, acc: 0.85]  [A loss: 2.2, acc: 0.18]" tells of the
// acc of D and of that of A; "" elsewhere.
func GroupOf(line string, start, end int) string {
	open := strings.LastIndexByte(line[:start], '[')
	if open < 0 || strings.IndexByte(line[open:start], ']') >= 0 || end >= len(line) || line[end] != ':' && line[end] != '=' {
		return ""
	}
	of := firstOfGroup(line, open)
	if of == "" {
		return ""
	}
	key := line[start : end+1]
	for i := range len(line) {
		if line[i] != '[' || i == open {
			continue
		}
		if other := firstOfGroup(line, i); other == "" || other == of {
			continue
		}
		inside, _, _ := strings.Cut(line[i+1:], "]")
		if at := strings.Index(inside, " "+key); at > 0 && strings.Count(inside, ",") > 0 {
			return of
		}
	}
	return ""
}

// firstOfGroup is the word with which a group begins that a bracket at i opens, and behind which a key stands.
func firstOfGroup(line string, i int) string {
	start, end := lexis.NextKey(line, i+1)
	if start != i+1 || end < 0 || end-start > longestOfGroup || end >= len(line) || line[end] != ' ' {
		return ""
	}
	key, stop := lexis.NextKey(line, end+1)
	if key != end+1 || stop < 0 || stop >= len(line) || line[stop] != ':' && line[stop] != '=' {
		return ""
	}
	return line[start:end]
}

// longestOfGroup bounds the word that names a group.
const longestOfGroup = 16
