package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// Tables that are of several data: the columns are, or groups of them, or the rows.

// splitHeader takes "Training |  Validation" as the header of rows with a metric
// each, as AllenNLP prints them.
func (t *tables) splitHeader(line string) bool {
	if !strings.ContainsAny(line, grid.Walls) && !strings.Contains(strings.TrimLeft(line, " "), "  ") || len(line) > 400 {
		return false
	}
	var found []string
	for i, c := range grid.Cells(line) {
		if i == 0 && (c == "" || nameColumns[strings.ToLower(c)]) { // above the names of the metrics
			continue
		}
		split := splits[strings.ToLower(c)]
		if split == "" {
			return false
		}
		found = append(found, split)
	}
	if len(found) < 2 {
		return false
	}
	t.splits, t.groups = found, found
	return true
}

// splitRow takes a row of such a table; any other line ends it.
func (t *tables) splitRow(s *scanner, line string) (found, bool) {
	if grid.IsRule(line) {
		return found{}, false
	}
	got := grid.Cells(line)
	if len(got) != len(t.splits)+1 || got[0] == "" || strings.ContainsAny(got[0], " =:") {
		t.splits = nil
		return found{}, false
	}
	s.found = found{counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}
	for i, cell := range got[1:] {
		f, ok := lexis.Number(cell, 0)
		if v := known(s.names.term(got[0], t.splits[i]), f); ok && f.Next == len(cell) && v.kind >= weak && v.show != "" {
			s.found.values = append(s.found.values, v)
		}
	}
	return s.found, true
}

// distinct tells columns of one name apart by the groups above them; where nothing does, the first counts.
func (t *tables) distinct(columns []column, names understood) {
	came, nth := map[string]int{}, map[string]int{}
	for _, c := range columns {
		came[c.show]++
	}
	for i := range columns {
		c := &columns[i]
		show, n := c.show, nth[c.show]
		switch nth[show]++; {
		case c.kind == never || came[show] < 2:
		case came[show] == len(t.groups):
			c.term = names.term(show, t.groups[n])
		case n > 0:
			c.kind = never
		}
	}
}

// ofData names scores as those of the data that a line or one of its cells says.
func (u understood) ofData(values []value, split string) {
	for i := range values {
		if v := &values[i]; split != "" && v.kind != measure {
			v.show = u.validatedAs(split+"/", v.show)
		}
	}
}
