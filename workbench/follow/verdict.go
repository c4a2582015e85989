package follow

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
)

// rankEnd is how a rank ended, as its node's exit record says.
type rankEnd struct {
	rank, node int
	code       int
	signal     string
	at         int64         // Unix seconds of that node's clock
	part       time.Duration // of a second behind that, where it is known
	up         time.Duration // of that node when the rank ended; 0: it can't tell
	starved    int           // processes of it that the kernel ended for lack of memory
	byUs       bool          // after its node had begun to stop the run
	told       bool          // after its launcher had told it to end
	room       string        // how little there was then for what it writes; empty: enough
	order      int           // in which it was seen here
}

// well reports whether the rank came to its own good end.
func (e rankEnd) well() bool { return e.signal == "" && e.code == 0 }

// nodeEnd is what is known of the run on one node.
type nodeEnd struct {
	begun    bool // it has told something of the run
	lives    int  // how often the run was begun there, which is once but for a queue that puts it back
	born     time.Time
	stopping []string      // why the node stopped the run, in order
	stopped  time.Duration // the node's uptime when it began to; 0: not known
	left     bool          // it has said what its ranks left running
	ended    bool
	code     int
	lost     bool          // the node itself is gone
	silent   time.Time     // it was given up, not having been heard of since; zero: it was not
	refuses  bool          // given up beside others, where a login was refused: it may be as well as any
	barred   bool          // it can't be reached, for a login is refused: that was told
	ranks    []int         // that the run has on it
	why      string        // set when nothing on the node says how the run ended there
	rebooted bool          // the node has another boot id than when the run began
	noRoom   string        // what the last look has shown, when its disk was full
	full     string        // which log could not be written at some time, and why
	fullAt   time.Duration // the node's uptime then
	from, to time.Duration // the node's uptime when the run began and ended there; 0: not known
}

// Reasons with which this side stops a run. They are written into the status
// file of each node, so that a dlwb that comes later reads the same verdict.
const (
	// Asked begins the reason of a stop that a person asked for.
	Asked = "asked: "
	// TakenDown is that of a cluster that is removed.
	TakenDown  = Asked + "the cluster was taken down"
	reasonHung = "hung: "
	// reasonSilent begins the reason of a stop because of nodes that are not
	// heard of.
	reasonSilent = "silent: "
)

// Reasons with which a machine stops a run by itself, see
// cloud/ec2/userdata.
const (
	reasonNotice = job.Taken     // the provider is about to take it away
	reasonLease  = job.LeaseOver // its lease is over
)

// byService are the ends that a service makes of a job by its own rules, by the
// beginnings of their reasons.
var byService = map[string]event.RunEnded{
	job.TimeLimit: {ExitCode: 124, Verdict: event.TimedOut},
	job.NoMemory:  {ExitCode: 137, Verdict: event.OutOfMemory},
	job.Cancelled: {ExitCode: 130, Verdict: event.Stopped},
	job.Lost:      {ExitCode: 1, Verdict: event.Lost},
}

// leaves reports whether the machine has said that it is about to end, or its job did.
func (n nodeEnd) leaves() bool {
	return slices.ContainsFunc(n.stopping, func(why string) bool {
		return strings.HasPrefix(why, reasonNotice) || strings.HasPrefix(why, reasonLease) || strings.HasPrefix(why, job.Lost)
	})
}

// judge says how a run ended. It is pure: the same records give the same
// verdict here, after a crash and in another process.
func judge(nodes []nodeEnd, ends []rankEnd) event.RunEnded {
	if v, ok := judgeStop(nodes); ok {
		if cause := silentCause(nodes); cause != "" {
			v.Cause += "; " + cause
		}
		return v
	}
	first, failed := firstFailure(ends)
	if v, ok := judgeService(nodes); ok && (!failed || first.code == codeTerm) {
		return v
	}
	if v, ok := judgeSilent(nodes, first, failed); ok {
		return v
	}
	for i, n := range nodes {
		// A rank that merely noticed is no cause.
		if (n.lost || n.rebooted && n.why != "") && !finished(nodes) && (!failed || first.node != i && weight(first, first.at) > 0) {
			v := event.RunEnded{ExitCode: 1, Verdict: event.Lost, Rank: -1, Node: i,
				Cause: fmt.Sprintf("node%d is gone and took its ranks with it", i)}
			if !n.lost {
				v.Verdict, v.Cause = event.Rebooted, fmt.Sprintf("node%d was rebooted during the run, which ended its ranks", i)
			}
			if failed {
				v.Cause += "; then " + failureOf(first).Cause
			}
			return v
		}
	}
	if failed {
		return withoutRoom(failureOf(first), first, nodes)
	}
	for i, n := range nodes {
		if n.why != "" && n.noRoom != "" {
			return event.RunEnded{ExitCode: 1, Verdict: event.DiskFull, Rank: -1, Node: i,
				Cause: fmt.Sprintf("the disk of node%d is full (%s), so it could not record how the run ended there: %s", i, n.noRoom, n.why)}
		}
		if n.why != "" {
			return event.RunEnded{ExitCode: 1, Verdict: event.Lost, Rank: -1, Node: i, Cause: fmt.Sprintf("on node%d %s", i, n.why)}
		}
	}
	if i := launcherAtFault(nodes); i >= 0 {
		return event.RunEnded{ExitCode: nodes[i].code, Verdict: event.ExitedBad, Rank: -1, Node: i,
			Cause: fmt.Sprintf("the launcher on node%d exited with code %d and no rank says why", i, nodes[i].code)}
	}
	v := event.RunEnded{Verdict: event.Succeeded, Rank: -1, Node: -1, Cause: "every rank ended with code 0"}
	if slices.ContainsFunc(nodes, nodeEnd.released) {
		v.Cause += ", or was ended when those of node0 had"
	}
	for i := range nodes {
		v.Cause += roomOf(i, nodes[i])
	}
	return v
}

