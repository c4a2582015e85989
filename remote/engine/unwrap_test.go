package engine

import (
	"slices"
	"strings"
	"testing"
)

// words of the first process of a plan for two nodes.
func firstArgv(t *testing.T, name, command string, set func(*Job)) (Plan, string) {
	t.Helper()
	words, err := Split(command)
	if err != nil {
		t.Fatal(err)
	}
	j := Job{Command: words, Python: "/opt/py", MasterPort: 29511}
	if set != nil {
		set(&j)
	}
	plan, err := Make(name, cluster(2, 0), j)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return plan, Join(plan.Nodes[0][0].Argv)
}

func TestALauncherInTheCommandIsTheEngineWithItsOptions(t *testing.T) {
	for _, c := range []struct{ engine, command, want, not string }{
		{"torchrun", "torchrun train.py --lr 1", "--no_python /opt/py train.py --lr 1", ""},
		{"torchrun", "torchrun --nnodes=2 --nproc-per-node 3 --node_rank=1 --master_addr a train.py", "--nproc_per_node=3 --node_rank=0", "--master_addr a"},
		{"torchrun", "/opt/venv/bin/torchrun --standalone --nproc_per_node=gpu -m pkg.train -v", "--no_python /opt/py -m pkg.train -v", "standalone"},
		{"torchrun", "python -m torch.distributed.run --nnodes=1:4 --max-restarts=3 --rdzv-backend=c10d --rdzv-endpoint=h:1 --rdzv-id=7 t.py",
			"--nnodes=1:2 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_endpoint=10.0.0.1:29511 --rdzv_id=dlwb", "h:1"},
		{"torchrun", "python3.11 -u -m torch.distributed.run --monitor-interval 1 --role=trainer t.py --nnodes 9", "--monitor-interval 1 --role=trainer --no_python /opt/py t.py --nnodes 9", ""},
		{"torchrun", "python -m torch.distributed.launch --nproc_per_node=2 --use_env t.py", "--nproc_per_node=2", "LOCAL_RANK"},
		{"torchrun", "python -m torch.distributed.launch --nproc_per_node=2 t.py a", `sh -c 'exec "$@" --local_rank="$LOCAL_RANK"' sh /opt/py t.py a`, ""},
		{"accelerate", "accelerate launch --mixed_precision bf16 --num_processes=4 --num_machines 2 t.py --x", "--num_processes 4 --machine_rank 0", ""},
		{"accelerate", "accelerate launch --mixed_precision bf16 --use_fsdp --config_file c.yaml t.py --x", "--mixed_precision bf16 --use_fsdp --config_file c.yaml --no_python /opt/py t.py --x", ""},
		{"accelerate", "python -m accelerate.commands.launch -m pkg.t", "--no_python /opt/py -m pkg.t", ""},
	} {
		plan, got := firstArgv(t, c.engine, c.command, nil)
		if !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s\n  %s\n  want %s\n  not %s", c.command, got, c.want, c.not)
		}
		if len(plan.Notes) == 0 || !strings.Contains(plan.Notes[0], "is started by the engine") {
			t.Errorf("%s: notes %q do not say what became of the launcher", c.command, plan.Notes)
		}
		if words, _ := Split(c.command); Launcher(words) != c.engine {
			t.Errorf("%s is the launcher of %q", c.command, Launcher(words))
		}
	}
}

func TestTheProfileWinsOverTheOptionsOfALauncher(t *testing.T) {
	_, got := firstArgv(t, "torchrun", "torchrun --nproc_per_node=2 --max_restarts=5 t.py", func(j *Job) { j.ProcsPerNode, j.Restarts = 3, 1 })
	if !strings.Contains(got, "--nproc_per_node=3") || !strings.Contains(got, "--max_restarts=1") {
		t.Error(got)
	}
}

