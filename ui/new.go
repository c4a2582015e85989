package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/ui/wizard"
)

func newScreen() screen {
	return screen{at: atNew, name: "new", draw: (*Model).drawNew, title: (*Model).newTitle, move: (*Model).moveNew,
		copy: (*Model).newText, back: (*Model).newBack, digit: (*Model).newDigit, keys: newCommands}
}

// The screen of a new experiment: a wizard puts the profile together, and its
// draft is written here, when a person says so.

// newCommands are the keys of the screen that puts a profile together.
func newCommands() []command {
	do := func(do func(*wizard.Wizard) tea.Cmd) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd { return do(m.wiz) }
	}
	can := func(can func(*wizard.Wizard) string) func(*Model) string {
		return func(m *Model) string { return can(m.wiz) }
	}
	turn := func(d int) func(*Model) tea.Cmd {
		return func(m *Model) tea.Cmd { return m.wiz.Turn(d) }
	}
	type z = wizard.Wizard
	return []command{
		{bind: on("choose", "enter"), help: "take what is picked, or change it, and go on", at: atNew, foot: 1, can: can((*z).CannotChoose), do: do((*z).Choose)},
		{bind: on("next step", "tab"), help: "next step; 1–8 go to any", at: atNew, foot: 3, can: can((*z).NoNext), do: do((*z).Next)},
		{bind: on("previous step", "shift+tab"), help: "previous step", at: atNew, do: do((*z).Prev)},
		{bind: on("previous choice", "left"), help: "previous of a few values; pick among what is compared", at: atNew, do: turn(-1)},
		{bind: on("next choice", "right"), help: "next of a few values; pick among what is compared", at: atNew, do: turn(1)},
		{bind: on("filter", "/"), help: "filter the machines by words", at: atNew, foot: 4, can: can((*z).NoOffers), do: do((*z).AskFilter)},
		{bind: on("sort", "s"), help: "sort the machines by the next column", at: atNew, foot: 4, can: can((*z).NoOffers), do: do((*z).Sort)},
		{bind: on("reverse", "o"), help: "turn the order of the machines round", at: atNew, can: can((*z).NoOffers), do: do((*z).Reverse)},
		{bind: on("mark", "c"), help: "mark a machine to compare it, or a region to try it too", at: atNew, foot: 5, can: can((*z).CannotMark), do: do((*z).Mark)},
		{bind: on("compare", "v"), help: "marked machines side by side, or the table again", at: atNew, foot: 5, can: can((*z).CannotCompare), do: do((*z).Compare)},
		{bind: on("spot", "p"), help: "judge machines by the price of spot or on demand", at: atNew, foot: 6, can: can((*z).NotAtMarket), do: do((*z).ToggleSpot)},
		{bind: on("all machines", "a"), help: "machines without a GPU too, or not", at: atNew, can: can((*z).NotAtMarket), do: do((*z).ToggleAll)},
		{bind: on("refresh", "r"), help: "ask the provider for its machines again", at: atNew, foot: 7, can: can((*z).NotAtMarket), do: do((*z).Refresh)},
		{bind: on("start over"), help: "throw the draft away and begin a new one", at: atNew, do: (*Model).restart},
		{bind: on("write", "W"), help: "write the profile that was put together, and show its plan; asks first", at: atNew, foot: 2, acts: true,
			can: can((*z).CannotWrite), do: (*Model).askWrite},
	}
}

// newExperiment opens the wizard: a new one, or the one that was left.
func (m *Model) newExperiment() tea.Cmd {
	m.goTo(atNew)
	if m.wiz != nil {
		return m.say("info", "this is the draft that was left; the palette (:) starts over")
	}
	return m.restart()
}

// restart begins a new draft.
func (m *Model) restart() (cmd tea.Cmd) {
	m.wiz, cmd = wizard.New(wizard.Screen{Ctx: m.ctx, Bench: m.bench, Here: m.opts.Here, Now: func() time.Time { return m.now },
		Say: m.say, Ask: m.askFor})
	return cmd
}

// askFor asks for a line of text that the wizard wants.
func (m *Model) askFor(q wizard.Prompt) {
	m.ask = &prompt{label: q.Label, line: q.Line, done: func(_ *Model, text string) tea.Cmd { return q.Done(text) }}
	if q.Live != nil {
		m.ask.live = func(_ *Model, text string) { q.Live(text) }
	}
	if q.Left != nil {
		m.ask.left = func(*Model) { q.Left() }
	}
}

func (m *Model) drawNew(w, h int) []string { return m.wiz.Draw(m.looks(), w, h) }

func (m *Model) newTitle() (left, right string) {
	name, price := m.wiz.Title(m.looks())
	return "  " + name, price
}

func (m *Model) moveNew(d int) { m.wiz.Move(m.looks(), d, m.bodyWidth(), m.bodyHeight()) }

func (m *Model) newText() string { return m.wiz.Text() }

func (m *Model) newBack() (tea.Cmd, bool) { return m.wiz.Back() }

// newDigit goes to a question by its number.
func (m *Model) newDigit(n int) tea.Cmd {
	if n == 0 {
		return nil
	}
	return m.wiz.Jump(n)
}

// askWrite asks before the only thing that is ever written for a new experiment.
func (m *Model) askWrite() tea.Cmd {
	path := m.wiz.Path()
	m.openDialog(&choice{
		title: "Write the profile?",
		body: func(m *Model, w int) []string {
			return m.looks().Labelled(w, [2]string{"file", text.Word(path)},
				[2]string{"then", "its plan is shown; nothing is started, and nothing is paid, before R on it"})
		},
		answers: []answer{{name: "Cancel"}, {name: "Write", do: (*Model).writeProfile}},
		opened:  m.clock.Now(), swallow: true,
	})
	return nil
}

func (m *Model) writeProfile() tea.Cmd {
	draft := m.wiz.Draft()
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
