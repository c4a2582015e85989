package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// lookEvery is how often a watched run is looked at besides its status file,
// in which nothing appears when the disk is full or supervise was killed.
const lookEvery = 10 * time.Second

// statusMost bounds a line of a status file: a longer one is none of ours.
const statusMost = 64 << 10

// LostRunError says that a run is not supervised any more and that its end is
// not on record.
type LostRunError struct {
	Name, RunID string
	State       RunState
}

func (e *LostRunError) Error() string {
	text := fmt.Sprintf("watch run %s on %s: %s", e.RunID, e.Name, e.State.Why)
	if e.State.Free < 1<<20 {
		text += " (the disk is full)"
	}
	return text + ". Its logs are there; stop the run to end what is left of it"
}

// WatchRun hands over the lines of a run's status file as they come, from the
// given offset on; off is where to go on behind a line. A run that is not there
// yet is waited for. It returns nil behind the line that says that the run has
// ended, a *LostRunError when the run is gone without a record of its end, and
// else as Follow does.
func (n *Node) WatchRun(ctx context.Context, runID string, from int64, sink func(off int64, s Status) error) error {
	return n.WatchRunAndLook(ctx, runID, from, sink, nil)
}

// WatchRunAndLook is WatchRun that hands over what each look at the run has
// shown, too: one at once, and then one every ten seconds. looked is called from
// another goroutine than sink.
func (n *Node) WatchRunAndLook(ctx context.Context, runID string, from int64,
	sink func(off int64, s Status) error, looked func(RunState)) error {
	if err := checkRunID(runID); err != nil {
		return n.wrap("watch run "+runID, err)
	}
	w := &watcher{n: n, runID: runID, off: from, sink: sink, looked: looked, lookEvery: lookEvery}
	w.read.Store(from)
	return w.watch(ctx)
}

// errRunEnded ends a Follow.
var errRunEnded = errors.New("the run has ended")

type watcher struct {
	n         *Node
	runID     string
	off       int64 // behind the last whole line
	part      []byte
	torn      bool         // the line that comes is longer than any of ours
	read      atomic.Int64 // how much of the file has come
	told      map[int]bool // ranks whose end it told
	sink      func(off int64, s Status) error
	looked    func(RunState)
	lookEvery time.Duration
}

func (w *watcher) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		w.lookOn(ctx, cancel)
	}()
	err := w.n.Follow(ctx, ".dlwb/runs/"+w.runID+"/status", w.off, w.take)
	cancel(nil)
	<-looked
	var lost *LostRunError
	switch cause := context.Cause(ctx); {
	case errors.Is(err, errRunEnded):
		return nil
	case errors.As(cause, &lost):
		return w.close(lost)
	case isBroken(cause):
		return cause
	}
	return err
}

// take cuts what was appended into lines.
func (w *watcher) take(_ int64, p []byte) error {
	defer w.read.Add(int64(len(p)))
	w.part = append(w.part, p...)
	for {
		end := bytes.IndexByte(w.part, '\n')
		if end < 0 {
			if len(w.part) > statusMost {
				w.off += int64(len(w.part))
				w.part, w.torn = nil, true
			}
			return nil
		}
		status, ok := ParseStatus(string(w.part[:end]))
		w.part = w.part[end+1:]
		w.off += int64(end) + 1
		whole := !w.torn
		w.torn = false
		if !ok || !whole {
			continue
		}
		if err := w.tell(status); err != nil {
			return err
		}
		if status.Kind == Ended {
			return errRunEnded
		}
	}
}

func (w *watcher) tell(s Status) error {
	if s.Kind == RankEnded {
		if w.told == nil {
			w.told = map[int]bool{}
		}
		w.told[s.Rank] = true
	}
	return w.sink(w.off, s)
}

// agreeing are the looks in a row that have to show a run as over, and lastLook the one after
// which no line is waited for any more: two minutes.
const agreeing, lastLook = 2, 12

// over reports whether so many looks in a row that show the run in this state end the
// watch. A line that is on its way may come late, where the machine or the way is busy:
// all that the file then had must have come. A node may say that it has more than it
// ever sends.
func (w *watcher) over(state RunState, looks int) bool {
	return (state.State == RunEnded || state.State == RunUnknown) && looks >= agreeing && (w.read.Load() >= state.Offset || looks >= lastLook)
}

// lookOn looks at the run now and then. Two looks in a row must agree before
// the watch is ended: the line may be about to be written.
func (w *watcher) lookOn(ctx context.Context, end context.CancelCauseFunc) {
	before, looks := "", 0
	for first := true; ; first = false {
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-time.After(w.lookEvery):
			}
		}
		state, err := w.n.RunState(ctx, w.runID)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			if isBroken(err) {
				end(err)
				return
			}
			continue
		}
		if w.looked != nil {
			w.looked(state)
		}
		if state.State != before {
			before, looks = state.State, 0
		}
		if looks++; w.over(state, looks) {
			end(&LostRunError{w.n.target.Name, w.runID, state})
			return
		}
	}
}

// close ends a watch whose status file does not tell the end. The records may:
// their room was taken beforehand, so that a full disk can't keep them out.
func (w *watcher) close(lost *LostRunError) error {
	exit := lost.State.Exit
	if exit == nil {
		return lost
	}
	// One that was killed, or told to end, says nothing where a stop may be among what is
	// missing; and so is recorded what nobody has seen.
	byOthers := []int{128 + 9, 128 + 15}
	for _, rank := range slices.Sorted(maps.Keys(lost.State.Ranks)) {
		if e := lost.State.Ranks[rank]; !w.told[rank] && !slices.Contains(byOthers, e.Code) {
			if err := w.tell(Status{Time: e.End, Uptime: e.EndUp, Kind: RankEnded, Rank: rank, Code: e.Code, Signal: e.Signal}); err != nil {
				return err
			}
		}
	}
	return w.sink(w.off, Status{Time: exit.End, Kind: Ended, Rank: -1, Code: exit.Code, Signal: exit.Signal})
}
