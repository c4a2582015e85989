package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

// Slot is room for one trial: nodes, and where several share a node its GPUs.
type Slot struct {
	Nodes []int `json:"nodes"`
	GPUs  []int `json:"gpus,omitempty"` // of the one node; nil: all that it has
}

// Label is what the record of a run says of its trial.
type Label struct {
	Sweep    string             `json:"sweep"`
	Trial    int                `json:"trial"`
	Settings []profiles.Setting `json:"settings"`
	Slot     Slot               `json:"slot"`
	// Budget is what it may cost of the sweep's budget, in US dollars, where each trial is
	// paid for by itself; 0: no budget bounds it.
	Budget float64 `json:"budget,omitempty"`
}

// Past is what is on record of a run of a trial.
type Past struct {
	Label   Label
	Started bool            // every rank was launched
	Ended   *event.RunEnded // nil: it goes on, or nobody knows
	Began   time.Time       // when it was put on record
	Former  bool            // in another life of the cluster
	Billed  *float64        // what it has cost in the end, in US dollars; nil: not known
}

// Owner is what a sweep needs of whoever has the nodes.
type Owner struct {
	// Past is what is on record under the id of a run; false: nothing.
	Past func(run string) (Past, bool, error)
	// Launch starts a trial and returns when it goes on without this process. It is
	// called for one at a time. A *HaltError and a *cloud.Unpaid end the sweep, with a
	// *cloud.NoRoom the trial waits for room, any other error ends it; one that is on
	// record then and has not ended is watched as if it was started.
	Launch func(ctx context.Context, run string, label Label, p *profiles.Profile) error
	// Watch follows a run that is on record to its end, and brings its results home.
	Watch func(ctx context.Context, run string) (event.RunEnded, error)
	// Stop ends a run.
	Stop func(ctx context.Context, run, why string) error
	// Billed is what a run that has ended has cost, in US dollars, once that is final. Nil:
	// the trials are not paid for one by one.
	Billed func(ctx context.Context, run string) (usd float64, final bool)
	// Values are those of a metric so far.
	Values func(run, metric string) []float64
	// Changed are the files of the code that have changed since a moment. Nil: nobody
	// knows.
	Changed func(since time.Time) []string
	// Publish tells what a sweep came to.
	Publish func(event.Body) error
}

// EarlyWord begins the reason of a trial that is ended early.
const EarlyWord = "ended early: "

// Sweep is one that is being run.
type Sweep struct {
	owner   Owner
	profile *profiles.Profile
	id      string
	trials  []Trial
	slots   []Slot

	launches launches
	purse    *purse
	failed   int
	waited   bool // for room, and that was told

	mu      sync.Mutex
	rows    []event.TrialRow
	early   map[int]bool // asked to end
	running map[int]string
	told    event.SweepChanged
}

// New makes a sweep of a profile on some slots.
func New(owner Owner, p *profiles.Profile, id string, slots []Slot) *Sweep {
	s := &Sweep{owner: owner, profile: p, id: id, trials: Trials(p.Sweep), slots: slots, purse: newPurse(), launches: launches{one: make(chan struct{}, 1)}, early: map[int]bool{}, running: map[int]string{}}
	for _, t := range s.trials {
		s.rows = append(s.rows, event.TrialRow{Trial: t.Number, State: event.TrialWaiting, Settings: SettingsText(t.Settings)})
	}
	return s
}

// begun is a trial of which something is on record.
type begun struct {
	trial Trial
	run   string
	past  Past
}

// find looks what is on record of a trial: the newest launch of it. again is the id
// for another one, where nothing of the former ever ran.
func (s *Sweep) find(t Trial) (b begun, found bool, next string, err error) {
	for try := 0; ; try++ {
		run := RunID(s.profile.Name, s.id, t.Number, try)
		past, is, err := s.owner.Past(run)
		if err != nil || !is {
			return b, found, run, err
		}
		s.purse.note(run, past)
		b, found = begun{t, run, past}, past.Started || past.Ended == nil
	}
}

// Going reports whether a trial may be going on, from an earlier process.
func (s *Sweep) Going() (bool, error) {
	for _, t := range s.trials {
		b, found, _, err := s.find(t)
		if err != nil || found && b.past.Ended == nil {
			return true, err
		}
	}
	return false, nil
}

