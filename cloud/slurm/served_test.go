//go:build unix

package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/job"
)

// served is a job with a server, something that is waited for, and files.
func served(leads bool) cloud.Job {
	return cloud.Job{Run: "run", Replicas: 3, Leads: leads, Spec: cloud.Spec{Image: "/x.sif", Own: &options.Machines{}},
		Files: []cloud.JobFile{{Replica: 0, Name: "head.py", Text: "head"}, {Replica: 2, Name: "node.py", Text: "node"}},
		Procs: []cloud.JobProc{
			{Replica: 0, Name: "rank-0", Ranks: []int{0}, Argv: []string{"python3", "t.py"}, After: &cloud.JobReady{What: "all", Limit: 9, Argv: []string{"/usr/bin/python3", "~/.dlwb/runs/run/look.py"}}},
			{Replica: 2, Name: "ray", Helper: true, Argv: []string{"python3", "~/.dlwb/runs/run/node.py"}},
		}}
}

// What serves the ranks, what they wait for and which files they need goes to their node,
// with the paths that it has there and in the image that the ranks are in.
func TestAPartHasWhatServesItsRanks(t *testing.T) {
	j := served(true)
	var parts []cloud.Part
	for i := range j.Replicas {
		part, err := partOfJob(j, i, "/home/ada")
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	if a := parts[0].Procs[0].After; a == nil || a.What != "all" || a.Limit != 9 || !strings.HasSuffix(strings.Join(a.Argv, " "), "dlwb /x.sif python3 ~/.dlwb/runs/run.n0/look.py") {
		t.Errorf("rank 0 waits for %+v", a)
	}
	if j.Procs[0].After.Argv[1] != "~/.dlwb/runs/run/look.py" {
		t.Error("the job itself was changed")
	}
	if p := parts[2].Procs[0]; !p.Helper || p.Argv[len(p.Argv)-1] != "~/.dlwb/runs/run.n2/node.py" {
		t.Errorf("the server is %+v", p)
	}
	for i, want := range []string{"head.py", "", "node.py"} {
		if len(parts[i].Files) > 0 != (want != "") || want != "" && parts[i].Files[0].Name != want {
			t.Errorf("node%d has the files %+v", i, parts[i].Files)
		}
	}
	if !reflect.DeepEqual(parts[0].Others, []string{"run.n1", "run.n2"}) || parts[1].Others != nil || !parts[0].Leads || parts[0].Led || parts[1].Leads || !parts[1].Led || !parts[2].Led {
		t.Errorf("%+v", parts)
	}
	if part, err := partOfJob(served(false), 1, "/home/ada"); err != nil || part.Led || part.Leads {
		t.Errorf("nobody leads: %+v, %v", part, err)
	}
}

// Jobs that follow each other may run on one node at once: each port of theirs is one
// job's alone, and a job that begins again has other ones than its last life, which may
// still be going.
func TestNoTwoJobsInARowHaveAPortInCommon(t *testing.T) {
	_, _, home, bin := desk(t)
	fake(t, bin, "srun", `for port; do :; done; echo "$port" >>"$0.ports"`)
	fake(t, bin, "scontrol", "")
	script := filepath.Join(home, "script")
	const ports = 7
	if err := os.WriteFile(script, []byte(order{run: "run", home: home, agent: "agent", nodes: 1, ports: ports}.script()), 0o700); err != nil {
		t.Fatal(err)
	}
	taken := map[int]string{}
	for _, begun := range [][2]string{{"41", "0"}, {"41", "2"}, {"42", "2"}, {"43", "0"}, {"47", "0"}, {"48", "0"}, {"49", "0"}} {
		_ = os.RemoveAll(filepath.Join(jobDir(home, "run"), "begun-"+begun[1]))
		c := exec.Command("sh", script)
		c.Env = append(os.Environ(), "SLURM_JOB_NUM_NODES=1", "SLURM_JOB_ID="+begun[0], "SLURM_RESTART_COUNT="+begun[1])
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		said, _ := os.ReadFile(filepath.Join(bin, "srun.ports"))
		lines := strings.Fields(string(said))
		first := 0
		if _, err := fmt.Sscan(lines[len(lines)-1], &first); err != nil || first < 20000 || first > 30000 {
			t.Fatalf("the port is %q", lines)
		}
		for port := range ports {
			if who := taken[first+port]; who != "" {
				t.Errorf("port %d is that of job %s and of %v", first+port, who, begun)
			}
			taken[first+port] = fmt.Sprint(begun)
		}
	}
}

// written are the records of a part that has written these statuses.
type written struct {
	cloud.Records
	all []job.Status
}

func (w written) Told(ctx context.Context, sink func(job.Status) error) error {
	for _, s := range w.all {
		if err := sink(s); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func (w written) Look(context.Context) (job.State, error) { return job.State{}, nil }

type recorded struct {
	here
	written
}

func (r recorded) Records(string) cloud.Records { return r.written }

// The ranks of a part that was ended because the run is over have failed nothing, and are
// not told as if they had while the job still runs.
func TestTheRanksOfAPartThatWasReleasedAreNoFailure(t *testing.T) {
	p, life, home, bin := desk(t)
	told := []job.Status{{Kind: job.Started, Rank: -1}, {Kind: job.RankStarted, Rank: 1}, {Kind: job.Stopping, Rank: -1, Why: job.RunOver + "the run has ended on node0"},
		{Kind: job.RankEnded, Rank: 1, Code: 143, Signal: "TERM"}, {Kind: job.Ended, Rank: -1, Code: 143}}
	p.options.Machine = func(cloud.Node) cloud.Machine { return recorded{here{home: home}, written{all: told}} }
	fake(t, bin, "squeue", `[ -e "$0.over" ] || echo '9|RUNNING|n[1-2]|N/A|dlwb-run|None'`)
	fake(t, bin, "scontrol", `[ ! -e "${0%/*}/squeue.over" ] || { echo 'JobId=9 JobState=COMPLETED ExitCode=0:0'; exit; }; echo 'JobId=9 JobState=RUNNING Reason=None NodeList=n[1-2] ExitCode=0:0'`)
	fake(t, bin, "sacct", "exit 1")
	var got []job.Status
	looks := 0
	err := p.Open(life, refOf("9", "run", 2))[1].WatchStatus(t.Context(), func(s job.Status) error {
		got = append(got, s)
		return nil
	}, func(job.State) {
		if looks++; looks == 5 { // some behind those for which an end is held
			if len(got) != 2 {
				t.Errorf("while the job runs it tells %+v", got)
			}
			if err := os.WriteFile(filepath.Join(bin, "squeue.over"), nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) || !reflect.DeepEqual(got, told) {
		t.Errorf("%v: it tells %+v", err, got)
	}
}

// A job that was put back into the queue runs again before its part has told that it has:
// what the ranks of its last life came to, by the signal that ended it, is no end of the run.
func TestAnEndOfALifeThatIsOverIsNotToldInTheNext(t *testing.T) {
	p, life, home, bin := desk(t)
	part := filepath.Join(home, ".dlwb/runs", partOf("run", 1))
	fake(t, bin, "scontrol", "echo 'JobId=9 JobState=RUNNING Reason=None Restarts=1 NodeList=n1 PreemptTime=None'")
	for _, c := range []struct {
		name         string
		script, part []string // the lives of which there are marks
		told         int
		want         bool
	}{
		{"neither the script nor the part has begun again", []string{"0"}, []string{"0"}, 1, false},
		{"the script has, the part has not", []string{"0", "1"}, []string{"0"}, 1, false},
		{"both have, and that is not read yet", []string{"0", "1"}, []string{"0", "1"}, 1, false},
		{"its own", []string{"0", "1"}, []string{"0", "1"}, 2, true},
		{"its own, the part not having come to begin the first one", []string{"0", "1"}, []string{"1"}, 1, true},
		{"its own, the controller having lost one", []string{"0", "1", "2"}, []string{"0", "1", "2"}, 3, true},
		{"the controller has lost one, and the part has not begun again", []string{"0", "1", "2"}, []string{"0", "1"}, 2, false},
		{"no marks can be read", nil, nil, 1, false},
	} {
		_ = os.RemoveAll(part)
		left, _ := filepath.Glob(filepath.Join(jobDir(home, "run"), "begun-*"))
		for _, dir := range left {
			_ = os.RemoveAll(dir)
		}
		mark := func(prefix string, lives []string) {
			for _, n := range lives {
				if err := os.MkdirAll(prefix+n, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		mark(filepath.Join(jobDir(home, "run"), "begun-"), c.script)
		mark(filepath.Join(part, "life-"), c.part)
		ended := false
		s := story{replica: replica{p, life, "9", "run", 1}, sink: func(s job.Status) error {
			ended = ended || s.Kind == job.RankEnded
			return nil
		}}
		for range c.told {
			_ = s.take(job.Status{Kind: job.Started, Rank: -1})
		}
		_ = s.take(job.Status{Kind: job.RankEnded, Rank: 1, Code: 143, Signal: "TERM"})
		if err := s.release(t.Context()); err != nil || ended != c.want {
			t.Errorf("%s: the end is told: %v, %v", c.name, ended, err)
		}
	}
}
