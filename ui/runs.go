package ui

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/runs"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
)

// runsScreen is the table of runs.
func runsScreen() screen {
	return screen{at: atRuns, name: "runs", draw: (*Model).drawRuns, title: (*Model).noTitle, move: (*Model).moveRuns,
		copy: func(m *Model) string { return m.runs.Text() }, back: (*Model).runsBack, reread: (*Model).readRuns, click: (*Model).clickRun,
		keys: runCommands}
}

// runCommands are the keys of the table of runs and of their comparison.
func runCommands() []command {
	return []command{
		{bind: on("runs", "p"), help: "all runs as a table to sort, filter, note, star and compare", at: atHome, foot: 3, do: (*Model).showRuns},
		{bind: on("mark", "space"), help: "mark a run to be compared, or take its mark away", at: atRuns, foot: 2, can: (*Model).noPickedRun, do: (*Model).markRun},
		{bind: on("clear marks"), help: "take the marks of all runs away", at: atRuns, can: (*Model).noMarks, do: (*Model).clearMarks},
		{bind: on("compare", "v"), help: "the marked runs over each other: their charts, and what differs between them", at: atRuns, foot: 3,
			can: (*Model).cannotCompareRuns, do: (*Model).compareRuns},
		{bind: on("filter", "/"), help: "only runs for which conditions hold: loss<2 and engine=torchrun", at: atRuns, foot: 4, do: (*Model).askRunFilter},
		{bind: on("sort", "s"), help: "sort the runs by the next column", at: atRuns, foot: 5, can: (*Model).noRunRows, do: (*Model).sortRuns},
		{bind: on("reverse", "o"), help: "turn the order of the runs round", at: atRuns, can: (*Model).noRunRows, do: (*Model).reverseRuns},
		{bind: on("sort by a series", "a"), help: "sort by fields or series: best.val/loss, -cost; a series gets a column", at: atRuns, do: (*Model).askRunOrder},
		{bind: on("star", "*"), help: "give a run a star, or take it away", at: atRuns, foot: 6, can: (*Model).cannotRemark, do: (*Model).starRun},
		{bind: on("note", "n"), help: "write a note to a run; an empty one removes it", at: atRuns, foot: 6, can: (*Model).cannotRemark, do: (*Model).askNote},
		{bind: on("remove", "X"), help: "remove the marked runs, or the picked one, with logs, results and curves; asks first", at: atRuns, foot: 7, acts: true,
			can: (*Model).noPickedRun, do: (*Model).askRemove},
		{bind: on("read again", "r"), help: "read the runs again, or what is compared of them", at: atRuns | atCompare, do: (*Model).readAgain},
		{bind: on("differences", "d"), help: "all that differs between the runs, or their charts again", at: atCompare, foot: 2, can: (*Model).noComparison, do: (*Model).toggleFacts},
	}
}

func (m *Model) showRuns() tea.Cmd {
	m.goTo(atRuns)
	return m.readRuns()
}

func (m *Model) noPickedRun() string {
	if m.runs.Pick() == nil {
		return "no run is picked"
	}
	return ""
}

func (m *Model) noRunRows() string {
	if m.runs.Empty() {
		return "there are no runs"
	}
	return ""
}

func (m *Model) noMarks() string {
	if len(m.runs.Marked()) == 0 {
		return "no run is marked"
	}
	return ""
}

func (m *Model) clearMarks() tea.Cmd {
	m.runs.ClearMarks()
	return nil
}

func (m *Model) markRun() tea.Cmd {
	if !m.runs.Mark() {
		return m.say("info", fmt.Sprintf("%d are marked already; v compares them, space on one of them takes its mark away", runs.MostMarked))
	}
	return nil
}

func (m *Model) cannotCompareRuns() string {
	if len(m.runs.Marked()) < 2 {
		return "mark two or more runs with space first"
	}
	return ""
}

func (m *Model) sortRuns() tea.Cmd {
	m.runs.NextSort()
	return nil
}

func (m *Model) reverseRuns() tea.Cmd {
	m.runs.Reverse()
	return nil
}

