//go:build linux

package remote

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const forever = "while :; do sleep 1; done"

func TestARunThatEndsWellLeavesItsLogsAndRecords(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo one; echo two >&2", `printf 'no newline'`))
		s := b.ended()
		wantOrder(t, s, "started", "rank-ended 0 0", "ended 0")
		wantOrder(t, s, "started", "rank-started 1", "rank-ended 1 0", "ended 0")
		if s.Exit.Code != 0 || s.Exit.Signal != "" || len(s.Ranks) != 2 || s.Ranks[1].Code != 0 {
			t.Errorf("records: %+v", s)
		}
		if got := b.read("rank-0.log") + b.read("rank-1.log"); got != "one\ntwo\nno newline" {
			t.Errorf("logs hold %q", got)
		}
		if s.LogSize("rank-0.log") != 8 || s.LogSize("rank-1.log") != 10 {
			t.Errorf("log sizes: %+v", s.Logs)
		}
		if took := s.Exit.End.Sub(s.Exit.Start); took < 0 || took > time.Minute || time.Since(s.Clock).Abs() > time.Minute || s.Free <= 0 {
			t.Errorf("clock or disk: %+v", s)
		}
	})
}

func TestARankThatFailsEndsTheOthersAndSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, program, code, why string }{
		{"exit 3", "exit 3", "3", "rank 1 on node0 exited with code 3"},
		{"kill -9", "kill -9 $$", "137 KILL", "rank 1 on node0 was killed by SIGKILL"},
		{"segfault", "kill -SEGV $$", "139 SEGV", "rank 1 on node0 was killed by SIGSEGV"},
		{"no such program", "exec no-such-program", "127", "rank 1 on node0 exited with code 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEachShell(t, func(t *testing.T, b *box) {
				b.launch(ranks(forever, "sleep 0.1; "+c.program))
				s := b.ended()
				code, signal, _ := strings.Cut(c.code, " ")
				wantOrder(t, s, "rank-ended 1 "+c.code, "stopping "+c.why, "rank-ended 0 143 TERM", "ended "+code)
				if strconv.Itoa(s.Exit.Code) != code || s.Exit.Signal != signal {
					t.Errorf("exit record %+v, want %s", s.Exit, c.code)
				}
			})
		})
	}
}

func TestSecretsAreInNoArgumentListAndInFilesOfTheUserOnly(t *testing.T) {
	every := make([]byte, 0, 255)
	for c := 1; c < 256; c++ {
		every = append(every, byte(c))
	}
	value := "s3cret 'quoted' $HOME `x`\nEND\n" + string(every)
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks(`printf %s "$TOKEN"; echo up >&2; `+forever), func(l *Launch) { l.Env = []string{"TOKEN=" + value} })
		b.waitLog("rank-0.log", "up")
		if got := strings.TrimSuffix(b.read("rank-0.log"), "up\n"); got != value {
			t.Errorf("the rank saw %q, want %q", got, value)
		}
		for _, p := range b.processes() {
			if strings.Contains(p.args, "s3cret") {
				t.Errorf("a secret is in the arguments of %q", p.args)
			}
		}
		if strings.Contains(b.read("status"), "s3cret") {
			t.Error("a secret is in the status")
		}
		must(t, filepath.WalkDir(b.file(""), func(path string, d fs.DirEntry, err error) error {
			if info, _ := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			return err
		}))
		if left := b.stop("0"); left != 0 {
			t.Errorf("left %d", left)
		}
	})
}

