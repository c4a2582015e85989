package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// OfFold reports whether a line says which of how many folds of a cross-validation it is of: "Fold
// 2/5", "[CV 1/3]", "fold 1 of 10". Its scores are of that fold, and its number is no place in a run.
func OfFold(line string) bool {
	for i := 0; ; {
		start, end := lexis.NextKey(line, i)
		if end < 0 {
			return false
		}
		i = end
		if word := line[start:end]; !strings.EqualFold(word, "fold") && word != "CV" {
			continue
		}
		at := end
		for at < len(line) && strings.IndexByte(" #:[(", line[at]) >= 0 {
			at++
		}
		number := lexis.Digits(line, at)
		rest, of := strings.CutPrefix(strings.TrimLeft(line[number:], " "), "of ")
		if !of {
			rest, of = strings.CutPrefix(rest, "/")
		}
		if of && number > at && lexis.Digits(strings.TrimLeft(rest, " "), 0) > 0 {
			return true
		}
	}
}
