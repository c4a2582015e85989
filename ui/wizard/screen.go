package wizard

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Screen is what the wizard needs of the screen that it is on.
type Screen struct {
	Ctx   context.Context
	Bench Drafter
	Here  string // the profile of the present directory; empty when it has none
	Now   func() time.Time
	// Say shows a note: "info" or "warning".
	Say func(level, text string) tea.Cmd
	// Ask asks for a line of text.
	Ask func(Prompt)
}

// Prompt asks for one line of text.
type Prompt struct {
	Label string
	Line  line.Line
	Live  func(text string) // after every change; nil when not wanted
	Done  func(text string) tea.Cmd
	Left  func() // when it is given up
}

// Drafter is what puts a new profile together. Nothing is written before
// SaveDraft.
type Drafter interface {
	// NewDraft begins with what is found in a directory; notes say what.
	NewDraft(dir string) (d planning.Draft, notes []string, err error)
	// Paths names what lies in a directory, for completing what is typed;
	// directories end with a slash. The names are untrusted text.
	Paths(dir string) []string
	// Known are values that a key of a provider can have, as far as this machine
	// knows: they complete what is typed. They are untrusted text.
	Known(provider, key string) []string
	// Markets are the providers whose machines are chosen from offers.
	Markets() []string
	// Offers lists the machines of a provider, the best first.
	Offers(ctx context.Context, provider string, q cloud.Query) (cloud.Offers, error)
	// PlanDraft is the plan of a draft.
	PlanDraft(ctx context.Context, d planning.Draft) (*planning.Plan, error)
	// SaveDraft writes the profile and returns its path; it replaces none.
	SaveDraft(d planning.Draft) (path string, err error)
	// FieldFaults is what an error says of single values of a profile; none
	// when it is about something else.
	FieldFaults(err error) []FieldFault
}

// FieldFault is what is wrong with one value of a profile.
type FieldFault struct {
	Key  string // "machines.count"; empty for the profile as a whole
	Text string // why, and what would be right
}

// News is an answer that the wizard asked for; Take takes it.
type News interface{ asker() *Wizard }

type (
	// drafted is what a directory holds for a new profile. Its number, as that of
	// the next two, drops answers to earlier questions.
	drafted struct {
		to    *Wizard
		gen   int
		draft planning.Draft
		notes []string
		paths []string
		err   error
	}
	// offered are the machines that can be had.
	offered struct {
		to     *Wizard
		gen    int
		offers cloud.Offers
		err    error
	}
	// weighed is the plan of a draft.
	weighed struct {
		to   *Wizard
		gen  int
		plan *planning.Plan
		err  error
	}
)

func (n drafted) asker() *Wizard { return n.to }
func (n offered) asker() *Wizard { return n.to }
func (n weighed) asker() *Wizard { return n.to }

// Take takes an answer. One that another draft asked for is dropped.
func (z *Wizard) Take(n News) {
	if z == nil || n.asker() != z {
		return
	}
	switch n := n.(type) {
	case drafted:
		z.takeDraft(n)
	case offered:
		z.takeOffers(n)
	case weighed:
		z.takeReview(n)
	}
}

// next numbers what is asked for.
func (z *Wizard) next() int {
	z.asks++
	return z.asks
}
