//go:build unix

package fakesagemaker

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// stream is what one host has printed.
type stream struct {
	made   time.Time
	events []event
}

type event struct {
	at      time.Time // of the line
	seen    time.Time // when CloudWatch has it
	message string
}

// collect puts lines into a stream, which begins with the first.
func (f *Fake) collect(name string, from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			f.say(name, strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return
		}
	}
}

func (f *Fake) say(name, line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[name]
	if s == nil {
		s = &stream{made: time.Now()}
		f.streams[name] = s
	}
	s.events = append(s.events, event{time.Now(), time.Now().Add(f.Late), line})
}

// visible are the events that CloudWatch has by now.
func (s *stream) visible() []event {
	n := 0
	for n < len(s.events) && !s.events[n].seen.After(time.Now()) {
		n++
	}
	return s.events[:n]
}

func (f *Fake) describeStreams(body []byte) (any, *Error) {
	in, e := read[struct {
		LogGroupName, LogStreamNamePrefix string
	}](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) == 0 || in.LogGroupName != "/aws/sagemaker/TrainingJobs" {
		return nil, &Error{400, "ResourceNotFoundException", "The specified log group does not exist."}
	}
	var names []string
	for name, s := range f.streams {
		if strings.HasPrefix(name, in.LogStreamNamePrefix) && len(s.visible()) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	all := []any{}
	for _, name := range names {
		all = append(all, map[string]any{"logStreamName": name, "creationTime": f.streams[name].made.UnixMilli()})
	}
	return map[string]any{"logStreams": all}, nil
}

// NextDay makes all tokens of logs that were given worthless.
func (f *Fake) NextDay() { f.set(func() { f.day++ }) }

// getEvents gives a page. A token is a place: the number of events before it.
func (f *Fake) getEvents(body []byte) (any, *Error) {
	in, e := read[struct {
		LogGroupName, LogStreamName, NextToken string
		StartFromHead                          bool
		StartTime                              int64
		Limit                                  int
	}](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[in.LogStreamName]
	if s == nil {
		return nil, &Error{400, "ResourceNotFoundException", "The specified log stream does not exist."}
	}
	all := s.visible()
	limit := in.Limit
	if limit == 0 {
		limit = 10000
	}
	if f.PageMost > 0 {
		limit = min(limit, f.PageMost)
	}
	from := 0
	switch {
	case in.NextToken != "":
		day := 0
		if _, err := fmt.Sscanf(in.NextToken, "f/%d/%d/"+in.LogStreamName, &day, &from); err == nil && day != f.day {
			return nil, &Error{400, "InvalidParameterException", "The specified nextToken is expired."}
		} else if err != nil {
			return nil, &Error{400, "InvalidParameterException", "The specified nextToken is invalid."}
		}
	case !in.StartFromHead:
		from = max(len(all)-limit, 0)
	default:
		for from < len(all) && all[from].at.UnixMilli() < in.StartTime {
			from++
		}
	}
	to := min(from+limit, len(all))
	events := []any{}
	for _, e := range all[min(from, to):to] {
		events = append(events, map[string]any{"timestamp": e.at.UnixMilli(), "ingestionTime": e.seen.UnixMilli(), "message": e.message})
	}
	return map[string]any{"events": events, "nextForwardToken": fmt.Sprintf("f/%d/%d/%s", f.day, to, in.LogStreamName), "nextBackwardToken": fmt.Sprintf("b/%d/%s", from, in.LogStreamName)}, nil
}

// Said counts the lines of a job's hosts that are a text.
func (f *Fake) Said(job, line string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range f.streams {
		for _, e := range s.events {
			if strings.HasPrefix(name, job+"/") && e.message == line {
				n++
			}
		}
	}
	return n
}

// Printed is what all hosts of all jobs have printed.
func (f *Fake) Printed() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all strings.Builder
	for _, s := range f.streams {
		for _, e := range s.events {
			all.WriteString(e.message + "\n")
		}
	}
	return all.String()
}
