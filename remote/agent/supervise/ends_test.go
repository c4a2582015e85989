//go:build linux

package supervise_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/remote/wire"
)

// endings are all ways in which a program can end: each exit code, and each
// signal that ends one. n is how it is told on a program's command line.
func endings() map[string]string {
	all := map[string]string{}
	for code := range 256 {
		all[fmt.Sprintf("exit %d", code)] = fmt.Sprintf("%d -", code)
	}
	for n, name := range map[int]string{1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL",
		10: "USR1", 11: "SEGV", 12: "USR2", 13: "PIPE", 14: "ALRM", 15: "TERM", 16: "STKFLT", 24: "XCPU", 25: "XFSZ", 26: "VTALRM",
		27: "PROF", 29: "POLL", 30: "PWR", 31: "SYS", 34: "RTMIN+0", 40: "RTMIN+6", 64: "RTMIN+30"} {
		all[fmt.Sprintf("kill -%d $$", n)] = fmt.Sprintf("%d %s", 128+n, name)
	}
	return all
}

// An end of a rank is recorded as it was, by many ranks that end at once, behind
// wrappers and without.
func TestEveryEndOfARankIsRecordedAsItWas(t *testing.T) {
	t.Parallel()
	const together = 40
	number := sample.Of(t, 400, 10_000, "ends")
	all := endings()
	var programs []string
	for len(programs) < number {
		for program := range all {
			programs = append(programs, program)
		}
	}
	rand.Shuffle(len(programs), func(i, j int) { programs[i], programs[j] = programs[j], programs[i] })
	programs = programs[:number]
	wrong, seen := 0, 0
	for round := 0; len(programs) > 0; round++ {
		some := programs[:min(together, len(programs))]
		programs = programs[len(some):]
		b := newBox(t)
		procs := ranks(some...)
		if round%2 == 0 {
			procs = launcher(launchAll, some...)
		}
		// Nobody is stopped for the end of another one.
		b.launch(procs, func(l *wire.LaunchRequest) { l.Patience = 600_000 })
		b.wait(len(some))
		for i, program := range some {
			seen++
			name := strconv.Itoa(i)
			if got := b.record("rank-" + name + ".exit"); got != all[program] {
				t.Errorf("%q is recorded as %q", program, got)
				wrong++
			}
			if want := "rank " + name + " ended " + all[program]; !strings.Contains(strings.Join(b.lines(), "\n")+"\n", want+"\n") {
				t.Errorf("%q is missing in the status: %q", want, b.lines())
				wrong++
			}
		}
		b.wantStopped("0")
	}
	t.Logf("%d ends, %d wrong records", seen, wrong)
}

// wait waits for the records of so many ranks, and for what is said of them.
func (b *box) wait(number int) {
	b.T.Helper()
	runbox.Within(b.T, runbox.Patience, "all ranks are recorded", func() bool {
		done, _ := filepath.Glob(b.File("rank-*.exit"))
		return len(done) == number && strings.Count(b.Read("status"), " ended ") >= number
	})
}

// launchAll starts each of its arguments as a rank behind a wrapper, and waits.
const launchAll = `r=0; for p; do RANK=$r setsid sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$p" & r=$((r+1)); done; wait`

// Ranks that are ended from outside: by their launcher, which ends the wrapper
// or the whole group at once, also while the program ends by itself, or by
// whoever kills processes of the run in any order.
func TestARankThatIsEndedFromOutsideIsRecordedAsItEnded(t *testing.T) {
	t.Parallel()
	const together = 20
	wrong, seen := 0, 0
	for number := sample.Of(t, 100, 2_500, "ends"); seen < number; {
		b := newBox(t)
		// A program takes its TERM once, says so, and exits with a code of its own, or
		// ends by it.
		programs := make([]string, together)
		for i := range programs {
			programs[i] = fmt.Sprintf("trap 'echo term; exit %d' TERM; echo up $PPID $$; while :; do sleep 0.05; done", 3+i)
			if i%2 == 0 {
				programs[i] = "echo up $PPID $$; while :; do sleep 0.05; done"
			}
		}
		b.launch(launcher(launchAll, programs...), func(l *wire.LaunchRequest) { l.Patience = 600_000 })
		var all sync.WaitGroup
		order := rand.Perm(together)
		for _, i := range order {
			b.WaitLog(fmt.Sprintf("rank-%d.log", i), "\n")
			var wrapper, program int
			if _, err := fmt.Sscanf(b.Read(fmt.Sprintf("rank-%d.log", i)), "up %d %d", &wrapper, &program); err != nil {
				t.Fatal(err)
			}
			target, sig := -wrapper, syscall.SIGTERM
			switch i % 5 {
			case 1:
				target = wrapper
			case 2:
				target, sig = program, syscall.SIGKILL
			case 3:
				target, sig = wrapper, syscall.SIGKILL
			case 4:
				target, sig = -wrapper, syscall.SIGKILL
			}
			all.Go(func() { _ = syscall.Kill(target, sig) })
		}
		all.Wait()
		b.wait(together)
		for i := range together {
			want := "137 KILL"
			if i%5 < 2 && i%2 == 0 {
				want = "143 TERM"
			} else if i%5 < 2 {
				want = fmt.Sprintf("%d -", 3+i)
			}
			log := b.Read(fmt.Sprintf("rank-%d.log", i))
			terms := strings.Count(log, "term")
			if got := b.record(fmt.Sprintf("rank-%d.exit", i)); got != want || i%5 < 2 && i%2 == 1 && terms != 1 {
				t.Errorf("rank %d is recorded as %q, want %q; it said %q", i, got, want, log)
				wrong++
			}
			seen++
		}
		b.wantStopped("0")
	}
	t.Logf("%d ends, %d wrong records", seen, wrong)
}

