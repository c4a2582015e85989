//go:build linux

package userdata

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

func leased(t *testing.T, l Lease) Boot {
	b := goodBoot(t)
	b.Lease = l
	return b
}

func TestAMachineThatNobodyUsesEndsByBootstrap(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: 3 * time.Second, Idle: time.Hour}))
		m.boot()
		if took := m.off(patience); took < 2*time.Second {
			t.Errorf("after %v", took)
		}
		if got := m.state("bound"); got != "bootstrap" {
			t.Errorf("by %q", got)
		}
		within(t, patience, "it is told again, and people are warned", func() bool {
			calls := m.read("calls")
			return strings.Count(calls, "shutdown -h now") > 1 && strings.Contains(calls, "wall")
		})
		if out, err := m.sh("sh var/lib/dlwb/lease extend 100"); err == nil || !strings.Contains(out, "too late") {
			t.Errorf("extended at the end: %q", out)
		}
	})
}

func TestALiveRunRenewsIdleAndIsStoppedByTheLifetimeOnly(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: 10 * time.Second, Idle: 2 * time.Second, Lifetime: 9 * time.Second,
			Drain: cloud.Drain{S3: "s3://bucket/p/", Paths: []string{"out/", "it's.txt", "absent"}}, DrainLimit: 5 * time.Second}))
		m.program("aws", `echo "aws $*" >>`+m.path("calls"))
		m.write("home/ubuntu/out/model", "weights")
		m.write("home/ubuntu/it's.txt", "text")
		m.launch("r1", `trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.1; done`)
		m.boot()
		m.stays(7 * time.Second)
		if got := m.state("live"); got != "1" {
			t.Errorf("live=%q", got)
		}
		m.off(patience)
		if got := m.read("home/ubuntu/.dlwb/runs/r1/rank-0.log"); !strings.HasSuffix(got, "saved\n") {
			t.Errorf("the run said %q", got)
		}
		if got := m.read("home/ubuntu/.dlwb/runs/r1/status"); !strings.Contains(got, "stopping lease: its lifetime ends") {
			t.Errorf("the run was told %q", got)
		}
		host, _ := os.Hostname()
		for _, want := range []string{
			fmt.Sprintf("aws s3 sync %s s3://bucket/p/charlm/0123456789ab/%s/out --only-show-errors\n", m.path("home/ubuntu/out"), host),
			fmt.Sprintf("aws s3 cp %s s3://bucket/p/charlm/0123456789ab/%s/it's.txt --only-show-errors\n", m.path("home/ubuntu/it's.txt"), host),
		} {
			if got := m.read("calls"); !strings.Contains(got, want) || strings.Index(got, want) > strings.Index(got, "shutdown") {
				t.Errorf("not drained before the end: %q in %q", want, got)
			}
		}
		if strings.Contains(m.read("calls"), "absent") {
			t.Error("drained what is not there")
		}
	})
}

// A machine whose lease is over waits for the dlwb that watches it, until that
// says that the results are home, goes away, or takes too long.
func TestAMachineThatIsWatchedEndsWhenItsResultsAreHome(t *testing.T) {
	for name, says := range map[string]string{"said": "fetched", "gone": "gone", "never": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "dash", leased(t, Lease{Lifetime: 2 * time.Second}))
			m.settings = "fetch_limit=8"
			m.write("home/ubuntu/.dlwb/fetched", "1\n") // of an earlier end
			m.boot()
			watch := exec.Command(m.shell, m.path("var/lib/dlwb/watch"))
			watch.Env = m.env
			out, err := watch.StdoutPipe()
			must(t, err)
			must(t, watch.Start())
			lines := bufio.NewScanner(out)
			leaving := ""
			for leaving == "" && lines.Scan() {
				if rest, is := strings.CutPrefix(lines.Text(), "leaving id="); is {
					leaving = strings.Fields(rest)[0]
				}
			}
			if leaving == "" || strings.Contains(m.read("calls"), "shutdown") {
				t.Fatalf("it did not wait: leaving %q, calls %q", leaving, m.read("calls"))
			}
			m.stays(time.Second)
			switch says {
			case "fetched":
				m.write("home/ubuntu/.dlwb/fetched", leaving+"\n")
			case "gone":
				must(t, watch.Process.Kill())
			}
			go func() {
				for lines.Scan() {
				}
			}()
			m.off(patience)
			_ = watch.Process.Kill()
			_ = watch.Wait()
		})
	}
}

