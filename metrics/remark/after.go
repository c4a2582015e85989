package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// After cuts a heading before its place: "EVALUATION | DEV SET | AFTER 100 BATCHES" is "EVALUATION   DEV SET", 100 and
// "batches", and one "after epoch 3" has 3 and "epoch"; word is "" where no place is told.
func After(heading string) (head string, n lexis.Count, word string) {
	lower := strings.ToLower(heading)
	at := strings.LastIndex(lower, " after ")
	if at < 0 {
		return heading, n, ""
	}
	fields := strings.Fields(lower[at+len(" after "):])
	if len(fields) != 2 {
		return heading, n, ""
	}
	number, word := fields[0], fields[1]
	if !lexis.IsDigit(number[0]) {
		number, word = word, number
	}
	n, next, ok := lexis.OfTotal(number, 0)
	if !ok || next != len(number) {
		return heading, n, ""
	}
	return strings.Trim(strings.ReplaceAll(heading[:at], "|", " "), " -,"), n, word
}
