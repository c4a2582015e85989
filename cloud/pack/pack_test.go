package pack

import (
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
)

func TestLinesOfSeveralRanksAreToldApart(t *testing.T) {
	for line, want := range map[string][3]string{ // of rank 1, of rank 11, of the launcher
		"[rank1] a\n": {"a\n"}, "[rank1]+ half\n": {"half"}, "[rank11] b\n": {"", "b\n"}, "W1124 torchrun\n": {"", "", "W1124 torchrun\n"},
		"[rank1]: c10d says\n": {"", "", "[rank1]: c10d says\n"}, "[rankle] x\n": {"", "", "[rankle] x\n"}, "[rank1] \n": {"\n"},
	} {
		for i, log := range []string{"rank-1.log", "rank-11.log", "agent.log"} {
			text, is := Lines(log, true)([]byte(line))
			if is != (want[i] != "") || is && string(text) != want[i] {
				t.Errorf("%s of %q: %q, %v", log, line, text, is)
			}
		}
		if text, is := Lines("rank-0.log", false)([]byte(line)); !is || string(text) != line {
			t.Errorf("untagged %q: %q, %v", line, text, is)
		}
	}
}

// What is dlwb's own of a command is counted: only there are hosts put in later.
func TestTheUsersWordsStayAsTheyAre(t *testing.T) {
	j := cloud.Job{Replicas: 1, Procs: []cloud.JobProc{{Name: "agent", Ranks: []int{0, 1}, Env: []string{"MASTER_ADDR=" + job.HostOf(0)},
		Argv: []string{"torchrun", "--master-addr", job.HostOf(0), "--log-dir", "~/.dlwb/runs/x", "--no-python", "sh", "~/.dlwb/bin/rank", "x", "train.py", job.HostOf(0)}}}}
	n := Nodes(j, "/w", strings.NewReplacer(job.HostOf(0), "algo-1").Replace)[0]
	want := []string{"torchrun", "--master-addr", "algo-1", "--log-dir", "/w/torchrun", "--no-python", "python3", "-u", "/w/launch.py", "--rank", "train.py", job.HostOf(0)}
	if p := n.Procs[0]; !slices.Equal(p.Argv, want) || p.Own != 10 || p.Env[0] != "MASTER_ADDR=algo-1" || !n.Several() {
		t.Errorf("%+v", n)
	}
}
