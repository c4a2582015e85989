//go:build linux

package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/agent/logs"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// codeFull is the code of a rank whose end can't be written down.
const codeFull = 74

// rank is one rank from its start to its record.
type rank struct {
	run     runs.Run
	number  string
	start   string
	log     *logs.Log
	printed *logs.Captured
	group   *cgroup
	before  int // ended for lack of memory
	pid     int
	output  func(ctx context.Context, argv ...string) string
	// mayReturn: its launcher may start it again, so that an end in failure is none yet.
	mayReturn bool
}

// openRank takes the room for the record and begins to write the log from a pipe.
func openRank(r runs.Run, number string, log *logs.Log, from *os.File, g *cgroup) (*rank, error) {
	k := &rank{run: r, number: number, start: runs.Stamp(), log: log, group: g, before: g.starved()}
	if err := r.Reserve(runs.RankExit(number)); err != nil {
		return nil, fmt.Errorf("can't write %s: %w: is the disk full?", r.Path(runs.RankExit(number)), err)
	}
	k.printed = log.Capture(from)
	return k, nil
}

// told says that its launcher has told the rank to end, or has ended what looks after
// it: how it ends then is no cause of anything.
func (k *rank) told(signal string) { _ = k.run.Say("rank %s told %s", k.number, signal) }

func (k *rank) started(pid int) {
	k.pid = pid
	_ = k.run.Say("rank %s started %d", k.number, pid)
}

// ended writes the record and the line in status, once the last words are in
// the log. at is when the end was seen: how long those words take says nothing of who
// was the first to fail.
func (k *rank) ended(e runs.Exit, at string) error {
	free := k.room()
	k.printed.Drained()
	if e.Code != 0 {
		k.sayStarved(e)
		if free < cramped {
			_ = k.run.Say("rank %s free %d", k.number, free)
		}
	}
	err := k.run.EndOf(runs.RankExit(k.number), e, k.start, at)
	if err != nil {
		err = fmt.Errorf("dlwb: rank %s ended with code %d, but its record can't be written: %w: is the disk full?", k.number, e.Code, err)
		_, _ = fmt.Fprintln(k.log, err)
		return err
	}
	// Said now in either case: which rank was the first to fail shows by the order.
	what := "ended"
	if k.mayReturn {
		what = "failed"
	}
	_ = k.run.SayOf(at, "rank %s %s %s", k.number, what, e)
	return nil
}

// cramped is how little room is worth a word.
const cramped = 1 << 20

// room is how much there is now for what the rank writes, as far as it is little: who
// looks later may come when there is some again, or not at all.
func (k *rank) room() int64 {
	least := int64(cramped)
	for _, dir := range []string{k.run.Dir, k.run.Line("dir")} {
		var st unix.Statfs_t
		if dir != "" && unix.Statfs(dir, &st) == nil {
			least = min(least, int64(st.Bavail)*int64(st.Bsize))
		}
	}
	return least
}

// sayStarved says in status when the kernel has ended a process of the rank for
// lack of memory, by its own word.
func (k *rank) sayStarved(e runs.Exit) {
	after := k.group.starved()
	if k.before >= 0 && after > k.before {
		_ = k.run.Say("rank %s starved %d", k.number, after-k.before)
		return
	}
	if e.Signal != "KILL" || k.output == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	said := k.output(ctx, "dmesg")
	if strings.Contains(said[max(0, len(said)-(200<<10)):], fmt.Sprintf("Killed process %d ", k.pid)) {
		_ = k.run.Say("rank %s starved 1", k.number)
	}
}

// isRank reports whether a word is the number of a rank.
func isRank(word string) bool {
	n, err := strconv.ParseUint(word, 10, 31)
	return err == nil && word == strconv.FormatUint(n, 10)
}

// exitOf is how a process has ended.
func exitOf(s syscall.WaitStatus) runs.Exit {
	if s.Signaled() {
		return runs.Exit{Code: 128 + int(s.Signal()), Signal: signalName(s.Signal())}
	}
	return runs.Exit{Code: s.ExitStatus(), Signal: "-"}
}

// The names of signals, as kill -l says them.
var signalNames = strings.Fields(`HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT
	CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH POLL PWR SYS`)

func signalName(s syscall.Signal) string {
	switch n := int(s); {
	case n >= 1 && n <= len(signalNames):
		return signalNames[n-1]
	case n >= 34 && n <= 64:
		return fmt.Sprintf("RTMIN+%d", n-34)
	default:
		return strconv.Itoa(n)
	}
}

// words are lines from the other end of a rank's connection.
type words struct{ *bufio.Scanner }

func (w words) next() ([]string, error) {
	if !w.Scan() {
		return nil, errors.Join(errors.New("the other side is gone"), w.Err())
	}
	return strings.Fields(w.Text()), nil
}
