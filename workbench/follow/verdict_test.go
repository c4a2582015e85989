package follow

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
)

func TestTheVerdictNamesWhoFailedFirst(t *testing.T) {
	done := func(why ...string) nodeEnd { return nodeEnd{ended: true, stopping: why} }
	bad := nodeEnd{ended: true, code: 1}
	for _, c := range []struct {
		name    string
		nodes   []nodeEnd
		ends    []rankEnd
		verdict event.Verdict
		code    int
		rank    int
		cause   string
	}{
		{
			name: "all well", nodes: []nodeEnd{done(), done()},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1}},
			verdict: event.Succeeded, rank: -1, cause: "code 0",
		}, {
			name: "one exits, the other was stopped by us", nodes: []nodeEnd{done("rank 1 on node1 exited with code 3"), bad},
			ends:    []rankEnd{{rank: 0, code: 143, signal: "TERM", at: 101, byUs: true}, {rank: 1, node: 1, code: 3, at: 100}},
			verdict: event.ExitedBad, code: 3, rank: 1, cause: "rank 1 on node1 exited with code 3",
		}, {
			name: "the peer's Python error is seen first, the killed rank is the cause", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, order: 0}, {rank: 1, node: 1, code: 137, signal: "KILL", at: 101, order: 1}},
			verdict: event.Killed, code: 137, rank: 1, cause: "SIGKILL",
		}, {
			name: "NCCL's watchdog aborts after a segfault", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 134, signal: "ABRT", at: 100, order: 0}, {rank: 1, node: 1, code: 139, signal: "SEGV", at: 102, order: 1}},
			verdict: event.Killed, code: 139, rank: 1, cause: "SIGSEGV",
		}, {
			name: "much later is no cause", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100}, {rank: 1, node: 1, code: 137, signal: "KILL", at: 200}},
			verdict: event.ExitedBad, code: 1, rank: 0, cause: "rank 0",
		}, {
			name: "a cause that a busy machine saw late", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, up: time.Hour}, {rank: 1, node: 1, code: 3, at: 109, up: time.Hour + 9*time.Second}},
			verdict: event.ExitedBad, code: 3, rank: 1, cause: "rank 1 on node1 exited with code 3",
		}, {
			name: "much later is no cause by the word of an agent either", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, up: time.Hour}, {rank: 1, node: 1, code: 137, signal: "KILL", at: 200, up: time.Hour}},
			verdict: event.ExitedBad, code: 1, rank: 0, cause: "rank 0",
		}, {
			name: "what its launcher had told to end is no cause", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 137, signal: "KILL", at: 100, told: true}, {rank: 1, code: 1, at: 100, order: 1}},
			verdict: event.ExitedBad, code: 1, rank: 1, cause: "rank 1",
		}, {
			name: "but for lack of memory", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 137, signal: "KILL", at: 100, starved: 1, told: true}, {rank: 1, code: 1, at: 100, order: 1}},
			verdict: event.OutOfMemory, code: 137, rank: 0, cause: "rank 0",
		}, {
			name: "two Python errors within a second", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, part: 700 * time.Millisecond}, {rank: 1, node: 1, code: 1, at: 100, part: 200 * time.Millisecond, order: 1}},
			verdict: event.ExitedBad, code: 1, rank: 1, cause: "rank 1",
		}, {
			name: "two Python errors: the earlier", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 101}, {rank: 1, node: 1, code: 1, at: 100}},
			verdict: event.ExitedBad, code: 1, rank: 1, cause: "rank 1",
		}, {
			name: "stopped by request", nodes: []nodeEnd{done(Asked + "stopped by request"), done(Asked + "stopped by request")},
			ends:    []rankEnd{{rank: 0, code: 143, signal: "TERM", byUs: true}, {rank: 1, node: 1, code: 143, signal: "TERM", byUs: true}},
			verdict: event.Stopped, code: 130, rank: -1, cause: "stopped by request",
		}, {
			name: "hung", nodes: []nodeEnd{done(hungReason(time.Minute, []silence{{rank: 0, node: 0, since: 61 * time.Second}, {rank: 1, node: 1, since: 90 * time.Second}}, 0)), done()},
			verdict: event.Hung, code: 124, rank: 1, cause: "rank 1 on node1 has printed nothing for 1m30s",
		}, {
			name: "the launcher itself failed", nodes: []nodeEnd{{ended: true, code: 2}, done()},
			verdict: event.ExitedBad, code: 2, rank: -1, cause: "the launcher on node0",
		}, {
			name: "the launcher of another node failed", nodes: []nodeEnd{{ended: true, code: 143, stopping: []string{"ray on node1 exited with code 1"}}, {ended: true, code: 1, stopping: []string{"ray on node1 exited with code 1"}}},
			ends:    []rankEnd{{rank: 0, code: 143, signal: "TERM", byUs: true}},
			verdict: event.ExitedBad, code: 1, rank: -1, cause: "the launcher on node1 exited with code 1",
		}, {
			name: "every node was told to stop, and none says by whom", nodes: []nodeEnd{{ended: true, code: 143, stopping: []string{"enough"}}, {ended: true, code: 143, stopping: []string{"enough"}}},
			verdict: event.ExitedBad, code: 143, rank: -1, cause: "the launcher on node0",
		}, {
			name: "workers that wait for ever are ended when the first node is done", nodes: []nodeEnd{done(), {ended: true, code: 143, stopping: []string{job.RunOver + "the run has ended on node0"}}, {ended: true, code: 143, lost: true, stopping: []string{job.RunOver + "the run has ended on node0"}}},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1, code: 143, signal: "TERM", byUs: true}, {rank: 2, node: 2, byUs: true}},
			verdict: event.Succeeded, rank: -1, cause: "when those of node0 had",
		}, {
			name: "one that failed by itself is no less at fault", nodes: []nodeEnd{done(), {ended: true, code: 1, stopping: []string{job.RunOver + "the run has ended on node0"}}},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1, code: 1}},
			verdict: event.ExitedBad, code: 1, rank: 1, cause: "rank 1",
		}, {
			name: "a node is gone", nodes: []nodeEnd{done("node1 is gone"), {lost: true}},
			ends:    []rankEnd{{rank: 0, code: 143, signal: "TERM", byUs: true}},
			verdict: event.Lost, code: 1, rank: -1, cause: "node1 is gone",
		}, {
			name: "a machine that goes away after the end took nothing with it", nodes: []nodeEnd{done(), {ended: true, lost: true}},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1}},
			verdict: event.Succeeded, rank: -1, cause: "every rank",
		}, {
			name: "one that ended by itself and went away before the others had", nodes: []nodeEnd{done("node1 is gone"), {ended: true, lost: true}},
			ends:    []rankEnd{{rank: 0, code: 143, signal: "TERM", byUs: true}, {rank: 1, node: 1}},
			verdict: event.Lost, code: 1, rank: -1, cause: "node1 is gone",
		}, {
			name: "no record of the end", nodes: []nodeEnd{done(), {ended: true, code: 1, why: "supervise left no record"}},
			ends:    []rankEnd{{rank: 0}},
			verdict: event.Lost, code: 1, rank: -1, cause: "supervise left no record",
		}, {
			name: "no record of the end, as the disk is full", nodes: []nodeEnd{done(), {ended: true, code: 1, why: "supervise left no record", noRoom: "0 KiB are free"}},
			ends:    []rankEnd{{rank: 0}},
			verdict: event.DiskFull, code: 1, rank: -1, cause: "node1 is full (0 KiB are free)",
		}, {
			name: "a rank that ends while its disk is full", nodes: []nodeEnd{{ended: true, code: 1, noRoom: "0 KiB are free"}, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100}, {rank: 1, node: 1, code: 1, at: 101}},
			verdict: event.DiskFull, code: 1, rank: 0, cause: "the disk of node0 is full",
		}, {
			name: "its node says that the disk was full when it ended, and nobody could look after that", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, room: "0 B were free when it ended"}, {rank: 1, node: 1, code: 1, at: 101}},
			verdict: event.DiskFull, code: 1, rank: 0, cause: "the disk of node0 is full: 0 B were free when it ended",
		}, {
			name: "the disk was full long before", nodes: []nodeEnd{{ended: true, code: 1, full: "rank-0.log the disk was full", fullAt: time.Hour}, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, up: 2 * time.Hour}},
			verdict: event.ExitedBad, code: 1, rank: 0, cause: "node0 had no room to write",
		}, {
			name: "the disk was full just before", nodes: []nodeEnd{{ended: true, code: 1, full: "rank-0.log the disk was full", fullAt: time.Hour}, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, up: time.Hour + 2*time.Second}},
			verdict: event.DiskFull, code: 1, rank: 0, cause: "node0 had no room to write",
		}, {
			name: "a good end, and output that is missing", nodes: []nodeEnd{done(), {ended: true, full: "rank-1.log the disk was full", fullAt: time.Hour}},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1}},
			verdict: event.Succeeded, rank: -1, cause: "every rank ended with code 0; node1 had no room to write: rank-1.log the disk was full",
		}, {
			name: "a good end on a disk that is full", nodes: []nodeEnd{{ended: true, noRoom: "0 B are free"}},
			ends:    []rankEnd{{rank: 0}},
			verdict: event.Succeeded, rank: -1, cause: "the disk of node0 is full: 0 B are free",
		}, {
			name: "the full disk of another node", nodes: []nodeEnd{bad, {ended: true, code: 1, noRoom: "0 KiB are free"}},
			ends:    []rankEnd{{rank: 0, code: 3, at: 100}},
			verdict: event.ExitedBad, code: 3, rank: 0, cause: "exited with code 3",
		}, {
			name: "the kernel's word for lack of memory", nodes: []nodeEnd{bad, bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100}, {rank: 1, node: 1, code: 137, signal: "KILL", at: 101, starved: 1}},
			verdict: event.OutOfMemory, code: 137, rank: 1, cause: "rank 1 on node1 ran out of memory",
		}, {
			name: "a killed rank alone is no proof of it", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 137, signal: "KILL", at: 100}},
			verdict: event.Killed, code: 137, rank: 0, cause: "SIGKILL",
		}, {
			name: "a script whose command was killed", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 137, at: 100}},
			verdict: event.ExitedBad, code: 137, rank: 0, cause: "exited with code 137, as a shell whose command was killed by SIGKILL (often the kernel, when memory runs out)",
		}, {
			name: "no such program", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 127, at: 100}},
			verdict: event.ExitedBad, code: 127, rank: 0, cause: "exited with code 127, as a shell that found no such command",
		}, {
			name: "a program that can't be executed", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 126, at: 100}},
			verdict: event.ExitedBad, code: 126, rank: 0, cause: "as a shell that found a command and could not execute it",
		}, {
			name: "a data loader that ran out of memory", nodes: []nodeEnd{bad},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100, starved: 2}},
			verdict: event.OutOfMemory, code: 1, rank: 0, cause: "ended 2 of its processes, and it exited with code 1",
		}, {
			name: "rebooted", nodes: []nodeEnd{bad, {ended: true, code: 1, why: "the machine was rebooted during the run", rebooted: true}},
			ends:    []rankEnd{{rank: 0, code: 1, at: 100}},
			verdict: event.Rebooted, code: 1, rank: -1, cause: "node1 was rebooted",
		}, {
			name: "the service's word for the host that was ended before it could tell", nodes: []nodeEnd{{ended: true, code: 7, stopping: []string{job.Failed + "exit code: 7"}}, bad},
			ends:    []rankEnd{{rank: 1, node: 1, code: 7, at: 100}},
			verdict: event.ExitedBad, code: 7, rank: 1, cause: "rank 1 on node1 exited with code 7",
		}, {
			name: "the service's word where the other host was merely ended", nodes: []nodeEnd{{ended: true, code: 7, stopping: []string{job.Failed + "exit code: 7"}}, bad},
			ends:    []rankEnd{{rank: 1, node: 1, code: 143, at: 100}},
			verdict: event.ExitedBad, code: 1, rank: -1, cause: "exit code: 7",
		}, {
			name: "rebooted after the end", nodes: []nodeEnd{done(), {ended: true, rebooted: true}},
			ends:    []rankEnd{{rank: 0}, {rank: 1, node: 1}},
			verdict: event.Succeeded, rank: -1, cause: "every rank",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := judge(c.nodes, c.ends)
			if got.Verdict != c.verdict || got.ExitCode != c.code || got.Rank != c.rank || !strings.Contains(got.Cause, c.cause) {
				t.Errorf("got %+v, want %s, code %d, rank %d, %q", got, c.verdict, c.code, c.rank, c.cause)
			}
		})
	}
}

