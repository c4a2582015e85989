package ui

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/plot"
	"github.com/dlwb/dlwb/ui/text"
)

// trialBytes is how much of the end of a log an expression is tried on.
const trialBytes = 256 << 10

// trial is the form for a metric of one's own: what an expression catches in
// the last lines is shown while it is typed, as the run's reader would read it.
type trial struct {
	name, regex line.Line
	onRegex     bool // has the focus

	rank  int
	text  []byte // the end of the rank's log, whole lines
	size  int64  // of the log then
	fault string // why it could not be read

	wrong  string // why the expression can't be used; empty when it can
	lines  int    // that were looked at
	values plot.Series
	caught []caughtLine // the newest
}

// caughtLine is a line in which something was found, and where.
type caughtLine struct {
	text     string
	from, to int
}

// mostCaught is how many lines are kept to be shown.
const mostCaught = 12

// tryMetric opens the form.
func (m *Model) tryMetric() tea.Cmd {
	t := &trial{rank: m.chartRank()}
	t.again(m)
	m.openDialog(t)
	return m.readEnd(t)
}

// chartRank is the rank whose output the charts come from: the lowest.
func (m *Model) chartRank() int {
	for _, r := range m.ses.State.Ranks() {
		if r >= 0 {
			return r
		}
	}
	return 0
}

// trying is the form, when it is open on top.
func (m *Model) trying() *trial {
	if n := len(m.dialogs); n > 0 {
		if t, ok := m.dialogs[n-1].(*trial); ok {
			return t
		}
	}
	return nil
}

// tryAgain reads the end of the log anew when it has grown.
func (m *Model) tryAgain() tea.Cmd {
	if t := m.trying(); t != nil && m.ses.State.LogSizes[t.rank] > t.size {
		return m.readEnd(t)
	}
	return nil
}

// readEnd reads the end of the log that is tried on.
func (m *Model) readEnd(t *trial) tea.Cmd {
	s := m.ses
	msg := endRead{gen: s.Gen, run: s.State.Run, size: s.State.LogSizes[t.rank]}
	t.size = msg.size // asked for; not again before there is more
	rank := t.rank
	return func() tea.Msg {
		from := max(msg.size-trialBytes, 0)
		p := make([]byte, msg.size-from)
		n := 0
		for n < len(p) {
			k, err := m.bench.ReadLog(msg.run, rank, from+int64(n), p[n:])
			n += k
			if err != nil || k == 0 {
				if !errors.Is(err, io.EOF) {
					msg.err = err
				}
				break
			}
		}
		p = p[:n]
		if from > 0 { // begins within a line
			p = p[bytes.IndexByte(p, '\n')+1:]
		}
		msg.bytes = p
		return msg
	}
}

func (m *Model) takeEnd(msg endRead) {
	t := m.trying()
	if t == nil || m.ses == nil || m.ses.Gen != msg.gen || m.ses.State.Run != msg.run {
		return
	}
	t.text, t.fault = msg.bytes, ""
	if msg.err != nil {
		t.fault = oneLine(msg.err)
	}
	t.again(m)
}

// again tries the expression.
func (t *trial) again(m *Model) {
	t.lines = bytes.Count(t.text, []byte("\n"))
	t.values, t.caught = plot.Series{}, nil
	if t.wrong = regexFault(t.regex.Text()); t.wrong != "" {
		return
	}
	re := regexp.MustCompile(t.regex.Text())
	name := t.name.Text()
	if name == "" {
		name = "value"
	}
	r := metrics.NewReader([]metrics.UserMetric{{Name: name, Regex: t.regex.Text()}})
	r.Explain(func(got metrics.Reading) {
		for _, p := range got.Points {
			if p.Name == name {
				t.catch(re, got.Text)
				return
			}
		}
	})
	keep := func(points []metrics.Point) {
		for _, p := range points {
			if p.Name == name {
				t.values.Add(float64(t.values.Len()), p.Value)
			}
		}
	}
	keep(r.Feed(t.text, time.Time{}))
	keep(r.End(time.Time{}))
}

