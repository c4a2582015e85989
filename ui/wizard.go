package ui

import (
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench"
)

// wizard puts a new profile together, one question at a time. Nothing is
// written before W, and that asks.
type wizard struct {
	draft   workbench.Draft
	notes   []string // what was found in the directory
	read    bool
	fault   string // why the directory could not be read
	markets []string

	step   wizStep
	picked int
	region regionPicker
	market market
	review review

	text   string            // the profile that the draft comes to
	faults map[string]string // by key: what is wrong with its values
	asked  int               // the number of the last look at a directory
}

// wizStep is one question.
type wizStep int

const (
	wizProvider wizStep = iota
	wizRegion
	wizMachine
	wizNodes
	wizEnvironment
	wizTraining
	wizLimits
	wizReview
)

// wizSteps are the questions in order, each with what it is about.
var wizSteps = []struct{ name, about string }{
	{"provider", "Where do the machines come from?"},
	{"region", "Where do they stand? Several regions are tried in order."},
	{"machine", "Which machine?"},
	{"nodes", "How many, and how?"},
	{"environment", "Where does Python come from on the nodes?"},
	{"training", "What runs?"},
	{"limits", "When do the machines end by themselves? They hold these limits, whatever happens to this one."},
	{"review", "This is what it comes to."},
}

// steps are the questions that a provider needs an answer to.
func (z *wizard) steps() []wizStep {
	all := []wizStep{wizProvider, wizRegion, wizMachine, wizNodes, wizEnvironment, wizTraining, wizLimits, wizReview}
	if z.paid() {
		return all
	}
	return slices.DeleteFunc(all, func(s wizStep) bool { return s == wizRegion || s == wizMachine || s == wizLimits })
}

// paid reports whether the machines are chosen from offers, and paid for.
func (z *wizard) paid() bool { return slices.Contains(z.markets, z.draft.Provider) }

// providers are those that a new experiment can have.
func (z *wizard) providers() []string {
	return append([]string{providers.Default().Name}, z.markets...)
}

// newExperiment opens the wizard: a new one, or the one that was left.
func (m *Model) newExperiment() tea.Cmd {
	m.goTo(atNew)
	if m.wiz != nil {
		return m.say("info", "this is the draft that was left; the palette (:) starts over")
	}
	return m.restart()
}

// restart begins a draft with what lies in the present directory.
func (m *Model) restart() tea.Cmd {
	m.wiz = &wizard{markets: m.bench.Markets(), faults: map[string]string{}}
	dir := "."
	if m.opts.Here != "" {
		dir = filepath.Dir(m.opts.Here)
	}
	return m.readDraft(dir)
}

// readDraft looks at what a directory holds.
func (m *Model) readDraft(dir string) tea.Cmd {
	gen := m.nextAsk()
	m.wiz.asked = gen
	return func() tea.Msg {
		d, notes, err := m.bench.NewDraft(dir)
		return drafted{gen, d, notes, err}
	}
}

// nextAsk numbers what the wizard asks for, so that late answers are dropped.
func (m *Model) nextAsk() int {
	m.asks++
	return m.asks
}

// takeDraft takes what a directory holds. The machines were not asked of it.
func (m *Model) takeDraft(msg drafted) {
	z := m.wiz
	if z == nil || z.asked != msg.gen {
		return
	}
	z.fault = ""
	if msg.err != nil {
		z.fault, z.read = oneLine(msg.err), true
		return
	}
	old, d := z.draft, msg.draft
	if z.read {
		d.Provider, d.Region, d.Instance, d.Count = old.Provider, old.Region, old.Instance, old.Count
		d.Spot, d.Fallback, d.Image, d.Disk = old.Spot, old.Fallback, old.Image, old.Disk
		d.Budget, d.Lifetime, d.Idle = old.Budget, old.Lifetime, old.Idle
	}
	z.draft, z.notes, z.read = d, text.Words(msg.notes), true
	m.judge()
}

// judge holds the draft against what a profile may say.
func (m *Model) judge() {
	z := m.wiz
	text, err := z.draft.Text()
	z.text, z.faults = text, map[string]string{}
	if err != nil {
		m.blameFields(err)
	}
	if z.draft.Environment == "venv" && strings.TrimSpace(z.draft.File) == "" {
		z.faults["environment.venv"] = "name the requirements file, such as requirements.txt"
	}
}

