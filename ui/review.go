package ui

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// review is what a draft comes to: its plan, with price and preflight.
type review struct {
	gen   int
	busy  bool
	since time.Time
	plan  *PlanView
	fault []string // why there is no plan
}

// weigh asks what the draft would do and cost. A draft with errors is shown
// with those instead.
func (m *Model) weigh() tea.Cmd {
	z := m.wiz
	m.judge()
	z.review = review{}
	if len(z.faults) > 0 {
		return nil
	}
	z.review = review{gen: m.nextAsk(), busy: true, since: m.now}
	gen, draft := z.review.gen, z.draft
	return func() tea.Msg {
		p, err := m.bench.PlanDraft(m.ctx, draft)
		return weighed{gen, p, err}
	}
}

func (m *Model) takeReview(msg weighed) {
	z := m.wiz
	if z == nil || z.review.gen != msg.gen {
		return
	}
	z.review.busy, z.review.plan = false, msg.plan
	if msg.err != nil {
		z.review.plan = nil
		if !m.blameFields(msg.err) {
			z.review.fault = text.Words(strings.Split(strings.TrimSpace(msg.err.Error()), "\n"))
		}
	}
}

// drawReview is the last page: what it costs, what stands in the way, and the
// file that would be written.
func (m *Model) drawReview(w int) []string {
	left := m.reviewPlan(w)
	if w < 110 {
		return append(append(left, ""), m.reviewFile(w)...)
	}
	fw := text.Clamp(w*2/5, 44, 84)
	return text.Beside(4, text.Block{W: w - fw - 4, Lines: m.reviewPlan(w - fw - 4)}, text.Block{W: fw, Lines: m.reviewFile(fw)})
}

func (m *Model) reviewPlan(w int) []string {
	z, s := m.wiz, m.styles
	var out []string
	switch r := &z.review; {
	case len(z.faults) > 0:
		out = append(out, s.Bad.Of("✗ Some answers can't be used as they are."), "")
		out = append(out, m.faultRows(w)...)
		out = append(out, "", s.Key.Of("enter")+" goes to the first of them")
	case r.busy:
		out = append(out, m.spinner()+" looking at what stands in the way, and what it costs"+s.Dim.Of(", for "+text.Since(m.now, r.since)),
			s.Dim.Of("  nothing is changed by it"))
	case r.fault != nil:
		out = append(out, s.Bad.Of("✗ There is no plan."), "")
		for _, l := range r.fault {
			out = append(out, text.Wrap(l, w)...)
		}
	case r.plan != nil:
		out = append(out, m.planMoney(r.plan, w)...)
		out = append(out, m.findings(r.plan.Findings, w)...)
	}
	if m.profileThere() {
		out = append(out, "", text.Cut(s.Warn.Of("! ")+"there is a profile already, and it is not replaced: "+text.Word(m.wiz.path()), w))
	}
	out = append(out, "", s.Dim.Of("Nothing was written so far."))
	if m.cannotWrite() == "" {
		out = append(out, s.Key.Of("W")+" writes the profile and shows its plan; the numbers go back to a step")
	}
	return out
}

// profileThere reports whether the directory is known to have a profile.
func (m *Model) profileThere() bool { return m.opts.Here != "" && m.opts.Here == m.wiz.path() }

func (z *wizard) path() string { return filepath.Join(z.draft.Dir, "dlwb.yaml") }

// faultRows are all that is wrong, each with the step it belongs to.
func (m *Model) faultRows(w int) []string {
	z := m.wiz
	var out []string
	for _, key := range z.faultKeys() {
		lead := text.Fit(key, 22) + " "
		for _, l := range text.Wrap(z.faults[key], max(w-23, 1)) {
			out = append(out, text.Cut(m.styles.Strong.Of(lead)+l, w))
			lead = strings.Repeat(" ", 23)
		}
	}
	return out
}

// faultKeys are the keys with faults in the order of the questions.
func (z *wizard) faultKeys() []string {
	keys := make([]string, 0, len(z.faults))
	for k := range z.faults {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := int(stepOf(a)) - int(stepOf(b)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return keys
}

// firstFault goes to the first answer that can't be used.
func (m *Model) firstFault() tea.Cmd {
	z := m.wiz
	keys := z.faultKeys()
	if len(keys) == 0 || stepOf(keys[0]) == wizReview {
		return m.say("info", "W writes the profile; the numbers go back to a step")
	}
	cmd := m.toStep(stepOf(keys[0]))
	for i, f := range z.fields() {
		if f.key == keys[0] {
			z.picked = i
		}
	}
	return cmd
}

// reviewFile is the profile as it would be written.
func (m *Model) reviewFile(w int) []string {
	out := []string{m.styles.Dim.Of(text.EndOf(text.Word(m.wiz.path()), w))}
	for _, l := range strings.Split(strings.TrimRight(m.wiz.text, "\n"), "\n") {
		txt := text.Word(l)
		if strings.HasPrefix(strings.TrimSpace(txt), "#") {
			txt = m.styles.Dim.Of(txt)
		}
		out = append(out, text.Cut(m.styles.Faint.Of("│ ")+txt, w))
	}
	return out
}

func (m *Model) cannotWrite() string {
	switch z := m.wiz; {
	case z == nil || z.step != wizReview:
		return "the review comes first"
	case len(z.faults) > 0:
		return "some answers can't be used as they are; enter goes to the first"
	case z.review.busy:
		return "the checks are under way"
	}
	return ""
}

// askWrite asks before the only thing that the wizard ever writes.
func (m *Model) askWrite() tea.Cmd {
	z := m.wiz
	m.openDialog(&choice{
		title: "Write the profile?",
		body: func(m *Model, w int) []string {
			return m.labelled(w, [2]string{"file", text.Word(z.path())},
				[2]string{"then", "its plan is shown; nothing is started, and nothing is paid, before R on it"})
		},
		answers: []answer{{name: "Cancel"}, {name: "Write", do: (*Model).writeProfile}},
		opened:  m.clock.Now(), swallow: true,
	})
	return nil
}

func (m *Model) writeProfile() tea.Cmd {
	draft := m.wiz.draft
	return func() tea.Msg {
		path, err := m.bench.SaveDraft(draft)
		return wrote{path, err}
	}
}

// planWritten leaves the wizard for the plan of what it wrote.
func (m *Model) planWritten(msg wrote) tea.Cmd {
	if msg.err != nil {
		m.openDialog(m.faultDialog(session.FaultOf("write the profile", msg.err)))
		return nil
	}
	m.wiz = nil
	if m.here() != atNew {
		return m.say("info", text.Word(msg.path)+" was written")
	}
	m.path = m.path[:1]
	return tea.Batch(m.showPlan(msg.path), m.say("info", text.Word(msg.path)+" was written"))
}
