package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/slurm/options"
	"github.com/dlwb/dlwb/internal/job"
)

// What Slurm 22.05 printed, cut at the margin.
const partitionsSaid = `PartitionName=gpu AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL Default=YES QoS=N/A DefaultTime=00:10:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO MaxNodes=UNLIMITED MaxTime=01:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED Nodes=n[1-3] PriorityJobFactor=1 PriorityTier=10 RootOnly=NO ReqResv=NO OverSubscribe=NO OverTimeLimit=NONE PreemptMode=OFF State=UP TotalCPUs=24 TotalNodes=3 SelectTypeParameters=NONE JobDefaults=(null) DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED TRES=cpu=24,mem=48000M,node=3,billing=24
PartitionName=long AllowGroups=ALL AllowAccounts=lab,other AllowQos=normal Default=NO DefaultTime=NONE MaxNodes=4 MaxTime=7-00:00:00 State=DRAIN TotalNodes=3
`

func TestPartitionsAreReadWithTheirLimits(t *testing.T) {
	all := partitionsOf(answer{out: partitionsSaid})
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	if p := all[0]; p.name != "gpu" || !p.isDefault || !p.up || p.most != time.Hour || p.usual != 10*time.Minute || p.maxNodes != 0 || p.nodes != 3 || p.accounts != nil {
		t.Errorf("%+v", p)
	}
	if p := all[1]; p.isDefault || p.up || p.most != 7*24*time.Hour || p.usual != 0 || p.maxNodes != 4 || len(p.accounts) != 2 || p.qos[0] != "normal" {
		t.Errorf("%+v", p)
	}
}

func TestNodesAreReadWithTheirGPUs(t *testing.T) {
	all := machinesOf(answer{out: `n1   gpu*   gpu:a100:2   gpu:a100:1(IDX:0)   mix   4/4/0/8   16000   (null)
n2   gpu*   gpu:a100:4(S:0-1),gpu:t4:2,shard:8   gpu:a100:0(IDX:N/A),gpu:t4:0(IDX:N/A)   idle~   0/8/0/8   16000   fast,nvlink
n3   gpu*   gpu:2   gpu:2(IDX:0-1)   drain*   0/0/8/8   16000   (null)
n4   cpu    (null)   gpu:0   down*   0/0/8/8   16000   (null)
half a line
`})
	if len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	for i, c := range []struct {
		able      bool
		has, free int
		kind      string
	}{{true, 2, 1, ""}, {true, 4, 4, "a100"}, {false, 2, 0, ""}, {false, 0, 0, ""}} {
		if m := all[i]; m.able() != c.able || m.has(c.kind) != c.has || m.free(c.kind) != c.free {
			t.Errorf("%s: able %v, has %d, free %d", m.name, m.able(), m.has(c.kind), m.free(c.kind))
		}
	}
	if len(all[1].features) != 2 || all[0].partition != "gpu" {
		t.Errorf("%+v", all[1])
	}
}

