package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cli/openline"
	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/naming"
)

// printer prints a stream of events: as lines for people, or one JSON object a
// line. It turns the growth of a log into its lines.
type printer struct {
	w       io.Writer
	ranks   io.Writer // what a rank printed, with its colours
	json    bool
	rank    int // whose output is printed; allRanks for every one
	readLog func(run string, rank int, off int64, p []byte) (int, error)
	// entry gives a forward of this process an address that lets a browser in.
	entry func(cluster string, o event.ForwardOpened) event.ForwardOpened
	logs  map[logKey]*logLines
	said  *lastSaid
	// batch is what ranks have printed and nobody was shown yet, used again: a flood
	// of lines is written a piece of the log at a time.
	batch []byte
	skip  func(event.Event) bool // what is not printed; nil: all is
	// open is where the line is shown that a rank has not ended yet; grown is the log
	// that grew last.
	open  *openline.Line
	grown logKey
	// failure is what the last step that failed has told in full, and sweep what was
	// said of a sweep last.
	failure *event.Fault
	sweep   string
}

// allRanks prints the output of every rank.
const allRanks = naming.AllRanks

type logKey struct {
	run  string
	rank int
}

// logLines is how far a log is printed.
type logLines struct {
	off  int64
	part []byte
}

// maxPart bounds a line that does not end; it is printed in pieces.
const maxPart = 64 << 10

func (a *app) printer(w *workbench.Workbench) *printer {
	return &printer{open: a.openLine(a.json), w: a.out, ranks: a.colours, json: a.json, readLog: w.ReadLog, entry: w.Tunnels().WithEntry, logs: map[logKey]*logLines{}, said: &a.said, skip: a.skip}
}

// print prints events in order.
func (p *printer) print(events []event.Event) error {
	if len(events) > 0 && p.said != nil {
		p.said.now()
	}
	for _, e := range events {
		if p.skip != nil && p.skip(e) {
			continue
		}
		var err error
		switch b := e.Body.(type) {
		case event.LogGrew:
			err = p.log(e, b)
		case event.PointsAdded:
			err = p.points(e, b)
		default:
			if _, over := b.(event.RunEnded); over {
				err = p.endLogs(e)
			}
			if err == nil {
				err = p.one(e)
			}
		}
		if err != nil {
			return err
		}
	}
	p.showOpen()
	return nil
}

// showOpen shows what the log that grew last has of a line that has no end yet.
func (p *printer) showOpen() {
	if l := p.logs[p.grown]; l != nil && len(l.part) > 0 && p.open != nil {
		p.open.Show(string(prefixed(nil, p.grown.rank, overwritten(l.part))))
	}
}

func (p *printer) one(e event.Event) error {
	if o, ok := e.Body.(event.ForwardOpened); ok && o.Entry == "" && p.entry != nil {
		e.Body = p.entry(e.Cluster, o)
	}
	if p.json {
		return sanitize.WriteJSON(p.w, e)
	}
	if p.toldAlready(e.Body) {
		return nil
	}
	if s := told.Event(e.Body); s != "" {
		if p.skip != nil && e.Run != "" { // there are many runs at once
			s = sanitize.Word(e.Run) + ": " + strings.TrimLeft(s, " ")
		}
		p.open.Hide()
		_, err := fmt.Fprintln(p.w, s)
		return err
	}
	return nil
}

// toldAlready reports whether a failure is that of the step which ended before it, or a
// sweep stands as it did: for programs all are events, people read it once.
func (p *printer) toldAlready(b event.Body) bool {
	switch b := b.(type) {
	case event.StepEnded:
		p.failure = b.Failure
	case event.Failed:
		return p.failure != nil && reflect.DeepEqual(b.Fault, *p.failure)
	case event.SweepChanged:
		before := p.sweep
		p.sweep = told.Event(b)
		return p.sweep == before
	}
	return false
}

// points prints each point as an event of its own; as text they are in the log.
func (p *printer) points(e event.Event, b event.PointsAdded) error {
	if !p.json {
		return nil
	}
	for _, point := range b.Points {
		e.Time, e.Body = point.Time, event.Point{Point: point}
		if err := p.one(e); err != nil {
			return err
		}
	}
	return nil
}

// log prints what a log has grown by, line by line.
func (p *printer) log(e event.Event, b event.LogGrew) error {
	if b.Rank != p.rank && p.rank != allRanks {
		return nil
	}
	key := logKey{e.Run, b.Rank}
	l := p.logs[key]
	if l == nil {
		l = &logLines{}
		p.logs[key] = l
	}
	buf := make([]byte, 64<<10)
	for l.off < b.Size {
		n, err := p.readLog(e.Run, b.Rank, l.off, buf[:min(int64(len(buf)), b.Size-l.off)])
		l.off += int64(n)
		l.part = append(l.part, buf[:n]...)
		if n > 0 {
			p.grown = key
		}
		if err := errors.Join(p.wholeLines(e, b.Rank, l), p.flush()); err != nil {
			return err
		}
		if n == 0 || err != nil && err != io.EOF {
			return nil // what is not there yet comes with the next event
		}
	}
	return nil
}

func (p *printer) wholeLines(e event.Event, rank int, l *logLines) error {
	rest := l.part
	for {
		end := bytes.IndexByte(rest, '\n')
		next := end + 1
		if end < 0 {
			if len(rest) < maxPart {
				l.part = append(l.part[:0], rest...)
				return nil
			}
			end = sanitize.WholeRunes(rest)
			next = end
		}
		if err := p.add(e, rank, rest[:end]); err != nil {
			return err
		}
		rest = rest[next:]
	}
}

// flush writes the lines that wait.
func (p *printer) flush() error {
	if len(p.batch) == 0 {
		return nil
	}
	p.open.Hide()
	_, err := p.ranks.Write(p.batch)
	p.batch = p.batch[:0]
	return err
}

// endLogs prints the last lines that have no end.
func (p *printer) endLogs(e event.Event) error {
	for key, l := range p.logs {
		if key.run == e.Run && len(l.part) > 0 {
			if err := p.line(e, key.rank, l.part); err != nil {
				return err
			}
			l.part = nil
		}
	}
	return nil
}

// line prints one line of a rank.
func (p *printer) line(e event.Event, rank int, raw []byte) error {
	return errors.Join(p.add(e, rank, raw), p.flush())
}

// overwritten is the last state of a line that was overwritten by carriage returns.
func overwritten(raw []byte) []byte {
	raw = bytes.TrimRight(raw, "\r")
	return raw[bytes.LastIndexByte(raw, '\r')+1:]
}

// prefixed adds a line of a rank behind who printed it.
func prefixed(to []byte, rank int, line []byte) []byte {
	who := "rank "
	if rank < 0 {
		who, rank = "launcher ", event.LauncherLog(rank)
	}
	to = append(strconv.AppendInt(append(to, who...), int64(rank), 10), " | "...)
	return append(to, line...)
}

// add is line; as text it waits for flush.
func (p *printer) add(e event.Event, rank int, raw []byte) error {
	raw = overwritten(raw)
	if p.json {
		e.Body = event.LogLine{Rank: rank, Line: sanitize.Plain(string(raw))}
		return p.one(e)
	}
	p.batch = append(prefixed(p.batch, rank, raw), '\n')
	return nil
}