func TestStopEndsWhateverARunHasStarted(t *testing.T) {
	for _, c := range []struct{ name, program string }{
		{"plain", "echo up; " + forever},
		{"ignores TERM", "trap '' TERM; echo up; " + forever},
		{"dawdles", "trap 'sleep 30' TERM; echo up; " + forever},
		{"setsid", "setsid sh -c 'trap \"\" TERM; echo up; " + forever + "' & wait"},
		{"double fork", "(setsid sh -c '(trap \"\" TERM; echo up; " + forever + ")& ' &) ; " + forever},
		{"child without environment", "env -i $(command -v sh) -c 'trap \"\" TERM; echo up; " + forever + "' $HOME & wait"},
		{"forks all the time", "echo up; while :; do (trap '' TERM; sleep 5) & sleep 0.05; done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inEachShell(t, func(t *testing.T, b *box) {
				// Others may have the processor for a moment: the best of three counts.
				best := time.Hour
				for try := 0; try < 3 && best > 2400*time.Millisecond; try++ {
					b.sh("rm -rf ~/.dlwb/runs/r1")
					b.launch(ranks(c.program))
					b.waitLog("rank-0.log", "up")
					began := time.Now()
					left := b.stop("400 because I say so")
					best = min(best, time.Since(began))
					if left != 0 {
						t.Errorf("left %d", left)
					}
					b.wantNothingLeft()
					s := b.ended()
					wantOrder(t, s, "started", "stopping because I say so", "ended 143")
					if len(s.Ranks) != 1 {
						t.Errorf("no record of the rank: %+v", s)
					}
				}
				if best > 2400*time.Millisecond {
					t.Errorf("stop took %v", best)
				}
			})
		})
	}
}

func TestWhatAFinishedRunLeftBehindIsSweptUp(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("(setsid sh -c '" + forever + "' >/dev/null 2>&1 &); exit 0"))
		s := b.ended()
		b.wantNothingLeft()
		wantOrder(t, s, "rank-ended 0 0", "ended 0")
		if strings.Contains(b.read("status"), Stopping) {
			t.Error("sweeping up is no stop")
		}
	})
}

func TestARankGetsOneTermAndItsGrace(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("trap 'echo term; sleep 0.5; echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"))
		b.waitLog("rank-0.log", "up")
		if left := b.stop("3000 enough"); left != 0 {
			t.Errorf("left %d", left)
		}
		// "Terminated" is what some shells say of the sleep that they waited for.
		if got := strings.ReplaceAll(b.read("rank-0.log"), "Terminated\n", ""); got != "up\nterm\nsaved\n" {
			t.Errorf("log: %q", got)
		}
		wantOrder(t, b.ended(), "stopping enough", "rank-ended 0 0", "ended 143")
	})
}

// Launchers end a rank by its wrapper, or its whole process group at once.
func TestARankThatALauncherEndsIsRecordedAsItEnded(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		must(t, os.MkdirAll(b.file(""), 0o700))
		for i := range 20 {
			rank := exec.Command(filepath.Join(b.bin, "sh"), filepath.Join(b.home, ".dlwb/bin/rank"), b.file(""), "sleep", "30")
			rank.Env = append(slices.Clone(b.env), "RANK=0")
			rank.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			must(t, rank.Start())
			within(t, 10*time.Second, "the start of the rank", func() bool { return strings.Contains(b.read("status"), "rank 0 started") })
			target := -rank.Process.Pid
			if i%4 == 0 {
				target = rank.Process.Pid
			}
			must(t, syscall.Kill(target, syscall.SIGTERM))
			_ = rank.Wait()
			if code := rank.ProcessState.ExitCode(); code != 143 || !strings.HasPrefix(b.read("rank-0.exit"), "143 TERM ") {
				t.Fatalf("exit code %d, recorded as %q", code, b.read("rank-0.exit"))
			}
			must(t, os.Remove(b.file("status")))
		}
	})
}

func TestLaunchingTwiceStartsOnce(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		text := b.launchText(ranks("echo up; " + forever))
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, errs, code := b.try(text); code != 0 {
					t.Errorf("exit %d: %s", code, errs)
				}
			})
		}
		all.Wait()
		b.sh(text)
		b.waitLog("rank-0.log", "up")
		// The rank may print before supervise has noted that it is there.
		within(t, 10*time.Second, "a line of the run's start and one of its rank's", func() bool {
			return strings.Count(b.read("status"), " started ") >= 2
		})
		if n := strings.Count(b.read("status"), " started "); n != 2 {
			t.Errorf("%d lines of a start, want those of the run and of its rank:\n%s", n, b.read("status"))
		}
		if s := b.state(); s.State != RunRunning {
			t.Errorf("state %+v", s)
		}
		if left := b.stop("0"); left != 0 {
			t.Errorf("left %d", left)
		}
		b.sh(text)
		if s := b.ended(); strings.Count(b.read("status"), " started ") != 2 {
			t.Errorf("an ended run was started again: %q", kinds(s.Statuses))
		}
	})
}

