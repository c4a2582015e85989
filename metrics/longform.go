package metrics

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Files in which each row, or each part, names its series: tables with a column of
// names and one of values, as plotting programs like them and as dlwb exports runs,
// and what dlwb tells of a run as one JSON document.

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

// hasSeries reports whether a JSON object tells of series by their points, by its
// beginning.
func hasSeries(text []byte) bool {
	head := text[:min(len(text), sniffed)]
	return len(head) > 0 && head[0] == '{' && bytes.Contains(head, []byte(`"series":[{"name":"`)) && bytes.Contains(head, []byte(`"points":[`))
}

// seriesTold is one series of what dlwb tells as JSON.
type seriesTold struct {
	Name   string               `json:"name"`
	Axis   string               `json:"axis"`
	Points [][2]json.RawMessage `json:"points"`
}

// readTold reads the series of an object that hasSeries; false when it has none.
func readTold(text json.RawMessage, add func(...Point)) bool {
	var all []seriesTold
	if json.Unmarshal(text, &all) != nil || !slices.ContainsFunc(all, func(s seriesTold) bool { return s.Name != "" && len(s.Points) > 0 }) {
		return false
	}
	for _, s := range all {
		for _, p := range s.Points {
			x, okX := jsonNumber(p[0])
			y, okY := jsonNumber(p[1])
			if !okX || !okY || s.Name == "" {
				continue
			}
			point := Point{Name: tidy(s.Name), Value: y}
			switch s.Axis {
			case AxisEpoch.String():
				point.Epoch, point.X = &x, AxisEpoch
			case AxisStep.String():
				point.Step, point.X = new(int64(x)), AxisStep
			}
			add(point)
		}
	}
	return true
}