// catch notes a line in which the expression found its value.
func (t *trial) catch(re *regexp.Regexp, line string) {
	g := max(re.SubexpIndex("value"), 1)
	at := re.FindStringSubmatchIndex(line)
	if at == nil || at[2*g] < 0 {
		return
	}
	t.caught = append(t.caught, caughtLine{strings.Clone(line), at[2*g], at[2*g+1]})
	if len(t.caught) > mostCaught {
		t.caught = t.caught[1:]
	}
}

// regexFault says why an expression can't be used: it does not compile, or it
// has not exactly one group that could be the value.
func regexFault(expression string) string {
	if expression == "" {
		return `type an expression with parentheses around the number:  top-1 (\d+\.\d+)`
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	groups := 0
	for i, name := range re.SubexpNames() {
		switch {
		case i == 0 || name == "step" || name == "epoch":
		case name == "value":
			return ""
		default:
			groups++
		}
	}
	switch groups {
	case 0:
		return "it has no group: put parentheses around the number"
	case 1:
		return ""
	}
	return fmt.Sprintf("it has %d groups, and one is the value: write (?:…) for the others, or (?P<value>…) for it", groups)
}

// nameFault says why a name can't be used.
func (m *Model) nameFault(name string) string {
	if name == "" {
		return "it needs a name, such as val/acc"
	}
	for _, c := range m.ses.State.Curves {
		if c.Name == name {
			return "there is a series called " + name + " already"
		}
	}
	return ""
}

func (t *trial) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "esc", "ctrl+c":
		m.closeDialog()
	case "tab", "shift+tab", "up", "down":
		t.onRegex = !t.onRegex
	case "enter":
		return t.enter(m)
	default:
		t.focused().Key(k)
		t.again(m)
	}
	return nil
}

// focused is the line that is typed into.
func (t *trial) focused() *line.Line {
	if t.onRegex {
		return &t.regex
	}
	return &t.name
}

// enter goes on to the expression, or applies it to the run.
func (t *trial) enter(m *Model) tea.Cmd {
	name := strings.TrimSpace(t.name.Text())
	switch {
	case !t.onRegex && t.regex.Text() == "":
		t.onRegex = true
		return nil
	case t.wrong != "":
		return m.say("warning", t.wrong)
	case m.nameFault(name) != "":
		t.onRegex = false
		return m.say("warning", m.nameFault(name))
	case m.opts.ReadOnly:
		return m.say("warning", "started with --read-only: nothing is added to the run")
	}
	m.closeDialog()
	run := m.ses.State.Run
	added := metricAdded{name: name, regex: t.regex.Text()}
	task := m.task("read the whole log for "+name, func() (string, string, error) {
		n, err := m.bench.AddMetric(m.ctx, run, added.name, added.regex)
		return fmt.Sprintf("%s: %s so far", name, text.Plural(n, "value")), "", err
	})
	return func() tea.Msg {
		added.done = task().(taskDone)
		return added
	}
}

// profileLine is what a profile says for a metric, in YAML.
func profileLine(name, regex string) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	return "  " + quote(name) + ": " + quote(regex)
}

// keepDialog says how the next run gets the metric too. The profile is a file
// that a person writes: dlwb changes nothing in it.
func (m *Model) keepDialog(name, regex string) dialog {
	line := profileLine(name, regex)
	where := m.ses.Profile()
	if where == "" {
		where = "its profile"
	}
	return &choice{
		title: name + " is in this run from now on",
		body: func(m *Model, w int) []string {
			out := text.Wrap("For the runs to come, put this line into "+text.Word(where)+", below metrics:", w)
			out = append(out, "")
			for _, l := range text.Wrap(strings.TrimSpace(line), max(w-2, 1)) {
				out = append(out, "  "+m.styles.Accent.Of(l))
			}
			return out
		},
		answers: []answer{{name: "Close"}, {name: "Copy the line", do: func(m *Model) tea.Cmd {
			return tea.Batch(toClipboard(line), m.say("info", "copied; put it below metrics:"))
		}}},
		opened: m.clock.Now(),
	}
}
