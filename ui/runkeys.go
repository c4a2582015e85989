package ui

import (
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// runCommands are the keys of the table of runs and of their comparison.
func runCommands() []command {
	return []command{
		{keys: []string{"p"}, name: "runs", help: "all runs as a table to sort, filter, note, star and compare", at: atHome, foot: 3, do: (*Model).showRuns},
		{keys: []string{"space"}, name: "mark", help: "mark a run to be compared, or take its mark away", at: atRuns, foot: 2, can: (*Model).noPickedRun, do: (*Model).markRun},
		{name: "clear marks", help: "take the marks of all runs away", at: atRuns, can: (*Model).noMarks, do: (*Model).clearMarks},
		{keys: []string{"v"}, name: "compare", help: "the marked runs over each other: their charts, and what differs between them", at: atRuns, foot: 3,
			can: (*Model).cannotCompareRuns, do: (*Model).compareRuns},
		{keys: []string{"/"}, name: "filter", help: "only runs for which conditions hold: loss<2 and engine=torchrun", at: atRuns, foot: 4, do: (*Model).askRunFilter},
		{keys: []string{"s"}, name: "sort", help: "sort the runs by the next column", at: atRuns, foot: 5, can: (*Model).noRunRows, do: (*Model).sortRuns},
		{keys: []string{"o"}, name: "reverse", help: "turn the order of the runs round", at: atRuns, can: (*Model).noRunRows, do: (*Model).reverseRuns},
		{keys: []string{"a"}, name: "sort by a series", help: "sort by fields or series: best.val/loss, -cost; a series gets a column", at: atRuns, do: (*Model).askRunOrder},
		{keys: []string{"*"}, name: "star", help: "give a run a star, or take it away", at: atRuns, foot: 6, can: (*Model).cannotRemark, do: (*Model).starRun},
		{keys: []string{"n"}, name: "note", help: "write a note to a run; an empty one removes it", at: atRuns, foot: 6, can: (*Model).cannotRemark, do: (*Model).askNote},
		{keys: []string{"X"}, name: "remove", help: "remove the marked runs, or the picked one, with logs, results and curves; asks first", at: atRuns, foot: 7, acts: true,
			can: (*Model).noPickedRun, do: (*Model).askRemove},
		{keys: []string{"r"}, name: "read again", help: "read the runs again, or what is compared of them", at: atRuns | atCompare, do: (*Model).readAgain},
		{keys: []string{"d"}, name: "differences", help: "all that differs between the runs, or their charts again", at: atCompare, foot: 2, can: (*Model).noComparison, do: (*Model).toggleFacts},
	}
}

// mostOverlaid runs lie over each other: each has a digit in the charts.
const mostOverlaid = 9

func (m *Model) showRuns() tea.Cmd {
	m.goTo(atRuns)
	return m.readRuns()
}

func (m *Model) noPickedRun() string {
	if m.runs.pick() == nil {
		return "no run is picked"
	}
	return ""
}

func (m *Model) noRunRows() string {
	if len(m.runs.rows) == 0 {
		return "there are no runs"
	}
	return ""
}

func (m *Model) noMarks() string {
	if len(m.runs.marked) == 0 {
		return "no run is marked"
	}
	return ""
}

func (m *Model) clearMarks() tea.Cmd {
	m.runs.marked = nil
	return nil
}

// markRun marks the picked run and goes on to the next, as file managers do.
func (m *Model) markRun() tea.Cmd {
	v := &m.runs
	id := v.pick().ID
	if i := slices.Index(v.marked, id); i >= 0 {
		v.marked = slices.Delete(v.marked, i, i+1)
	} else if len(v.marked) >= mostOverlaid {
		return m.say("info", fmt.Sprintf("%d are marked already; v compares them, space on one of them takes its mark away", mostOverlaid))
	} else {
		v.marked = append(v.marked, id)
	}
	v.move(1)
	return nil
}

func (m *Model) cannotCompareRuns() string {
	if len(m.runs.marked) < 2 {
		return "mark two or more runs with space first"
	}
	return ""
}

func (m *Model) sortRuns() tea.Cmd {
	v := &m.runs
	v.sort, v.reverse = (v.sort+1)%(len(v.columns())+1), false
	v.arrange()
	v.picked = 0
	return nil
}

func (m *Model) reverseRuns() tea.Cmd {
	v := &m.runs
	v.reverse = !v.reverse
	v.arrange()
	v.picked = 0
	return nil
}

// askRunFilter asks for conditions. The workbench judges them when they are
// whole: what is half written holds for nothing.
func (m *Model) askRunFilter() tea.Cmd {
	m.ask = &prompt{label: "runs with", line: line.New(m.runs.filter), done: func(m *Model, text string) tea.Cmd {
		m.runs.filter, m.runs.picked = text, 0
		return m.readRuns()
	}}
	return nil
}

func (m *Model) askRunOrder() tea.Cmd {
	m.ask = &prompt{label: "sort by", line: line.New(m.runs.by), done: func(m *Model, text string) tea.Cmd {
		m.runs.by, m.runs.sort, m.runs.reverse, m.runs.picked = text, 0, false, 0
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
	id, star := m.runs.pick().ID, !m.runs.pick().Starred
	said := "no star any more: " + text.Word(id)
	if star {
		said = "★ " + text.Word(id)
	}
	return m.task("write the star", func() (string, string, error) { return said, "", m.bench.SetStar(id, star) })
}

func (m *Model) askNote() tea.Cmd {
	id, was := m.runs.pick().ID, text.Word(m.runs.pick().Note)
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
	ids := slices.Clone(m.runs.marked)
	if len(ids) == 0 {
		ids = []string{m.runs.pick().ID}
	}
	sel := workbench.RunSelection{Runs: ids}
	return m.question(confirmation{
		title: "Remove " + text.Plural(len(ids), "run") + "?", verb: "Remove",
		read: func(context.Context) (event.Question, error) {
			plan, err := m.bench.PlanCleanup(sel)
			return plan.Question(), err
		},
		do: func(m *Model) tea.Cmd {
			m.runs.marked = nil
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
		return m.compareThese(m.comp.runs)
	}
	return m.readRuns()
}

// readRuns asks for the table of runs. What is there stays until it comes.
func (m *Model) readRuns() tea.Cmd {
	v := &m.runs
	v.gen++
	v.busy, v.since = true, m.now
	gen, bench, query := v.gen, m.bench, history.Query{Filter: v.filter, Sort: v.by}
	return func() tea.Msg {
		table, err := bench.RunTable(query)
		return tabled{gen, table, err}
	}
}

// runsAgain reads the table again where it is looked at: runs go on.
func (m *Model) runsAgain() tea.Cmd {
	if m.here() != atRuns || m.runs.busy {
		return nil
	}
	return m.readRuns()
}

func (m *Model) takeRuns(msg tabled) tea.Cmd {
	v := &m.runs
	if msg.gen != v.gen {
		return nil
	}
	v.busy = false
	if msg.err != nil {
		f := faultOf("read the runs", msg.err)
		v.fault = &f
		return nil
	}
	v.set(msg.table)
	return nil
}

// clickRun picks a row; a second click opens it.
func (m *Model) clickRun(y int) tea.Cmd {
	v := &m.runs
	top, n := m.runsRoom(m.bodyWidth(), m.bodyHeight())
	row := y - top + v.top
	if y < top || y >= top+n || row >= len(v.rows) {
		return nil
	}
	if row == v.picked {
		return m.carryOut(m.find("enter"))
	}
	v.picked = row
	return nil
}
