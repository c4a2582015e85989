package sagemaker

import (
	"encoding/json"
	"fmt"

	"github.com/dlwb/dlwb/internal/job"
)

// cursor is a place in the log of a host: the stream, the token of CloudWatch behind
// what was read, and, because tokens are good for a day, the time of the event that
// was read last with how many events of that time were read.
type cursor struct {
	Stream string `json:"s,omitempty"`
	Token  string `json:"t,omitempty"`
	At     int64  `json:"a,omitempty"` // ms
	Events int    `json:"n,omitempty"`
	// Skip is how many events of that time come by again behind the token, because
	// they were asked for by their time.
	Skip int `json:"k,omitempty"`
}

func (c cursor) job() job.Cursor {
	if c == (cursor{}) {
		return ""
	}
	text, _ := json.Marshal(c)
	return job.Cursor(text)
}

func readCursor(text job.Cursor) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Events < 0 || c.Skip < 0 {
		return c, fmt.Errorf("%q is no place in a log of CloudWatch", string(text))
	}
	return c, nil
}

// read counts an event.
func (c *cursor) read(at int64) {
	if at == c.At {
		c.Events++
	} else {
		c.At, c.Events = at, 1
	}
}
