package lexis

import (
	"strconv"
	"strings"
)

// Group is the number that a group of an expression found, whose places are m.
func Group(line string, m []int, group int) (float64, bool) {
	if group < 0 || m[2*group] < 0 {
		return 0, false
	}
	return Stated(line[m[2*group]:m[2*group+1]])
}

// Stated is a number alone that someone pointed at: "1,200", "87.5%".
func Stated(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(text), ",", ""), "%"), 64)
	return v, err == nil
}

// InParens reads a number that stands at i in parentheses of its own, behind the sign of its name: "loss: (-28.5)".
func InParens(line string, i int) (f Figure, ok bool) {
	if i < 2 || i+2 >= len(line) || line[i] != '(' || line[i-1] != ' ' || line[i-2] != ':' && line[i-2] != '=' {
		return f, false
	}
	f, ok = Number(line, i+1)
	return f, ok && f.Real && f.Next < len(line) && line[f.Next] == ')'
}
