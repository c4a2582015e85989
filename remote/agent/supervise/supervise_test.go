//go:build linux

package supervise_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/wire"
)

func TestARunThatEndsWellLeavesItsLogsAndRecords(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("echo one; echo two >&2", `printf 'no newline'`))
	s := b.ended()
	b.wantOrder("started", "rank 0 ended 0 -", "ended 0")
	b.wantOrder("started", "rank 1 started", "rank 1 ended 0 -", "ended 0")
	if b.record("exit") != "0 -" || b.record("rank-0.exit") != "0 -" || len(s.Exits) != 3 {
		t.Errorf("records: %+v", s)
	}
	if got := b.Read("rank-0.log") + b.Read("rank-1.log"); got != "one\ntwo\nno newline" {
		t.Errorf("logs hold %q", got)
	}
	if len(s.Logs) != 3 || s.Free <= 0 || s.Now == "" || string(s.Status) != b.Read("status") {
		t.Errorf("state: %+v", s)
	}
	if left, _ := filepath.Glob(b.File("*.tmp")); len(left) != 1 || left[0] != b.File("full.tmp") {
		t.Errorf("left behind: %v", left)
	}
}

func TestARankThatFailsEndsTheOthersAndSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, exit, why string }{
		{"exit 3", "exit 3", "3 -", "rank 1 on node0 exited with code 3"},
		{"kill -9", "kill -9 $$", "137 KILL", "rank 1 on node0 was killed by SIGKILL"},
		{"segfault", "kill -SEGV $$", "139 SEGV", "rank 1 on node0 was killed by SIGSEGV"},
		{"no such program", "exec no-such-program", "127 -", "rank 1 on node0 exited with code 127"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(ranks(forever, "sleep 0.1; "+c.program))
			b.ended()
			code, _, _ := strings.Cut(c.exit, " ")
			b.wantOrder("rank 1 ended "+c.exit, "stopping "+c.why, "rank 0 ended 143 TERM", "ended "+code)
			if b.record("exit") != c.exit {
				t.Errorf("exit record %q, want %s", b.record("exit"), c.exit)
			}
		})
	}
}

func TestAProgramThatIsNotThereIsNamedInTheLog(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("")
	procs[0].Argv = bytesOf("sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", "no-such-program", "x")
	b.launch(procs)
	b.ended()
	if b.record("rank-0.exit") != "127 -" || !strings.Contains(b.Read("rank-0.log"), "no-such-program") {
		t.Errorf("record %q, log %q", b.record("rank-0.exit"), b.Read("rank-0.log"))
	}
}

func TestSecretsAreInNoArgumentListAndInFilesOfTheUserOnly(t *testing.T) {
	t.Parallel()
	every := make([]byte, 0, 255)
	for c := 1; c < 256; c++ {
		every = append(every, byte(c))
	}
	value := "s3cret 'quoted' $HOME `x`\nEND\n" + string(every)
	b := newBox(t)
	b.launch(ranks(`printf %s "$TOKEN"; echo up >&2; `+forever), func(l *wire.LaunchRequest) { l.Env = bytesOf("TOKEN=" + value) })
	b.WaitLog("rank-0.log", "up")
	if got := strings.TrimSuffix(b.Read("rank-0.log"), "up\n"); got != value {
		t.Errorf("the rank saw %q, want %q", got, value)
	}
	for _, p := range b.Processes() {
		if strings.Contains(p.Args, "s3cret") {
			t.Errorf("a secret is in the arguments of %q", p.Args)
		}
	}
	if strings.Contains(b.Read("status"), "s3cret") {
		t.Error("a secret is in the status")
	}
	must(t, filepath.WalkDir(b.File(""), func(path string, d fs.DirEntry, err error) error {
		if info, _ := d.Info(); err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}))
	b.wantStopped("0")
}

