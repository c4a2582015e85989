// Package podlog knows places in the log of a container of Kubernetes, whose API has no
// offsets, and goes on from one exactly.
package podlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

// Cursor is a place in the log of a container: the stamp of the line that was read
// last, how many lines of that stamp were read, and how many bytes of the line
// that comes behind them. The API gives a log from a second on and knows no
// offsets; stamps have nine digits.
type Cursor struct {
	Pod   string `json:"p,omitempty"` // its UID
	Stamp string `json:"t,omitempty"`
	Lines int    `json:"n,omitempty"`
	Bytes int    `json:"b,omitempty"`
}

// String is the cursor as text; empty: the beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	text, _ := json.Marshal(c)
	return string(text)
}

// Job is the cursor as a run stores it.
func (c Cursor) Job() job.Cursor { return job.Cursor(c.String()) }

// Read reads a stored cursor.
func Read(text job.Cursor) (c Cursor, err error) {
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Lines < 0 || c.Bytes < 0 {
		return c, fmt.Errorf("%q is no place in a log of Kubernetes", string(text))
	}
	return c, nil
}

// Since is the moment to ask from; nil: the beginning.
func (c Cursor) Since() *time.Time {
	at, err := time.Parse(time.RFC3339Nano, c.Stamp)
	if err != nil {
		return nil
	}
	return &at
}

// Line is one line of a log, or its beginning where more is to come.
type Line struct {
	Stamp string
	Text  []byte // with its newline, where it has one
}

// Split takes the stamp off a line; false where it has none: the rest of a line
// whose beginning was not asked for.
func Split(raw []byte) (l Line, ok bool) {
	end := bytes.IndexByte(raw[:min(len(raw), longestStamp+1)], ' ')
	if end < 0 {
		return l, false
	}
	at, text := string(raw[:end]), raw[end+1:]
	if len(at) < len("2006-01-02T15:04:05Z") || at[4] != '-' || at[10] != 'T' {
		return l, false
	}
	if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
		return l, false
	}
	return Line{at, text}, true
}

// longestStamp is that of a stamp with nine digits and a zone.
const longestStamp = len("2006-01-02T15:04:05.000000000+00:00")

// Reader goes through what was asked for again and leaves out what was read. met
// is set when the line of its cursor has come by: without it, lines are missing.
type Reader struct {
	At    Cursor // what was read
	lines int    // of the stamp of at, in this answer
	met   bool
	begun bool // something came
}

// NewReader goes on from a cursor.
func NewReader(at Cursor) *Reader { return &Reader{At: at, met: at.Stamp == ""} }

// Take takes the next line and gives what of it is new; gap reports that lines
// before it are gone for ever.
func (r *Reader) Take(l Line) (news []byte, gap bool) {
	r.begun = true
	switch {
	case before(l.Stamp, r.At.Stamp):
		return nil, false
	case l.Stamp == r.At.Stamp:
		r.met = true
		r.lines++
		switch {
		case r.lines <= r.At.Lines:
			return nil, false
		case r.lines == r.At.Lines+1:
			news = l.Text[min(r.At.Bytes, len(l.Text)):]
		default:
			news = l.Text
		}
		r.At.Lines, r.At.Bytes = r.lines, 0
		return news, false
	}
	gap, r.met = !r.met, true
	r.At.Stamp, r.At.Lines, r.At.Bytes, r.lines = l.Stamp, 1, 0, 1
	return l.Text, gap
}

// Part takes a line that has no end yet.
func (r *Reader) Part(l Line) (news []byte, gap bool) {
	was := *r
	news, gap = r.Take(l)
	if len(news) == 0 {
		*r = was
		r.begun, r.met = true, was.met || !before(l.Stamp, was.At.Stamp)
		return nil, false
	}
	r.At.Lines--
	r.lines--
	r.At.Bytes = len(l.Text)
	return news, gap
}

// before compares stamps, which may have fewer digits than nine.
func before(a, b string) bool {
	if len(a) == len(b) {
		return a < b
	}
	x, err := time.Parse(time.RFC3339Nano, a)
	y, err2 := time.Parse(time.RFC3339Nano, b)
	return err == nil && err2 == nil && x.Before(y)
}
