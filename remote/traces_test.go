//go:build linux

package remote

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAMachineThatWasRebootedSaysSo(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo up; " + forever))
		b.waitLog("rank-0.log", "up")
		b.killSupervise()
		if s := b.state(); s.State != RunUnknown || s.Rebooted {
			t.Errorf("state %+v", s)
		}
		fields := strings.Fields(b.read("pid"))
		fields[2] = "another-boot/1"
		must(t, os.WriteFile(b.file("pid"), []byte(strings.Join(fields, " ")+"\n"), 0o600))
		if s := b.state(); s.State != RunUnknown || !s.Rebooted || !strings.Contains(s.Why, "rebooted") {
			t.Errorf("state %+v", s)
		}
		if left := b.stop("300"); left != 0 {
			t.Errorf("left %d", left)
		}
	})
}

func TestDaemonsThatLeaveEverythingBehindAreFoundByWhatTheyPrintInto(t *testing.T) {
	daemon := `env -i $(command -v sh) -c 'cd / && setsid sh -c "trap \"\" TERM HUP; (echo daemon; exec sleep 1000) &" $0' $HOME </dev/null &`
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks(strings.ReplaceAll(daemon, "env -i ", "env -i PATH=$PATH ") + " " + forever))
		b.waitLog("rank-0.log", "daemon")
		if left := b.stop("300"); left != 0 {
			t.Errorf("left %d", left)
		}
		if left := sleepers(t, "sleep 1000"); len(left) > 0 && strings.Contains(b.read("rank-0.log"), "daemon") {
			for _, pid := range left {
				if fd, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/1"); strings.HasPrefix(fd, b.home) {
					t.Errorf("process %d still prints into the log", pid)
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
	})
}

// sleepers are the processes with these arguments.
func sleepers(t *testing.T, args string) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	var found []int
	for _, dir := range dirs {
		text, _ := os.ReadFile(dir + "/cmdline")
		if strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " ")) == args {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			found = append(found, pid)
		}
	}
	return found
}

func TestACgroupHoldsWhatLeavesNoOtherTrace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: only root can make a cgroup")
	}
	// Nothing inherited: no environment, no session, no parent, no descriptor.
	daemon := `env -i PATH=$PATH $(command -v sh) -c 'cd / && setsid sh -c "trap \"\" TERM HUP; (exec sleep 1001) </dev/null >/dev/null 2>&1 &"' </dev/null >/dev/null 2>&1; echo up; `
	inEachShell(t, func(t *testing.T, b *box) {
		b.env = append(b.env, "DLWB_CGROUP=")
		b.launch(ranks(daemon + forever))
		b.waitLog("rank-0.log", "up")
		group := strings.TrimSpace(b.read("cgroup"))
		if !strings.HasPrefix(group, "/sys/fs/cgroup/") {
			t.Skipf("NOT RUN: no cgroup can be made here: %q", group)
		}
		pids, err := os.ReadFile(group + "/cgroup.procs")
		must(t, err)
		if left := b.stop("300"); left != 0 {
			t.Errorf("left %d", left)
		}
		for _, pid := range strings.Fields(string(pids)) {
			if n, _ := strconv.Atoi(pid); isAlive(n) {
				t.Errorf("process %s of the cgroup lives", pid)
			}
		}
		within(t, 5*time.Second, "the cgroup is removed", func() bool { _, err := os.Stat(group); return os.IsNotExist(err) })
	})
}