// A launcher sees of a wrapper what it would see of the program in a shell.
func TestAWrapperExitsWithItsProgramsCode(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	must(t, os.MkdirAll(b.File(""), 0o700)) // nobody supervises this
	for program, want := range map[string]string{"exit 0": "0 -", "exit 7": "7 -", "exit 255": "255 -", "kill -9 $$": "137 KILL", "kill -TERM $$": "143 TERM"} {
		c := b.command("sh", filepath.Join(b.Home, ".dlwb/bin/rank"), b.File(""), "sh", "-c", "echo on its own; "+program)
		c.Env = append(c.Env, "RANK=0")
		_ = c.Run()
		code, _, _ := strings.Cut(want, " ")
		if got := fmt.Sprint(c.ProcessState.ExitCode()); got != code || b.record("rank-0.exit") != want {
			t.Errorf("%q: exit code %s, recorded as %q", program, got, b.record("rank-0.exit"))
		}
	}
	if got := strings.Count(b.Read("rank-0.log"), "on its own\n"); got != 5 {
		t.Errorf("the log holds %d lines", got)
	}
}

// A launcher may end wrapper and program at once, where nobody supervises too.
func TestALauncherThatEndsAGroupEndsARankOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	must(t, os.MkdirAll(b.File(""), 0o700))
	for i := range 20 {
		rank := b.command("sh", filepath.Join(b.Home, ".dlwb/bin/rank"), b.File(""), "sleep", "300")
		rank.Env = append(rank.Env, "RANK=0")
		must(t, rank.Start())
		runbox.Within(t, runbox.Patience, "the start of the rank", func() bool { return strings.Contains(b.Read("status"), "rank 0 started") })
		target := -rank.Process.Pid
		if i%4 == 0 {
			target = rank.Process.Pid
		}
		must(t, syscall.Kill(target, syscall.SIGTERM))
		_ = rank.Wait()
		if code := rank.ProcessState.ExitCode(); code != 143 || b.record("rank-0.exit") != "143 TERM" {
			t.Fatalf("exit code %d, recorded as %q", code, b.Read("rank-0.exit"))
		}
		must(t, os.Remove(b.File("status")))
	}
}

// pythonWithTorch is an interpreter with PyTorch; the test that needs one is
// skipped elsewhere.
func pythonWithTorch(t *testing.T) string {
	t.Helper()
	const python = "/usr/bin/python3"
	if out, err := exec.Command(python, "-c", "import importlib.util as u; print(u.find_spec('torch') is not None)").Output(); err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Skip("NOT RUN: /usr/bin/python3 has no PyTorch here")
	}
	return python
}

func TestARankUnderTorchrunThatFailsEndsTheOthers(t *testing.T) {
	python := pythonWithTorch(t)
	t.Parallel()
	b := newBox(t)
	program := `import os, sys, time
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], flush=True)
if os.environ["RANK"] == "1":
    sys.exit(3)
time.sleep(100)`
	b.launch([]wire.LaunchProc{{
		Name: "agent", Log: "agent.log", Env: bytesOf("OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=lo"),
		Argv: bytesOf(python, "-m", "torch.distributed.run", "--standalone", "--nnodes=1", "--nproc_per_node=2",
			"-r", "9:1", "-t", "9:1", "--no_python", "sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", python, "-c", program),
	}})
	b.ended()
	b.wantOrder("rank 1 ended 3 -", "stopping rank 1 on node0 exited with code 3", "ended 3")
	if b.Read("rank-0.log") != "rank 0 of 2\n" || b.Read("rank-1.log") != "rank 1 of 2\n" {
		t.Errorf("logs %q and %q; the agent said %s", b.Read("rank-0.log"), b.Read("rank-1.log"), b.Read("agent.log"))
	}
	if got := b.record("rank-0.exit"); got != "143 TERM" {
		t.Errorf("rank 0 ended with %q", got)
	}
}
