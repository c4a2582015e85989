package sweep

import (
	"reflect"
	"strings"

	"github.com/dlwb/dlwb/workbench/event"
)

// set changes the row of a trial.
func (s *Sweep) set(t Trial, change func(*event.TrialRow)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.rows[t.Number-1])
}

// begin notes that a trial runs.
func (s *Sweep) begin(t Trial, run string) {
	s.mu.Lock()
	s.rows[t.Number-1].Run, s.rows[t.Number-1].State = run, event.TrialRunning
	s.running[t.Number] = run
	s.mu.Unlock()
	_ = s.tell()
}

// drop forgets that a trial runs here.
func (s *Sweep) drop(t Trial) {
	s.mu.Lock()
	delete(s.running, t.Number)
	s.mu.Unlock()
}

// end notes how a trial went.
func (s *Sweep) end(t Trial, run string, ended event.RunEnded) {
	s.drop(t)
	s.purse.ended(run, false)
	s.set(t, func(r *event.TrialRow) { r.Run = run; over(r, ended) })
	_ = s.tell()
}

// over puts the end of a trial into its row.
func over(r *event.TrialRow, ended event.RunEnded) {
	r.Duration, r.State = ended.Duration, event.TrialDone
	_, early, is := strings.Cut(ended.Cause, EarlyWord)
	switch {
	case is:
		r.State, r.Why = event.TrialEarly, early
	case ended.ExitCode != 0:
		r.State, r.Why = event.TrialFailed, ended.Cause
	}
}

// Recorded is the leaderboard as it is on record, whoever runs the sweep.
func (s *Sweep) Recorded() (event.SweepChanged, error) {
	_, left, err := s.takeStock()
	for _, b := range left {
		if b.past.Ended != nil {
			s.set(b.trial, func(r *event.TrialRow) { over(r, *b.past.Ended) })
		}
	}
	return s.board(), err
}

// board is the leaderboard now.
func (s *Sweep) board() event.SweepChanged {
	s.mu.Lock()
	rows := append([]event.TrialRow{}, s.rows...)
	s.mu.Unlock()
	if metric := s.profile.Sweep.Metric; metric != "" {
		for i := range rows {
			if rows[i].Run == "" {
				continue
			}
			if values := s.owner.Values(rows[i].Run, metric); len(values) > 0 {
				rows[i].Value, rows[i].Values = finite(values[len(values)-1]), len(values)
			}
		}
	}
	return Board(s.profile.Sweep, s.id, rows)
}

// tell tells the leaderboard where it has changed.
func (s *Sweep) tell() error {
	b := s.board()
	s.mu.Lock()
	news := !reflect.DeepEqual(b, s.told)
	s.told = b
	s.mu.Unlock()
	if !news {
		return nil
	}
	return s.owner.Publish(b)
}
