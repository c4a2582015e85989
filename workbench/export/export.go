// Package export writes the series of a run in forms that other programs read:
// CSV, JSON lines, an event file of TensorBoard, Parquet.
package export

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/sanitize"
)

// Row is one point of one series. A nil Step or Epoch was not told.
type Row struct {
	Series, Split, Source string
	Ordinal               int64 // of the point in its series
	Step                  *int64
	Epoch                 *float64
	Time                  time.Time
	Value                 float64
	Axis                  string // by what it is placed: step, epoch, or ordinal for nothing that was told
}

// Formats are the forms that there are, each with the ending of its files.
var Formats = map[string]string{"csv": ".csv", "jsonl": ".jsonl", "tfevents": ".tfevents", "parquet": ".parquet"}

// Write writes rows in one of the Formats. next gives the rows, series by
// series; it returns io.EOF behind the last.
func Write(w io.Writer, format string, next func() (Row, error)) error {
	write, ok := map[string]func(io.Writer, func() (Row, error)) error{
		"csv": writeCSV, "jsonl": writeJSONL, "tfevents": writeEvents, "parquet": writeParquet,
	}[format]
	if !ok {
		return fmt.Errorf("there is no format %q: it is one of csv, jsonl, tfevents, parquet", format)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if err := write(b, next); err != nil {
		return err
	}
	return b.Flush()
}

// each calls f with every row.
func each(next func() (Row, error), f func(Row) error) error {
	for {
		r, err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = f(r)
		}
		if err != nil {
			return err
		}
	}
}

// columns are those of every table.
var columns = []string{"series", "split", "step", "epoch", "time", "value", "source", "axis"}

// stamp is a time as tables have it: RFC 3339 in UTC, or nothing.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func float(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// cell is a name as a table has it: one line that can be seen, and no formula to
// a spreadsheet that opens the table.
func cell(s string) string {
	s = sanitize.Word(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

func writeCSV(w io.Writer, next func() (Row, error)) error {
	c := csv.NewWriter(w)
	if err := c.Write(columns); err != nil {
		return err
	}
	err := each(next, func(r Row) error {
		step, epoch := "", ""
		if r.Step != nil {
			step = strconv.FormatInt(*r.Step, 10)
		}
		if r.Epoch != nil {
			epoch = float(*r.Epoch)
		}
		return c.Write([]string{cell(r.Series), r.Split, step, epoch, stamp(r.Time), float(r.Value), cell(r.Source), r.Axis})
	})
	c.Flush()
	if err == nil {
		err = c.Error()
	}
	return err
}

// line is a row as JSON; a value that JSON has no number for is text.
type line struct {
	Series string   `json:"series"`
	Split  string   `json:"split"`
	Step   *int64   `json:"step"`
	Epoch  *float64 `json:"epoch"`
	Time   *string  `json:"time"`
	Value  any      `json:"value"`
	Source string   `json:"source"`
	Axis   string   `json:"axis"`
}

func writeJSONL(w io.Writer, next func() (Row, error)) error {
	return each(next, func(r Row) error {
		l := line{Series: r.Series, Split: r.Split, Step: r.Step, Epoch: r.Epoch, Value: r.Value, Source: r.Source, Axis: r.Axis}
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
			l.Value = float(r.Value)
		}
		if s := stamp(r.Time); s != "" {
			l.Time = &s
		}
		return sanitize.WriteJSON(w, l)
	})
}