func TestTheOldLauncherTellsTheLocalRankAsTheScriptReadsIt(t *testing.T) {
	for text, want := range map[string]string{
		`p.add_argument("--local_rank", type=int)`:                 `--local_rank="$LOCAL_RANK"`,
		`p.add_argument("--local-rank", type=int)`:                 `--local-rank="$LOCAL_RANK"`,
		`p.add_argument("--local-rank", "--local_rank", type=int)`: `--local_rank="$LOCAL_RANK"`,
	} {
		_, got := firstArgv(t, "torchrun", "python -m torch.distributed.launch t.py", func(j *Job) { j.Sources = map[string]string{"t.py": text} })
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestRanksOfSeveralNodesAreStartedAgainTogether(t *testing.T) {
	plan, got := firstArgv(t, "torchrun", "t.py", func(j *Job) { j.Restarts = 2 })
	if !strings.Contains(got, "--rdzv_backend=c10d") || !strings.Contains(strings.Join(plan.Notes, "\n"), "c10d") ||
		!slices.Contains(plan.Nodes[1][0].Env, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1") {
		t.Errorf("two nodes: %s, %q", got, plan.Notes)
	}
	if _, got := firstArgv(t, "torchrun", "t.py", func(j *Job) { j.Restarts, j.Rendezvous = 2, RendezvousStatic }); strings.Contains(got, "c10d") {
		t.Errorf("what was asked for is not done: %s", got)
	}
	alone, err := Make("torchrun", cluster(1, 2), Job{Command: []string{"t.py"}, Options: Options{Restarts: 2}})
	if err != nil || strings.Contains(Join(alone.Nodes[0][0].Argv), "c10d") {
		t.Errorf("one node: %v, %v", alone.Nodes, err)
	}
}

func TestC10dNeedsNoRankOfANode(t *testing.T) {
	plan, got := firstArgv(t, "torchrun", "t.py", func(j *Job) { j.Options = Options{MinNodes: 1, Restarts: 2}; j.Run = "r7" })
	want := "--nnodes=1:2 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_endpoint=10.0.0.1:29511 --rdzv_id=r7 --rdzv_conf=is_host=true --max_restarts=2"
	if !strings.Contains(got, want) || strings.Contains(got, "node_rank") {
		t.Errorf("%s\nwant %s", got, want)
	}
	if !plan.Restarts || !slices.Contains(plan.Nodes[1][0].Env, "DLWB_RANK_BASE=1") {
		t.Errorf("%+v", plan)
	}
	if other := Join(plan.Nodes[1][0].Argv); !strings.Contains(other, "is_host=false") || !slices.Contains(plan.Nodes[1][0].Env, "PET_LOCAL_ADDR=10.0.0.2") {
		t.Error(other)
	}
}

// A flag for another way would win over the configuration without a word: Accelerate
// 1.15 with --multi_gpu tells no rank of FSDP.
func TestWhatAConfigurationOfAccelerateSaysHolds(t *testing.T) {
	for _, c := range []struct {
		text, option string
		multi        bool
	}{
		{"distributed_type: FSDP\n", "--config_file conf/a.yaml", false},
		{"distributed_type: 'DEEPSPEED'\n", "--config_file=conf/a.yaml", false},
		{`{"distributed_type": "MEGATRON_LM"}`, "--config-file conf/a.yaml", false},
		{"distributed_type: MULTI_GPU\n", "--config_file ./conf/a.yaml", false},
		{"distributed_type: 'NO'\n", "--config_file conf/a.yaml", true},
		{"", "--config_file /home/u/a.yaml", false}, // it lies on the nodes
		{"", "--use-deepspeed --deepspeed_multinode_launcher pdsh", false},
		{"", "--mixed_precision bf16", true},
	} {
		_, got := firstArgv(t, "accelerate", "accelerate launch "+c.option+" t.py", func(j *Job) {
			if c.text != "" {
				j.Sources = map[string]string{"conf/a.yaml": c.text}
			}
		})
		standard := !strings.Contains(c.option, "mixed")
		if strings.Contains(got, "--multi_gpu") != c.multi || strings.Contains(got, "--deepspeed_multinode_launcher standard") != standard || strings.Contains(got, "pdsh") {
			t.Errorf("%s %q: %s", c.option, c.text, got)
		}
	}
}