// Run runs all trials that are left, several at once. When ctx ends, those that are
// running go on, and another Run goes on with them.
func (s *Sweep) Run(ctx context.Context) (event.SweepChanged, error) {
	waiting, left, err := s.takeStock()
	if err != nil {
		return s.board(), err
	}
	if err := errors.Join(s.tellChanged(left), s.tell()); err != nil {
		return s.board(), err
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	var judge sync.WaitGroup
	judge.Go(func() { s.judge(looking) })
	err = s.work(ctx, waiting, left)
	stop()
	judge.Wait()
	if ctx.Err() == nil {
		s.settle(ctx)
	}
	return s.board(), errors.Join(err, s.tell())
}

// queued is a trial that has not begun, with the id of its run.
type queued struct {
	trial Trial
	run   string
}

// takeStock sorts the trials: those that wait, and those that an earlier process
// began and did not see to their end.
func (s *Sweep) takeStock() (waiting []queued, left []begun, err error) {
	for i, t := range s.trials {
		b, found, next, err := s.find(t)
		switch {
		case err != nil:
			return nil, nil, err
		case !found:
			waiting = append(waiting, queued{t, next})
		default:
			s.rows[i].Run, s.rows[i].State = b.run, event.TrialRunning
			left = append(left, b)
		}
	}
	s.purse.wait(len(waiting))
	return waiting, left, nil
}

// tellChanged warns that trials which are on record had other code than the next ones:
// their values are compared all the same, as nobody but the user knows whether they can be.
func (s *Sweep) tellChanged(left []begun) error {
	if s.owner.Changed == nil {
		return nil
	}
	var before []int
	var files []string
	for _, b := range left {
		if changed := s.owner.Changed(b.past.Began); len(changed) > 0 {
			before = append(before, b.trial.Number)
			if len(changed) > len(files) {
				files = changed
			}
		}
	}
	if len(before) == 0 {
		return nil
	}
	const named = 3
	what := strings.Join(files[:min(named, len(files))], ", ")
	if more := len(files) - named; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return s.owner.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("the code has changed since these trials began, and their values are compared with those of the others all the same: %s (%s)",
		units.Numbers(before), what), Next: "dlwb sweep --again runs all trials with the code as it is now"})
}

// done is how a trial went.
type done struct {
	trial Trial
	run   string
	ended event.RunEnded
	again bool  // nothing of it ran: it waits once more
	full  error // why there was no room for it; nil: there was
	err   error
}

// work gives every free slot a trial until none is left.
func (s *Sweep) work(ctx context.Context, waiting []queued, left []begun) error {
	results, taken := make(chan done), room{}
	going := len(left)
	for _, b := range left {
		if b.past.Ended == nil { // else what is left of it needs no room
			taken[b.trial.Number] = b.past.Label.Slot
		}
		go func() { results <- s.resume(ctx, b) }()
	}
	var fault error
	for {
		for len(waiting) > 0 && fault == nil && ctx.Err() == nil && s.launches.fullness() == nil {
			slot, free := taken.free(s.slots, s.profile.Sweep.Parallel)
			if !free {
				break
			}
			q := waiting[0]
			waiting, taken[q.trial.Number] = waiting[1:], slot
			going++
			go func() { results <- s.one(ctx, slot, q) }()
		}
		if going == 0 {
			if more, err := s.launches.patience(ctx); more && fault == nil {
				continue
			} else if len(waiting) > 0 {
				fault = errors.Join(fault, err)
			}
			return errors.Join(fault, ctx.Err())
		}
		select {
		case d := <-results:
			going--
			delete(taken, d.trial.Number)
			if d.again {
				waiting = append([]queued{{d.trial, d.run}}, waiting...)
			}
			if d.full == nil {
				s.launches.retry(true)
			} else {
				s.tellFull(d.full)
			}
			fault = s.faultAfter(d, fault)
		case <-s.launches.later():
			s.launches.retry(false)
		}
	}
}

// tellFull tells once that trials wait for room.
func (s *Sweep) tellFull(why error) {
	if s.waited {
		return
	}
	s.waited = true
	f := event.FaultOf(why)
	_ = s.owner.Publish(event.Noticed{Level: "warning", Text: "there is no room for another trial now: " + f.Why + "; it is tried again when one has ended, and now and then", Next: f.Next})
}

// faultAfter is what keeps a sweep from going on, after a trial is done.
func (s *Sweep) faultAfter(d done, fault error) error {
	for _, err := range []error{d.err, s.launches.over()} {
		if err != nil && !errors.Is(fault, err) {
			fault = errors.Join(fault, err)
		}
	}
	if d.err == nil && !d.again && d.ended.ExitCode != 0 && d.ended.Verdict != event.Stopped {
		s.failed++ // what was stopped has not failed by itself
	}
	if b := s.board(); fault == nil && s.failed >= hopelessAt && b.Done+b.Early == 0 {
		return &event.Fault{What: "go on with the sweep", Node: -1, Why: fmt.Sprintf("the first %d trials failed, and none has succeeded", hopelessAt),
			Next: "dlwb logs " + d.run + " says why; dlwb sweep goes on after that is mended, --again begins anew"}
	}
	return fault
}

