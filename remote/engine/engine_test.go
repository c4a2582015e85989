package engine

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden plans anew")

var job = Job{
	Command:    []string{"train.py", "--epochs", "10", "--note", "two words"},
	Python:     "/usr/bin/python3",
	RankScript: "/home/u/.dlwb/bin/rank",
	RunDir:     "/home/u/.dlwb/runs/r1",
	MasterPort: 29511,
	Env:        []string{"WANDB_API_KEY=sesame"},
	MaxThreads: 8,
}

// cluster makes n nodes with g GPUs each.
func cluster(n, g int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{Host: fmt.Sprintf("10.0.0.%d", i+1), Interface: "ens5", GPUs: g}
	}
	return nodes
}

func render(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, world size %d, each rank: %s\n", p.Engine, p.WorldSize, Join(p.Command))
	for n, procs := range p.Nodes {
		fmt.Fprintf(&b, "node %d\n", n)
		for _, proc := range procs {
			fmt.Fprintf(&b, "  %s: ranks %v, log %s\n", proc.Name, proc.Ranks, proc.Log)
			for _, kv := range proc.Env {
				fmt.Fprintf(&b, "    %s\n", kv)
			}
			fmt.Fprintf(&b, "    $ %s\n", Join(proc.Argv))
		}
	}
	return b.String()
}

func TestPlansAreAsTheGoldenOnes(t *testing.T) {
	sizes := []struct{ nodes, gpus int }{{1, 0}, {1, 1}, {2, 1}, {1, 4}, {2, 2}}
	for _, name := range Names() {
		for _, size := range sizes {
			file := fmt.Sprintf("%s-%dx%d", name, size.nodes, size.gpus)
			t.Run(file, func(t *testing.T) {
				plan, err := Make(name, cluster(size.nodes, size.gpus), job)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("testdata", file+".golden"), render(plan))
			})
		}
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs\n--- got\n%s--- want\n%s", file, got, want)
	}
}

func TestNoSecretOfTheUserEntersAPlan(t *testing.T) {
	for _, name := range Names() {
		plan, err := Make(name, cluster(2, 2), job)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(render(plan), "sesame") {
			t.Errorf("%s: the plan holds a value of run.env", name)
		}
	}
}

func TestWhatTheUserSetsIsNotOverridden(t *testing.T) {
	j := job
	j.Env = []string{"OMP_NUM_THREADS=3", "PYTHONUNBUFFERED=", "GLOO_SOCKET_IFNAME=eth9"}
	for _, name := range Names() {
		plan, err := Make(name, cluster(1, 0), j)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range j.Env {
			key, _, _ := strings.Cut(set, "=")
			if isSet(plan.Nodes[0][0].Env, key) {
				t.Errorf("%s sets %s, which the user had set", name, key)
			}
		}
	}
}

func TestThreadsAreTheCoresSharedByTheRanksOfANode(t *testing.T) {
	for _, c := range []struct {
		cores, procs int
		want         string
	}{{8, 1, "8"}, {8, 2, "4"}, {8, 3, "2"}, {2, 4, "1"}, {0, 1, ""}, {0, 2, "1"}} {
		plan, err := Make("plain", cluster(1, 0), Job{Command: []string{"t.py"}, ProcsPerNode: c.procs, MaxThreads: c.cores})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, kv := range plan.Nodes[0][0].Env {
			if v, ok := strings.CutPrefix(kv, "OMP_NUM_THREADS="); ok {
				got = v
			}
		}
		if got != c.want {
			t.Errorf("%d cores, %d ranks: OMP_NUM_THREADS=%q, want %q", c.cores, c.procs, got, c.want)
		}
	}
}

func TestUnequalNodesGetConsecutiveRanks(t *testing.T) {
	nodes := cluster(3, 1)
	nodes[1].GPUs = 3
	for _, e := range engines {
		if e.perNode || e.alone {
			continue
		}
		name := e.name
		plan, err := Make(name, nodes, job)
		if err != nil {
			t.Fatal(err)
		}
		want := []Rank{{0, 0, 0}, {1, 0, 1}, {2, 1, 1}, {3, 2, 1}, {4, 0, 2}}
		if got := plan.Ranks(); !slices.Equal(got, want) || plan.WorldSize != 5 {
			t.Errorf("%s: ranks %v, world size %d", name, got, plan.WorldSize)
		}
	}
}

func TestTheCommandBecomesWhatIsExecuted(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"train.py --lr 1", "/opt/py train.py --lr 1"},
		{"src/train.py", "/opt/py src/train.py"},
		{"-m pkg.train -v", "/opt/py -m pkg.train -v"},
		{"python train.py", "/opt/py train.py"},
		{"python3 -u train.py", "/opt/py -u train.py"},
		{"/usr/bin/python3 train.py", "/usr/bin/python3 train.py"},
		{"python3.12 train.py", "python3.12 train.py"},
		{"./train.sh train.py", "./train.sh train.py"},
		{"sh -c 'echo hi'", "sh -c 'echo hi'"},
	} {
		words, err := Split(c.command)
		if err != nil {
			t.Fatal(err)
		}
		got, err := executable(words, "/opt/py")
		if err != nil || Join(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", c.command, Join(got), err, c.want)
		}
	}
}

