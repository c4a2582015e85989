package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// One is the name, behind the word for what there are several of that ends at i, of the one that the rest
// of the line is about: "Task mnli -- epoch 0", where dashes or a wall stand behind it.
func One(line string, i int) (name string, ok bool) {
	start, end := lexis.NextKey(line, i)
	if end < 0 || start != i+1 || line[i] != ' ' || sense.Of(strings.ToLower(line[start:end])) != sense.Unknown {
		return "", false
	}
	rest := line[end:]
	return line[start:end], strings.HasPrefix(rest, " -- ") || strings.HasPrefix(rest, " - ") || strings.HasPrefix(rest, " | ")
}

// Fold is where in a line stands which of how many folds of a cross-validation it is of: "Fold 2/5",
// "[CV 1/3]", "fold 1 of 10"; -1 where it says none. The number is no place in a run.
func Fold(line string) int {
	for i := 0; ; {
		start, end := lexis.NextKey(line, i)
		if end < 0 {
			return -1
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
			return at
		}
	}
}
