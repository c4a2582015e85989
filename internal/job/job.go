// Package job is what a run is to whoever watches it, whatever started it and
// wherever it goes on: replicas with logs, statuses and an end. Those who watch
// (workbench/follow) and those who run jobs (cloud) both read it, and it knows
// neither.
package job

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Replica is a part of a run that one machine, container or host carries: the
// ranks on a node, a pod, a host of a SageMaker job. Its methods may be called
// from several goroutines. What it can do besides is found by assertion: see
// Execer and the other capabilities.
type Replica interface {
	// FollowLog hands over a log from a cursor on, as it grows, in order: no
	// byte is lost and none comes twice, also when the connection is lost and
	// comes back. It ends with ctx, with the first error of sink, or with one
	// that trying again can't mend. It may return nil once the run is over and
	// all of the log was handed over.
	FollowLog(ctx context.Context, log string, from Cursor, sink func(Chunk) error) error
	// WatchStatus tells what becomes known of the replica, from its beginning
	// on, in order and the same each time: a watch that begins again tells the
	// verdict anew from it. It returns nil behind Ended, and an *UnrecordedError
	// when the replica is over and nothing says how. looked gets what each look
	// beside that has shown; it may be called from another goroutine than sink.
	// A backend that only answers questions asks them here, and makes statuses
	// of the answers; one whose job waits in a queue tells Started when it does
	// no more.
	WatchStatus(ctx context.Context, sink func(Status) error, looked func(State)) error
	// State looks at the replica once and changes nothing. A look that fails
	// says nothing about it.
	State(ctx context.Context) (State, error)
	// HasAll reports, for a replica that is over, whether nothing of its logs
	// lies behind cursors. A service that shows logs late has to allow for that
	// here: what comes after HasAll is not read any more.
	HasAll(ctx context.Context, logs map[string]Cursor) (bool, error)
	// Stop ends what the replica runs: gently, and after grace by force. why is
	// kept where another dlwb finds it among the statuses. It returns how many
	// processes could not be ended; it may be called again, also when nothing
	// runs any more.
	Stop(ctx context.Context, grace time.Duration, why string) (left int, err error)
	// Reach tells whether the replica can be reached: at once, and with each
	// change, until ctx ends.
	Reach(ctx context.Context, news func(connected bool, why string))
}

// Cursor is a place in a log, in its backend's own words: the number of bytes
// before it, a token, a moment and how many lines of it were read. Only the
// replica that gave it reads it. Empty is the beginning of the log. It is stored
// beside the log and outlives the process, so it must hold for as long as the
// replica can be asked.
type Cursor string

// Chunk is a piece of a log.
type Chunk struct {
	From Cursor // where it begins: Next of the one before it
	Next Cursor // where the next one begins
	// Data is what was printed; the sink must not keep it.
	Data []byte
	// Missing is how many bytes are gone for ever between From and Next; Data
	// is empty then.
	Missing int64
}

// Kind is what a status tells.
type Kind string

// The kinds of statuses. Only Ended is needed from every replica.
const (
	Started     Kind = "started"      // the run has begun here
	RankStarted Kind = "rank-started" // PID
	RankEnded   Kind = "rank-ended"   // Code, Signal
	// RankFailed: the rank ended with Code and Signal, and its launcher may start it
	// again. Where it does not, a RankEnded of the same follows, maybe much later.
	RankFailed  Kind = "rank-failed"
	RankStarved Kind = "rank-starved" // the kernel ended Code processes of the rank for lack of memory
	RankTold    Kind = "rank-told"    // what had started the rank told it to end, by Signal
	// RankFree: when the rank failed, Code bytes were free for what it writes, which is little.
	RankFree Kind = "rank-free"
	// RankGone: the rank had ended when the run was told to stop here; how is told apart,
	// before this or behind it.
	RankGone Kind = "rank-gone"
	Left     Kind = "left"     // Why names what the ranks, which ended well, left running: it was ended
	Stopping Kind = "stopping" // the run is ended here; Why
	Ended    Kind = "ended"    // nothing of the run is alive; Code
	// Waiting: what had begun here was ended and is in the queue again; Why. What
	// comes next is a Started.
	Waiting Kind = "waiting"
)

// The beginnings of reasons (Stopping) by which somebody else than dlwb ends a
// run: a machine that goes away, a service, another person. They decide the
// verdict. Behind each comes what happened, as a sentence.
const (
	Taken     = "notice: "    // the machine is taken away by whoever lent it
	Lost      = "lost: "      // the job lost machines, or could not begin on them
	LeaseOver = "lease: "     // the lease of the machine is over
	TimeLimit = "limit: "     // the job has had its time
	NoMemory  = "memory: "    // it used more memory than it may
	Cancelled = "cancelled: " // somebody ended it by the service's own means
	Failed    = "failed: "    // the service says that it failed, and why; no rank does
)

// RunOver begins why the nodes of a run are stopped on whose first node all has ended
// well, and that has ranks which wait for work for ever: it fails nothing.
const RunOver = "over: "

// Status is one thing that became known of a replica.
type Status struct {
	Time time.Time // by the replica's clock
	// Uptime is how long its machine has been up, which runs on evenly whatever
	// becomes of the clock; 0 where nobody can tell.
	Uptime time.Duration
	Kind   Kind
	Rank   int // -1 for what is about the whole replica
	PID    int
	Code   int    // 128+n after signal n
	Signal string // "KILL"; empty when it exited by itself
	Why    string
}

// Phase is what a replica does.
type Phase string

// The phases of a replica.
const (
	Absent  Phase = "absent" // it was never begun
	Running Phase = "running"
	Over    Phase = "ended"   // its end is on record, and nothing of it is alive
	Unknown Phase = "unknown" // nobody looks after it, and there is no record of an end
)

// State is what one look at a replica has shown. What a backend can't see stays
// zero.
type State struct {
	Phase Phase
	Why   string // what is known about one that is absent or unknown
	Begun bool   // its record says that it began
	Ranks map[int]Exit
	// Clock is the time of day there; zero: it was not asked for, and nothing
	// is known of Free either.
	Clock  time.Time
	Uptime time.Duration
	Free   int64 // bytes on the disk that the run writes to
	// Rebooted is set where the machine was booted since the run began.
	Rebooted bool
	// Full says which log could not be written at some time, and why; empty:
	// all could. FullAt is the uptime when that began.
	Full   string
	FullAt time.Duration
}

// Exit is how a rank ended.
type Exit struct {
	Code   int
	Signal string
	End    time.Time
}

// UnrecordedError says that a replica is over and that nothing says how it
// ended.
type UnrecordedError struct {
	State State
	Err   error // in the backend's words: what is told where State.Why says nothing
}

func (e *UnrecordedError) Error() string { return e.Err.Error() }

// Unwrap gives the backend's error.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// Offset is the cursor of logs that are read by the number of bytes before it.
// These need no file beside the stored log, whose size says the same; the cursor
// of a log that has none there is its Offset.
func Offset(bytes int64) Cursor {
	if bytes == 0 {
		return ""
	}
	return Cursor(strconv.FormatInt(bytes, 10))
}

// Bytes reads a cursor that Offset made.
func (c Cursor) Bytes() (int64, error) {
	if c == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no number of bytes", string(c))
	}
	return n, nil
}