func TestIdleBeginsWhenTheLastRunHasEnded(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: time.Hour, Idle: 4 * time.Second}))
		m.boot()
		m.launch("r1", "sleep 4")
		m.stays(6 * time.Second)
		if took := m.off(patience); took < time.Second {
			t.Errorf("%v after the run", took)
		}
		if got := m.state("bound"); got != "idle" {
			t.Errorf("by %q", got)
		}
	})
}

func TestASupervisorThatWasKilledLeavesALiveRun(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: time.Hour, Idle: 2 * time.Second}))
		m.launch("r1", `: >"$DLWB_RUN_DIR/began"; sleep 100`)
		within(t, time.Minute, "the rank begins", func() bool {
			_, err := os.Stat(m.path("home/ubuntu/.dlwb/runs/r1/began"))
			return err == nil
		})
		pid, err := strconv.Atoi(strings.Fields(m.read("home/ubuntu/.dlwb/runs/r1/pid"))[0])
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		m.boot()
		m.stays(5 * time.Second)
	})
}

func TestAServiceKeepsNothingAlive(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: time.Hour, Idle: 2 * time.Second}))
		m.launch("jupyter-1-ab", "sleep 100")
		m.write("home/ubuntu/.dlwb/runs/jupyter-1-ab/procs", "jupyter jupyter.log\n")
		m.write("home/ubuntu/.dlwb/jupyter", "jupyter-1-ab 8888 token\n")
		m.boot()
		m.off(patience)
	})
}

func TestATerminalThatIsUsedKeepsTheMachine(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: 2 * time.Second, Idle: 10 * time.Second}))
		m.write("dev/pts/3", "")
		m.boot()
		// The time of day jumps by days, and the terminal's stamp with it.
		for i := range 12 {
			m.stays(time.Second)
			at := time.Now().Add(time.Duration(i%3-1) * 72 * time.Hour).Add(time.Duration(i) * time.Second)
			must(t, os.Chtimes(m.path("dev/pts/3"), at, at))
		}
		m.off(patience)
		if got := m.state("bound"); got != "idle" {
			t.Errorf("by %q", got)
		}
	})
}

func TestAGPUThatWorksOrCannotBeAskedIsNotIdle(t *testing.T) {
	for name, c := range map[string]struct {
		smi   string
		card  bool
		stays bool
	}{
		"works":            {"printf '0\\n87\\n'", true, true},
		"idle":             {"printf '0\\n4\\n'", true, false},
		"not available":    {"echo '[N/A]'", true, true},
		"hangs":            {"exec sleep 1000", true, true},
		"fails":            {"echo 'No devices were found'; exit 6", true, true},
		"no card at all":   {"echo 'No devices were found'; exit 6", false, false},
		"one of two hangs": {"printf '[N/A]\\n50\\n'", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, "dash", leased(t, Lease{Bootstrap: 2 * time.Second, Idle: 2 * time.Second}))
			m.program("nvidia-smi", c.smi)
			if c.card {
				m.write("sys/bus/pci/devices/0000:00:1e.0/vendor", "0x10de\n")
			}
			m.boot()
			if c.stays {
				m.stays(8 * time.Second)
			} else {
				m.off(patience)
			}
		})
	}
}

func TestDoubtDoesNotKeepAMachineForEver(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Bootstrap: 2 * time.Second, Idle: 2 * time.Second}))
		m.settings = "doubt_limit=4"
		m.program("nvidia-smi", "echo '[N/A]'")
		m.boot()
		m.stays(4 * time.Second)
		m.off(patience)
	})
}

// A nvidia-smi that can't be killed may not be asked again and again.
func TestWhatHangsIsKilledAndTheLifetimeHolds(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Lifetime: 12 * time.Second, Drain: cloud.Drain{S3: "s3://bucket", Paths: []string{"out"}}, DrainLimit: 2 * time.Second}))
		for _, name := range []string{"nvidia-smi", "who", "wall", "aws"} {
			m.program(name, "exec sleep 1000")
		}
		m.write("home/ubuntu/out/model", "weights")
		m.launch("r1", "sleep 1000")
		m.write("home/ubuntu/.dlwb/bin/stop", "exec sleep 1000")
		m.text = strings.ReplaceAll(m.text, "bounded 90 stop_runs", "bounded 3 stop_runs")
		m.boot()
		m.off(patience)
	})
}

