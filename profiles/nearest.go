package profiles

import "strings"

// maxWord is the length from which a word is no mistyped key any more.
const maxWord = 64

// Nearest returns the candidate that is most like word, or "" when none is
// like it. Case, dashes and underscores make no difference.
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > maxWord {
		return ""
	}
	best, least := "", 1000
	for _, c := range candidates {
		if d := distance(fold(word), fold(c)); d < least {
			best, least = c, d
		}
	}
	// A third of the letters may be wrong: "cuont" is count, "spot" is not port.
	if allowed := max(1, (max(len(word), len(best))+1)/3); least > allowed || len(best) <= least {
		return ""
	}
	return best
}

func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// distance is how many letters must be added, dropped, changed or swapped with
// their neighbour to make b out of a.
func distance(a, b string) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
