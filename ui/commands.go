package ui

import (
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/session"
)

// tick wakes the model up again. It is faster while something spins.
func (m *Model) tick() tea.Cmd {
	d := second
	if m.spinning() {
		d = spin
	}
	return m.clock.Tick(d, func(t time.Time) tea.Msg { return ticked{t} })
}

func (m *Model) start(path string) tea.Cmd {
	return func() tea.Msg {
		c, err := m.bench.Start(m.ctx, path)
		return started{path, c, err}
	}
}

// subscribe opens the stream of a session. A cluster that was just started is
// watched already; any other is attached to first.
func (m *Model) subscribe(s *session.Session, attach bool) tea.Cmd {
	gen, cluster := s.Gen, s.Cluster
	return func() tea.Msg {
		if attach {
			if err := m.bench.Attach(m.ctx, cluster); err != nil {
				return subscribed{gen: gen, err: err}
			}
		}
		return subscribed{gen: gen, feed: m.open(cluster)}
	}
}

func (m *Model) open(cluster string) Feed {
	if m.opts.Feed != nil {
		return m.opts.Feed(cluster)
	}
	return m.bench.Subscribe(cluster)
}

// readFeed waits for the next batch of a session.
func (m *Model) readFeed(s *session.Session) tea.Cmd {
	gen, feed := s.Gen, m.feed
	return func() tea.Msg {
		events := feed.Next(m.ctx)
		return gathered{gen: gen, events: events, ended: events == nil}
	}
}

func (m *Model) feedLater(s *session.Session) tea.Cmd {
	gen := s.Gen
	return m.clock.Tick(frame, func(time.Time) tea.Msg { return feedDue{gen} })
}

// readRun takes the record of a past run.
func (m *Model) readRun(s *session.Session, run string) tea.Cmd {
	gen := s.Gen
	return func() tea.Msg {
		events, err := m.bench.RunEvents(m.ctx, run)
		return gathered{gen: gen, events: events, ended: true, err: err}
	}
}

// readLogs reads on in the shown rank's log, if there is more of it.
func (m *Model) readLogs() tea.Cmd {
	s := m.ses
	if s == nil || !s.Behind(s.Rank) {
		return nil
	}
	t := s.Output(s.Rank)
	t.Reading = true
	msg := logRead{gen: s.Gen, run: s.State.Run, rank: s.Rank, off: t.Off}
	return func() tea.Msg {
		p := make([]byte, logChunk)
		n, err := m.bench.ReadLog(msg.run, msg.rank, msg.off, p)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		msg.bytes, msg.behind, msg.err = p[:n], n == len(p), err
		return msg
	}
}

// task carries out a wish: text says what is being done, do does it and says
// what was done.
func (m *Model) task(text string, do func() (said, url string, err error)) tea.Cmd {
	m.tasks++
	id := m.tasks
	m.doing[id] = wish{text, m.clock.Now()}
	return func() tea.Msg {
		said, url, err := do()
		return taskDone{task: id, text: said, url: url, err: err}
	}
}

// say shows a short note for a while.
func (m *Model) say(level, text string) tea.Cmd {
	m.note.id++
	m.note = note{id: m.note.id, level: level, text: text}
	id := m.note.id
	return m.clock.Tick(noteStays, func(time.Time) tea.Msg { return pruned{id} })
}