func TestARankSeesItsEnvironmentAndNothingOfOurs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	must(t, os.Mkdir(filepath.Join(b.Home, "code"), 0o755))
	b.launch(ranks(`echo "$A $B $RANK role=$DLWB_ROLE run=$DLWB_RUN $DLWB_RUN_DIR $DLWB_RESULTS $PWD $(umask)"; [ -x "$DLWB_AGENT" ] && ls -d "$DLWB_RESULTS"; trap`),
		func(l *wire.LaunchRequest) {
			l.Dir, l.Results, l.Env = "code", "out/r1", bytesOf("A=1", "B=x", "B=2")
		})
	b.ended()
	want := fmt.Sprintf("1 2 0 role= run=r1 %[1]s/.dlwb/runs/r1 %[1]s/out/r1 %[1]s/code 0077\n%[1]s/out/r1\n", b.Home)
	if got := b.Read("rank-0.log"); got != want {
		t.Errorf("it saw %q, want %q", got, want)
	}
}

// Whoever launches may ignore signals: the training does not, nor has it less
// files open than it may.
func TestARankIgnoresNoSignal(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	program := "grep -E 'SigIgn|SigBlk' /proc/self/status; ulimit -Sn"
	text, err := cbor.Marshal(planOf(append(ranks(program), launcher(`RANK=1 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"`, program)...)))
	must(t, err)
	c := b.command("sh", "-c", "ulimit -Sn 512; trap '' HUP INT QUIT PIPE TERM USR1; exec "+b.self+" launch")
	c.Stdin = bytes.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.ended()
	for _, log := range []string{"rank-0.log", "rank-1.log"} {
		var blocked, ignored uint64
		files := 0
		_, err := fmt.Sscanf(strings.Join(strings.Fields(b.Read(log)), " "), "SigBlk: %x SigIgn: %x %d", &blocked, &ignored, &files)
		const threads = 1<<31 | 1<<32 // those that a C library keeps for its threads, and which the test may have got from its caller
		if err != nil || blocked != 0 || ignored&^threads != 0 || files != 512 {
			t.Errorf("%s: %q (%v)", log, b.Read(log), err)
		}
	}
}

func TestStopEndsWhateverARunHasStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program string }{
		{"plain", "echo up; " + forever},
		{"ignores TERM", "trap '' TERM; echo up; " + forever},
		{"dawdles", "trap 'sleep 30' TERM; echo up; " + forever},
		{"setsid", "setsid sh -c 'trap \"\" TERM; echo up; " + forever + "' & wait"},
		{"double fork", "(setsid sh -c '(trap \"\" TERM; echo up; " + forever + ")& ' &) ; " + forever},
		{"child without environment", "env -i $(command -v sh) -c 'trap \"\" TERM; echo up; " + forever + "' $HOME & wait"},
		{"claims to be ours", "DLWB_ROLE=supervise setsid sh -c 'trap \"\" TERM; echo up; " + forever + "' & wait"},
		{"is stopped", "echo up; kill -STOP $$"},
		{"forks all the time", "echo up; while :; do (trap '' TERM; sleep 5) & sleep 0.05; done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(ranks(c.program))
			b.WaitLog("rank-0.log", "up")
			b.wantStopped("400 because I say so")
			b.ended()
			b.wantOrder("started", "stopping because I say so", "ended 143")
			if b.record("rank-0.exit") == "" {
				t.Error("no record of the rank")
			}
		})
	}
}

func TestWhatAFinishedRunLeftBehindIsSweptUp(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("(setsid sh -c '" + forever + "' >/dev/null 2>&1 &); (env -i setsid sh -c '" + forever + "' >/dev/null 2>&1 &); exit 0"))
	b.ended()
	for _, p := range b.Processes() {
		if strings.Contains(p.Args, forever) {
			t.Errorf("%v is left", p)
		}
	}
	b.wantOrder("rank 0 ended 0 -", "ended 0")
	if strings.Contains(b.Read("status"), "stopping") {
		t.Error("sweeping up is no stop")
	}
	// Who writes nohup train.py & learns why nothing was trained, and not in the rank's log.
	if status := b.Read("status"); !strings.Contains(status, " left ") || strings.Contains(b.Read("rank-0.log"), "left") {
		t.Errorf("status says %q, the log %q", status, b.Read("rank-0.log"))
	}
}

