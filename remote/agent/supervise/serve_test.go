//go:build linux

package supervise_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/remote/wire"
)

// helper serves the ranks, and says when it is told to end.
func helper(program string) wire.LaunchProc {
	return wire.LaunchProc{Name: "helper", Log: "agent.log", Helper: true, Argv: bytesOf("sh", "-c", program)}
}

const serving = `trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.1; done`

func TestAHelperEndsWithTheRanksAndIsNoFailure(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(append(ranks(`until grep -q up "$DLWB_RUN_DIR/agent.log"; do sleep 0.05; done; echo trained`), helper(serving)))
	b.ended()
	if b.record("exit") != "0 -" || !strings.Contains(b.Read("agent.log"), "told") {
		t.Errorf("exit record %q, the helper said %q", b.record("exit"), b.Read("agent.log"))
	}
}

func TestARunThatLosesItsHelperHasFailed(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"sleep 0.3; exit 0", "sleep 0.3; exit 3", "kill -9 $$"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.launch(append(ranks(forever), helper(how)), func(l *wire.LaunchRequest) { l.Patience = 100 })
			b.ended()
			if b.record("exit") == "0 -" || !strings.Contains(b.Read("status"), "stopping helper on") {
				t.Errorf("exit record %q, status:\n%s", b.record("exit"), b.Read("status"))
			}
		})
	}
}

// A node that only serves ranks elsewhere waits to be told, and did well.
func TestANodeOfHelpersAloneIsToldThatTheRunIsOver(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch([]wire.LaunchProc{helper(serving)})
	b.WaitLog("agent.log", "up")
	if b.Has("exit") {
		t.Fatal("it ended by itself")
	}
	b.wantStopped("- over: the run has ended on node0")
	b.ended()
	if b.record("exit") != "0 -" {
		t.Errorf("exit record %q", b.record("exit"))
	}
}

func TestAProcessWaitsForWhatItNeeds(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("echo trained with $SEEN")
	procs[0].Env = append(procs[0].Env, bytesOf("SEEN=yes")...)
	procs[0].After = &wire.LaunchReady{What: "every node", Limit: 30,
		Argv: bytesOf("sh", "-c", `echo look >>looks; test "$SEEN" = yes && test $(wc -l <looks) -ge 3`)}
	b.launch(procs, func(l *wire.LaunchRequest) {
		l.Files = []wire.LaunchFile{{Name: "hostfile", Text: []byte("node1 slots=2\n")}}
	})
	b.ended()
	if b.record("exit") != "0 -" || b.Read("rank-0.log") != "trained with yes\n" {
		t.Errorf("exit record %q, log %q", b.record("exit"), b.Read("rank-0.log"))
	}
	if looks, _ := os.ReadFile(filepath.Join(b.Home, "looks")); strings.Count(string(looks), "look") != 3 {
		t.Errorf("it looked %q", looks)
	}
	if b.Read("hostfile") != "node1 slots=2\n" {
		t.Errorf("the file of the plan holds %q", b.Read("hostfile"))
	}
}

func TestWhatDoesNotComeIsNamed(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("echo never")
	procs[0].After = &wire.LaunchReady{What: "every node of the cluster", Limit: 1, Argv: bytesOf("sh", "-c", "echo node1 has not joined; exit 1")}
	b.launch(append(procs, helper(serving)))
	b.ended()
	if got := b.Read("rank-0.log"); got != "dlwb: waited 1s for every node of the cluster: node1 has not joined\n" {
		t.Errorf("the log says %q", got)
	}
	if b.record("rank-0.exit") != "69 -" || b.record("exit") != "69 -" {
		t.Errorf("records %q and %q", b.record("rank-0.exit"), b.record("exit"))
	}
}

func TestWhatIsWaitedForIsToldMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("echo trained")
	procs[0].After = &wire.LaunchReady{What: "2 nodes", Limit: 3600, Argv: bytesOf("sh", "-c", "echo node1 has not joined; test -e joined")}
	b.launch(procs)
	runbox.Within(t, runbox.Patience, "the log names what is missing", func() bool {
		return strings.Contains(b.Read("rank-0.log"), "dlwb: waiting for 2 nodes: node1 has not joined\n")
	})
	if err := os.WriteFile(filepath.Join(b.Home, "joined"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.ended()
	if got := b.Read("rank-0.log"); !strings.HasSuffix(got, "trained\n") || strings.Count(got, "waiting for 2 nodes") != 1 {
		t.Errorf("the log says %q", got)
	}
}

func TestWhatWillNotComeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("echo never")
	procs[0].After = &wire.LaunchReady{What: "2 nodes", Limit: 3600, Argv: bytesOf("sh", "-c", "echo node1 has not joined; exit 3")}
	b.launch(procs)
	b.ended()
	if got := b.Read("rank-0.log"); got != "dlwb: there is not all of 2 nodes: node1 has not joined\n" || b.record("exit") != "69 -" {
		t.Errorf("the log says %q, the record %q", got, b.record("exit"))
	}
}

