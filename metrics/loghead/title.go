package loghead

import "strings"

// Title is where the message of a line begins that may be of a table: behind its head, or behind the
// name in brackets of what printed it, "[LMNN]   1   0.5". A head has no blank at its end, so that
// what stands below a name stays below it.
func Title(line string) int {
	if from := Of(line); from > 0 {
		return withBlanks(line, from)
	}
	if line == "" || line[0] != '[' {
		return 0
	}
	end := strings.IndexByte(line, ']')
	if end < 2 || end+1 >= len(line) || line[end+1] != ' ' {
		return 0
	}
	for _, c := range []byte(line[1:end]) {
		if !isLetter(c) {
			return 0
		}
	}
	from := end + 1
	for from < len(line) && strings.IndexByte(" \t|", line[from]) >= 0 {
		from++
	}
	return withBlanks(line, from)
}

// withBlanks is where the blanks before i begin.
func withBlanks(line string, i int) int {
	for i > 0 && (line[i-1] == ' ' || line[i-1] == '\t') {
		i--
	}
	return i
}
