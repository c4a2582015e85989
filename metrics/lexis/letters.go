package lexis

import "strings"

// Letters are those of a line that are of no number: what is the same in lines that differ only in
// their numbers and how these are written.
func Letters(line string) string {
	var b strings.Builder
	for i := range len(line) {
		if IsLetter(line[i]) && line[i] != '_' && (i == 0 || !IsDigit(line[i-1])) {
			b.WriteByte(line[i])
		}
	}
	return b.String()
}