func TestTheCountSurvivesCrashesAndTheLeaseOfALaterStartHolds(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Lifetime: 8 * time.Second}))
		m.boot()
		counted := func() int {
			n, _, _ := strings.Cut(m.read("var/lib/dlwb/used"), " ")
			used, _ := strconv.Atoi(strings.TrimSpace(n))
			return used
		}
		within(t, patience, "it counts", func() bool { return counted() >= 2 })
		m.crash()
		before := counted()
		m.boot()
		m.boot() // and a second one, that takes over
		m.stays(2 * time.Second)
		within(t, patience, "a lease is held", func() bool { return len(m.leases()) == 1 })
		within(t, patience, "it counts on", func() bool {
			now := counted()
			if now < before && now > 0 {
				t.Fatalf("counted %d before the crash, and %d after it", before, now)
			}
			return now > before
		})
		m.off(patience)
	})
}

// leases are the loops that are alive; what they ask for has another parent.
func (m *machine) leases() []int {
	var found []int
	for _, pid := range m.processes() {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasSuffix(string(args), "lease\x00run\x00") && strings.HasPrefix(m.read("var/lib/dlwb/pid"), fmt.Sprint(pid)) {
			found = append(found, pid)
		}
	}
	return found
}

func TestExtendMovesTheEnd(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Lifetime: 100 * time.Second, Budget: 200 * time.Second}))
		m.boot()
		left := func(least, most int) func() bool {
			return func() bool {
				n, err := strconv.Atoi(m.state("left"))
				return err == nil && n >= least && n <= most
			}
		}
		within(t, patience, "the first count", left(60, 100))
		for _, line := range []string{"extend 50", "extend 1000 --once a1", "extend 1000 --once a1"} {
			if out, err := m.sh("sh var/lib/dlwb/lease " + line); err != nil || out != "" {
				t.Fatalf("%s: %v: %q", line, err, out)
			}
		}
		within(t, patience, "the budget is what comes first", func() bool { return m.state("bound") == "budget" && left(140, 200)() })
		_, err := m.sh("sh var/lib/dlwb/lease extend 0 --budget 500")
		must(t, err)
		within(t, patience, "the budget is moved", left(600, 700))
		for _, bad := range []string{"", "-5", "1h", "5 --budget", "5 --budget x", "5 --once 'a b'", "5 6", "99999999999999999999"} {
			if out, err := m.sh("sh var/lib/dlwb/lease extend " + bad); err == nil {
				t.Errorf("extend %q was accepted: %s", bad, out)
			}
		}
	})
}

func TestAFullDiskKeepsNothingFromBeingCounted(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Lifetime: 100 * time.Second}))
		must(t, os.MkdirAll(m.path("var/lib/dlwb"), 0o755))
		if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", m.path("var/lib/dlwb")).Run(); err != nil {
			t.Skipf("NOT RUN: a small disk can't be mounted here: %v", err)
		}
		t.Cleanup(func() { _ = exec.Command("umount", "-l", m.path("var/lib/dlwb")).Run() })
		m.boot()
		within(t, patience, "the first count", func() bool { return m.state("up") != "" })
		_, _ = m.sh("cat /dev/zero >var/lib/dlwb/fill")
		before, _ := strconv.Atoi(m.state("up"))
		within(t, patience, "it counts on", func() bool {
			n, _ := strconv.Atoi(m.state("up"))
			return n >= before+2
		})
	})
}

// An answer that came a second after it was asked for is one.
func TestALookMayTakeLongerThanASecond(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Idle: time.Hour, Lifetime: 24 * time.Hour}))
		m.program("cksum", "sleep 1.5\nPATH="+os.Getenv("PATH")+" exec cksum")
		m.launch("r1", "sleep 100")
		m.boot()
		within(t, patience, "the first count", func() bool { return m.state("up") != "" })
		if live, bound := m.state("live"), m.state("bound"); live != "1" || bound != "idle" {
			t.Errorf("with a run going on, the first look of a slow machine says live=%s bound=%s", live, bound)
		}
	})
}

