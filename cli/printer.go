package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sweep"
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
	// failure is what the last step that failed has told in full.
	failure *event.Fault
}

// allRanks prints the output of every rank.
const allRanks = -1 << 31

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
	return &printer{w: a.out, ranks: a.colours, json: a.json, readLog: w.ReadLog, entry: w.Tunnels().WithEntry, logs: map[logKey]*logLines{}, said: &a.said, skip: a.skip}
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
	return nil
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
	if s := eventText(e.Body); s != "" {
		_, err := fmt.Fprintln(p.w, s)
		return err
	}
	return nil
}

// toldAlready reports whether a failure is that of the step which ended before it:
// for programs both are events, people read it once.
func (p *printer) toldAlready(b event.Body) bool {
	switch b := b.(type) {
	case event.StepEnded:
		p.failure = b.Failure
	case event.Failed:
		return p.failure != nil && reflect.DeepEqual(b.Fault, *p.failure)
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
			end = wholeRunes(rest)
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
	_, err := p.ranks.Write(p.batch)
	p.batch = p.batch[:0]
	return err
}

// wholeRunes is how much of a piece can be printed without cutting a character
// in two.
func wholeRunes(b []byte) int {
	for n := len(b) - 1; n > 0 && n > len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			if utf8.FullRune(b[n:]) {
				break
			}
			return n
		}
	}
	return len(b)
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

// add is line; as text it waits for flush. Of a line that was overwritten by
// carriage returns the last state is printed.
func (p *printer) add(e event.Event, rank int, raw []byte) error {
	raw = bytes.TrimRight(raw, "\r")
	if i := bytes.LastIndexByte(raw, '\r'); i >= 0 {
		raw = raw[i+1:]
	}
	if p.json {
		e.Body = event.LogLine{Rank: rank, Line: sanitize.Plain(string(raw))}
		return p.one(e)
	}
	who := "rank "
	if rank < 0 {
		who, rank = "launcher ", event.LauncherLog(rank)
	}
	p.batch = append(strconv.AppendInt(append(p.batch, who...), int64(rank), 10), " | "...)
	p.batch = append(append(p.batch, raw...), '\n')
	return nil
}

// eventText is an event as a line for people; empty for those that are told by
// others.
func eventText(b event.Body) string {
	switch b := b.(type) {
	case event.PlanMade:
		return sanitize.Sprintf("plan: %s on %s of %s, %s, %s%s", b.Profile, nodes(b.Nodes), b.Provider, b.Engine, b.Command, price(b.PricePerHour))
	case event.StepStarted:
		return sanitize.Sprintf("… %s: %s", b.Step, b.Text)
	case event.StepProgress:
		return sanitize.Sprintf("    %s%s", at(b.Node, b.Host), b.Text)
	case event.StepEnded:
		return stepText(b)
	case event.NodeChanged:
		return sanitize.Sprintf("  %s: %s %s", event.NodeText(b.Node, b.Host), b.State, b.Why)
	case event.ClusterUp:
		return upText(b)
	case event.CheckpointSaved:
		return sanitize.Sprintf("  checkpoint %s of %s is home: %s", b.Name, event.NodeText(b.Node, b.Host), event.SizeText(b.Files, b.Bytes))
	case event.ChainStep:
		return strings.TrimRight(sanitize.Sprintf("step %d of %d, %s: %s  %s %s", b.Step, b.Steps, b.Profile, b.State, b.Run, b.Why), " ")
	case event.SweepChanged:
		return sanitize.Word(sweep.Headline(b))
	case event.SpotNotice:
		return sanitize.Sprintf("warning: node%d will be taken away by its provider at %s (%s)", b.Node, b.At.Local().Format("15:04:05"), b.Action)
	case event.ClusterStopped:
		return "  the machines are stopped; their disks cost " + units.PerHour(b.PricePerHour)
	case event.RunStarted:
		return sanitize.Sprintf("  %s, world size %d on %s, with %s", b.Engine, b.WorldSize, nodes(b.Nodes), b.Python)
	case event.RankEnded:
		return rankText(b)
	case event.RunEnded:
		return runText(b)
	case event.ForwardOpened:
		return forwardText(b)
	case event.ForwardChanged:
		return forwardStateText(b)
	case event.ForwardClosed:
		return sanitize.Sprintf("%s on local port %d: %s", b.Name, b.LocalPort, b.Why)
	case event.ReceiptMade:
		return receiptText(b)
	case event.MetricAdded:
		return sanitize.Sprintf("its output is now read for %s too, by %s", b.Name, b.Regex)
	case event.Noticed:
		return noticeText(b)
	case event.Failed:
		return faultText("✗ ", &b.Fault)
	}
	return ""
}

