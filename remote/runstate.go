package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// The kinds of lines in a status file.
const (
	Started     = "started"      // the run is supervised on the node
	RankStarted = "rank-started" // PID
	RankEnded   = "rank-ended"   // Code, Signal
	// RankFailed: the rank ended with Code and Signal, and its launcher may start it
	// again. Where it does not, a RankEnded of the same follows, maybe much later.
	RankFailed = "rank-failed"
	// RankTold: its launcher told the rank to end, by Signal.
	RankTold = "rank-told"
	// RankFree: when the rank failed, Code bytes were free for what it writes, which is little.
	RankFree = "rank-free"
	// RankGone: the rank had ended when its run was told to stop; how is told apart,
	// before this or behind it.
	RankGone = "rank-gone"
	Left     = "left"     // Why names what the ranks, which ended well, left running: it was ended
	PeerTold = "peer"     // Why says which peer, and whether it was reached
	Stopping = "stopping" // we end the run; Why
	Ended    = "ended"    // nothing of the run is alive; Code
	// RankStarved: the kernel says that it ended Code processes of the rank's
	// memory group, while the rank ran, for lack of memory.
	RankStarved = "rank-starved"
)

// Status is one line of a run's status file.
type Status struct {
	Time time.Time // by the node's clock
	// Uptime is the time since the node's boot, which runs on evenly whatever
	// becomes of its clock; 0 where the node can't tell it.
	Uptime time.Duration
	Kind   string
	Rank   int // -1 for what is about the whole run
	PID    int
	Code   int    // 128+n after signal n
	Signal string // "KILL"; empty when it exited by itself
	Why    string
}

// ParseStatus reads one line of a status file; ok is false for what is none,
// such as a line that a full disk has cut.
func ParseStatus(line string) (s Status, ok bool) {
	f := strings.Fields(line)
	if len(f) < 2 {
		return Status{}, false
	}
	at, up, err := parseStamp(f[0])
	if err != nil {
		return Status{}, false
	}
	s = Status{Time: at, Uptime: up, Rank: -1}
	what, args := f[1], f[2:]
	if what == "rank" && len(args) >= 2 {
		if s.Rank, err = strconv.Atoi(args[0]); err != nil || s.Rank < 0 {
			return Status{}, false
		}
		what, args = "rank-"+args[1], args[2:]
	}
	s.Kind = what
	switch {
	case what == Stopping, (what == PeerTold || what == Left) && len(args) > 0:
		s.Why = strings.Join(args, " ")
	case (what == Started || what == RankStarted) && len(args) == 1:
		s.PID, err = strconv.Atoi(args[0])
	case (what == Ended || what == RankStarved || what == RankFree) && len(args) == 1:
		s.Code, err = strconv.Atoi(args[0])
	case what == RankGone && len(args) == 0:
	case what == RankTold && len(args) == 1:
		s.Signal = args[0]
	case (what == RankEnded || what == RankFailed) && len(args) == 2:
		s.Code, err = strconv.Atoi(args[0])
		s.Signal = strings.TrimPrefix(args[1], "-")
	default:
		return Status{}, false
	}
	return s, err == nil
}

// parseStamp reads a moment of a node: Unix seconds, and behind a "+" the
// hundredths since its boot, where it can tell.
func parseStamp(text string) (at time.Time, up time.Duration, err error) {
	unix, hundredths, _ := strings.Cut(text, "+")
	seconds, err := strconv.ParseInt(unix, 10, 64)
	if err != nil {
		return time.Time{}, 0, err
	}
	up = time.Duration(number(hundredths)) * 10 * time.Millisecond
	return time.Unix(seconds, 0), max(up, 0), nil
}

// The states of a run on a node.
const (
	RunAbsent  = "absent"  // never launched there
	RunRunning = "running" // supervised
	RunEnded   = "ended"   // its end is on record, and nothing of it is alive
	// RunUnknown: supervise is gone and has left no record (somebody killed
	// it, the machine was rebooted, the disk was full). Processes of the run
	// may be alive; StopRun ends them and makes the run an ended one.
	RunUnknown = "unknown"
)

// Exit is an exit record.
type Exit struct {
	Code       int
	Signal     string // empty when it exited by itself
	Start, End time.Time
	// Took is how long it was, by the node's uptime, and EndUp the uptime when it
	// ended; 0 where it can't tell.
	Took, EndUp time.Duration
}

