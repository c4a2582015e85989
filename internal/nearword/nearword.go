// Package nearword finds the word that a mistyped one was meant to be.
package nearword

import (
	"cmp"
	"slices"
	"strings"
)

// longest is the length from which a word is no mistyped name any more.
const longest = 64

// Nearest returns the candidate that is most like word, or "" when none is
// like it. Case, dashes and underscores make no difference.
func Nearest(word string, candidates []string) string {
	if word == "" || len(word) > longest {
		return ""
	}
	best, least := "", 1000
	for _, c := range candidates {
		if d := edits(Fold(word), Fold(c)); d < least {
			best, least = c, d
		}
	}
	// A third of the letters may be wrong: "cuont" is count, "spot" is not port.
	if allowed := max(1, (max(len(word), len(best))+1)/3); least > allowed || len(best) <= least {
		return ""
	}
	return best
}

// Several returns the words that are the fewest edits away, at most n of them,
// and none that shares less than half of its letters with the word.
func Several(word string, candidates []string, n int) []string {
	words := slices.Clone(candidates)
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(w string) bool {
		return w == word || edits(word, w) > max(2, len(word)/2)
	})
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(edits(word, a), edits(word, b)) })
	return words[:min(n, len(words))]
}

// Fold is a word without what people mistake most: case, dashes, underscores.
func Fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// edits is how many letters must be added, dropped, changed or swapped with
// their neighbour to make b out of a.
func edits(a, b string) int {
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
