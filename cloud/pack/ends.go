package pack

import (
	"strconv"
	"strings"
)

// trailer begins the line by which a host or a driver tells how its ranks ended.
const trailer = "[dlwb] ranks: "

// EndsFrom reads that line: the exit code of each rank; false: it is another line.
func EndsFrom(line string) (ends map[int]int, is bool) {
	list, is := strings.CutPrefix(line, trailer)
	if !is {
		return nil, false
	}
	return Ends(list), true
}

// Ends reads how ranks ended, as the launcher writes it: "0:0 1:137", the exit code
// behind each rank. What is no such word is left out.
func Ends(list string) map[int]int {
	ends := map[int]int{}
	for _, word := range strings.Fields(list) {
		rank, code, _ := strings.Cut(word, ":")
		r, err := strconv.Atoi(rank)
		n, err2 := strconv.Atoi(code)
		if err == nil && err2 == nil && n >= 0 && n <= 255 {
			ends[r] = n
		}
	}
	return ends
}
