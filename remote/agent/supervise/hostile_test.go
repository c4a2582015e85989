//go:build linux

package supervise_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/agent/proc"
)

// firstUID is a user that no system has; each test has one of its own, so that
// whatever that user still runs is what was left.
const firstUID = 61300

// Without root and without a cgroup, nothing of a run is left, whatever it does
// not to be found.
func TestNothingIsLeftOfATreeThatHides(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root can run programs as another user")
	}
	// One that another user can run.
	python, err := exec.LookPath("/usr/bin/python3")
	must(t, err)
	t.Parallel()
	for i, kind := range []string{"daemon", "hop", "storm", "daemon-and-end", "hop-and-end", "storm-and-end"} {
		t.Run(kind, func(t *testing.T) {
			b := newBoxOf(t, firstUID+i)
			text, err := os.ReadFile("testdata/hostile.py")
			must(t, err)
			script, up := filepath.Join(b.Home, "hostile.py"), filepath.Join(b.Home, "up")
			must(t, testprogram.Write(script, text, 0o755))
			procs := ranks("")
			procs[0].Argv = bytesOf("sh", "~/.dlwb/bin/rank", "-", python, script, kind, up)
			b.launch(procs)
			runbox.Within(t, runbox.Patience, "it hides", func() bool { _, err := os.Stat(up); return err == nil })
			time.Sleep(50 * time.Millisecond) // it may go on for a while: any moment will do
			if i < 3 {
				b.wantStopped("100 enough")
			}
			b.ended()
			if left := b.Left(runbox.Patience); len(left) > 0 {
				t.Errorf("%d processes of user %d are left: %v", len(left), b.UID, left)
			}
			// What is another process at every moment is met by no look, but leaves its dead.
			before := b.numbers()
			time.Sleep(300 * time.Millisecond)
			for pid := range b.numbers() {
				if !before[pid] {
					t.Errorf("user %d still starts processes", b.UID)
					break
				}
			}
		})
	}
}

// numbers are those of all processes of the box's user, dead ones too.
func (b *box) numbers() map[string]bool {
	found := map[string]bool{}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(b.T, err)
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == b.UID {
			found[dir] = true
		}
	}
	return found
}

// daemon is a program that has left environment, session and parents behind.
func daemon(t *testing.T, output string) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	must(t, err)
	return "env -i PATH=$PATH " + sh + ` -c 'cd / && setsid sh -c "trap \"\" TERM HUP; (echo daemon; exec sleep 1000) ` + output + ` &"' </dev/null; echo up; ` + forever
}

func TestADaemonWithoutSupervisorIsFoundByWhatItPrintsInto(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks(daemon(t, "")))
	b.WaitLog("rank-0.log", "daemon")
	b.WaitLog("rank-0.log", "up")
	b.Kill(b.Supervisor(), syscall.SIGKILL)
	holders := b.holders()
	b.wantStopped("300")
	for _, pid := range holders {
		if runbox.IsAlive(pid) {
			t.Errorf("process %d still prints into the log", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if len(holders) < 2 {
		t.Errorf("only %v printed into the log", holders)
	}
}

// holders are the processes that print into the first rank's log.
func (b *box) holders() []int {
	var found []int
	for _, p := range proc.Table() {
		for _, to := range proc.Prints(p.PID) {
			if strings.HasPrefix(to, b.File("rank-0.log.")) {
				found = append(found, p.PID)
				break
			}
		}
	}
	return found
}

func TestACgroupHoldsWhatLeavesNoOtherTrace(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("supervisor killed %v", killed), func(t *testing.T) {
			b := newBox(t)
			b.env = append(b.env, "DLWB_CGROUP=")
			b.launch(ranks(daemon(t, "</dev/null >/dev/null 2>&1")))
			b.WaitLog("rank-0.log", "up")
			group := b.run().Cgroup()
			if group == "" {
				b.wantStopped("0")
				t.Skip("NOT RUN: no cgroup can be made here")
			}
			var pids []string
			runbox.Within(t, runbox.Patience, "the cgroup holds the rank, what it waits for, and the daemon", func() bool {
				text, err := os.ReadFile(group + "/cgroup.procs")
				must(t, err)
				pids = strings.Fields(string(text))
				return len(pids) >= 3
			})
			if killed {
				b.Kill(b.Supervisor(), syscall.SIGKILL)
			}
			b.wantStopped("300")
			for _, pid := range pids {
				if n, _ := strconv.Atoi(pid); runbox.IsAlive(n) {
					t.Errorf("process %s of the cgroup lives", pid)
				}
			}
			runbox.Within(t, runbox.Patience, "the cgroup is removed", func() bool { _, err := os.Stat(group); return os.IsNotExist(err) })
		})
	}
}