func TestARankThatLeavesNothingBehindIsToldNothing(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("sleep 0.2 & echo trained")) // what ends soon by itself was not left
	b.ended()
	if status := b.Read("status"); strings.Contains(status, " left ") || b.Read("rank-0.log") != "trained\n" {
		t.Errorf("status says %q, the log %q", status, b.Read("rank-0.log"))
	}
}

func TestARankGetsOneTermAndItsGrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(program string) []wire.LaunchProc
	}{
		{"plain", func(program string) []wire.LaunchProc { return ranks(program) }},
		// The launcher ends its ranks' groups when it gets TERM itself.
		{"launcher", func(program string) []wire.LaunchProc {
			return launcher(`RANK=0 setsid sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & trap 'kill -TERM -$!; wait' TERM; wait; wait`, program)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(c.start("trap 'echo term; n=0; while [ $n -lt 5 ]; do sleep 0.1; n=$((n+1)); done; echo saved; exit 0' TERM; echo up; while :; do sleep 0.1; done"))
			b.WaitLog("rank-0.log", "up")
			b.wantStopped("20000 enough")
			// "Terminated" is what some shells say of the sleep that they waited for.
			if got := strings.ReplaceAll(b.Read("rank-0.log"), "Terminated\n", ""); got != "up\nterm\nsaved\n" {
				t.Errorf("log: %q", got)
			}
			b.ended()
			b.wantOrder("stopping enough", "rank 0 ended 0 -", "ended 143")
		})
	}
}

func TestLaunchingTwiceStartsOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	plan := planOf(ranks("echo up; " + forever))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if said, err := b.tryLaunch(plan); err != nil {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
	all.Wait()
	b.launch(plan.Procs)
	b.WaitLog("rank-0.log", "up")
	runbox.Within(t, runbox.Patience, "a line of the run's start and one of its rank's", func() bool {
		return strings.Count(b.Read("status"), " started ") >= 2
	})
	if s := b.state(); s.State != "running" {
		t.Errorf("state %+v", s)
	}
	b.wantStopped("0")
	b.launch(plan.Procs)
	if b.ended(); strings.Count(b.Read("status"), " started ") != 2 {
		t.Errorf("it was started again: %q", b.lines())
	}
}

func TestStopMayComeTwiceAtOnceLateOrBeforeAnything(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.wantStopped("100 too early")
	if s := b.state(); s.State != "absent" || b.run().Has("") {
		t.Errorf("state %+v", s)
	}
	b.launch(ranks("trap 'echo term' TERM; echo up; while :; do sleep 0.1; done"))
	b.WaitLog("rank-0.log", "up")
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { b.wantStopped("500 twice") })
	}
	all.Wait()
	if n := strings.Count(b.Read("rank-0.log"), "term"); n != 1 {
		t.Errorf("%d times TERM", n)
	}
	b.ended()
	before := b.Read("status")
	b.wantStopped("500 too late")
	if b.Read("status") != before || strings.Count(before, "stopping") != 1 {
		t.Errorf("status %q, before %q", b.Read("status"), before)
	}
}

func TestARunWhoseSupervisorWasKilledIsUnknownUntilStopped(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	hidden := `env -i setsid sh -c 'trap "" TERM; ` + forever + `' ` + b.Home + ` & `
	b.launch(append(ranks("echo up; "+hidden+forever),
		launcher(`for r in 1 2; do RANK=$r sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & done; wait`, "trap 'echo saved; exit 5' TERM; echo up; while :; do echo on; sleep 0.1; done")...))
	for i := range 3 {
		b.WaitLog(fmt.Sprintf("rank-%d.log", i), "up")
	}
	b.Kill(b.Supervisor(), syscall.SIGKILL)
	s := b.state()
	if s.State != "unknown" || b.run().Ended() || !strings.Contains(s.Why, "processes of the run") || s.Members < 6 {
		t.Errorf("state %+v", s)
	}
	// What a wrapper looks after goes on, and its output is kept.
	size := len(b.Read("rank-1.log"))
	runbox.Within(t, runbox.Patience, "a rank behind a wrapper prints on", func() bool { return len(b.Read("rank-1.log")) > size+20 })
	b.wantStopped("1500 lost")
	b.ended()
	b.wantOrder("stopping lost", "rank 1 ended 5 -", "rank 0 ended 137 KILL", "ended 137")
	if b.record("rank-2.exit") != "5 -" || !strings.HasSuffix(b.Read("rank-1.log"), "saved\n") {
		t.Errorf("record %q, log %q", b.record("rank-2.exit"), b.Read("rank-1.log"))
	}
}