// The order in which the ends of ranks become known depends on the network;
// the verdict must not.
func TestTheVerdictDoesNotDependOnTheOrderOfNews(t *testing.T) {
	ends := []rankEnd{
		{rank: 0, code: 1, at: 100}, {rank: 1, node: 1, code: 137, signal: "KILL", at: 100}, {rank: 2, node: 2, code: 143, signal: "TERM", byUs: true, at: 103},
	}
	nodes := []nodeEnd{{ended: true, code: 1}, {ended: true, code: 1}, {ended: true}}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}} {
		var shuffled []rankEnd
		for i, k := range order {
			e := ends[k]
			e.order = i
			shuffled = append(shuffled, e)
		}
		if got := judge(nodes, shuffled); got.Rank != 1 {
			t.Errorf("order %v: rank %d", order, got.Rank)
		}
	}
}

// What a service says of the end of its job is the cause as it is; a machine says of
// itself why it ends, and the cause names it.
func TestTheWordsOfAServiceAreTheCause(t *testing.T) {
	for reason, want := range map[string]event.RunEnded{
		job.Lost:      {ExitCode: 1, Verdict: event.Lost, Rank: -1, Node: -1, Cause: "job 7 said so"},
		job.TimeLimit: {ExitCode: 124, Verdict: event.TimedOut, Rank: -1, Node: -1, Cause: "job 7 said so"},
		job.NoMemory:  {ExitCode: 137, Verdict: event.OutOfMemory, Rank: -1, Node: -1, Cause: "job 7 said so"},
		job.Cancelled: {ExitCode: 130, Verdict: event.Stopped, Rank: -1, Node: -1, Cause: "job 7 said so"},
		job.Taken:     {ExitCode: 1, Verdict: event.Lost, Rank: -1, Cause: "node0 was about to be taken away by its provider: job 7 said so"},
		job.LeaseOver: {ExitCode: 130, Verdict: event.Stopped, Rank: -1, Cause: "the lease of node0 is over: job 7 said so"},
	} {
		nodes := []nodeEnd{{ended: true, code: 1, stopping: []string{reason + "job 7 said so"}}, {ended: true}}
		if got := judge(nodes, []rankEnd{{rank: 0, code: 1}}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s%+v, want %+v", reason, got, want)
		}
		if leaves := want.Verdict == event.Lost || reason == job.LeaseOver; nodes[0].leaves() != leaves {
			t.Errorf("%s leaves: %t", reason, !leaves)
		}
	}
}