// resume goes on with a trial of an earlier process.
func (s *Sweep) resume(ctx context.Context, b begun) done {
	d := done{trial: b.trial, run: b.run}
	s.begin(b.trial, b.run)
	d.ended, d.err = s.owner.Watch(ctx, b.run)
	if d.err != nil {
		s.drop(b.trial)
		return d
	}
	if past, _, err := s.owner.Past(b.run); err == nil && !past.Started && past.Ended != nil {
		s.waitAgain(&d)
		return d
	}
	s.end(b.trial, b.run, d.ended)
	return d
}

// waitAgain has a trial of which nothing ran wait once more.
func (s *Sweep) waitAgain(d *done) {
	s.purse.ended(d.run, true)
	_, _, d.run, d.err = s.find(d.trial)
	d.again = true
	s.set(d.trial, func(r *event.TrialRow) { r.State, r.Run = event.TrialWaiting, "" })
	s.drop(d.trial)
}

// launch launches a trial, with its part of what all of them may cost.
func (s *Sweep) launch(ctx context.Context, on Slot, q queued) error {
	label := Label{Sweep: s.id, Trial: q.trial.Number, Settings: q.trial.Settings, Slot: on}
	return s.launches.do(ctx, func() error {
		own := Of(s.profile, q.trial, s.id)
		if err := s.allot(ctx, q.run, &label, own); err != nil {
			return err
		}
		err := s.owner.Launch(ctx, q.run, label, own)
		if unpaid := new(cloud.Unpaid); errors.As(err, &unpaid) {
			return &HaltError{err}
		}
		return err
	})
}

// one runs a trial to its end.
func (s *Sweep) one(ctx context.Context, on Slot, q queued) done {
	d := done{trial: q.trial, run: q.run}
	err := s.launch(ctx, on, q)
	if halt := new(HaltError); errors.As(err, &halt) || err != nil && ctx.Err() != nil {
		d.err = err
		return d // it waits still
	}
	if full := new(cloud.NoRoom); errors.As(err, &full) && !s.mayGoOn(q.run) {
		s.waitAgain(&d)
		d.full = err
		return d
	}
	if err != nil && !s.mayGoOn(q.run) {
		d.ended = event.RunEnded{ExitCode: 1, Cause: "it could not be started: " + err.Error()}
		s.end(q.trial, q.run, d.ended)
		return d
	}
	s.begin(q.trial, q.run)
	if d.ended, d.err = s.owner.Watch(ctx, q.run); d.err != nil {
		s.drop(q.trial)
		return d
	}
	s.end(q.trial, q.run, d.ended)
	return d
}

// mayGoOn reports whether something of a trial whose launch failed may run all the
// same: what was started of it could not be stopped, so nobody has told its end. Its
// place is free once that is known.
func (s *Sweep) mayGoOn(run string) bool {
	past, is, err := s.owner.Past(run)
	return err != nil || is && past.Ended == nil
}

// hopelessAt is after how many failures at the start a sweep is given up: what fails
// every time is not the parameters' fault.
const hopelessAt = 3

// judgeEvery is how often the rule looks at the running trials.
const judgeEvery = 2 * time.Second

// judge ends trials early, and keeps the leaderboard up to date.
func (s *Sweep) judge(ctx context.Context) {
	for {
		select {
		case <-time.After(judgeEvery):
		case <-ctx.Done():
			return
		}
		_ = s.tell()
		for trial, why := range s.losers() {
			s.mu.Lock()
			run, asked := s.running[trial], s.early[trial]
			s.early[trial] = true
			s.mu.Unlock()
			if run == "" || asked {
				continue
			}
			if err := s.owner.Stop(ctx, run, EarlyWord+why); err != nil {
				s.mu.Lock()
				s.early[trial] = false // it is tried again
				s.mu.Unlock()
			}
		}
	}
}

// losers asks the rule of the profile.
func (s *Sweep) losers() map[int]string {
	sw := s.profile.Sweep
	if sw.Stop == "none" || sw.Stop == "" || sw.Metric == "" {
		return nil
	}
	s.mu.Lock()
	rows := append([]event.TrialRow{}, s.rows...)
	s.mu.Unlock()
	var courses []Course
	for _, r := range rows {
		if r.Run != "" && r.State != event.TrialFailed {
			courses = append(courses, Course{Trial: r.Trial, Values: s.owner.Values(r.Run, sw.Metric), Over: r.State != event.TrialRunning})
		}
	}
	return Losers(sw.Stop, sw.Mode, sw.Warmup, courses)
}
