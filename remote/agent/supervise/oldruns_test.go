//go:build linux

package supervise_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/wire"
)

// testdata/scripts are what the last dlwb before the agent put on a node. What
// lies on a node's disk is the contract with it.

// newOldBox is a node with a run of r1 that an older dlwb has launched.
func newOldBox(t *testing.T, programs ...string) *box {
	t.Helper()
	b := newBox(t)
	b.putScripts("common", "supervise", "rank", "log", "stop", "state")
	must(t, os.MkdirAll(b.File(""), 0o700))
	files := map[string]string{
		"env": "export A=1\n", "dir": b.Home + "\n", "procs": "",
		"settings": "node=node0\ngrace_ms=1000\nfail_grace=0.3\nsegment=67108864\nkeep=64\n",
	}
	for i, program := range programs {
		files["procs"] += fmt.Sprintf("rank-%[1]d rank-%[1]d.log\n", i)
		files[fmt.Sprintf("proc.rank-%d", i)] = fmt.Sprintf(". \"$DLWB_RUN_DIR/env\"\nexport RANK=%d\nread -r dir <\"$DLWB_RUN_DIR/dir\" && cd \"$dir\" || exit 66\n"+
			"exec sh \"$HOME\"/.dlwb/bin/rank \"$HOME\"/.dlwb/runs/r1 sh -c '%s'\n", i, strings.ReplaceAll(program, "'", `'\''`))
	}
	for name, text := range files {
		must(t, os.WriteFile(b.File(name), []byte(text), 0o600))
	}
	b.sh("exec sh ~/.dlwb/bin/supervise ~/.dlwb/runs/r1")
	return b
}

// putScripts puts scripts of before in place.
func (b *box) putScripts(names ...string) {
	b.T.Helper()
	for _, name := range names {
		text, err := os.ReadFile("testdata/scripts/" + name + ".sh")
		must(b.T, err)
		path := filepath.Join(b.Home, ".dlwb/bin", name)
		must(b.T, testprogram.Write(path+".new", text, 0o755))
		must(b.T, os.Rename(path+".new", path))
	}
}

// putStubs puts the agent in their place.
func (b *box) putStubs() {
	b.T.Helper()
	for _, mode := range []string{"rank", "stop", "peer"} {
		path := filepath.Join(b.Home, ".dlwb/bin", mode)
		must(b.T, testprogram.Write(path+".new", []byte("exec '"+b.self+"' "+mode+" \"$@\"\n"), 0o755))
		must(b.T, os.Rename(path+".new", path))
	}
}

func TestARunOfAnOlderDlwbIsFollowedAndStopped(t *testing.T) {
	t.Parallel()
	hidden := `(env -i $(command -v sh) -c 'trap "" TERM; echo hidden; ` + forever + `' ` + "$HOME" + ` &); `
	b := newOldBox(t, "echo up; "+hidden+forever, "trap 'echo saved; exit 5' TERM; echo up; while :; do sleep 0.1; done")
	b.putStubs()
	b.WaitLog("rank-0.log", "hidden")
	b.WaitLog("rank-1.log", "up")
	runbox.Within(t, runbox.Patience, "it is noted that both ranks are there", func() bool { return strings.Count(b.Read("status"), " started ") == 3 })
	s := b.state()
	if s.State != "running" || len(s.Logs) < 2 || !strings.Contains(string(s.Status), "rank 1 started") {
		t.Errorf("state %+v", s)
	}
	b.wantStopped("20000 enough")
	b.ended()
	b.wantOrder("stopping enough", "rank 1 ended 5 -", "ended 143")
	if b.record("exit") != "143 TERM" || b.record("rank-0.exit") != "143 TERM" || !strings.HasSuffix(b.Read("rank-1.log"), "saved\n") {
		t.Errorf("records %q %q, log %q", b.record("exit"), b.record("rank-0.exit"), b.Read("rank-1.log"))
	}
}

func TestAnOlderSupervisorIsServedByTheAgent(t *testing.T) {
	t.Parallel()
	// Its second rank begins when the agent has taken the place of the scripts.
	b := newOldBox(t, "echo up; "+forever,
		`echo up; until [ -e go ]; do sleep 0.05; done; RANK=2 exec sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c 'echo new; exit 3'`)
	b.WaitLog("rank-1.log", "up")
	b.putStubs()
	must(t, os.WriteFile(filepath.Join(b.Home, "go"), nil, 0o600))
	b.ended()
	b.wantOrder("rank 2 ended 3 -", "stopping rank 2 on node0 exited with code 3", "rank 0 ended 143 TERM", "ended 3")
	if b.Read("rank-2.log") != "new\n" || b.record("rank-2.exit") != "3 -" || b.record("rank-1.exit") != "3 -" {
		t.Errorf("log %q, records %+v", b.Read("rank-2.log"), b.state().Exits)
	}
}

func TestARunOfAnOlderDlwbWhoseSupervisorWasKilledIsStopped(t *testing.T) {
	t.Parallel()
	b := newOldBox(t, "echo up; "+forever)
	b.putStubs()
	b.WaitLog("rank-0.log", "up")
	b.Kill(b.Supervisor(), syscall.SIGKILL)
	if s := b.state(); s.State != "unknown" || s.Members < 3 {
		t.Errorf("state %+v", s)
	}
	b.wantStopped("1000 lost")
	b.ended()
	b.wantOrder("stopping lost", "rank 0 ended 143 TERM", "ended 137")
}

func TestAnOlderDlwbSeesAndStopsARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.launch(launcher(`for r in 0 1; do RANK=$r sh ~/.dlwb/bin/rank "$DLWB_RUN_DIR" sh -c "$1" & done; wait`, "echo up; "+forever),
		func(l *wire.LaunchRequest) { l.Grace = 2000 })
	b.WaitLog("rank-0.log", "up")
	b.WaitLog("rank-1.log", "up")
	b.putScripts("common", "supervise", "rank", "log", "stop", "state")
	if out := b.sh("sh ~/.dlwb/bin/state r1"); !strings.HasPrefix(out, "state running\n") || !strings.Contains(out, "size 3 rank-0.log 0\n") {
		t.Errorf("it sees %q", out)
	}
	b.wantStopped("- by another one")
	if out := b.sh("sh ~/.dlwb/bin/state r1"); !strings.HasPrefix(out, "state ended\n") || !strings.Contains(out, "\nexit 143 TERM ") ||
		!strings.Contains(out, "\nrank-1.exit 143 TERM ") {
		t.Errorf("it sees %q", out)
	}
	b.ended()
	b.wantOrder("stopping by another one", "rank 0 ended 143 TERM", "ended 143")
}
