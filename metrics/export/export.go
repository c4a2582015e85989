// Package export takes the lines of a training out of what a log service gives as
// one JSON document: CloudWatch's get-log-events and filter-log-events, Loki's
// query, a list of records. It also reads journald's messages that are lists of
// bytes.
package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// most bounds what is read of one document.
const most = 512 << 20

// document has the members of all forms; a list of records is its Events.
type document struct {
	Events []record `json:"events"`
	Data   struct {
		Result []struct {
			Values [][]json.RawMessage `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// record is one line with what a service knows of it.
type record struct {
	Message *string `json:"message"`
	Line    *string `json:"line"`
	Log     *string `json:"log"`
}

func (r record) text() (string, bool) {
	for _, s := range []*string{r.Message, r.Line, r.Log} {
		if s != nil {
			return *s, true
		}
	}
	return "", false
}

// Is reports whether a text begins as one of the documents does. Of a list of
// records the first must have a time and a line; rows of numbers have no line.
func Is(start []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) == 0 {
		return false
	}
	text = text[:min(len(text), 4096)]
	switch text[0] {
	case '{':
		key, behind, _ := bytes.Cut(bytes.TrimLeft(text[1:], " \t\r\n"), []byte{':'})
		behind = bytes.TrimLeft(behind, " \t\r\n")
		events := string(bytes.TrimSpace(key)) == `"events"` && bytes.HasPrefix(behind, []byte{'['})
		return events && hasMember(text, "message") || hasMember(text, "resultType") && hasMember(text, "values")
	case '[':
		first, _, _ := bytes.Cut(text, []byte{'}'})
		inside := bytes.HasPrefix(bytes.TrimLeft(first[1:], " \t\r\n"), []byte{'{'})
		return inside && (hasMember(first, "timestamp") || hasMember(first, "time")) && hasText(first)
	}
	return false
}

func hasMember(text []byte, name string) bool {
	_, behind, ok := bytes.Cut(text, []byte(`"`+name+`"`))
	return ok && bytes.HasPrefix(bytes.TrimLeft(behind, " \t\r\n"), []byte{':'})
}

// hasText reports whether an object has a line in a member that services keep it in.
func hasText(object []byte) bool {
	for _, name := range []string{"message", "line", "log"} {
		_, behind, ok := bytes.Cut(object, []byte(`"`+name+`"`))
		behind = bytes.TrimLeft(behind, " \t\r\n:")
		if ok && bytes.HasPrefix(behind, []byte{'"'}) {
			return true
		}
	}
	return false
}

// Lines gives the lines of such documents, one behind the other, each with its end.
func Lines(in io.Reader, line func(text string)) error {
	limited := &io.LimitedReader{R: in, N: most}
	decoder := json.NewDecoder(limited)
	for {
		var one json.RawMessage
		err := decoder.Decode(&one)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && limited.N <= 0:
			return errors.New("the export of a log service is too large to be read as one document: export it as lines")
		case err != nil:
			return fmt.Errorf("read the export of a log service: %w", err)
		}
		if err := lines(one, line); err != nil {
			return err
		}
	}
}

func lines(text json.RawMessage, line func(string)) error {
	var d document
	into := any(&d)
	if text[0] == '[' {
		into = &d.Events
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the export of a log service: %w", err)
	}
	for _, e := range d.Events {
		if text, ok := e.text(); ok {
			line(ended(text))
		}
	}
	for _, text := range d.streams() {
		line(ended(text))
	}
	return nil
}

// streams are Loki's lines in the order of their times: it gives the newest first
// unless it is asked otherwise, and each stream by itself.
func (d *document) streams() []string {
	type timed struct {
		at   int64
		text string
	}
	var all []timed
	for _, stream := range d.Data.Result {
		for _, v := range stream.Values {
			var at, text string
			if len(v) < 2 || json.Unmarshal(v[0], &at) != nil || json.Unmarshal(v[1], &text) != nil {
				continue
			}
			ns, err := strconv.ParseInt(at, 10, 64)
			if err == nil {
				all = append(all, timed{ns, text})
			}
		}
	}
	if n := len(all); n > 1 && all[0].at > all[n-1].at { // lines of one moment come as they were printed
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b timed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.text
	}
	return texts
}

func ended(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Bytes reads the message of a record of journald that is a list of bytes, as it is
// where the line has a control character: a colour, a carriage return.
func Bytes(line string) (message string, ok bool) {
	_, list, found := strings.Cut(line, `"MESSAGE":`)
	list = strings.TrimLeft(list, " ")
	if !found || !strings.HasPrefix(list, "[") || !strings.Contains(line, `"__`) {
		return "", false
	}
	list, _, found = strings.Cut(list[1:], "]")
	if !found {
		return "", false
	}
	var b []byte
	for number := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 8)
		if err != nil {
			return "", false
		}
		b = append(b, byte(n))
	}
	return string(b), true
}