func TestWatchTellsEveryChangeUntilNobodyReads(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Idle: time.Hour, Lifetime: 24 * time.Hour}))
		m.launch("r1", "sleep 100")
		m.boot()
		out, err := m.sh("sh var/lib/dlwb/watch | head -n 3")
		must(t, err)
		line := regexp.MustCompile(`^(lease up=\d+ bound=idle left=3\d\d\d idle=\d live=1\n){3}$`)
		if !line.MatchString(out) {
			t.Errorf("watch said %q", out)
		}
		m.write("var/lib/dlwb/notice", fmt.Sprintf("notice action=terminate at=%d\n", time.Now().Add(100*time.Second).Unix()))
		out, err = m.sh("sh var/lib/dlwb/watch | head -n 2")
		must(t, err)
		if !regexp.MustCompile(`\nnotice action=terminate at=\d+ left=(9\d|100)\n$`).MatchString(out) {
			t.Errorf("watch said %q", out)
		}
		within(t, patience, "watch ends", func() bool {
			out, _ := exec.Command("pgrep", "-f", m.path("var/lib/dlwb/watch")).Output()
			return len(out) == 0
		})
	})
}

func TestThingsAreDoneAsTheOwnerOfTheHome(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if os.Getuid() != 0 || err != nil {
		t.Skip("NOT RUN: only root can do things as another user")
	}
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, leased(t, Lease{Lifetime: 3 * time.Second, Drain: cloud.Drain{S3: "s3://bucket", Paths: []string{"out"}}}))
		must(t, os.WriteFile(m.path("calls"), nil, 0o666))
		must(t, os.Chmod(m.path("calls"), 0o666))
		m.program("aws", `echo "aws as $(id -un) in $HOME: $*" >>`+m.path("calls"))
		m.write("home/ubuntu/out/model", "weights")
		m.write("home/ubuntu/.dlwb/bin/stop", `echo "stop as $(id -un) in $HOME: $*" >>`+m.path("calls"))
		run := "home/ubuntu/.dlwb/runs/r1/"
		m.write(run+"procs", "rank-0 rank-0.log\n")
		must(t, os.MkdirAll(m.path(run+"lock"), 0o755))
		stat, err := os.ReadFile("/proc/self/stat")
		must(t, err)
		bootID, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		must(t, err)
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		m.write(run+"pid", fmt.Sprintf("%d %s %s/1\n", os.Getpid(), fields[19], strings.TrimSpace(string(bootID))))
		uid, _ := strconv.Atoi(nobody.Uid)
		must(t, os.Chown(m.path("home/ubuntu/.dlwb"), uid, -1))
		m.boot()
		m.off(patience)
		for _, want := range []string{
			"stop as nobody in " + m.path("home/ubuntu") + ": r1 - lease: its lifetime ends\n",
			"aws as nobody in " + m.path("home/ubuntu") + ": s3 sync ",
		} {
			if got := m.read("calls"); !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
	})
}

func TestWithoutAWordTheLeaseDoesNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, goodBoot(t))
		m.write("lease", m.rewritten(script("lease.sh")))
		if out, err := m.sh("sh lease"); err != nil || out != "" {
			t.Errorf("%v: %q", err, out)
		}
		if out, err := m.sh("sh lease begin"); err == nil {
			t.Errorf("an unknown word was accepted: %q", out)
		}
		if entries, _ := os.ReadDir(m.path("var/lib/dlwb")); len(entries) > 0 {
			t.Errorf("it left %v", entries)
		}
	})
}

// A rank may call itself what it likes: the lease is root's, and must outlive it.
func TestTheLeaseReadsAProcessOfAnyName(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell string) {
		m := newMachine(t, shell, goodBoot(t))
		m.write("lease", m.rewritten(script("lease.sh")))
		out, err := m.sh(`. ./lease
odd=$PWD/$(printf 'a) Z 1\nb (')
cp /bin/sleep "$odd"
"$odd" 60 &
tries=0
until grep -q '^a)' /proc/$!/comm || [ $((tries += 1)) -gt 1000 ]; do :; done
process $! && echo "$born $parent"
echo "$(tr '\n' ' ' </proc/$!/stat | sed 's/.*) //' | cut -d ' ' -f 20) $$"
kill -KILL $!
wait
process $! || echo dead`)
		got := strings.Split(strings.TrimSpace(out), "\n")
		if err != nil || len(got) != 3 || got[0] != got[1] || got[2] != "dead" {
			t.Errorf("%v: it says %q", err, out)
		}
	})
}
