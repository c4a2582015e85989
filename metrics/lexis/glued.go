package lexis

import "strings"

// BehindGlued is the end of a line in which a number ends at i and another line follows whose writer names itself in
// brackets, "0.96[Parallel(n_jobs=1)]: Using 1 worker": nothing of that is of the value. It is i elsewhere.
func BehindGlued(line string, i int) int {
	if i+1 < len(line) && line[i] == '[' && line[i+1] >= 'A' && line[i+1] <= 'Z' && strings.Contains(line[i:], "]: ") {
		return len(line)
	}
	return i
}