// askRunFilter asks for conditions. The workbench judges them when they are
// whole: what is half written holds for nothing.
func (m *Model) askRunFilter() tea.Cmd {
	m.ask = &prompt{label: "runs with", line: line.New(m.runs.Filter()), done: func(m *Model, text string) tea.Cmd {
		m.runs.SetFilter(text)
		return m.readRuns()
	}}
	return nil
}

func (m *Model) askRunOrder() tea.Cmd {
	m.ask = &prompt{label: "sort by", line: line.New(m.runs.Order()), done: func(m *Model, text string) tea.Cmd {
		m.runs.SetOrder(text)
		return m.readRuns()
	}}
	return nil
}

func (m *Model) cannotRemark() string {
	if m.opts.ReadOnly {
		return "started with --read-only"
	}
	return m.noPickedRun()
}

func (m *Model) starRun() tea.Cmd {
	id, star := m.runs.Pick().ID, !m.runs.Pick().Starred
	said := "no star any more: " + text.Word(id)
	if star {
		said = "★ " + text.Word(id)
	}
	return m.task("write the star", func() (string, string, error) { return said, "", m.bench.SetStar(id, star) })
}

func (m *Model) askNote() tea.Cmd {
	id, was := m.runs.Pick().ID, text.Word(m.runs.Pick().Note)
	m.ask = &prompt{label: "note for " + text.Word(id), line: line.New(was), done: func(m *Model, text string) tea.Cmd {
		if text == was {
			return nil
		}
		said := "the note was written"
		if text == "" {
			said = "the note was removed"
		}
		return m.task("write the note", func() (string, string, error) { return said, "", m.bench.SetNote(id, text) })
	}}
	return nil
}

// askRemove asks before runs are removed: the marked ones, or the picked one.
func (m *Model) askRemove() tea.Cmd {
	ids := slices.Clone(m.runs.Marked())
	if len(ids) == 0 {
		ids = []string{m.runs.Pick().ID}
	}
	sel := cleanup.Selection{Runs: ids}
	return m.question(confirmation{
		title: "Remove " + text.Plural(len(ids), "run") + "?", verb: "Remove",
		read: func(context.Context) (event.Question, error) {
			plan, err := m.bench.PlanCleanup(sel)
			return plan.Question(), err
		},
		do: func(m *Model) tea.Cmd {
			m.runs.ClearMarks()
			return m.task("remove "+text.Plural(len(ids), "run"), func() (string, string, error) {
				plan, err := m.bench.PlanCleanup(sel)
				if err != nil {
					return "", "", err
				}
				return text.Plural(len(plan.Runs), "run") + " removed", "", m.bench.CleanUp(plan)
			})
		},
	})
}

func (m *Model) readAgain() tea.Cmd {
	if m.here() == atCompare {
		return m.compareThese(m.comp.Runs())
	}
	return m.readRuns()
}

func (m *Model) readRuns() tea.Cmd {
	gen, query := m.runs.Ask(m.now)
	bench := m.bench
	return func() tea.Msg {
		table, err := bench.RunTable(query)
		return tabled{gen, table, err}
	}
}

// runsAgain reads the table again where it is looked at: runs go on.
func (m *Model) runsAgain() tea.Cmd {
	if m.here() != atRuns || m.runs.Busy() {
		return nil
	}
	return m.readRuns()
}

// clickRun picks a row; a second click opens it.
func (m *Model) clickRun(y int) tea.Cmd {
	if m.runsPage().Click(y, m.bodyWidth(), m.bodyHeight()) {
		return m.carryOut(m.find("enter"))
	}
	return nil
}

// runsPage is the table of runs as it is drawn.
func (m *Model) runsPage() runs.Page { return runs.Page{Look: m.looks(), Table: &m.runs} }

func (m *Model) drawRuns(w, h int) []string { return m.runsPage().Draw(w, h) }

// noTitle is for screens of several runs.
func (m *Model) noTitle() (left, right string) { return "", "" }

func (m *Model) moveRuns(d int) { m.runs.Move(d) }

func (m *Model) runsBack() (tea.Cmd, bool) {
	if m.runs.Back() {
		return m.readRuns(), true
	}
	return nil, false
}
