package metrics

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/csvhead"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// csvRows reads the rows of a table. Where no column is called by what counts,
// the first may count all the same: gen, tick, cycle. Its first rows then wait
// until they show whether it goes up by the same from each to the next.
type csvRows struct {
	columns []string
	long    long
	names   fileNames
	add     func(...Point)
	ranks   ranks
	judged  bool
	things  bool // rows are of things, and not of moments
	counts  bool // the first column says where a row belongs
	runs    bool // a total of steps does
	held    []csvRow
	room    []float64 // of the values of a row that does not wait
}

// csvRow is the values of a row, and where its columns say that it belongs.
type csvRow struct {
	at     place
	values []float64
	split  string // that a cell says
	texts  csvhead.Texts
}

func (t *csvRows) read(cells []string) {
	if t.long.name >= 0 {
		t.readLong(cells)
		return
	}
	row := csvRow{at: nowhere(), values: t.room}
	if !t.judged || t.room == nil {
		row.values = make([]float64, len(t.columns))
		t.room = row.values
	}
	for i, name := range t.columns {
		row.values[i] = absentValue
		if i >= len(cells) {
			continue
		}
		cell := strings.TrimSpace(cells[i])
		if f, ok := lexis.Number(cell, 0); ok && f.Next == len(cell) && !row.at.takes(name, f.Value) {
			row.values[i] = f.Value
		} else if !ok {
			row.split = cmp.Or(splits[strings.ToLower(cell)], row.split)
			row.texts.Add(cell, i)
		}
	}
	if t.ranks.passes(&row.at) {
		return
	}
	if t.judged {
		t.tell(row)
		return
	}
	if t.held = append(t.held, row); !t.mayCount(row) && !row.at.mayRun() || len(t.held) == proofs {
		t.end()
	}
}

// mayCount reports whether the first column of a row may be all that says where
// it belongs.
func (t *csvRows) mayCount(row csvRow) bool {
	if len(row.values) < 2 || row.at.x != AxisNone || row.at.inEpoch || !math.IsNaN(row.at.epoch) {
		return false
	}
	n, name := row.values[0], strings.ToLower(t.columns[0])
	return n >= 0 && n <= largestCount && n == math.Trunc(n) && sense.Of(name) < measure && !lexis.IsClock(name)
}

// end judges the first column by the rows that are held, and tells of them.
func (t *csvRows) end() {
	if t.judged {
		return
	}
	t.judged, t.counts, t.runs = true, true, len(t.held) > 1
	for i, row := range t.held {
		t.runs = t.runs && (i == 0 || row.at.runsFrom(t.held[i-1].at))
		t.counts = t.counts && t.mayCount(row) && (i == 0 || t.stride(i) > 0 && t.stride(i) == t.stride(1))
	}
	t.things = !t.counts && !t.runs && !slices.ContainsFunc(t.held, func(row csvRow) bool {
		return row.split != "" || row.at.x != AxisNone || row.at.inEpoch || !math.IsNaN(row.at.epoch) || !row.texts.OfThing(t.columns)
	})
	for _, row := range t.held {
		t.tell(row)
	}
	t.held, t.room = nil, nil
}

// stride is by how much the first column of a held row is more than that of the
// row before.
func (t *csvRows) stride(i int) float64 { return t.held[i].values[0] - t.held[i-1].values[0] }

func (t *csvRows) tell(row csvRow) {
	if t.things {
		return
	}
	if n := row.values; t.counts && n[0] != absentValue {
		row.at.step, row.at.x, n[0] = n[0], AxisStep, absentValue
	}
	if t.runs && row.at.mayRun() {
		row.at.step, row.at.x = row.at.total, AxisStep
	}
	for i, v := range row.values {
		if v != absentValue && t.columns[i] != "" {
			name := t.names.name(t.columns[i])
			if row.split != "" && name != "" && Split(name) == "" && sense.Of(strings.ToLower(name)) != measure {
				name = row.split + "/" + name
			}
			row.at.add(t.add, name, v)
		}
	}
}
