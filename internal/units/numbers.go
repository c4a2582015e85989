package units

import (
	"strconv"
	"strings"
)

// Numbers are numbers with commas between them: 0,2,3.
func Numbers(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}
