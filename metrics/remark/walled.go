package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Walled finds the name and the number of a line that has a count at i, a colon, and behind that
// nothing but the two with a wall between them: "Step  100: eval  Accuracy |  0.71". start equals
// end for any other line.
func Walled(line string, i int) (start, end, number int) {
	wall := strings.IndexByte(line, '|')
	colon := lexis.Digits(line, i)
	if wall < 0 || colon >= wall || line[colon] != ':' || strings.IndexByte(line[wall+1:], '|') >= 0 {
		return 0, 0, 0
	}
	start, number = lexis.SkipBlanks(line, colon+1), lexis.SkipBlanks(line, wall+1)
	end = len(strings.TrimRight(line[:wall], " "))
	f, ok := lexis.Number(line, number)
	if !ok || f.Next != len(line) || end <= start || !lexis.IsLetter(line[start]) || strings.ContainsAny(line[start:end], ":=,;") {
		return 0, 0, 0
	}
	return start, end, number
}

// IsValue reports whether the word "value", which begins at i, is the name of what was measured: the
// value that a policy has beside it, or the one thing that a line tells of a step, "iter  10 value 45.6".
func IsValue(line string, i int, blank bool) bool {
	if !blank {
		return strings.Contains(line[:i], "policy")
	}
	f, ok := lexis.Number(line, lexis.SkipBlanks(line, i+len("value")))
	return ok && f.Next == len(line) && len(strings.Fields(line[:i])) == 2
}
