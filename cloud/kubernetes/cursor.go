package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

// cursor is a place in the log of a container: the stamp of the line that was read
// last, how many lines of that stamp were read, and how many bytes of the line
// that comes behind them. The API gives a log from a second on and knows no
// offsets; stamps have nine digits.
type cursor struct {
	Pod   string `json:"p,omitempty"` // its UID
	Stamp string `json:"t,omitempty"`
	Lines int    `json:"n,omitempty"`
	Bytes int    `json:"b,omitempty"`
}

func (c cursor) String() string {
	if c == (cursor{}) {
		return ""
	}
	text, _ := json.Marshal(c)
	return string(text)
}

func (c cursor) job() job.Cursor { return job.Cursor(c.String()) }

func readCursor(text job.Cursor) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Lines < 0 || c.Bytes < 0 {
		return c, fmt.Errorf("%q is no place in a log of Kubernetes", string(text))
	}
	return c, nil
}

// since is the moment to ask from; nil: the beginning.
func (c cursor) since() *time.Time {
	at, err := time.Parse(time.RFC3339Nano, c.Stamp)
	if err != nil {
		return nil
	}
	return &at
}

// line is one line of a log, or its beginning where more is to come.
type line struct {
	stamp string
	text  []byte // with its newline, where it has one
}

// split takes the stamp off a line; false where it has none: the rest of a line
// whose beginning was not asked for.
func split(raw []byte) (l line, ok bool) {
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
	return line{at, text}, true
}

// longestStamp is that of a stamp with nine digits and a zone.
const longestStamp = len("2006-01-02T15:04:05.000000000+00:00")

// reader goes through what was asked for again and leaves out what was read. met
// is set when the line of its cursor has come by: without it, lines are missing.
type reader struct {
	at    cursor // what was read
	lines int    // of the stamp of at, in this answer
	met   bool
	begun bool // something came
}

func newReader(at cursor) *reader { return &reader{at: at, met: at.Stamp == ""} }

// take takes the next line and gives what of it is new; gap reports that lines
// before it are gone for ever.
func (r *reader) take(l line) (news []byte, gap bool) {
	r.begun = true
	switch {
	case before(l.stamp, r.at.Stamp):
		return nil, false
	case l.stamp == r.at.Stamp:
		r.met = true
		r.lines++
		switch {
		case r.lines <= r.at.Lines:
			return nil, false
		case r.lines == r.at.Lines+1:
			news = l.text[min(r.at.Bytes, len(l.text)):]
		default:
			news = l.text
		}
		r.at.Lines, r.at.Bytes = r.lines, 0
		return news, false
	}
	gap, r.met = !r.met, true
	r.at.Stamp, r.at.Lines, r.at.Bytes, r.lines = l.stamp, 1, 0, 1
	return l.text, gap
}

// part takes a line that has no end yet.
func (r *reader) part(l line) (news []byte, gap bool) {
	was := *r
	news, gap = r.take(l)
	if len(news) == 0 {
		*r = was
		r.begun, r.met = true, was.met || !before(l.stamp, was.at.Stamp)
		return nil, false
	}
	r.at.Lines--
	r.lines--
	r.at.Bytes = len(l.text)
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
