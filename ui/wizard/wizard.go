// Package wizard puts a new profile together, one question at a time: where, which
// machine, how many, what runs, when it ends, and what that comes to.
package wizard

import (
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Wizard is a profile in the making. Nothing is written by it: the screen writes
// its draft when a person says so.
type Wizard struct {
	screen Screen
	asks   int // counts what is asked for

	draft   planning.Draft
	notes   []string // what was found in the directory
	paths   []string // what lies there, to complete what is typed
	read    bool
	fault   string // why the directory could not be read
	markets []string

	step   step
	picked int
	top    int // of a question that scrolls as one page
	region regionPicker
	market market
	review review

	text   string            // the profile that the draft comes to
	faults map[string]string // by key: what is wrong with its values
	asked  int               // the number of the last look at a directory
}

// step is one question.
type step int

const (
	wizProvider step = iota
	wizRegion
	wizMachine
	wizNodes
	wizEnvironment
	wizTraining
	wizLimits
	wizReview
)

// questions are the questions in order, each with what it is about.
var questions = []struct{ name, about string }{
	{"provider", "Where do the machines come from?"},
	{"region", "Where do they stand? Several regions are tried in order."},
	{"machine", "Which machine?"},
	{"nodes", "How many, and how?"},
	{"environment", "Where does Python come from on the nodes?"},
	{"training", "What runs?"},
	{"limits", "When do the machines end by themselves? They hold these limits, whatever happens to this one."},
	{"review", "This is what it comes to."},
}

// New begins a draft with what lies in the present directory.
func New(s Screen) (*Wizard, tea.Cmd) {
	z := &Wizard{screen: s, markets: s.Bench.Markets(), faults: map[string]string{}}
	dir := "."
	if s.Here != "" {
		dir = filepath.Dir(s.Here)
	}
	return z, z.readDraft(dir)
}

// Draft is the profile as it stands, and Path where it would be written.
func (z *Wizard) Draft() planning.Draft { return z.draft }

// Waits reports whether something that was asked for has not come yet.
func (z *Wizard) Waits() bool { return !z.read || z.market.Asking || z.review.busy }

// steps are the questions that a provider needs an answer to.
func (z *Wizard) steps() []step {
	all := []step{wizProvider, wizRegion, wizMachine, wizNodes, wizEnvironment, wizTraining, wizLimits, wizReview}
	if z.paid() {
		return all
	}
	return slices.DeleteFunc(all, func(s step) bool { return s == wizRegion || s == wizMachine || s == wizLimits })
}

// paid reports whether the machines are chosen from offers, and paid for.
func (z *Wizard) paid() bool { return slices.Contains(z.markets, z.draft.Provider) }

// providers are those that a new experiment can have.
func (z *Wizard) providers() []string {
	all := append([]string{providers.Default().Name}, z.markets...)
	for _, name := range providers.Usable() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// readDraft looks at what a directory holds.
func (z *Wizard) readDraft(dir string) tea.Cmd {
	gen := z.next()
	z.asked = gen
	return func() tea.Msg {
		d, notes, err := z.screen.Bench.NewDraft(dir)
		return drafted{z, gen, d, notes, z.screen.Bench.Paths(d.Dir), err}
	}
}

// takeDraft takes what a directory holds. The machines were not asked of it.
func (z *Wizard) takeDraft(msg drafted) {
	if z.asked != msg.gen {
		return
	}
	z.fault = ""
	if msg.err != nil {
		z.fault, z.read = text.Word(msg.err.Error()), true
		return
	}
	old, d := z.draft, msg.draft
	if z.read {
		d.Provider, d.Region, d.Instance, d.Count = old.Provider, old.Region, old.Instance, old.Count
		d.Spot, d.Fallback, d.Image, d.Disk = old.Spot, old.Fallback, old.Image, old.Disk
		d.Own = old.Own
		d.Budget, d.Lifetime, d.Idle = old.Budget, old.Lifetime, old.Idle
	}
	z.draft, z.notes, z.paths, z.read = d, text.Words(msg.notes), msg.paths, true
	z.judge()
}

// judge holds the draft against what a profile may say.
func (z *Wizard) judge() {
	text, err := z.draft.Text()
	z.text, z.faults, z.market.Nodes = text, map[string]string{}, z.nodeCount()
	if err != nil {
		z.blameFields(err)
	}
	if z.draft.Environment == "venv" && strings.TrimSpace(z.draft.File) == "" {
		z.faults["environment.venv"] = "name the requirements file, such as requirements.txt"
	}
}

// blameFields puts what an error says beside the fields it is about; false
// when it is about none.
func (z *Wizard) blameFields(err error) bool {
	all := z.screen.Bench.FieldFaults(err)
	for _, f := range all {
		if z.faults[f.Key] == "" {
			z.faults[f.Key] = text.Word(f.Text)
		}
	}
	return len(all) > 0
}

// toStep shows a question, and begins what it needs.
func (z *Wizard) toStep(step step) tea.Cmd {
	z.step, z.picked, z.top = step, 0, 0
	switch step {
	case wizProvider:
		z.picked = max(slices.Index(z.providers(), z.draft.Provider), 0)
	case wizRegion:
		z.region.open(z.draft.Provider, z.draft.Region)
	case wizMachine:
		return z.openMarket()
	case wizReview:
		return z.weigh()
	}
	return nil
}

// Next goes to the next question, if this one is answered.
func (z *Wizard) Next() tea.Cmd { return z.turnStep(1) }

// Prev goes to the question before.
func (z *Wizard) Prev() tea.Cmd { return z.turnStep(-1) }

func (z *Wizard) turnStep(d int) tea.Cmd {
	steps := z.steps()
	i := slices.Index(steps, z.step) + d
	if i < 0 || i >= len(steps) {
		return z.screen.Say("info", "esc leaves; the draft is kept until dlwb ends")
	}
	if d > 0 {
		if why := z.unanswered(); why != "" {
			return z.screen.Say("warning", why)
		}
		if z.step == wizRegion {
			z.takeRegions()
		}
	}
	return z.toStep(steps[i])
}

// unanswered says what the present question still needs; empty when nothing.
func (z *Wizard) unanswered() string {
	if z.step == wizMachine && z.draft.Instance == "" {
		return "pick a machine with enter first"
	}
	return ""
}

// Jump goes to a question by its number. What comes before the review may be
// answered in any order.
func (z *Wizard) Jump(n int) tea.Cmd {
	steps := z.steps()
	if n < 1 || n > len(steps) {
		return z.screen.Say("warning", "there are "+text.Plural(len(steps), "step"))
	}
	return z.toStep(steps[n-1])
}

// Back goes one question back; false at the first.
func (z *Wizard) Back() (tea.Cmd, bool) {
	switch {
	case z.step == wizMachine && z.market.Comparing:
		z.market.Comparing = false
	case z.step == wizMachine && z.market.Filter != "":
		z.market.Narrow("")
		z.picked = 0
	case z.step == z.steps()[0]:
		return nil, false
	default:
		return z.Prev(), true
	}
	return nil, true
}

// CannotChoose says why enter does nothing here.
func (z *Wizard) CannotChoose() string {
	if z := z; z != nil && z.step == wizReview && len(z.faults) == 0 {
		return "W writes the profile; the numbers go back to a step"
	}
	return ""
}

// NoNext says why there is no next question.
func (z *Wizard) NoNext() string {
	if z != nil && z.step == wizReview {
		return "this is the last step"
	}
	return ""
}

// Choose is enter: it answers the question, or goes on.
func (z *Wizard) Choose() tea.Cmd {
	switch z.step {
	case wizProvider:
		all := z.providers()
		z.chooseProvider(all[text.Clamp(z.picked, 0, len(all)-1)])
		return z.Next()
	case wizRegion:
		return z.chooseRegion()
	case wizMachine:
		return z.chooseMachine()
	case wizReview:
		return z.firstFault()
	}
	return z.editField()
}

// Move moves what is picked, or the page.
func (z *Wizard) Move(l text.Look, d, w, h int) {
	switch {
	case z.step == wizReview || z.step == wizMachine && z.market.Comparing:
		rows := len(z.page(l, w))
		z.top = text.Clamp(z.top+d, 0, max(rows-room(h), 0))
	default:
		z.picked = text.Clamp(z.picked+d, 0, max(z.count()-1, 0))
	}
}

// count is how many rows can be picked.
func (z *Wizard) count() int {
	switch z.step {
	case wizProvider:
		return len(z.providers())
	case wizRegion:
		return len(z.region.rows())
	case wizMachine:
		return z.market.Len()
	}
	return len(z.fields()) + 1
}
