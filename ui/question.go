package ui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// confirmation is a question that is asked before something is destroyed: what asks
// it, and what is done when it is agreed to.
type confirmation struct {
	title string // until the question has come
	read  func(ctx context.Context) (event.Question, error)
	verb  string // the answer that agrees
	do    func(m *Model) tea.Cmd
}

// question opens the dialog at once, with Cancel alone, and fills it when what
// would be lost is known.
func (m *Model) question(a confirmation) tea.Cmd {
	m.gens++
	gen := m.gens
	m.openDialog(&choice{
		title:   a.title,
		body:    func(m *Model, w int) []string { return []string{m.spinner() + " looking at what would be lost"} },
		answers: []answer{{name: "Cancel"}, {name: a.verb, do: a.do}},
		opened:  m.clock.Now(), swallow: true, gen: gen, waits: true,
	})
	return func() tea.Msg {
		q, err := a.read(m.ctx)
		return questioned{gen, q, err}
	}
}

// takeQuestion fills the dialog that waits for it, if it is still open. What
// was typed before it was there to read is no answer.
func (m *Model) takeQuestion(msg questioned) {
	for _, d := range m.dialogs {
		c, ok := d.(*choice)
		if !ok || c.gen != msg.gen {
			continue
		}
		c.opened, c.focus, c.waits, c.name = m.clock.Now(), 0, false, text.Word(msg.q.Name)
		if msg.err != nil {
			f := session.FaultOf("look at what would be lost", msg.err)
			c.answers, c.name = []answer{{name: "Close"}}, ""
			c.body = func(m *Model, w int) []string { return sign.Fault(m.looks(), f, w) }
			return
		}
		c.title = text.Word(msg.q.Title)
		rows := make([][2]string, len(msg.q.Facts))
		for i, f := range msg.q.Facts {
			rows[i] = [2]string{text.Word(f.Label), text.Word(f.Text)}
		}
		c.body = func(m *Model, w int) []string { return m.looks().Labelled(w, rows...) }
	}
}

// askTeardown asks once: what goes, what is not saved, what it costs to keep.
func (m *Model) askTeardown() tea.Cmd {
	cluster := ""
	if m.here() == atHome {
		cluster = m.home.Cluster().Name
	} else {
		cluster = m.ses.Cluster
	}
	return m.question(confirmation{
		title: "Tear down " + text.Word(cluster) + "?", verb: "Tear down",
		read: func(ctx context.Context) (event.Question, error) { return m.bench.AskDown(ctx, cluster) },
		do:   func(m *Model) tea.Cmd { return m.tearDown(cluster) },
	})
}

// askStop asks before a run is ended.
func (m *Model) askStop() tea.Cmd {
	run := m.ses.State.Run
	return m.question(confirmation{
		title: "Stop run " + text.Word(run) + "?", verb: "Stop the run",
		read: func(ctx context.Context) (event.Question, error) { return m.bench.AskStop(ctx, run) },
		do: func(m *Model) tea.Cmd {
			return m.task("stop "+text.Word(run), func() (string, string, error) {
				return text.Word(run) + " was stopped", "", m.bench.Stop(m.ctx, run)
			})
		},
	})
}

// askStopMachines says what is kept when machines stop, and what it costs.
func (m *Model) askStopMachines() tea.Cmd {
	cluster := m.ses.Cluster
	return m.question(confirmation{
		title: "Stop the machines of " + text.Word(cluster) + "?", verb: "Stop the machines",
		read: func(ctx context.Context) (event.Question, error) { return m.bench.AskStopMachines(ctx, cluster) },
		do: func(m *Model) tea.Cmd {
			return m.task("stop the machines of "+text.Word(cluster), func() (string, string, error) {
				return "the machines of " + text.Word(cluster) + " are stopped", "", m.bench.StopMachines(m.ctx, cluster)
			})
		},
	})
}