func TestARankThatMerelyNoticedALostNodeIsNotTheCause(t *testing.T) {
	nodes := []nodeEnd{{ended: true, code: 1}, {lost: true}}
	for _, c := range []struct {
		end     rankEnd
		verdict event.Verdict
		says    string
	}{
		{rankEnd{rank: 0, code: 1}, event.Lost, "node1 is gone and took its ranks with it; then rank 0 on node0 exited with code 1"},
		{rankEnd{rank: 0, code: 3}, event.ExitedBad, "rank 0 on node0 exited with code 3"},
		{rankEnd{rank: 1, node: 1, code: 1}, event.ExitedBad, "rank 1 on node1 exited with code 1"},
	} {
		if got := judge(nodes, []rankEnd{c.end}); got.Verdict != c.verdict || got.Cause != c.says {
			t.Errorf("%+v: %+v", c.end, got)
		}
	}
}

// On a busy machine the end of a rank is told behind a stop that came later. What is
// known of their order counts, and not in which they were told.
func TestAnEndThatIsToldBehindALaterStopIsNoWorkOfTheStop(t *testing.T) {
	const up = time.Hour
	stop := job.Status{Kind: job.Stopping, Rank: -1, Why: "rank 0 on node0 exited with code 1", Uptime: up + 5*time.Second}
	end := func(after time.Duration) job.Status {
		return job.Status{Kind: job.RankEnded, Rank: 1, Code: 3, Uptime: up + after}
	}
	gone := job.Status{Kind: job.RankGone, Rank: 1, Uptime: up + 5*time.Second}
	for _, c := range []struct {
		name string
		told []job.Status
		byUs bool
	}{
		{"it ended before the stop", []job.Status{stop, end(4 * time.Second)}, false},
		{"the stop ended it", []job.Status{stop, end(6 * time.Second)}, true},
		{"nobody had seen it yet when the stop came", []job.Status{stop, gone, end(6 * time.Second)}, false},
		{"that is said last", []job.Status{stop, end(6 * time.Second), gone}, false},
		{"nothing is known of moments", []job.Status{{Kind: job.Stopping, Rank: -1, Why: "x"}, {Kind: job.RankEnded, Rank: 1, Code: 3}}, true},
		{"of an earlier life", []job.Status{gone, {Kind: job.RankStarted, Rank: 1, PID: 7}, stop, end(6 * time.Second)}, true},
	} {
		w := watchOf(t, 2)
		for _, s := range c.told {
			w.status(1, s)
		}
		if got := w.ends[1].byUs; got != c.byUs || w.failed.IsZero() != c.byUs {
			t.Errorf("%s: ended by the stop: %v, want %v; a failure is known: %v", c.name, got, c.byUs, !w.failed.IsZero())
		}
	}
}

