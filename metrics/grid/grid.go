// Package grid cuts the lines of a table that is printed into cells: at the walls between them,
// at wide gaps, or where a rule below the header says that its columns are.
package grid

import "strings"

// Walls stand between the cells of a table that is drawn.
const Walls = "|│┃║"

// rules is what lines between the rows of such a table are drawn with.
const rules = " -=+─━═│╞╪╡├┼┤╒╤╕╘╧╛╠╬╣"

// IsRule reports whether a line is between two rows.
func IsRule(line string) bool { return strings.Trim(line, rules) == "" }

// fewestRuled are the columns that a rule tells of at least: fewer are as often a line below a title.
const fewestRuled = 3

// Cells cuts a line at walls, or at tabs and wider gaps.
func Cells(line string) []string {
	var out []string
	if strings.ContainsAny(line, Walls) && !isNorms(strings.ReplaceAll(line, "||", "|")) {
		for _, c := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(Walls, r) }) {
			out = append(out, strings.TrimSpace(c))
		}
		return out
	}
	start := -1
	for i := 0; i <= len(line); i++ {
		gap := i == len(line) || line[i] == '\t' || line[i] == ' ' && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t')
		switch {
		case gap && start >= 0:
			out = append(out, line[start:i])
			start = -1
		case !gap && start < 0 && line[i] != ' ' && line[i] != '\t':
			start = i
		}
	}
	return out
}

// isNorms reports whether all walls of a line are those around a word, as in "i    f     |g|": what
// is between is the name of a norm.
func isNorms(line string) bool {
	for {
		open := strings.IndexByte(line, '|')
		if open < 0 {
			return !strings.ContainsAny(line, Walls)
		}
		end := strings.IndexByte(line[open+1:], '|')
		if end < 1 || strings.ContainsAny(line[open+1:open+1+end], " \t") || open > 0 && line[open-1] != ' ' {
			return false
		}
		line = line[open+1+end+1:]
		if line != "" && line[0] != ' ' {
			return false
		}
	}
}

// Columns are where the columns of a table begin.
type Columns []int

// Ruled reads a rule of dashes, "----- ---------- -----", as the columns that it draws; nil for any
// other line.
func Ruled(line string) (c Columns) {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] != '-' && line[i] != '=' && line[i] != ' ':
			return nil
		case line[i] != ' ' && (i == 0 || line[i-1] == ' '):
			c = append(c, i)
		}
	}
	if len(c) < fewestRuled {
		return nil
	}
	return c
}

// Cut cuts a line where the columns begin; nil when a word runs from one into the next.
func (c Columns) Cut(line string) []string {
	out := make([]string, 0, len(c))
	for i, start := range c {
		end := len(line)
		if i+1 < len(c) {
			end = min(end, c[i+1])
		}
		if start > 0 && start <= len(line) && line[start-1] != ' ' {
			return nil
		}
		out = append(out, strings.TrimSpace(line[min(start, end):end]))
	}
	return out
}
