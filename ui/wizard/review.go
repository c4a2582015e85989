package wizard

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/planning"
)

// review is what a draft comes to: its plan, with price and preflight.
type review struct {
	gen   int
	busy  bool
	since time.Time
	plan  *planning.Plan
	fault []string // why there is no plan
}

// weigh asks what the draft would do and cost. A draft with errors is shown
// with those instead.
func (z *Wizard) weigh() tea.Cmd {
	z.judge()
	z.review = review{}
	if len(z.faults) > 0 {
		return nil
	}
	z.review = review{gen: z.next(), busy: true, since: z.screen.Now()}
	gen, draft := z.review.gen, z.draft
	return func() tea.Msg {
		p, err := z.screen.Bench.PlanDraft(z.screen.Ctx, draft)
		return weighed{z, gen, p, err}
	}
}

func (z *Wizard) takeReview(msg weighed) {
	if z.review.gen != msg.gen {
		return
	}
	z.review.busy, z.review.plan = false, msg.plan
	if msg.err != nil {
		z.review.plan = nil
		if !z.blameFields(msg.err) {
			z.review.fault = text.Words(strings.Split(strings.TrimSpace(msg.err.Error()), "\n"))
		}
	}
}

// drawReview is the last page: what it costs, what stands in the way, and the
// file that would be written.
func (z *Wizard) drawReview(l text.Look, w int) []string {
	left := z.reviewPlan(l, w)
	if w < 110 {
		return append(append(left, ""), z.reviewFile(l, w)...)
	}
	fw := text.Clamp(w*2/5, 44, 84)
	return text.Beside(4, text.Block{W: w - fw - 4, Lines: z.reviewPlan(l, w-fw-4)}, text.Block{W: fw, Lines: z.reviewFile(l, fw)})
}

func (z *Wizard) reviewPlan(l text.Look, w int) []string {
	s := l.Styles
	var out []string
	switch r := &z.review; {
	case len(z.faults) > 0:
		out = append(out, s.Bad.Of("✗ Some answers can't be used as they are."), "")
		out = append(out, z.faultRows(l, w)...)
		out = append(out, "", s.Key.Of("enter")+" goes to the first of them")
	case r.busy:
		out = append(out, l.Spinner()+" looking at what stands in the way, and what it costs"+s.Dim.Of(", for "+text.Since(l.Now, r.since)),
			s.Dim.Of("  nothing is changed by it"))
	case r.fault != nil:
		out = append(out, s.Bad.Of("✗ There is no plan."), "")
		for _, row := range r.fault {
			out = append(out, text.Wrap(row, w)...)
		}
	case r.plan != nil:
		out = append(out, plan.Money(l, r.plan, w)...)
		out = append(out, plan.Findings(l, r.plan.Findings, w)...)
	}
	if z.profileThere() {
		out = append(out, "", text.Cut(s.Warn.Of("! ")+"there is a profile already, and it is not replaced: "+text.Word(z.Path()), w))
	}
	out = append(out, "", s.Dim.Of("Nothing was written so far."))
	if z.CannotWrite() == "" {
		out = append(out, s.Key.Of("W")+" writes the profile and shows its plan; the numbers go back to a step")
	}
	return out
}

// profileThere reports whether the directory is known to have a profile.
func (z *Wizard) profileThere() bool { return z.screen.Here != "" && z.screen.Here == z.Path() }

// Path is where the profile would be written.
func (z *Wizard) Path() string { return filepath.Join(z.draft.Dir, "dlwb.yaml") }

// faultRows are all that is wrong, each with the step it belongs to.
func (z *Wizard) faultRows(l text.Look, w int) []string {
	var out []string
	for _, key := range z.faultKeys() {
		lead := text.Fit(key, 22) + " "
		for _, row := range text.Wrap(z.faults[key], max(w-23, 1)) {
			out = append(out, text.Cut(l.Styles.Strong.Of(lead)+row, w))
			lead = strings.Repeat(" ", 23)
		}
	}
	return out
}

// faultKeys are the keys with faults in the order of the questions.
func (z *Wizard) faultKeys() []string {
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
func (z *Wizard) firstFault() tea.Cmd {
	keys := z.faultKeys()
	if len(keys) == 0 || stepOf(keys[0]) == wizReview {
		return z.screen.Say("info", "W writes the profile; the numbers go back to a step")
	}
	cmd := z.toStep(stepOf(keys[0]))
	for i, f := range z.fields() {
		if f.key == keys[0] {
			z.picked = i
		}
	}
	return cmd
}

// reviewFile is the profile as it would be written.
func (z *Wizard) reviewFile(l text.Look, w int) []string {
	out := []string{l.Styles.Dim.Of(text.EndOf(text.Word(z.Path()), w))}
	for _, row := range strings.Split(strings.TrimRight(z.text, "\n"), "\n") {
		txt := text.Word(row)
		if strings.HasPrefix(strings.TrimSpace(txt), "#") {
			txt = l.Styles.Dim.Of(txt)
		}
		out = append(out, text.Cut(l.Styles.Faint.Of("│ ")+txt, w))
	}
	return out
}

// CannotWrite says why the profile can't be written yet.
func (z *Wizard) CannotWrite() string {
	switch {
	case z == nil || z.step != wizReview:
		return "the review comes first"
	case len(z.faults) > 0:
		return "some answers can't be used as they are; enter goes to the first"
	case z.review.busy:
		return "the checks are under way"
	}
	return ""
}
