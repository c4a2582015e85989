// Package session folds events into what is shown of a cluster or a run: steps,
// nodes, curves, tunnels, money. It draws nothing, reads no clock and does no
// input or output.
package session

import (
	"time"

	"github.com/dlwb/dlwb/ui/logview"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Session is what is looked at: a live cluster, or a past run fed from its
// record. Its number keeps late news of an earlier one out.
type Session struct {
	Gen         int
	Cluster     string
	Past        bool
	seen        string // the run whose logs these are
	ProfilePath string

	State *State
	Lost  string // why there is no stream; empty while there is

	logs  map[int]*Output
	Rank  int  // whose output is shown
	Chose bool // a person picked that rank
	// Followed is whether the log was followed before it was searched.
	Followed bool
	View     *logview.View

	// Follow moves from the steps to the training by itself, until a person
	// has chosen where to be.
	Follow bool
	Asked  time.Time // when a person asked for it: what a wait is counted from
}

// Output is the part of one rank's output that was read.
type Output struct {
	Log     *logview.Log
	Off     int64 // how much of the stored log is in Log, in bytes
	Reading bool  // more of it is being read
}

// New looks at a cluster of which nothing is known yet; now is when a person
// asked for that.
func New(gen int, cluster string, now time.Time) *Session {
	s := &Session{Gen: gen, Cluster: cluster, State: NewState(cluster),
		logs: map[int]*Output{}, Follow: true, Asked: now}
	s.Show(0)
	return s
}

// Now is the moment that the screen of a session shows: the present, or for
// something that is over the moment of its last news.
func (s *Session) Now(now time.Time) time.Time {
	if s.Past && !s.State.LastAt.IsZero() {
		return s.State.LastAt
	}
	return now
}

// Over reports whether what is shown does not change any more: a past run, or
// a cluster that is gone or stopped.
func (s *Session) Over() bool {
	phase := s.State.Phase()
	return s.Past || phase == event.PhaseGone || phase == event.PhaseStopped
}

// Title is what is looked at, in a word; empty where nothing is.
func (s *Session) Title() string {
	switch {
	case s == nil:
		return ""
	case s.Past && s.State.Run != "":
		return text.Word(s.State.Run)
	case s.Cluster != "":
		return text.Word(s.Cluster)
	}
	return text.Word(s.ProfilePath)
}

// Profile is the path of the profile it came from; empty when not known.
func (s *Session) Profile() string {
	if s.ProfilePath == "" && s.State.plan != nil {
		return s.State.plan.Path
	}
	return s.ProfilePath
}

// Apply folds a batch of events. A new run brings new logs; anew says that there
// is one.
func (s *Session) Apply(events []event.Event) (anew bool) {
	run := s.State.Run
	if s.Past {
		run = s.seen
	}
	for _, e := range events {
		s.State.Apply(e)
	}
	s.seen = s.State.Run
	if anew = s.State.Run != run; anew {
		s.logs = map[int]*Output{}
		s.Show(s.Rank)
	}
	s.showFault()
	return anew
}

// showFault turns to the output of the rank that was at fault, unless a person
// has picked one.
func (s *Session) showFault() {
	if e := s.State.Ended; e != nil && e.Rank >= 0 && e.Verdict != event.Succeeded && !s.Chose && s.Rank != e.Rank {
		s.Show(e.Rank)
	}
}

// Output is the output of a rank as far as it was read.
func (s *Session) Output(rank int) *Output {
	t, ok := s.logs[rank]
	if !ok {
		t = &Output{Log: logview.New(logview.Limits{})}
		s.logs[rank] = t
	}
	return t
}

// Show picks whose output is shown.
func (s *Session) Show(rank int) {
	wrapped := s.View != nil && s.View.Wrap()
	s.Rank, s.View = rank, logview.NewView(s.Output(rank).Log)
	s.View.SetWrap(wrapped)
}

// Behind reports whether more of the shown rank's log is stored than was read
// and nobody is reading it.
func (s *Session) Behind(rank int) bool {
	t := s.Output(rank)
	return !t.Reading && s.State.Run != "" && t.Off < s.State.LogSizes[rank]
}

// Failed is what went wrong before anything ran; nil when nothing did.
func (s *Session) Failed() *event.Fault {
	if st := s.State.brokenStep(); st != nil && st.Fault != nil {
		return st.Fault
	}
	return s.State.Failed
}