func TestWhatCannotBePlannedIsRefusedWithAReason(t *testing.T) {
	ok := []string{"train.py"}
	for _, c := range []struct {
		engine string
		nodes  int
		job    Job
		want   string
	}{
		{"torchrn", 1, Job{Command: ok}, `engine "torchrn" is not known: did you mean "torchrun"? (engines: torchrun, plain, `},
		{"Plane", 1, Job{Command: ok}, `did you mean "plain"`},
		{"torchrun", 0, Job{Command: ok}, "engine torchrun: there are no nodes to run on"},
		{"plain", 1, Job{}, "run.command is empty"},
		{"plain", 1, Job{Command: []string{""}}, "run.command is empty"},
		{"plain", 1, Job{Command: []string{"-m"}}, "name the module"},
		{"plain", 1, Job{Command: []string{"-u", "train.py"}}, "begins with -u, which is an option and no program: write python -u …"},
		{"plain", 1, Job{Command: []string{"KEY=secret", "train.py"}}, "begins with KEY=…: set it in run.env instead, as KEY: value"},
		{"plain", 1, Job{Command: ok, ProcsPerNode: -1}, "-1 processes per node"},
		{"plain", 1, Job{Command: ok, MasterPort: 70000}, "master port 70000"},
		{"plain", 1, Job{Command: ok, Env: []string{"RANK=1"}}, "run.env sets RANK"},
		{"torchrun", 1, Job{Command: ok, Env: []string{"WORLD_SIZE=1"}}, "run.env sets WORLD_SIZE"},
		{"plain", 1, Job{Command: []string{"torchrun", "train.py"}}, "run.command starts torchrun, which is engine torchrun: set run.engine to that"},
		{"jax", 1, Job{Command: []string{"python", "-m", "torch.distributed.launch", "t.py"}}, "starts torch.distributed.launch, which is engine torchrun"},
		{"torchrun", 1, Job{Command: []string{"torchrun", "--nproc", "2"}}, "ends after the options of torchrun: name the script"},
		{"torchrun", 1, Job{Command: []string{"torchrun", "--nproc-per-nod=2", "t.py"}}, "its option --nproc-per-nod is not known"},
		{"torchrun", 1, Job{Command: []string{"torchrun", "--nnodes"}}, "its option --nnodes has no value"},
		{"torchrun", 1, Job{Command: []string{"torchrun", "--rdzv-backend=etcd", "t.py"}}, "the engine has static and c10d"},
		{"accelerate", 2, Job{Command: []string{"accelerate", "launch", "--num_processes", "3", "t.py"}}, "3 processes, which 2 nodes can't share evenly"},
		{"plain", 1, Job{Command: ok, Options: Options{Restarts: 1}}, "run.restarts means nothing to it: remove the key, or use engine torchrun"},
		{"torchrun", 2, Job{Command: ok, Options: Options{MinNodes: 3}}, "run.min_nodes is 3, and there are 2 nodes"},
		{"torchrun", 2, Job{Command: ok, Options: Options{MinNodes: 1, Rendezvous: "static"}}, "run.min_nodes needs run.rendezvous: c10d"},
		{"tensorflow", 2, Job{Command: ok, Options: Options{ParameterServers: 1, Evaluator: true}}, "2 of 2 nodes would not train"},
	} {
		_, err := Make(c.engine, cluster(c.nodes, 1), c.job)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want one with %q", c.engine, c.job.Command, err, c.want)
		}
	}
}

func TestAutoIsTorchrunOnlyWherePyTorchIs(t *testing.T) {
	for _, c := range []struct {
		name  string
		torch bool
		want  string
	}{{"auto", true, "torchrun"}, {"", false, "plain"}, {"auto", false, "plain"}, {"plain", true, "plain"}, {"odd", true, "odd"}} {
		if got := Resolve(c.name, c.torch); got != c.want {
			t.Errorf("Resolve(%q, %v) = %s", c.name, c.torch, got)
		}
	}
}

func TestMergedEnvironmentsKeepEveryPythonPath(t *testing.T) {
	got := MergeEnv(
		[]string{"PYTHONPATH=/compat", "A=1"},
		[]string{"B=2", "PYTHONPATH=/mine", "A=3"},
		[]string{"PYTHONPATH=", "C=a=b"},
	)
	want := []string{"PYTHONPATH=/compat:/mine", "A=3", "B=2", "C=a=b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := MergeEnv([]string{"PYTHONPATH="}, []string{"PYTHONPATH=/x"}); !slices.Equal(got, []string{"PYTHONPATH=/x"}) {
		t.Errorf("an empty PYTHONPATH gave %q: an empty entry would mean the working directory", got)
	}
}