// upText says what a cluster costs and when it ends by itself; of one that
// costs nothing there is nothing to say.
func upText(b event.ClusterUp) string {
	if b.PricePerHour == 0 {
		return ""
	}
	s := sanitize.Sprintf("  %s %s in %s%s", nodes(len(b.Nodes)), b.Instance, b.Zone, price(b.PricePerHour))
	if !b.Ends.IsZero() {
		s += ", shut themselves down at " + b.Ends.Local().Format("2006-01-02 15:04") + " at the latest"
	}
	return s
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func price(perHour float64) string {
	if perHour == 0 {
		return ""
	}
	return ", " + units.PerHour(perHour)
}

func at(node int, host string) string {
	if node < 0 {
		return ""
	}
	return event.NodeText(node, host) + ": "
}

func stepText(b event.StepEnded) string {
	mark := "✓"
	switch {
	case !b.OK:
		mark = "✗"
	case b.Skipped:
		mark = "="
	}
	head := sanitize.Sprintf("%s %-11s %7s  ", mark, b.Step, units.Seconds(b.Duration))
	if b.Failure != nil && b.Step != event.StepTrain {
		return faultText(head, b.Failure)
	}
	return head + sanitize.Word(b.Text)
}

func rankText(b event.RankEnded) string {
	switch {
	case b.ExitCode == 0:
		return ""
	case b.ByUs:
		return sanitize.Sprintf("  rank %d on %s was stopped", b.Rank, event.NodeText(b.Node, b.Host))
	case b.Signal != "":
		return sanitize.Sprintf("  rank %d on %s was ended by SIG%s", b.Rank, event.NodeText(b.Node, b.Host), b.Signal)
	}
	return sanitize.Sprintf("  rank %d on %s exited with code %d", b.Rank, event.NodeText(b.Node, b.Host), b.ExitCode)
}

func runText(b event.RunEnded) string {
	s := sanitize.Sprintf("run %s in %s: %s (exit code %d)", b.Verdict, units.Seconds(b.Duration), b.Cause, b.ExitCode)
	for _, l := range b.LastLines {
		s += sanitize.Sprintf("\n  | %s", l)
	}
	return s
}

func receiptText(b event.ReceiptMade) string {
	var s strings.Builder
	for _, r := range b.Resources {
		sanitize.Fprintf(&s, "  %-10s %-8s %s: %s\n", r.Kind, string(r.State), r.ID, r.Proof)
	}
	head := "receipt: everything is gone"
	if !b.Proven {
		head = "receipt: UNRESOLVED"
	}
	fmt.Fprintf(&s, "%s; %d processes and %d files left; lived %s, cost %s", head, b.ProcessesLeft, b.FilesLeft,
		units.Seconds(b.Lived), units.USD(b.Cost))
	return s.String()
}

func noticeText(b event.Noticed) string {
	s := "note: "
	if b.Level == "warning" {
		s = "warning: "
	}
	s += sanitize.Word(b.Text)
	if b.Next != "" {
		s += "; " + sanitize.Word(b.Next)
	}
	return s
}

func faultText(head string, f *event.Fault) string {
	return head + sanitize.Word(f.Error()) + faultRest(f)
}

func faultRest(f *event.Fault) string {
	var b strings.Builder
	writeFault(&b, f)
	return strings.TrimSuffix("\n"+b.String(), "\n")
}

// stateText is a state as lists show it.
func stateText(states []cloud.State) string {
	counts := map[cloud.State]int{}
	for _, s := range states {
		counts[s]++
	}
	var parts []string
	for _, s := range []cloud.State{cloud.Alive, cloud.Unknown, cloud.Gone} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return strings.Join(parts, ", ")
}