// RunState is what one look at a run on a node has shown.
type RunState struct {
	State    string
	Why      string        // what is known about an absent or unknown one
	Exit     *Exit         // of the run; nil until it has ended
	Ranks    map[int]Exit  // of the ranks that have ended
	Statuses []Status      // all so far
	Offset   int64         // where the status file ended: for WatchRun
	Logs     []LogFile     // in the run directory
	Clock    time.Time     // of the node
	Uptime   time.Duration // of the node; 0 where it can't tell
	Free     int64         // bytes on the disk that the run writes to
	// Rebooted: the node has another boot id than when the run began there.
	// Nothing of the run lives then.
	Rebooted bool
	// Full says which log could not be written at some time, and why; empty:
	// all could. FullAt is the node's uptime when that began.
	Full   string
	FullAt time.Duration
	// Members are its live processes, where nobody supervises them any more.
	Members int
}

// LogFile is one log of a run.
type LogFile struct {
	Name string
	Size int64 // all that was ever written to it
	// First is the first byte that is still there; what is before it was
	// dropped, see Launch.LogMost.
	First int64
}

// LogSize is the size of a log by its file name (a directory in front is
// ignored); 0 when it is not there.
func (s RunState) LogSize(name string) int64 {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, l := range s.Logs {
		if l.Name == name {
			return l.Size
		}
	}
	return 0
}

// stateLimit bounds a look at a run: a node may answer the connection's own
// questions and never this one.
const stateLimit = 30 * time.Second

// RunState looks at a run, in one round trip. It changes nothing. A node that
// does not answer within 30 s has not been looked at.
func (n *Node) RunState(ctx context.Context, runID string) (RunState, error) {
	what := "look at run " + runID
	if err := checkRunID(runID); err != nil {
		return RunState{}, n.wrap(what, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stateLimit, fmt.Errorf("no answer within %v", stateLimit))
	defer cancel()
	var a wire.StateAnswer
	if err := n.Ask(ctx, wire.State, wire.StateRequest{RunID: runID}, &a); err != nil {
		return RunState{}, err
	}
	if !slices.Contains([]string{RunAbsent, RunRunning, RunEnded, RunUnknown}, a.State) {
		return RunState{}, n.wrap(what, errors.New("the node's answer does not tell the run's state"))
	}
	return stateOf(a), nil
}

// stateOf reads what the agent says of a run.
func stateOf(a wire.StateAnswer) RunState {
	s := RunState{State: a.State, Why: a.Why, Free: a.Free, Rebooted: a.Rebooted, Members: a.Members,
		Ranks: map[int]Exit{}, Offset: a.StatusSize, Statuses: parseStatuses(a.Status)}
	s.Clock, s.Uptime, _ = parseStamp(a.Now)
	if f := strings.SplitN(a.Full, " ", 3); len(f) == 3 {
		s.Full, s.FullAt = f[2], time.Duration(max(number(f[1]), 0))*10*time.Millisecond
	}
	for _, l := range a.Logs {
		s.Logs = append(s.Logs, LogFile(l))
	}
	for name, line := range a.Exits {
		e, ok := parseExit(line)
		rank, isRank := strings.CutPrefix(strings.TrimSuffix(name, ".exit"), "rank-")
		switch number, err := strconv.Atoi(rank); {
		case ok && name == "exit":
			s.Exit = &e
		case ok && isRank && err == nil:
			s.Ranks[number] = e
		}
	}
	return s
}

func parseStatuses(text []byte) []Status {
	var all []Status
	for line := range strings.Lines(string(text)) {
		if status, ok := ParseStatus(line); ok {
			all = append(all, status)
		}
	}
	return all
}

func parseExit(text string) (Exit, bool) {
	var e Exit
	var start, end string
	if n, _ := fmt.Sscan(text, &e.Code, &e.Signal, &start, &end); n != 4 {
		return e, false
	}
	e.Signal = strings.TrimPrefix(e.Signal, "-")
	var err, endErr error
	var from, to time.Duration
	e.Start, from, err = parseStamp(start)
	e.End, to, endErr = parseStamp(end)
	e.EndUp = to
	if from > 0 && to > from {
		e.Took = to - from
	}
	return e, err == nil && endErr == nil
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n
}