func TestStopMayComeTwiceAtOnceLateOrBeforeAnything(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		if left := b.stop("100 too early"); left != 0 || b.has("") {
			t.Errorf("left %d; run directory made: %v", left, b.has(""))
		}
		if s := b.state(); s.State != RunAbsent {
			t.Errorf("state %+v", s)
		}
		b.launch(ranks("trap 'echo term' TERM; echo up; while :; do sleep 0.1; done"))
		b.waitLog("rank-0.log", "up")
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				if left := b.stop("500 twice"); left != 0 {
					t.Errorf("left %d", left)
				}
			})
		}
		all.Wait()
		if n := strings.Count(b.read("rank-0.log"), "term"); n != 1 {
			t.Errorf("%d times TERM", n)
		}
		before := b.read("status")
		if left := b.stop("500 too late"); left != 0 || b.read("status") != before || strings.Count(before, Stopping) != 1 {
			t.Errorf("left %d; status %q, before %q", left, b.read("status"), before)
		}
	})
}

func TestARunWhoseSupervisorWasKilledIsUnknownUntilStopped(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo up; " + forever))
		b.waitLog("rank-0.log", "up")
		b.killSupervise()
		if s := b.state(); s.State != RunUnknown || s.Exit != nil || !strings.Contains(s.Why, "processes of the run") {
			t.Errorf("state %+v", s)
		}
		if left := b.stop("500 lost"); left != 0 {
			t.Errorf("left %d", left)
		}
		wantOrder(t, b.ended(), "stopping lost", "rank-ended 0 143 TERM", "ended 137")
	})
}

// killSupervise kills the process that supervises, and nothing else.
func (b *box) killSupervise() {
	b.t.Helper()
	pid, err := strconv.Atoi(strings.Fields(b.read("pid"))[0])
	must(b.t, err)
	must(b.t, syscall.Kill(pid, syscall.SIGKILL))
	within(b.t, 5*time.Second, "supervise's end", func() bool { return !isAlive(pid) })
}

func TestTermToSuperviseEndsTheRun(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo up; " + forever))
		b.waitLog("rank-0.log", "up")
		pid, err := strconv.Atoi(strings.Fields(b.read("pid"))[0])
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGTERM))
		wantOrder(t, b.ended(), "stopping supervise got SIGTERM", "rank-ended 0 143 TERM", "ended 143")
	})
}

func TestAKilledWrapperCountsAsItsRanksEnd(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		minder := b.launchForMinder()
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", minder))
		must(t, err)
		var wrapper int
		_, err = fmt.Sscanf(string(stat[strings.LastIndex(string(stat), ")"):]), ") %s %d", new(string), &wrapper)
		must(t, err)
		must(t, syscall.Kill(wrapper, syscall.SIGKILL))
		s := b.ended()
		wantOrder(t, s, "stopping rank 0 on node0 was killed by SIGKILL", "rank-ended 1 143 TERM", "rank-ended 0 137 KILL", "ended 137")
		if s.Ranks[0].Signal != "KILL" {
			t.Errorf("records %+v", s)
		}
	})
}

func TestAKilledMinderCountsAsItsRanksEnd(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		must(t, syscall.Kill(b.launchForMinder(), syscall.SIGKILL))
		wantOrder(t, b.ended(), "rank-ended 0 137 KILL", "stopping rank 0 on node0 was killed by SIGKILL", "rank-ended 1 143 TERM", "ended 137")
	})
}