func TestAStopEndsTheWaitToo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	procs := ranks("echo never")
	procs[0].After = &wire.LaunchReady{What: "what never comes", Limit: 3600, Argv: bytesOf("sh", "-c", "touch looked; sleep 0.1; exit 1")}
	b.launch(procs)
	runbox.Within(t, runbox.Patience, "it looks", func() bool { _, err := os.Stat(filepath.Join(b.Home, "looked")); return err == nil })
	b.wantStopped("1000 asked: by a test")
	b.ended()
	if b.record("exit") != "143 TERM" || strings.Contains(b.Read("rank-0.log"), "waited") {
		t.Errorf("exit record %q, log %q", b.record("exit"), b.Read("rank-0.log"))
	}
}

// A launcher that starts failed ranks again decides what their ends mean.
func TestARankThatIsStartedAgainHasNotFailed(t *testing.T) {
	t.Parallel()
	rank := `RANK=1 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1"; `
	for _, c := range []struct{ name, launcher, want string }{
		{"the second time it is good", rank + rank, "0 -"},
		{"never", rank + rank + "exit 1", "9 -"},
		// What its launcher ends then has a smaller number, and is not at fault.
		{"never, and others are ended", rank + rank + `RANK=0 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c 'kill $$'; exit 1`, "9 -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := `echo try; test -e again && exit 0; touch again; exit 7`
			if c.want != "0 -" {
				program = `echo try; exit 9`
			}
			b := newBox(t)
			b.launch(launcher(c.launcher, program), func(l *wire.LaunchRequest) { l.Restarts, l.Patience = true, 100 })
			b.ended()
			if b.record("exit") != c.want || strings.Count(b.Read("rank-1.log"), "try") != 2 {
				t.Errorf("exit record %q, log %q", b.record("exit"), b.Read("rank-1.log"))
			}
			// What it fails by is told at once, with the moment in which it did.
			if s := b.Read("status"); !strings.Contains(s, "rank 1 restarted") || strings.Index(s, "rank 1 failed") > strings.Index(s, "rank 1 restarted") ||
				!strings.Contains(s, "rank 1 failed") {
				t.Errorf("status:\n%s", b.Read("status"))
			}
			if c.want == "0 -" && strings.Contains(b.Read("status"), "rank 1 ended 7") {
				t.Errorf("an end that was none is told:\n%s", b.Read("status"))
			}
		})
	}
}

func TestALauncherMaySayTheRankInItsOwnWords(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(launcher(`RANK=9 DLWB_RANK_BASE=4 LOCAL_RANK=1 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c 'echo rank $RANK'
DLWB_RANK_VAR=OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_RANK=3 sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" echo by mpi`))
	b.ended()
	if b.Read("rank-5.log") != "rank 9\n" || b.Read("rank-3.log") != "by mpi\n" {
		t.Errorf("rank 5 says %q, rank 3 %q", b.Read("rank-5.log"), b.Read("rank-3.log"))
	}
}

func TestAFileOfAPlanNeverTakesTheNameOfARecord(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"exit", "status", "launch", "rank-0.exit", "../x", "a/b", ""} {
		b := newBox(t)
		if _, err := b.tryLaunch(planOf(ranks("true"), func(l *wire.LaunchRequest) { l.Files = []wire.LaunchFile{{Name: name}} })); err == nil {
			t.Errorf("%d: %q was written", i, name)
		}
	}
}

// A helper that does not heed TERM is killed, with what it started.
func TestAHelperThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(append(ranks(`until grep -q up "$DLWB_RUN_DIR/agent.log"; do sleep 0.05; done`), helper(`trap '' TERM; setsid sh -c 'trap "" TERM; `+forever+`' & echo up; `+forever)))
	b.ended()
	if left := b.Left(runbox.Patience); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