// released reports whether a node was stopped because all had ended well on the first
// one, and for nothing else: its workers and servers wait for work for ever.
func (n nodeEnd) released() bool {
	return len(n.stopping) > 0 && !slices.ContainsFunc(n.stopping, func(why string) bool { return !strings.HasPrefix(why, job.RunOver) })
}

// launcherAtFault is the node whose launcher failed; -1: none did. One that was told
// to stop ended with 143 for that, because of another node.
func launcherAtFault(nodes []nodeEnd) (fault int) {
	fault = -1
	for i, n := range nodes {
		told := n.code == codeTerm && len(n.stopping) > 0
		if told && n.released() {
			continue
		}
		if n.code != 0 && !told {
			return i
		}
		if told && fault < 0 {
			fault = i
		}
	}
	return fault
}

// codeTerm is the code of what ended by SIGTERM.
const codeTerm = 143

// fullNear is how near the end of a rank a full disk explains it.
const fullNear = time.Minute

// withoutRoom says of a rank that ended by itself on a node that had no room to
// write just then that this is why: what it can't write, it can't say in its log
// either. Of a disk that was full at another time it only tells.
func withoutRoom(v event.RunEnded, e rankEnd, nodes []nodeEnd) event.RunEnded {
	if e.node >= len(nodes) {
		return v
	}
	n := nodes[e.node]
	n.noRoom = cmp.Or(n.noRoom, e.room)
	then := n.full != "" && e.up > 0 && (e.up-n.fullAt).Abs() <= fullNear
	v.Cause += roomOf(e.node, n)
	if v.Verdict == event.ExitedBad && (then || n.noRoom != "") {
		v.Verdict = event.DiskFull
	}
	return v
}

// roomOf says that a node had no room to write, if so. Ranks that end well all the same
// may have written less than they believe.
func roomOf(node int, n nodeEnd) string {
	switch {
	case n.noRoom != "":
		return fmt.Sprintf("; the disk of node%d is full: %s", node, n.noRoom)
	case n.full != "":
		return fmt.Sprintf("; node%d had no room to write: %s", node, n.full)
	}
	return ""
}

// finished reports whether the run came to its end on every node and was
// stopped on none before that: a machine that went away after that took nothing with it.
func finished(nodes []nodeEnd) bool {
	for _, n := range nodes {
		if !n.ended || n.why != "" || len(n.stopping) > 0 && !n.released() {
			return false
		}
	}
	return true
}

// judgeStop looks for a stop that was asked for: by a person, by the stall
// limit, or by a machine that ends.
func judgeStop(nodes []nodeEnd) (event.RunEnded, bool) {
	for i, n := range nodes {
		for _, why := range n.stopping {
			if said, ok := strings.CutPrefix(why, Asked); ok {
				return event.RunEnded{ExitCode: 130, Verdict: event.Stopped, Rank: -1, Node: -1, Cause: said}, true
			}
			if said, ok := strings.CutPrefix(why, reasonHung); ok {
				v := event.RunEnded{ExitCode: 124, Verdict: event.Hung, Rank: -1, Node: i, Cause: said}
				if _, err := fmt.Sscanf(said, "rank %d on node%d", &v.Rank, &v.Node); err != nil {
					v.Rank, v.Node = -1, -1
				}
				return v, true
			}
			if said, ok := strings.CutPrefix(why, reasonNotice); ok {
				return event.RunEnded{ExitCode: 1, Verdict: event.Lost, Rank: -1, Node: i,
					Cause: fmt.Sprintf("node%d was about to be taken away by its provider: %s", i, said)}, true
			}
			if said, ok := strings.CutPrefix(why, reasonLease); ok {
				return event.RunEnded{ExitCode: 130, Verdict: event.Stopped, Rank: -1, Node: i,
					Cause: fmt.Sprintf("the lease of node%d is over: %s", i, said)}, true
			}
			for begins, v := range byService {
				if said, ok := strings.CutPrefix(why, begins); ok {
					v.Rank, v.Node, v.Cause = -1, -1, said
					return v, true
				}
			}
		}
	}
	return event.RunEnded{}, false
}

