package ui

import (
	"time"

	"github.com/dlwb/dlwb/ui/logview"
	"github.com/dlwb/dlwb/workbench/event"
)

// session is what is looked at: a live cluster, or a past run fed from its
// record. Its number keeps late news of an earlier one out.
type session struct {
	gen         int
	cluster     string
	past        bool
	seen        string // the run whose logs these are
	profilePath string

	st   *state
	feed Feed
	lost string // why there is no stream; empty while there is

	logs  map[int]*tail
	rank  int  // whose output is shown
	chose bool // a person picked that rank
	// followed is whether the log was followed before it was searched.
	followed bool
	view     *logview.View
	charts   chartView
	heat     heatView

	// follow moves from the steps to the training by itself, until a person
	// has chosen where to be.
	follow bool
	asked  time.Time // when a person asked for it: what a wait is counted from
}

// tail is the part of one rank's output that was read.
type tail struct {
	log     *logview.Log
	off     int64
	reading bool
}

func newSession(gen int, cluster string, now time.Time) *session {
	s := &session{gen: gen, cluster: cluster, st: newState(cluster),
		logs: map[int]*tail{}, follow: true, asked: now}
	s.show(0)
	return s
}

// now is the moment that the screen of a session shows: the present, or for
// something that is over the moment of its last news.
func (s *session) now(now time.Time) time.Time {
	if s.past && !s.st.lastAt.IsZero() {
		return s.st.lastAt
	}
	return now
}

// watcher is another process that watches the cluster that is shown, by the
// newest look at what exists; 0 for none. This process is no other one.
func (m *Model) watcher() int {
	if m.ses.over() || m.ses.st.ended != nil {
		return 0
	}
	for _, c := range m.home.all.Clusters {
		if c.Name == m.ses.cluster && c.Owner != m.opts.PID {
			return c.Owner
		}
	}
	return 0
}

// over reports whether what is shown does not change any more: a past run, or
// a cluster that is gone or stopped.
func (s *session) over() bool {
	phase := s.st.phase()
	return s.past || phase == event.PhaseGone || phase == event.PhaseStopped
}

// profile is the path of the profile it came from; empty when not known.
func (s *session) profile() string {
	if s.profilePath == "" && s.st.plan != nil {
		return s.st.plan.Path
	}
	return s.profilePath
}

// apply folds a batch of events. A new run brings new logs.
func (s *session) apply(events []event.Event) {
	run := s.st.run
	if s.past {
		run = s.seen
	}
	for _, e := range events {
		s.st.apply(e)
	}
	s.seen = s.st.run
	if s.st.run != run {
		s.charts.windows, s.charts.cursor = [axes]extent{}, cursor{}
		s.logs = map[int]*tail{}
		s.show(s.rank)
	}
	s.showFault()
}

// showFault turns to the output of the rank that was at fault, unless a person
// has picked one.
func (s *session) showFault() {
	if e := s.st.ended; e != nil && e.Rank >= 0 && e.Verdict != event.Succeeded && !s.chose && s.rank != e.Rank {
		s.show(e.Rank)
	}
}

// tailOf is the output of a rank as far as it was read.
func (s *session) tailOf(rank int) *tail {
	t, ok := s.logs[rank]
	if !ok {
		t = &tail{log: logview.New(logview.Limits{})}
		s.logs[rank] = t
	}
	return t
}

// show picks whose output is shown.
func (s *session) show(rank int) {
	wrapped := s.view != nil && s.view.Wrap()
	s.rank, s.view = rank, logview.NewView(s.tailOf(rank).log)
	s.view.SetWrap(wrapped)
}

// behind reports whether more of the shown rank's log is stored than was read
// and nobody is reading it.
func (s *session) behind(rank int) bool {
	t := s.tailOf(rank)
	return !t.reading && s.st.run != "" && t.off < s.st.logSizes[rank]
}