func TestTimeLimitsAreThoseOfSlurm(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Minute, "30:30": 30*time.Minute + 30*time.Second, "4:00:00": 4 * time.Hour, "1-12": 36 * time.Hour,
		"1-12:30": 36*time.Hour + 30*time.Minute, "1-00:00:00": 24 * time.Hour, "UNLIMITED": 0, "infinite": 0, "": 0,
		"4h30m": 4*time.Hour + 30*time.Minute, "90s": 90 * time.Second,
	} {
		if d, err := wantedTime(text); err != nil || d != want {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"soon", "1:2:3:4", "-5", "1-", "4 h", "-1h", "99999999999999999999"} {
		if d, err := wantedTime(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
	for d, want := range map[time.Duration]string{90 * time.Second: "0-00:02:00", 36 * time.Hour: "1-12:00:00"} {
		if got := slurmTime(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

func TestTheQueueIsReadWhateverTheReasonSays(t *testing.T) {
	q := queuedOf(answer{out: "12|PENDING||2026-11-24T06:00:00|dlwb-r|ReqNodeNotAvail, UnavailableNodes:n3\n13|RUNNING|n[1-2]|2026-11-24T05:55:51|x|a|b\nslurm_load_jobs error\n"})
	if len(q) != 2 || q[0].reason != "ReqNodeNotAvail, UnavailableNodes:n3" || q[1].nodes != "n[1-2]" || q[1].reason != "a|b" {
		t.Errorf("%+v", q)
	}
}

func TestReasonsAreToldInWords(t *testing.T) {
	for reason, want := range map[string]string{
		"Priority": "higher priority", "Resources": "busy", "QOSMaxGRESPerUser": "as many GPUs as the QOS allows",
		"ReqNodeNotAvail, May be reserved for other job": "not available", "DependencyNeverSatisfied": "did not end as it should",
		"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": "down, drained",
		"": "not looked at it yet", "SomethingNew": "SomethingNew",
	} {
		if text, _ := wordsOf(reason); !strings.Contains(text, want) {
			t.Errorf("%q: %q", reason, text)
		}
	}
	if _, hopeless := wordsOf("PartitionTimeLimit"); !hopeless {
		t.Error("a job above the limit of its partition is said to begin")
	}
}

// Each end as scontrol, sacct and the shared disk showed it.
func TestEachEndHasItsReason(t *testing.T) {
	invalid := answer{code: 1, err: "slurm_load_jobs error: Invalid job id specified\n"}
	none := answer{code: 1, err: "Slurm accounting storage is disabled\n"}
	for _, c := range []struct {
		name             string
		job, sacct, disk answer
		state, begins    string
	}{
		{"its own code", answer{out: "JobId=9 JobName=dlwb-x\n JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=7:0 NodeList=n1 PreemptTime=None"}, none, answer{}, "FAILED", ""},
		{"time limit", answer{out: "JobId=9 JobState=TIMEOUT Reason=TimeLimit ExitCode=0:0"}, none, answer{}, "TIMEOUT", job.TimeLimit},
		{"memory", answer{out: "JobId=9 JobState=OUT_OF_MEMORY Reason=OutOfMemory ExitCode=0:125"}, none, answer{}, "OUT_OF_MEMORY", job.NoMemory},
		{"memory, older", answer{out: "JobId=9 JobState=FAILED ExitCode=0:125"}, none, answer{}, "FAILED", job.NoMemory},
		{"cancelled", invalid, answer{out: "CANCELLED by 1000|0:0\n"}, answer{}, "CANCELLED", job.Cancelled},
		{"node", answer{out: "JobId=9 JobState=NODE_FAIL Reason=NodeDown ExitCode=0:1"}, none, answer{}, "NODE_FAIL", job.Lost},
		{"never begun again", answer{out: "JobId=6856 JobName=dlwb-x JobState=FAILED Reason=NonZeroExitCode Requeue=1 Restarts=1 BatchFlag=1 ExitCode=1:0 NodeList=n[1-2] PreemptTime=None"}, none, answer{out: "script\nbegun-0\nend-0 143 1700000000\n"}, "FAILED", job.Lost},
		{"begun again, and its own code", answer{out: "JobId=6856 JobState=FAILED Reason=NonZeroExitCode Restarts=1 ExitCode=1:0 NodeList=n[1-2]"}, none, answer{out: "script\nbegun-0\nbegun-1\nend-0 143 1700000000\nend-1 1 1700000100\n"}, "FAILED", ""},
		{"its script leaves no marks", answer{out: "JobId=6856 JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=1:0 NodeList=n[1-2]"}, none, answer{out: "end-0 1 1700000000\n"}, "FAILED", ""},
		{"its directory is not seen", answer{out: "JobId=6856 JobState=FAILED Reason=NonZeroExitCode Restarts=1 ExitCode=1:0 NodeList=n[1-2]"}, none, answer{code: 1, err: "sh: cd: can't cd to /home/x\n"}, "FAILED", ""},
		{"requeued once", invalid, answer{out: "REQUEUED|0:0\nCOMPLETED|0:0\n"}, answer{}, "COMPLETED", ""},
		{"forgotten, no accounts", invalid, none, answer{out: "end-0 143 1700000000\nend-1 0 1700000100\n"}, "COMPLETED", ""},
		{"lost by the controller", invalid, answer{out: "RUNNING|0:0\n"}, answer{out: "end-0 3 1700000000\n"}, "FAILED", ""},
		{"forgotten, no word", invalid, none, answer{}, "", ""},
	} {
		s, err := endOf("9", c.job, c.sacct, c.disk)
		if err != nil || s.state != c.state || c.begins == "" && s.why() != "" || !strings.HasPrefix(s.why(), c.begins) {
			t.Errorf("%s: %+v, %q, %v", c.name, s, s.why(), err)
		}
	}
	if _, err := endOf("9", answer{code: 1, err: "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"}, none, answer{}); err == nil {
		t.Error("a controller that is away says that a job is over")
	}
}

// Each line of the options is asked for, and what a user can write reaches no
// shell.
func TestTheScriptSaysWhatTheProfileSays(t *testing.T) {
	o := orderOf(cloud.Job{Run: "r-1", Replicas: 3, Spec: cloud.Spec{Own: &options.Machines{Partition: "gpu", Account: "lab", QOS: "normal",
		Time: "90m", GPUs: 2, GPUType: "a100", CPUs: 8, Memory: "64G", Constraint: "a&b", Modules: "cuda/12.4, x$(touch y)"}}}, "life", "/home/a b", "/home/a b/agent")
	text := o.script()
	for _, want := range []string{"#SBATCH --nodes=3\n", "#SBATCH --partition=gpu\n", "#SBATCH --account=lab\n", "#SBATCH --qos=normal\n", "#SBATCH --time=0-01:30:00\n",
		"#SBATCH --gres=gpu:a100:2\n", "#SBATCH --cpus-per-task=8\n", "#SBATCH --mem=64G\n", "#SBATCH --constraint=a&b\n", "#SBATCH --requeue\n",
		"module load 'cuda/12.4' >/dev/null 2>&1 ||", "module load 'x$(touch y)' ", "dir='/home/a b/.dlwb/jobs/r-1'", "--cpus-per-task=8 --mpi=none --cpu-bind=none --kill"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestAnswersAreToldApart(t *testing.T) {
	all := answers("\x1ea\nline\n\x1ee1\nsbatch: error: why\n\x1eb\n\x1ee0\n\x1e\n")
	if a := all["a"]; a.out != "line\n" || a.code != 1 || a.failed().Error() != "why" {
		t.Errorf("%+v", a)
	}
	if b, is := all["b"]; !is || b.code != 0 || b.out != "" || b.failed() != nil {
		t.Errorf("%+v", b)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add(partitionsSaid)
	f.Add("n1 gpu* gpu:a100:2 gpu:a100:1(IDX:0) mix 4/4/0/8 16000 (null)\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := answer{out: text}
		partitionsOf(a)
		for _, m := range machinesOf(a) {
			m.free("")
		}
		queuedOf(a)
		settings(a)
		_, _ = endOf("1", a, a, a)
		answers(text)
	})
}

// How a rank ended is told of a job that runs on, not of one that Slurm is about to
// put back into the queue: that life was no failure.
func TestAJobThatIsPreemptedKeepsNothing(t *testing.T) {
	for text, keeps := range map[string]bool{
		"JobState=RUNNING Reason=None Restarts=0 NodeList=n[1-2] PreemptTime=None":                  true,
		"JobState=RUNNING Reason=None Restarts=0 NodeList=n[1-2] PreemptTime=2026-11-25T10:00:00":   false,
		"JobState=COMPLETING Reason=None Restarts=1 NodeList=n[1-2]":                                false,
		"JobState=COMPLETING Reason=BeginTime Restarts=1 NodeList=n[1-2] PreemptTime=None":          false,
		"JobState=PENDING Reason=BeginTime Restarts=1 NodeList= PreemptTime=None":                   false,
		"JobState=FAILED Reason=NonZeroExitCode Restarts=0 NodeList=n[1-2] PreemptTime=None":        false,
		"JobState=RUNNING Reason=None Restarts=1 NodeList=n[1-2] LastSchedEval=2026-11-25T10:00:00": true,
	} {
		var s seen
		if s.fromControl(answer{out: "JobId=7 JobName=x " + text}); s.keeps() != keeps {
			t.Errorf("%s: keeps its nodes: %v", text, s.keeps())
		}
	}
}