// Of the answers of a node the one counts that was the least on its way: the others say
// too late how long it is up.
func TestAnAnswerThatWasLongOnItsWayMovesNoEnd(t *testing.T) {
	w := watchOf(t, 2)
	now := time.Now()
	w.clocks[0].heard(time.Hour, now)
	w.clocks[1].heard(50*time.Hour, now)
	w.clocks[1].heard(50*time.Hour+time.Second, now.Add(30*time.Second))
	w.status(0, job.Status{Kind: job.RankEnded, Rank: 0, Code: 1, Uptime: time.Hour + 3*time.Second})
	w.status(1, job.Status{Kind: job.RankEnded, Rank: 1, Code: 1, Uptime: 50*time.Hour + time.Second})
	if first, _ := firstFailure(w.rankEnds()); first.rank != 1 {
		t.Errorf("rank %d is the first", first.rank)
	}
	var c nodeClock
	c.heard(time.Hour, now)
	if c.heard(10*time.Second, now.Add(time.Minute)); c.up != 10*time.Second {
		t.Errorf("a node that booted again is known by its uptime of before, %v", c.up)
	}
}

// That the disk was full when a rank failed is told by its node: a look from here may come
// late, or never.
func TestAFullDiskIsToldByTheNodeThatHadIt(t *testing.T) {
	w := watchOf(t, 1)
	for _, s := range []job.Status{
		{Kind: job.Started, Rank: -1}, {Kind: job.RankStarted, PID: 7}, {Kind: job.RankFree, Code: 4096},
		{Kind: job.RankEnded, Code: 1}, {Kind: job.Ended, Rank: -1, Code: 1},
	} {
		w.status(0, s)
	}
	if v := judge(w.nodes, w.rankEnds()); v.Verdict != event.DiskFull || v.Rank != 0 || !strings.Contains(v.Cause, "the disk of node0 is full: 4.1 kB were free") {
		t.Errorf("the verdict is %+v", v)
	}
}