func TestTermToSuperviseEndsTheRun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGPIPE, syscall.SIGTERM} {
		b.Kill(b.Supervisor(), sig)
	}
	b.ended()
	b.wantOrder("stopping supervise got SIGTERM", "rank 0 ended 143 TERM", "ended 143")
}

func TestAKilledWrapperCountsAsItsRanksEnd(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(launcher(`for r in 0 1; do RANK=$r sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & done; wait; sleep 100`,
		"trap 'exit 3' PIPE; echo up $PPID $$; "+forever))
	b.WaitLog("rank-1.log", "up")
	b.WaitLog("rank-0.log", "\n")
	var wrapper, program int
	_, err := fmt.Sscanf(b.Read("rank-0.log"), "up %d %d", &wrapper, &program)
	must(t, err)
	b.Kill(wrapper, syscall.SIGKILL)
	b.ended()
	b.wantOrder("rank 0 ended 137 KILL", "stopping rank 0 on node0 was killed by SIGKILL", "rank 1 ended 143 TERM", "ended 137")
	if runbox.IsAlive(program) {
		t.Error("the program lives on")
	}
}

// A launcher that ends well right behind a rank that failed hides nothing.
func TestARankThatFailedIsNotForgottenForItsLauncher(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct{ program, want string }{
		"a code":           {"exit 3", "3 -"},
		"a killed wrapper": {`kill -KILL "$PPID"; ` + forever, "137 KILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 8 {
				b := newBox(t)
				b.launch(launcher(`RANK=0 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"; exit 0`, one.program))
				b.ended()
				if b.record("exit") != one.want || b.record("rank-0.exit") != one.want {
					t.Fatalf("the run is recorded as %q, its rank as %q", b.record("exit"), b.record("rank-0.exit"))
				}
			}
		})
	}
}

