package watch

import (
	"sort"
	"strings"

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
	event.StepData:        "then every rank is started",
	event.StepLaunch:      "then the first output comes",
	event.StepTrain:       "then the results are brought home",
	event.StepFetch:       "then the cluster waits for the next run, or is removed",
	event.StepDown:        "then a receipt proves that nothing is left",
}

// Steps shows what was done, what is being done, and what failed.
func (p Page) Steps(w int) []string {
	s, st := p.Styles, p.Of.State
	var out []string
	if len(st.Steps) == 0 && st.Failed == nil {
		return []string{p.Spinner() + " waiting for the first news of " + p.Of.Title() +
			s.Dim.Of(", for "+text.Since(p.Now, p.Of.Asked))}
	}
	for i := range st.Steps {
		out = append(out, p.stepRows(&st.Steps[i], w)...)
	}
	if f := p.Of.Failed(); f != nil {
		out = append(out, "")
		out = append(out, sign.Fault(p.Look, *f, w)...)
		if p.Of.Profile() != "" && p.Retry {
			out = append(out, "", s.Key.Of("R")+" tries again; what is done already is not done twice")
		}
	}
	if st.Receipt != nil && st.Receipt.Proven {
		out = append(out, "", s.Good.Of("✓")+" the cluster is gone, and that is proven   "+s.Key.Of("x")+" receipt")
	}
	return append(append(out, p.outcome(w)...), p.notices(w)...)
}

// notices is what was said along the way, in full: the line above the footer
// has room for one, and not for long.
func (p Page) notices(w int) []string {
	all := p.Of.State.Notices
	if len(all) == 0 {
		return nil
	}
	out := []string{"", p.Styles.Dim.Of("said along the way")}
	for _, n := range all[max(len(all)-20, 0):] {
		mark := p.Styles.Dim.Of("· ")
		if n.Level == "warning" {
			mark = p.Styles.Warn.Of("! ")
		}
		out = append(out, text.Hang(mark, sign.WithNext(n.Text, n.Next), text.Ink{}, w)...)
	}
	return out
}

// outcome is what the run came to, under the steps.
func (p Page) outcome(w int) []string {
	st := p.Of.State
	if st.Ended == nil {
		return nil
	}
	told := p.Of.Failed() != nil // with its last lines
	var out []string
	if !told {
		out = append(out, "", sign.Verdict(p.Look, st.Ended.Verdict, &st.Ended.ExitCode)+"  "+st.Ended.Cause)
	} else if st.Results != nil || st.Lost != nil {
		out = append(out, "")
	}
	out = append(out, p.resultsRows(w)...)
	if told {
		return out
	}
	return append(out, text.Indent(sign.Quoted(p.Look, st.Ended.LastLines, w-2), 2)...)
}

// resultsRows say where the results of the run are, and what of them is lost.
func (p Page) resultsRows(w int) (out []string) {
	s, st := p.Styles, p.Of.State
	if r := st.Results; r != nil {
		out = append(out, text.Hang(s.Dim.Of("results  "), event.SizeText(r.Files, r.Bytes)+" in "+text.Word(r.Dir), text.Ink{}, w)...)
	}
	if l := st.Lost; l != nil {
		out = append(out, text.Hang(s.Bad.Of("lost     "), text.Word(l.Why), text.Ink{}, w)...)
	}
	return out
}

func (p Page) stepRows(st *session.Step, w int) []string {
	s := p.Styles
	mark, took, txt, ink := s.Faint.Of("·"), "", st.Text, s.Dim
	name := s.Dim.Of(text.Fit(st.Name, 13))
	switch st.Status {
	case session.Waiting:
		if st.Name == event.StepDown && p.Of.State.Ended != nil && p.Of.State.Phase() == event.PhaseReady {
			txt = "when you say so: X. Until then the cluster stays for the next run"
		}
	case session.Active:
		mark, name = s.Accent.Of(p.Spinner()), s.Strong.Of(text.Fit(st.Name, 13))
		took, ink = units.Clock(p.Now.Sub(st.Since)), text.Ink{}
	case session.Done:
		mark, name, took = s.Good.Of("✓"), text.Fit(st.Name, 13), units.Duration(st.Took)
	case session.Skipped:
		mark, name, txt = s.Dim.Of("–"), text.Fit(st.Name, 13), join2("skipped", st.Text)
		took = units.Duration(st.Took)
	case session.Broken:
		mark, name, took = s.Bad.Of("✗"), s.Bad.Of(text.Fit(st.Name, 13)), units.Duration(st.Took)
		txt, ink = join2("failed", st.Text), s.Bad
	}
	rows := text.Hang("", txt, ink, w-stepIndent-2-text.Wide(took))
	out := []string{text.Spread(mark+" "+name+" "+rows[0], s.Dim.Of(took), w)}
	out = append(out, text.Indent(rows[1:], stepIndent)...)
	if st.Status == session.Active {
		out = append(out, p.stepNews(st, w)...)
	}
	if st.Status == session.Broken && st.Fault == nil {
		out = append(out, p.stepNews(st, w)...)
	}
	return out
}

// stepIndent is where the text of a step begins.
const stepIndent = 16

func join2(a, b string) string {
	if b == "" {
		return a
	}
	return a + ": " + b
}

// stepNews is the newest line of each node, and what comes next.
func (p Page) stepNews(st *session.Step, w int) []string {
	var nodes []int
	for n := range st.Nodes {
		nodes = append(nodes, n)
	}
	sort.Ints(nodes)
	var out []string
	for _, n := range nodes {
		who := p.Of.State.NodeName(n)
		if n < 0 {
			who = "all"
		}
		out = append(out, text.Cut(strings.Repeat(" ", stepIndent)+p.Styles.Dim.Of(text.Fit(who, 8))+st.Nodes[n], w))
	}
	if next := follows[st.Name]; next != "" && st.Status == session.Active {
		out = append(out, text.Cut(strings.Repeat(" ", stepIndent)+p.Styles.Faint.Of(next), w))
	}
	return out
}