// judgeService looks for the word of a service that its job failed. A host says so that
// does not know how its own ranks ended; a rank of another one may be the cause.
func judgeService(nodes []nodeEnd) (event.RunEnded, bool) {
	for _, n := range nodes {
		for _, why := range n.stopping {
			if said, ok := strings.CutPrefix(why, job.Failed); ok {
				return event.RunEnded{ExitCode: 1, Verdict: event.ExitedBad, Rank: -1, Node: -1, Cause: said}, true
			}
		}
	}
	return event.RunEnded{}, false
}

// firstFailure is the rank that failed first by itself. Clocks tell seconds,
// those of nodes differ a little, and a machine that has much to do sees an end
// late, so for a while the nature of the failure decides: a signal or a code of
// the script's own is a cause, exit code 1 and SIGABRT are also what a rank gets
// when its peer went away. What a launcher had told to end is none at all.
func firstFailure(ends []rankEnd) (rankEnd, bool) {
	var failed []rankEnd
	for _, e := range ends {
		if e.code != 0 && !e.byUs {
			failed = append(failed, e)
		}
	}
	if len(failed) == 0 {
		return rankEnd{}, false
	}
	earliest := failed[0].at
	for _, e := range failed {
		earliest = min(earliest, e.at)
	}
	sort.SliceStable(failed, func(i, j int) bool {
		a, b := failed[i], failed[j]
		if wa, wb := weight(a, earliest), weight(b, earliest); wa != wb {
			return wa < wb
		}
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.part, b.part), cmp.Compare(a.order, b.order)) < 0
	})
	return failed[0], true
}

// How many seconds behind the first failure one may be told that was its cause. An
// agent tells what it has ended itself and what a launcher has told to end: what is left
// ended by itself, however late that was seen. A service tells none of that, and ends
// the peers of what failed after a grace.
const (
	causeByAgent   = 30
	causeByService = 2
)

func weight(e rankEnd, earliest int64) int {
	most := int64(causeByService)
	if e.up > 0 {
		most = causeByAgent
	}
	switch {
	case e.at > earliest+most || e.told && e.starved == 0:
		return 2
	case e.code == 1 || slices.Contains([]int{128 + 6, 128 + 15}, e.code): // ABRT, TERM, also of a shell's command
		return 1
	}
	return 0
}

func failureOf(e rankEnd) event.RunEnded {
	v := event.RunEnded{ExitCode: e.code, Verdict: event.ExitedBad, Rank: e.rank, Node: e.node}
	switch {
	case e.signal == "" && e.starved == 0:
		v.Cause = fmt.Sprintf("rank %d on node%d exited with code %d%s", e.rank, e.node, e.code, shellHint(e.code))
		return v
	case e.starved > 0:
		v.Verdict = event.OutOfMemory
		v.Cause = fmt.Sprintf("rank %d on node%d ran out of memory: the kernel ended %d of its processes", e.rank, e.node, e.starved)
		if e.signal != "KILL" {
			v.Cause += fmt.Sprintf(", and it exited with code %d", e.code)
		}
		return v
	}
	v.Verdict = event.Killed
	v.Cause = fmt.Sprintf("rank %d on node%d was killed by SIG%s%s", e.rank, e.node, e.signal, signalHint(e.signal))
	return v
}

// shellHint says what a shell means that exits with such a code.
func shellHint(code int) string {
	switch code {
	case 126:
		return ", as a shell that found a command and could not execute it"
	case 127:
		return ", as a shell that found no such command"
	}
	for signal, name := range map[int]string{6: "ABRT", 7: "BUS", 9: "KILL", 11: "SEGV", 15: "TERM"} {
		if code == 128+signal {
			return fmt.Sprintf(", as a shell whose command was killed by SIG%s%s", name, signalHint(name))
		}
	}
	return ""
}

// signalHint says what usually sends a signal to a training process.
func signalHint(signal string) string {
	switch signal {
	case "KILL":
		return " (often the kernel, when memory runs out)"
	case "SEGV", "BUS":
		return " (a fault in native code)"
	case "ABRT":
		return " (an assertion in native code, or NCCL's watchdog)"
	}
	return ""
}
