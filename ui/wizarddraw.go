package ui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
)

// wizardTop is what stands above each question: the steps, the question.
const wizardTop = 4

// wizardRoom is how many rows the answer to a question has.
func (m *Model) wizardRoom() int { return max(m.bodyHeight()-wizardTop, 1) }

// drawWizard is the present question with its possible answers.
func (m *Model) drawWizard(w, h int) []string {
	z := m.wiz
	out := []string{m.stepBar(w), "", m.styles.Strong.Of(text.Cut(wizSteps[z.step].about, w)), ""}
	room := max(h-wizardTop, 1)
	switch {
	case !z.read:
		return append(out, m.spinner()+m.styles.Dim.Of(" looking at what the directory holds"))
	case z.fault != "":
		return append(out, m.styles.Bad.Of("✗ ")+z.fault)
	case z.step == wizMachine && !z.market.comparing:
		return append(out, m.drawMarket(w, room)...)
	case z.step == wizRegion:
		return append(out, m.drawRegions(w, room)...)
	}
	return append(out, m.looks().Scrolled(m.wizardPage(w), m.scroll[atNew], room)...)
}

// wizardPage is the whole text of a question that scrolls as one page.
func (m *Model) wizardPage(w int) []string {
	switch m.wiz.step {
	case wizProvider:
		return m.drawProviders(w)
	case wizMachine:
		return m.drawComparison(w)
	case wizReview:
		return m.drawReview(w)
	}
	return m.drawForm(w)
}

// stepBar shows all questions, the present one set off; on a narrow screen
// only where one is.
func (m *Model) stepBar(w int) string {
	z, s := m.wiz, m.styles
	steps := z.steps()
	var parts []string
	for i, step := range steps {
		name := fmt.Sprintf("%d %s", i+1, wizSteps[step].name)
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
func (z *wizard) stepFaulty(step wizStep) bool {
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

func (m *Model) drawProviders(w int) []string {
	var out []string
	for i, p := range m.wiz.providers() {
		out = append(out, m.pickRow(i == m.wiz.picked, text.Fit(text.Word(p), 12), providers.Named(p).Doc, w))
	}
	return out
}

// pickRow is one of several answers.
func (m *Model) pickRow(picked bool, name, about string, w int) string {
	mark := "  "
	if picked {
		mark, name = m.styles.Picked.Of("› "), m.styles.Picked.Of(name)
	}
	return text.Cut(mark+name+"  "+m.styles.Dim.Of(about), w)
}

// wizardTitle says what is being made, and what its machines cost.
func (m *Model) wizardTitle() (left, right string) {
	z := m.wiz
	left = m.styles.Strong.Of(text.Word(z.draft.Name))
	if o := z.market.chosen; o != nil && z.paid() && o.Instance == z.draft.Instance {
		right = text.Word(o.Instance)
		if n := z.nodeCount(); n > 0 {
			if price := offerPrice(o, z.draft.Spot); price > 0 {
				right = fmt.Sprintf("%d × %s  %s", n, text.Word(o.Instance), units.PerHour(price*float64(n)))
			}
		}
	}
	return left, right
}

// nodeCount is how many nodes are wanted; 0 when that is no number.
func (z *wizard) nodeCount() int {
	var n int
	if _, err := fmt.Sscan(z.draft.Count, &n); err != nil || n < 0 {
		return 0
	}
	return n
}

// wizardText is what a copy of the present question takes.
func (m *Model) wizardText() string {
	z := m.wiz
	if o := z.market.at(z.picked); z.step == wizMachine && o != nil {
		return text.Word(o.Instance)
	}
	return z.text
}
