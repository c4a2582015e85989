package wizard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/offers"
	"github.com/dlwb/dlwb/ui/text"
)

// headRows is what stands above each question: the steps, the question.
const headRows = 4

// room is how many rows of h the answer to a question has.
func room(h int) int { return max(h-headRows, 1) }

// Draw is the present question with its possible answers.
func (z *Wizard) Draw(l text.Look, w, h int) []string {
	out := []string{z.stepBar(l, w), "", l.Styles.Strong.Of(text.Cut(questions[z.step].about, w)), ""}
	below := room(h)
	switch {
	case !z.read:
		return append(out, l.Spinner()+l.Styles.Dim.Of(" looking at what the directory holds"))
	case z.fault != "":
		return append(out, l.Styles.Bad.Of("✗ ")+z.fault)
	case z.step == wizMachine && !z.market.Comparing:
		return append(out, z.drawMarket(l, w, below)...)
	case z.step == wizRegion:
		return append(out, z.drawRegions(l, w, below)...)
	case z.step == wizProvider:
		return append(out, z.drawProviders(l, w, below)...)
	}
	if page := z.page(l, w); page != nil {
		return append(out, l.Scrolled(page, z.top, below)...)
	}
	return append(out, z.drawForm(l, w, below)...)
}

// page is the whole text of a question that scrolls as one page; nil: it is a form.
func (z *Wizard) page(l text.Look, w int) []string {
	switch z.step {
	case wizMachine:
		return z.market.DrawComparison(l, w)
	case wizReview:
		return z.drawReview(l, w)
	}
	return nil
}

// stepBar shows all questions, the present one set off; on a narrow screen
// only where one is.
func (z *Wizard) stepBar(l text.Look, w int) string {
	s := l.Styles
	steps := z.steps()
	var parts []string
	for i, step := range steps {
		name := fmt.Sprintf("%d %s", i+1, questions[step].name)
		switch {
		case step == z.step:
			name = s.Cursor.Of(" " + name + " ")
		case z.stepFaulty(step):
			name = s.Warn.Of(name + " !")
		default:
			name = s.Dim.Of(name)
		}
		parts = append(parts, name)
	}
	if bar := strings.Join(parts, s.Faint.Of("  ›  ")); text.Wide(bar) <= w {
		return bar
	}
	if bar := strings.Join(parts, "  "); text.Wide(bar) <= w {
		return bar
	}
	i := slices.Index(steps, z.step)
	return text.Cut(parts[i]+s.Dim.Of(fmt.Sprintf("  step %d of %d; 1–%d go to another", i+1, len(steps), len(steps))), w)
}

// stepFaulty reports whether an answer that was given before the present
// question is wrong.
func (z *Wizard) stepFaulty(step step) bool {
	if step > z.step {
		return false
	}
	for key := range z.faults {
		if stepOf(key) == step {
			return true
		}
	}
	return false
}

// drawProviders are the providers with what each one is, in h rows: the picked one is
// among them.
func (z *Wizard) drawProviders(l text.Look, w, h int) []string {
	var out []string
	at := 0
	for i, p := range z.providers() {
		name := l.PickRow(i == z.picked, text.Fit(text.Word(p), 12), "", w)
		out = append(out, text.Hang(name, providers.Named(p).Doc, l.Styles.Dim, w)...)
		if i == z.picked {
			at = len(out) - 1
		}
	}
	return l.Scrolled(out, max(at-max(h-2, 0), 0), h) // the last row may say how many there are below
}

// Title says what is being made, and what its machines cost.
func (z *Wizard) Title(l text.Look) (left, right string) {
	left = l.Styles.Strong.Of(text.Word(z.draft.Name))
	if o := z.market.chosen; o != nil && z.paid() && o.Instance == z.draft.Instance {
		right = text.Word(o.Instance)
		if n := z.nodeCount(); n > 0 {
			if price := offers.Price(o, z.draft.Spot); price > 0 {
				right = fmt.Sprintf("%d × %s  %s", n, text.Word(o.Instance), units.PerHour(price*float64(n)))
			}
		}
	}
	return left, right
}

// nodeCount is how many nodes are wanted; 0 when that is no number.
func (z *Wizard) nodeCount() int {
	var n int
	if _, err := fmt.Sscan(z.draft.Count, &n); err != nil || n < 0 {
		return 0
	}
	return n
}

// Text is what a copy of the present question takes.
func (z *Wizard) Text() string {
	if o := z.market.At(z.picked); z.step == wizMachine && o != nil {
		return text.Word(o.Instance)
	}
	return z.text
}
