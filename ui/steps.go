package ui

import (
	"sort"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// follows says what usually comes after a step, for whoever waits.
var follows = map[string]string{
	event.StepCluster:     "then Python is looked for on every node",
	event.StepEnvironment: "then the code is copied",
	event.StepSync:        "then every rank is started",
	event.StepLaunch:      "then the first output comes",
	event.StepTrain:       "then the results are brought home",
	event.StepFetch:       "then the cluster waits for the next run, or is removed",
	event.StepDown:        "then a receipt proves that nothing is left",
}

// drawSteps shows what was done, what is being done, and what failed.
func (m *Model) drawSteps(w int) []string {
	s, st := m.styles, m.ses.st
	var out []string
	if len(st.steps) == 0 && st.failed == nil {
		return []string{m.spinner() + " waiting for the first news of " + m.title() +
			s.Dim.Of(", for "+text.Since(m.now, m.ses.asked))}
	}
	for i := range st.steps {
		out = append(out, m.stepRows(&st.steps[i], w)...)
	}
	if f := m.ses.failed(); f != nil {
		out = append(out, "")
		out = append(out, m.drawFault(*f, w)...)
		if m.ses.profile() != "" && m.refusal(m.find("R")) == "" {
			out = append(out, "", s.Key.Of("R")+" tries again; what is done already is not done twice")
		}
	}
	if st.receipt != nil && st.receipt.Proven {
		out = append(out, "", s.Good.Of("✓")+" the cluster is gone, and that is proven   "+s.Key.Of("x")+" receipt")
	}
	return append(append(out, m.outcome(w)...), m.notices(w)...)
}

// notices is what was said along the way, in full: the line above the footer
// has room for one, and not for long.
func (m *Model) notices(w int) []string {
	all := m.ses.st.notices
	if len(all) == 0 {
		return nil
	}
	out := []string{"", m.styles.Dim.Of("said along the way")}
	for _, n := range all[max(len(all)-20, 0):] {
		mark := m.styles.Dim.Of("· ")
		if n.Level == "warning" {
			mark = m.styles.Warn.Of("! ")
		}
		for _, l := range text.Wrap(joinNext(n.Text, n.Next), w-2) {
			out = append(out, mark+l)
			mark = "  "
		}
	}
	return out
}

// outcome is what the run came to, under the steps.
func (m *Model) outcome(w int) []string {
	st := m.ses.st
	if st.ended == nil {
		return nil
	}
	told := m.ses.failed() != nil // with its last lines
	var out []string
	if !told {
		out = append(out, "", m.verdictText(st.ended.Verdict, &st.ended.ExitCode)+"  "+st.ended.Cause)
	} else if st.results != nil || st.lost != nil {
		out = append(out, "")
	}
	out = append(out, m.resultsRows()...)
	if told {
		return out
	}
	return append(out, text.Indent(m.quoted(st.ended.LastLines, w-2), 2)...)
}

// resultsRows say where the results of the run are, and what of them is lost.
func (m *Model) resultsRows() (out []string) {
	s, st := m.styles, m.ses.st
	if r := st.results; r != nil {
		out = append(out, s.Dim.Of("results  ")+event.SizeText(r.Files, r.Bytes)+" in "+text.Word(r.Dir))
	}
	if l := st.lost; l != nil {
		out = append(out, s.Bad.Of("lost     ")+text.Word(l.Why))
	}
	return out
}

func (m *Model) stepRows(st *stepState, w int) []string {
	s := m.styles
	mark, took, txt := s.Faint.Of("·"), "", s.Dim.Of(st.text)
	name := s.Dim.Of(text.Fit(st.name, 13))
	switch st.status {
	case waiting:
		if st.name == event.StepDown && m.ses.st.ended != nil && m.ses.st.phase() == event.PhaseReady {
			txt = s.Dim.Of("when you say so: X. Until then the cluster stays for the next run")
		}
	case active:
		mark, name = s.Accent.Of(m.spinner()), s.Strong.Of(text.Fit(st.name, 13))
		took, txt = units.Clock(m.now.Sub(st.since)), st.text
	case done:
		mark, name, took = s.Good.Of("✓"), text.Fit(st.name, 13), units.Duration(st.took)
	case skipped:
		mark, name, txt = s.Dim.Of("–"), text.Fit(st.name, 13), s.Dim.Of(join2("skipped", st.text))
		took = units.Duration(st.took)
	case broken:
		mark, name, took = s.Bad.Of("✗"), s.Bad.Of(text.Fit(st.name, 13)), units.Duration(st.took)
		txt = s.Bad.Of(join2("failed", st.text))
	}
	out := []string{text.Spread(mark+" "+name+" "+txt, s.Dim.Of(took), w)}
	if st.status == active {
		out = append(out, m.stepNews(st, w)...)
	}
	if st.status == broken && st.fault == nil {
		out = append(out, m.stepNews(st, w)...)
	}
	return out
}

func join2(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// stepNews is the newest line of each node, and what comes next.
func (m *Model) stepNews(st *stepState, w int) []string {
	var nodes []int
	for n := range st.nodes {
		nodes = append(nodes, n)
	}
	sort.Ints(nodes)
	var out []string
	for _, n := range nodes {
		who := nodeName(n)
		if n < 0 {
			who = "all"
		}
		out = append(out, text.Cut("                "+m.styles.Dim.Of(text.Fit(who, 8))+st.nodes[n], w))
	}
	if next := follows[st.name]; next != "" && st.status == active {
		out = append(out, text.Cut("                "+m.styles.Faint.Of(next), w))
	}
	return out
}

// faultLines is how many last lines tell what went wrong; l shows the rest.
const faultLines = 12

// drawFault says what was tried, on what, why it failed, its last lines, and
// what to do next.
func (m *Model) drawFault(f event.Fault, w int) []string {
	s := m.styles
	what := f.What
	if f.Node >= 0 {
		what += " on " + nodeName(f.Node)
	}
	var out []string
	for _, l := range text.Wrap(what+": "+f.Why, w) {
		out = append(out, s.Strong.Of(l))
	}
	if f.Command != "" {
		for i, l := range text.Wrap(f.Command, max(w-4, 1)) {
			lead := "    "
			if i == 0 {
				lead = "  $ "
			}
			out = append(out, s.Dim.Of(lead)+l)
		}
	}
	last := f.LastLines
	if len(last) > faultLines {
		last = last[len(last)-faultLines:]
	}
	out = append(out, text.Indent(m.quoted(last, w-2), 2)...)
	if f.Next != "" {
		for i, l := range text.Wrap(f.Next, max(w-6, 1)) {
			lead := "      "
			if i == 0 {
				lead = s.Key.Of("next  ")
			}
			out = append(out, lead+l)
		}
	}
	return out
}

// quoted shows what a command said last, set apart by a line at its left.
func (m *Model) quoted(lines []string, w int) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = m.styles.Faint.Of("│ ") + text.Cut(l, w-2)
	}
	return out
}