// launchForMinder launches two ranks and returns the parent of rank 0's program.
func (b *box) launchForMinder() int {
	b.t.Helper()
	b.launch(ranks("echo $PPID; "+forever, forever))
	b.waitLog("rank-0.log", "\n")
	minder, err := strconv.Atoi(strings.TrimSpace(b.read("rank-0.log")))
	must(b.t, err)
	return minder
}

func TestANumberThatWasGivenToAnotherProcessFoolsNobody(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		other := exec.Command("setsid", "sleep", "100")
		must(t, other.Start())
		defer func() {
			_ = other.Process.Kill()
			_ = other.Wait()
		}()
		b.launch(ranks("echo up; " + forever))
		b.waitLog("rank-0.log", "up")
		b.killSupervise()
		fields := strings.Fields(b.read("pid"))
		fields[0] = strconv.Itoa(other.Process.Pid)
		must(t, os.WriteFile(b.file("pid"), []byte(strings.Join(fields, " ")+"\n"), 0o600))
		if s := b.state(); s.State != RunUnknown {
			t.Errorf("state %+v", s)
		}
		if left := b.stop("300"); left != 0 || !isAlive(other.Process.Pid) {
			t.Errorf("left %d; the other process lives: %v", left, isAlive(other.Process.Pid))
		}
	})
}

func TestTwoNodesOnOneMachineDoNotStopEachOther(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		other := newBox(t, "dash")
		for _, box := range []*box{b, other} {
			box.launch(ranks("echo up; " + forever))
			box.waitLog("rank-0.log", "up")
		}
		if left := b.stop("300"); left != 0 {
			t.Errorf("left %d", left)
		}
		if s := other.state(); s.State != RunRunning {
			t.Errorf("the other node's run is %+v", s)
		}
		if left := other.stop("300"); left != 0 {
			t.Errorf("left %d", left)
		}
		other.wantNothingLeft()
	})
}

func TestALaunchersRanksAreWatchedAndStopped(t *testing.T) {
	// As torchrun does: it starts the ranks through the wrapper, and waits for
	// all, whatever becomes of one.
	agent := `for r in 0 1; do RANK=$r sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & done; echo started; wait`
	procs := []Proc{{
		Name: "agent", Ranks: []int{0, 1}, Log: "agent.log",
		Argv: []string{"sh", "-c", agent, "agent", `echo up; [ $RANK = 0 ] || { sleep 0.2; exit 3; }; ` + forever},
	}}
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(procs)
		s := b.ended()
		wantOrder(t, s, "rank-ended 1 3", "stopping rank 1 on node0 exited with code 3", "rank-ended 0 143 TERM", "ended 3")
		if !strings.HasPrefix(b.read("agent.log"), "started\n") || b.read("rank-1.log") != "up\n" {
			t.Errorf("logs: %q, %q", b.read("agent.log"), b.read("rank-1.log"))
		}
	})
}

func TestAFullDiskIsNeverASuccess(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo up; until [ -e go ]; do sleep 0.05; done"))
		b.waitLog("rank-0.log", "up")
		must(t, os.Remove(b.file("rank-0.exit.tmp")))
		must(t, os.Symlink("/dev/full", b.file("rank-0.exit.tmp")))
		must(t, os.WriteFile(filepath.Join(b.home, "go"), nil, 0o600))
		s := b.ended()
		if s.Exit.Code != 74 || s.Ranks[0].Code == 0 && len(s.Ranks) > 0 {
			t.Errorf("records %+v of %+v", s.Exit, s.Ranks)
		}
		if !strings.Contains(b.read("rank-0.log"), "is the disk full?") {
			t.Errorf("log: %q", b.read("rank-0.log"))
		}
	})
}

func TestALaunchThatCanNotWorkSaysWhyAndStartsNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		_, errs, code := b.try(b.launchText(ranks("exit 0"), func(l *Launch) { l.Dir = "no/such dir" }))
		if code != 66 || !strings.Contains(errs, "no/such dir is not there") {
			t.Errorf("exit %d: %s", code, errs)
		}
		text := b.launchText(ranks("exit 0"))
		if out, _, code := b.try(text[:len(text)*2/3]); code == 0 || out != "" || b.has("") {
			t.Errorf("a launch that was cut off did something: exit %d, %q", code, out)
		}
	})
}

