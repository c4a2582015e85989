// Package readback reads what dlwb itself writes of series: the tables and the lines
// of dlwb export, and the answer of dlwb metrics --json. A reader of what trainings
// write would take the names of their columns for the names of series.
package readback

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/metrics"
)

// columns are those of a table, as dlwb export names them. Older ones have no axis.
const columns = "series,split,step,epoch,time,value,source"

// mostJSON bounds an answer of dlwb metrics --json.
const mostJSON = 512 << 20

// Document reads a file that dlwb wrote; nil, with nothing read, where it is of
// another origin. in can be peeked at.
func Document(in *bufio.Reader) (*metrics.Document, error) {
	start, err := in.Peek(4 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	line, _, _ := bytes.Cut(start, []byte("\n"))
	bare := bytes.Join(bytes.Fields(start), nil)
	switch {
	case string(bytes.TrimSpace(line)) == columns || bytes.HasPrefix(line, []byte(columns+",axis")):
		doc := &metrics.Document{Format: metrics.CSV}
		return doc, readTable(in, &doc.Set)
	case bytes.HasPrefix(line, []byte(`{"series":"`)) && hasAll(line, `"split":`, `"step":`, `"epoch":`, `"time":`, `"value":`, `"source":`):
		doc := &metrics.Document{Format: metrics.JSONLines}
		return doc, readLines(in, &doc.Set)
	case bytes.HasPrefix(bare, []byte(`{"format":"`)) && hasAll(bare[:min(len(bare), 200)], `"series":[{"name":"`):
		doc := &metrics.Document{Format: metrics.JSON}
		return doc, readAnswer(in, doc)
	}
	return nil, nil
}

func hasAll(text []byte, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !bytes.Contains(text, []byte(w)) })
}

// axes are the axes by their names.
var axes = map[string]metrics.Axis{"step": metrics.AxisStep, "epoch": metrics.AxisEpoch, "ordinal": metrics.AxisNone}

func readTable(in io.Reader, set *metrics.Set) error {
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.ReuseRecord = -1, true
	head, err := rows.Read()
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	for {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err == nil && len(row) != len(head) {
			line, _ := rows.FieldPos(0)
			err = fmt.Errorf("line %d has %d cells, not %d", line, len(row), len(head))
		}
		if err != nil {
			return err
		}
		p := metrics.Point{Name: uncell(row[at["series"]])}
		if text := row[at["step"]]; text != "" {
			v, bad := strconv.ParseInt(text, 10, 64)
			p.Step, err = &v, errors.Join(err, bad)
		}
		if text := row[at["epoch"]]; text != "" {
			v, bad := strconv.ParseFloat(text, 64)
			p.Epoch, err = &v, errors.Join(err, bad)
		}
		if i, has := at["axis"]; has {
			p.X = axes[row[i]]
		}
		v, bad := strconv.ParseFloat(row[at["value"]], 64)
		if p.Value, err = v, errors.Join(err, bad); err != nil {
			line, _ := rows.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
		set.Add(p)
	}
}

// uncell takes off what keeps a spreadsheet from reading a name as a formula.
func uncell(name string) string {
	if len(name) > 1 && name[0] == '\'' && strings.ContainsRune("=+-@", rune(name[1])) {
		return name[1:]
	}
	return name
}

func readLines(in io.Reader, set *metrics.Set) error {
	lines := json.NewDecoder(in)
	for n := 1; ; n++ {
		var l struct {
			Series string
			Step   *int64
			Epoch  *float64
			Value  number
			Axis   string
		}
		err := lines.Decode(&l)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		set.Add(metrics.Point{Name: l.Series, Step: l.Step, Epoch: l.Epoch, Value: float64(l.Value), X: axes[l.Axis]})
	}
}

// readAnswer reads the answer of dlwb metrics --json. Of several files it has series
// of one name, which stay apart.
func readAnswer(in io.Reader, doc *metrics.Document) error {
	var answer struct {
		Series []struct {
			Name, Axis string
			Points     [][2]number
		}
		Progress metrics.Progress
	}
	if err := json.NewDecoder(io.LimitReader(in, mostJSON)).Decode(&answer); err != nil {
		return err
	}
	doc.Progress = answer.Progress
	for _, s := range answer.Series {
		one := &metrics.Series{Name: s.Name}
		for _, xy := range s.Points {
			p := metrics.Point{Name: s.Name, Value: float64(xy[1]), X: axes[s.Axis]}
			switch x := float64(xy[0]); p.X {
			case metrics.AxisStep:
				p.Step = new(int64(x))
			case metrics.AxisEpoch:
				p.Epoch = &x
			}
			one.Add(p)
		}
		if one.Len() > 0 {
			doc.Set.Series = append(doc.Set.Series, one)
		}
	}
	return nil
}

// number is a number, or the word for one that JSON does not have.
type number float64

// UnmarshalJSON reads 1.5, "nan", "inf" and "-inf".
func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if errors.Is(err, strconv.ErrRange) && math.IsInf(v, 0) {
		err = nil
	}
	*n = number(v)
	return err
}