func TestANumberThatWasGivenToAnotherProcessFoolsNobody(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	other := exec.Command("setsid", "sleep", "100")
	must(t, other.Start())
	defer func() { _, _ = other.Process.Kill(), other.Wait() }()
	time.Sleep(50 * time.Millisecond) // a number is not given again within one tick of the clock
	b.launch(ranks("echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	b.Kill(b.Supervisor(), syscall.SIGKILL)
	fields := strings.Fields(b.Read("pid"))
	fields[0] = strconv.Itoa(other.Process.Pid)
	must(t, os.WriteFile(b.File("pid"), []byte(strings.Join(fields, " ")+"\n"), 0o600))
	if s := b.state(); s.State != "unknown" {
		t.Errorf("state %+v", s)
	}
	b.wantStopped("300")
	if !runbox.IsAlive(other.Process.Pid) {
		t.Error("another process was killed")
	}
}

func TestARunOfAnEarlierBootIsKnownAsThat(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	f := strings.Fields(b.Read("pid"))
	half, _, _ := strings.Cut(f[2], "/")
	for boot, want := range map[string]string{f[2]: "running", half: "running", "another/1": "unknown", half + "/99999999999": "unknown"} {
		must(t, os.WriteFile(b.File("pid"), []byte(f[0]+" "+f[1]+" "+boot+"\n"), 0o600))
		if s := b.state(); s.State != want || s.Rebooted != (want == "unknown") {
			t.Errorf("boot %s: %+v", boot, s)
		}
	}
	must(t, os.WriteFile(b.File("pid"), []byte(strings.Join(f, " ")+"\n"), 0o600))
	b.wantStopped("0")
}

func TestTwoNodesOnOneMachineDoNotStopEachOther(t *testing.T) {
	t.Parallel()
	b, other := newBox(t), newBox(t)
	for _, box := range []*box{b, other} {
		box.launch(ranks("echo up; " + forever))
		box.WaitLog("rank-0.log", "up")
	}
	b.wantStopped("300")
	if s := other.state(); s.State != "running" {
		t.Errorf("the other node's run is %+v", s)
	}
	other.wantStopped("300")
}

func TestALaunchersRanksAreWatchedAndStopped(t *testing.T) {
	t.Parallel()
	// As torchrun does: it starts the ranks through the wrapper, and waits for
	// all, whatever becomes of one.
	b := newBox(t)
	b.launch(launcher(`for r in 0 1; do RANK=$r sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & done; echo started; wait`,
		`echo up; [ $RANK = 0 ] || { sleep 0.2; exit 3; }; `+forever))
	b.ended()
	b.wantOrder("rank 1 ended 3 -", "stopping rank 1 on node0 exited with code 3", "rank 0 ended 143 TERM", "ended 3")
	if !strings.HasPrefix(b.Read("agent.log"), "started\n") || b.Read("rank-1.log") != "up\n" {
		t.Errorf("logs: %q, %q", b.Read("agent.log"), b.Read("rank-1.log"))
	}
}

func TestARankThatIsStartedAgainWritesOn(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(launcher(`RANK=0 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"; RANK=0 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"`,
		"echo again; (sleep 100 &)"))
	b.ended()
	if got := b.Read("rank-0.log"); got != "again\nagain\n" || b.record("exit") != "0 -" {
		t.Errorf("log %q, record %q", got, b.record("exit"))
	}
}

func TestARankWithoutANumberSaysSo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	must(t, os.MkdirAll(b.File(""), 0o700))
	for _, number := range []string{"", "x", "-1", "1/../2", "99999999999"} {
		_, errs, code := b.try("RANK=" + number + " sh ~/.dlwb/bin/rank " + b.File("") + " true")
		if code != 64 || !strings.Contains(errs, "a launcher must set it") {
			t.Errorf("%q: exit code %d, %q", number, code, errs)
		}
	}
}

func TestAFullDiskIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(program string) []wire.LaunchProc{
		"plain": func(program string) []wire.LaunchProc { return ranks(program) },
		"launcher": func(program string) []wire.LaunchProc {
			return launcher(`RANK=0 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"; echo code $?`, program)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(start("echo up; until [ -e go ]; do sleep 0.05; done"))
			b.WaitLog("rank-0.log", "up")
			must(t, os.Remove(b.File("rank-0.exit.tmp")))
			must(t, os.Symlink("/dev/full", b.File("rank-0.exit.tmp")))
			must(t, os.WriteFile(filepath.Join(b.Home, "go"), nil, 0o600))
			s := b.ended()
			if b.record("exit") != "74 -" || b.record("rank-0.exit") == "0 -" {
				t.Errorf("records %+v", s.Exits)
			}
			if !strings.Contains(b.Read("rank-0.log"), "is the disk full?") {
				t.Errorf("log: %q", b.Read("rank-0.log"))
			}
			if name == "launcher" && !strings.Contains(b.Read("agent.log"), "code 74") {
				t.Errorf("the launcher saw %q", b.Read("agent.log"))
			}
		})
	}
}

func TestALaunchThatCanNotWorkSaysWhyAndStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for want, change := range map[string]func(*wire.LaunchRequest){
		"no/such dir is not there": func(l *wire.LaunchRequest) { l.Dir = "no/such dir" },
		"is not a run id":          func(l *wire.LaunchRequest) { l.RunID = "../r1" },
		"is no process":            func(l *wire.LaunchRequest) { l.Procs[0].Log = "../x" },
		"nothing to start":         func(l *wire.LaunchRequest) { l.Procs = nil },
		"out of bounds":            func(l *wire.LaunchRequest) { l.Segment = 0 },
	} {
		said, err := b.tryLaunch(planOf(ranks("exit 0"), change))
		if err == nil || !strings.Contains(said, want) || b.run().Has("") {
			t.Errorf("%v, %q, want %q", err, said, want)
		}
	}
}

