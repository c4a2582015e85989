package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Files in which each row names its series: tables with a column of names and one of
// values, as plotting programs like them.

// nameColumns are what the column is called whose cells are the names of series.
var nameColumns = set(`series metric metric_name tag variable`)

// long is where a table that has a series in each row has its name, its value and its
// split; name is -1 in any other.
type long struct{ name, value, split int }

// longOf looks at the header of a table.
func longOf(columns []string) long {
	l := long{-1, -1, -1}
	for i, c := range columns {
		switch c = strings.ToLower(c); {
		case nameColumns[c] && l.name < 0:
			l.name = i
		case c == "value":
			l.value = i
		case c == "split":
			l.split = i
		}
	}
	if l.value < 0 {
		l.name = -1
	}
	return l
}

// readLong reads a row whose cells name the series of its value.
func (t *csvRows) readLong(cells []string) {
	if len(cells) <= max(t.long.name, t.long.value) {
		return
	}
	at := nowhere()
	for i, name := range t.columns {
		if i < len(cells) && i != t.long.value {
			if f, ok := lexis.Number(strings.TrimSpace(cells[i]), 0); ok && f.Next == len(strings.TrimSpace(cells[i])) {
				at.takes(name, f.Value)
			}
		}
	}
	text := strings.TrimSpace(cells[t.long.value])
	name := t.names.name(strings.TrimSpace(cells[t.long.name]))
	if s := t.long.split; s >= 0 && s < len(cells) && Split(name) == "" {
		if split := splits[strings.ToLower(strings.TrimSpace(cells[s]))]; split != "" && name != "" {
			name = split + "/" + name
		}
	}
	if f, ok := lexis.Number(text, 0); ok && f.Next == len(text) {
		at.add(t.add, name, f.Value)
	}
}
