package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Pair is where a number begins, and the name behind it.
type Pair struct{ Number, Start, End int }

// Reversed finds the parts of a message that begins at i which are a number with a fraction and the
// name that it has, "0.5 loss" or "0.5 (train loss)": parts are divided by commas, bars and dashes.
func Reversed(line string, i int) (all []Pair) {
	for i < len(line) {
		end := len(line)
		for _, sign := range [...]string{", ", "|", " - ", "; "} {
			if n := strings.Index(line[i:], sign); n >= 0 {
				end = min(end, i+n)
			}
		}
		if p, ok := reversed(line[:end], i); ok {
			all = append(all, p)
		}
		i = max(end+1, lexis.SkipBlanks(line, min(end+2, len(line))))
	}
	return all
}

// reversed reads the part of a line that begins at i, behind a colon that it may have.
func reversed(part string, i int) (p Pair, ok bool) {
	if colon := strings.LastIndex(part[i:], ": "); colon >= 0 {
		i += colon + 2
	}
	i += len(part[i:]) - len(strings.TrimLeft(part[i:], " -"))
	f, ok := lexis.Number(part, i)
	if !ok || !f.Real || f.Next >= len(part) || part[f.Next] != ' ' && part[f.Next] != '%' {
		return p, false
	}
	name := strings.Trim(part[f.Next:], " %().")
	start := f.Next + strings.Index(part[f.Next:], name)
	for _, c := range []byte(name) {
		if !lexis.IsKeyByte(c) && c != ' ' || lexis.IsDigit(c) && strings.Contains(name, " ") {
			return p, false
		}
	}
	return Pair{i, start, start + len(name)}, name != "" && strings.Count(name, " ") < 3
}