func TestPeersAreToldWhyAndAtOnce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	fake := filepath.Join(b.Home, "ssh")
	must(t, testprogram.Write(fake, []byte("#!/bin/sh\nfor a; do last=$a; done\necho \"$* | $last\" >>$HOME/told\ncase \"$*\" in *@gone*) exit 255;; esac\n"), 0o700))
	must(t, os.WriteFile(filepath.Join(b.Home, ".dlwb/peer_key"), []byte("key"), 0o600))
	b.env = append(b.env, "DLWB_SSH="+fake)
	b.launch(ranks("exit 3"), func(l *wire.LaunchRequest) {
		l.Peers = []wire.LaunchPeer{{Name: "node1", Host: "10.0.0.2", Port: 22, User: "me"}, {Name: "node2", Host: "gone", Port: 2222, User: "me"}}
	})
	b.ended()
	runbox.Within(t, runbox.Patience, "both are told", func() bool {
		return strings.Contains(b.Read("status"), "peer node1 told") && strings.Contains(b.Read("status"), "peer node2 not reached")
	})
	told, err := os.ReadFile(filepath.Join(b.Home, "told"))
	must(t, err)
	for _, want := range []string{"-p 22 ", "me@10.0.0.2 stop r1 rank 0 on node0 exited with code 3 | stop r1 rank", "-p 2222 ", "StrictHostKeyChecking=yes"} {
		if !strings.Contains(string(told), want) {
			t.Errorf("%q is not in what ssh was told: %s", want, told)
		}
	}
}

func TestAPeerCanStopARunAndDoNothingElse(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(ranks("echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	ask := func(words string) (string, string, int) {
		return b.try("SSH_ORIGINAL_COMMAND='" + strings.ReplaceAll(words, "'", `'\''`) + "' sh .dlwb/bin/peer")
	}
	for _, asked := range []string{"", "stop", "reboot", "stop ../r1 x", "stop r1;touch", "stop other why", "sh -c 'touch hacked'"} {
		if out, errs, code := ask(asked); code == 0 || errs == "" {
			t.Errorf("%q: exit %d, %q %q", asked, code, out, errs)
		}
	}
	if s := b.state(); s.State != "running" {
		t.Fatalf("state %+v", s)
	}
	if out, errs, code := ask("stop r1 rank 1 on node1 $(touch hacked) exited * with code 3"); code != 0 || out != "stopping r1\n" {
		t.Errorf("exit %d, %q %q", code, out, errs)
	}
	b.ended()
	b.wantOrder("stopping rank 1 on node1 $(touch hacked) exited * with code 3", "rank 0 ended 143 TERM", "ended 143")
	if _, err := os.Stat(filepath.Join(b.Home, "hacked")); err == nil {
		t.Error("a peer's words were executed")
	}
}

func TestStopWaitsForTheGPUsButNotForANvidiaSmiThatHangs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	bin := filepath.Join(b.Home, "bin")
	must(t, os.Mkdir(bin, 0o755))
	b.env = append(b.env, "PATH="+bin+":"+os.Getenv("PATH"))
	smi := filepath.Join(bin, "nvidia-smi")
	// The first answer names the rank, the second one nobody.
	must(t, testprogram.Write(smi, []byte("#!/bin/sh\nif mkdir $HOME/asked 2>/dev/null; then cat $HOME/pid; else : >$HOME/again; fi\n"), 0o700))
	b.launch(ranks("echo $$ >$HOME/pid; echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	b.wantStopped("300")
	if _, err := os.Stat(filepath.Join(b.Home, "again")); err != nil {
		t.Error("nvidia-smi was not asked until the memory was free")
	}
	b.ended()
	runbox.Within(t, runbox.Patience, "the supervisor has ended", func() bool { return len(b.Processes()) == 0 })
	must(t, os.RemoveAll(b.File("")))
	must(t, testprogram.Write(smi, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700))
	b.launch(ranks("echo up; " + forever))
	b.WaitLog("rank-0.log", "up")
	began := time.Now()
	b.wantStopped("300")
	if took := time.Since(began); took > runbox.Patience {
		t.Errorf("it took %v", took)
	}
	b.ended()
}