func TestPeersAreToldWhyAndAtOnce(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		fake := filepath.Join(b.home, "ssh")
		must(t, os.WriteFile(fake, []byte("#!/bin/sh\nfor a; do last=$a; done\necho \"$* | $last\" >>$HOME/told\ncase \"$*\" in *@gone*) exit 255;; esac\n"), 0o700))
		must(t, os.WriteFile(filepath.Join(b.home, ".dlwb/peer_key"), []byte("key"), 0o600))
		b.env = append(b.env, "DLWB_SSH="+fake)
		b.launch(ranks("exit 3"), func(l *Launch) {
			l.Peers = []Peer{{Name: "node1", Host: "10.0.0.2", Port: 22, User: "me"}, {Name: "node2", Host: "gone", Port: 2222, User: "me"}}
		})
		b.ended()
		b.wantNothingLeft()
		told, err := os.ReadFile(filepath.Join(b.home, "told"))
		must(t, err)
		for _, want := range []string{"-p 22 ", "me@10.0.0.2 stop r1 rank 0 on node0 exited with code 3 | stop r1 rank", "-p 2222 ", "StrictHostKeyChecking=yes"} {
			if !strings.Contains(string(told), want) {
				t.Errorf("%q is not in what ssh was told: %s", want, told)
			}
		}
		wantOrder(t, b.state(), "peer node1 told")
		wantOrder(t, b.state(), "peer node2 not reached")
	})
}

func TestAPeerCanStopARunAndDoNothingElse(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		b.launch(ranks("echo up; " + forever))
		b.waitLog("rank-0.log", "up")
		for _, asked := range []string{"", "stop", "reboot", "stop ../r1 x", "stop r1;touch", "stop other why", "sh -c 'touch hacked'"} {
			if out, errs, code := b.try(fmt.Sprintf("SSH_ORIGINAL_COMMAND=%s sh .dlwb/bin/peer", quoteWord(asked))); code == 0 || errs == "" {
				t.Errorf("%q: exit %d, %q %q", asked, code, out, errs)
			}
		}
		if s := b.state(); s.State != RunRunning {
			t.Fatalf("state %+v", s)
		}
		b.sh("SSH_ORIGINAL_COMMAND='stop r1 rank 1 on node1 $(touch hacked) exited * with code 3' sh .dlwb/bin/peer")
		wantOrder(t, b.ended(), "stopping rank 1 on node1 $(touch hacked) exited * with code 3", "rank-ended 0 143 TERM", "ended 143")
		if _, err := os.Stat(filepath.Join(b.home, "hacked")); err == nil {
			t.Error("a peer's words were executed")
		}
	})
}

func TestStopWaitsForTheGPUsButNotForANvidiaSmiThatHangs(t *testing.T) {
	t.Parallel()
	b := newBox(t, "dash")
	smi := filepath.Join(b.bin, "nvidia-smi")
	// The first answer names the rank, the second one nobody.
	must(t, os.WriteFile(smi, []byte("#!/bin/sh\nif mkdir $HOME/asked 2>/dev/null; then cat $HOME/pid; fi\n"), 0o700))
	b.launch(ranks("echo $$ >$HOME/pid; echo up; " + forever))
	b.waitLog("rank-0.log", "up")
	if left := b.stop("300"); left != 0 {
		t.Errorf("left %d", left)
	}
	if _, err := os.Stat(filepath.Join(b.home, "asked")); err != nil {
		t.Error("nvidia-smi was not asked")
	}
	must(t, os.RemoveAll(b.file("")))
	must(t, os.WriteFile(smi, []byte("#!/bin/sh\nexec sleep 100\n"), 0o700))
	b.launch(ranks("echo up; " + forever))
	b.waitLog("rank-0.log", "up")
	began := time.Now()
	if left := b.stop("300"); left != 0 || time.Since(began) > 15*time.Second {
		t.Errorf("left %d after %v", left, time.Since(began))
	}
	b.wantNothingLeft()
}