// blameFields puts what an error says beside the fields it is about; false
// when it is about none.
func (m *Model) blameFields(err error) bool {
	all := m.bench.FieldFaults(err)
	for _, f := range all {
		if m.wiz.faults[f.Key] == "" {
			m.wiz.faults[f.Key] = text.Word(f.Text)
		}
	}
	return len(all) > 0
}

// toStep shows a question, and begins what it needs.
func (m *Model) toStep(step wizStep) tea.Cmd {
	z := m.wiz
	z.step, z.picked, m.scroll[atNew] = step, 0, 0
	switch step {
	case wizProvider:
		z.picked = max(slices.Index(z.providers(), z.draft.Provider), 0)
	case wizRegion:
		z.region.open(z.draft.Provider, z.draft.Region)
	case wizMachine:
		return m.openMarket()
	case wizReview:
		return m.weigh()
	}
	return nil
}

func (m *Model) nextStep() tea.Cmd { return m.turnStep(1) }
func (m *Model) prevStep() tea.Cmd { return m.turnStep(-1) }

func (m *Model) turnStep(d int) tea.Cmd {
	z := m.wiz
	steps := z.steps()
	i := slices.Index(steps, z.step) + d
	if i < 0 || i >= len(steps) {
		return m.say("info", "esc leaves; the draft is kept until dlwb ends")
	}
	if d > 0 {
		if why := z.unanswered(); why != "" {
			return m.say("warning", why)
		}
		if z.step == wizRegion {
			m.takeRegions()
		}
	}
	return m.toStep(steps[i])
}

// unanswered says what the present question still needs; empty when nothing.
func (z *wizard) unanswered() string {
	if z.step == wizMachine && z.draft.Instance == "" {
		return "pick a machine with enter first"
	}
	return ""
}

// jump goes to a question by its number. What comes before the review may be
// answered in any order.
func (m *Model) jump(n int) tea.Cmd {
	steps := m.wiz.steps()
	if n < 1 || n > len(steps) {
		return m.say("warning", "there are "+text.Plural(len(steps), "step"))
	}
	return m.toStep(steps[n-1])
}

// wizBack goes one question back; false at the first.
func (m *Model) wizBack() (tea.Cmd, bool) {
	z := m.wiz
	switch {
	case z.step == wizMachine && z.market.comparing:
		z.market.comparing = false
	case z.step == wizMachine && z.market.filter != "":
		z.market.narrow("")
		z.picked = 0
	case z.step == z.steps()[0]:
		return nil, false
	default:
		return m.prevStep(), true
	}
	return nil, true
}

func (m *Model) cannotChoose() string {
	if z := m.wiz; z != nil && z.step == wizReview && len(z.faults) == 0 {
		return "W writes the profile; the numbers go back to a step"
	}
	return ""
}

func (m *Model) noNextStep() string {
	if m.wiz != nil && m.wiz.step == wizReview {
		return "this is the last step"
	}
	return ""
}

// choose is enter: it answers the question, or goes on.
func (m *Model) choose() tea.Cmd {
	z := m.wiz
	switch z.step {
	case wizProvider:
		z.draft.Provider = z.providers()[text.Clamp(z.picked, 0, len(z.markets))]
		m.judge()
		return m.nextStep()
	case wizRegion:
		return m.chooseRegion()
	case wizMachine:
		return m.chooseMachine()
	case wizReview:
		return m.firstFault()
	}
	return m.editField()
}

// moveWizard moves what is picked, or the page.
func (m *Model) moveWizard(d int) {
	z := m.wiz
	switch {
	case z.step == wizReview || z.step == wizMachine && z.market.comparing:
		rows := len(m.wizardPage(m.bodyWidth()))
		m.scroll[atNew] = text.Clamp(m.scroll[atNew]+d, 0, max(rows-m.wizardRoom(), 0))
	default:
		z.picked = text.Clamp(z.picked+d, 0, max(z.count()-1, 0))
	}
}

// count is how many rows can be picked.
func (z *wizard) count() int {
	switch z.step {
	case wizProvider:
		return len(z.providers())
	case wizRegion:
		return len(z.region.rows())
	case wizMachine:
		return len(z.market.rows)
	}
	return len(z.fields()) + 1
}
