package ui

import (
	"sort"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
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
	s, st := m.styles, m.ses.State
	var out []string
	if len(st.Steps) == 0 && st.Failed == nil {
		return []string{m.spinner() + " waiting for the first news of " + m.title() +
			s.Dim.Of(", for "+text.Since(m.now, m.ses.Asked))}
	}
	for i := range st.Steps {
		out = append(out, m.stepRows(&st.Steps[i], w)...)
	}
	if f := m.ses.Failed(); f != nil {
		out = append(out, "")
		out = append(out, sign.Fault(m.looks(), *f, w)...)
		if m.ses.Profile() != "" && m.refusal(m.find("R")) == "" {
			out = append(out, "", s.Key.Of("R")+" tries again; what is done already is not done twice")
		}
	}
	if st.Receipt != nil && st.Receipt.Proven {
		out = append(out, "", s.Good.Of("✓")+" the cluster is gone, and that is proven   "+s.Key.Of("x")+" receipt")
	}
	return append(append(out, m.outcome(w)...), m.notices(w)...)
}

// notices is what was said along the way, in full: the line above the footer
// has room for one, and not for long.
func (m *Model) notices(w int) []string {
	all := m.ses.State.Notices
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
	st := m.ses.State
	if st.Ended == nil {
		return nil
	}
	told := m.ses.Failed() != nil // with its last lines
	var out []string
	if !told {
		out = append(out, "", sign.Verdict(m.looks(), st.Ended.Verdict, &st.Ended.ExitCode)+"  "+st.Ended.Cause)
	} else if st.Results != nil || st.Lost != nil {
		out = append(out, "")
	}
	out = append(out, m.resultsRows()...)
	if told {
		return out
	}
	return append(out, text.Indent(sign.Quoted(m.looks(), st.Ended.LastLines, w-2), 2)...)
}

// resultsRows say where the results of the run are, and what of them is lost.
func (m *Model) resultsRows() (out []string) {
	s, st := m.styles, m.ses.State
	if r := st.Results; r != nil {
		out = append(out, s.Dim.Of("results  ")+event.SizeText(r.Files, r.Bytes)+" in "+text.Word(r.Dir))
	}
	if l := st.Lost; l != nil {
		out = append(out, s.Bad.Of("lost     ")+text.Word(l.Why))
	}
	return out
}

func (m *Model) stepRows(st *session.Step, w int) []string {
	s := m.styles
	mark, took, txt := s.Faint.Of("·"), "", s.Dim.Of(st.Text)
	name := s.Dim.Of(text.Fit(st.Name, 13))
	switch st.Status {
	case session.Waiting:
		if st.Name == event.StepDown && m.ses.State.Ended != nil && m.ses.State.Phase() == event.PhaseReady {
			txt = s.Dim.Of("when you say so: X. Until then the cluster stays for the next run")
		}
	case session.Active:
		mark, name = s.Accent.Of(m.spinner()), s.Strong.Of(text.Fit(st.Name, 13))
		took, txt = units.Clock(m.now.Sub(st.Since)), st.Text
	case session.Done:
		mark, name, took = s.Good.Of("✓"), text.Fit(st.Name, 13), units.Duration(st.Took)
	case session.Skipped:
		mark, name, txt = s.Dim.Of("–"), text.Fit(st.Name, 13), s.Dim.Of(join2("skipped", st.Text))
		took = units.Duration(st.Took)
	case session.Broken:
		mark, name, took = s.Bad.Of("✗"), s.Bad.Of(text.Fit(st.Name, 13)), units.Duration(st.Took)
		txt = s.Bad.Of(join2("failed", st.Text))
	}
	out := []string{text.Spread(mark+" "+name+" "+txt, s.Dim.Of(took), w)}
	if st.Status == session.Active {
		out = append(out, m.stepNews(st, w)...)
	}
	if st.Status == session.Broken && st.Fault == nil {
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
func (m *Model) stepNews(st *session.Step, w int) []string {
	var nodes []int
	for n := range st.Nodes {
		nodes = append(nodes, n)
	}
	sort.Ints(nodes)
	var out []string
	for _, n := range nodes {
		who := session.NodeName(n)
		if n < 0 {
			who = "all"
		}
		out = append(out, text.Cut("                "+m.styles.Dim.Of(text.Fit(who, 8))+st.Nodes[n], w))
	}
	if next := follows[st.Name]; next != "" && st.Status == session.Active {
		out = append(out, text.Cut("                "+m.styles.Faint.Of(next), w))
	}
	return out
}
