package grid

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Headed is a line of names that end in colons and are far apart, "Gen:    Best:    df:", without
// the colons; any other line stays.
func Headed(line string) string {
	if !strings.HasSuffix(line, ":") {
		return line
	}
	names := strings.Fields(line)
	for _, name := range names {
		if strings.IndexByte(name, ':') != len(name)-1 || strings.IndexByte("0123456789", name[0]) >= 0 {
			return line
		}
	}
	return strings.ReplaceAll(line, ":", " ")
}

// Open is a line whose walls divide groups of columns, which wide gaps divide again, with gaps for
// walls: "ID   Step |  avgR   stdR". Any other line stays.
func Open(line string) string {
	if i := strings.IndexByte(line, '|'); i < 1 || strings.TrimLeft(line[:i], " ") == "" || line[len(line)-1] == '|' {
		return line
	}
	for cell := range strings.SplitSeq(line, "|") {
		if strings.Contains(strings.TrimSpace(cell), "  ") {
			return strings.ReplaceAll(line, "|", "  ")
		}
	}
	return line
}

// Spread is a line cut at each blank when that gives n cells that numbers begin, or signs for none:
// "1  2.51e+02 6.87e-01    -  1.00e+00f"; nil otherwise.
func Spread(line string, n int) []string {
	all := strings.Fields(strings.ReplaceAll(line, "|", " "))
	if len(all) != n {
		return nil
	}
	for _, cell := range all {
		if _, ok := lexis.Number(cell, 0); !ok && strings.Trim(cell, "-") != "" {
			return nil
		}
	}
	return all
}

// Under cuts a row that has fewer cells than the header above it by where its numbers stand: each
// below the name that it overlaps, and "" below the others. It is nil where that tells nothing: a
// cell is below no name or below two, or is neither number nor clock.
func Under(header, row string) []string {
	names, cells := spans(header), spans(row)
	if len(cells) < 2 || len(cells) >= len(names) {
		return nil
	}
	out := make([]string, len(names))
	next := 0
	for _, c := range cells {
		text := row[c[0]:c[1]]
		if !IsNumber(text) && !IsClock(text) {
			return nil
		}
		for next < len(names) && names[next][1] <= c[0] {
			next++
		}
		if next == len(names) || names[next][0] >= c[1] || next+1 < len(names) && names[next+1][0] < c[1] {
			return nil
		}
		out[next] = text
		next++
	}
	return out
}

// spans are where the cells of a line begin and end that wide gaps tell apart; nil where bytes are
// no columns.
func spans(line string) (found [][2]int) {
	start := -1
	for i := 0; i <= len(line); i++ {
		if i < len(line) && (line[i] >= 0x80 || line[i] == '\t' || line[i] == '|') {
			return nil
		}
		gap := i == len(line) || line[i] == ' ' && (i+1 == len(line) || line[i+1] == ' ')
		switch {
		case gap && start >= 0:
			found = append(found, [2]int{start, i})
			start = -1
		case !gap && start < 0 && line[i] != ' ':
			start = i
		}
	}
	return found
}

// Words are the names of a header of which some are only a blank apart, when they are as many as
// the numbers of the row below it, and those; nil otherwise.
func Words(header, row string) (names, cells []string) {
	names = strings.Fields(header)
	if cells = Spread(row, len(names)); cells == nil {
		return nil, nil
	}
	return names, cells
}

// shortestRule are the dashes of one column of a rule.
const shortestRule = 3

// IsPairRule reports whether a line rules two columns, as above and below names and numbers that
// are printed without walls: "-------------  -------".
func IsPairRule(line string) bool {
	if len(line) < 2*shortestRule || line[0] != '-' || line[len(line)-1] != '-' {
		return false
	}
	left := strings.TrimLeft(line, "-")
	right := strings.TrimLeft(left, " ")
	return len(line)-len(left) >= shortestRule && len(left)-len(right) >= 2 && len(right) >= shortestRule && strings.Trim(right, "-") == ""
}

// Pair cuts a row below such a rule in a name and a number; false for any other line.
func Pair(row string) (name string, number lexis.Figure, ok bool) {
	got := Cells(row)
	if len(got) != 2 {
		return "", number, false
	}
	number, _ = lexis.Number(got[1], 0)
	return got[0], number, IsRow(got)
}
