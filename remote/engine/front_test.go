package engine

import (
	"strings"
	"testing"
)

// Commands as people have them in their READMEs and scripts.
func TestWhatStandsBeforeALauncherIsKeptForTheRanksOrLeftOut(t *testing.T) {
	for _, c := range []struct{ command, engine, want, note string }{
		{"uv run torchrun --nproc_per_node 2 train.py", "torchrun", "--no_python /opt/py train.py", "uv run in run.command is left out"},
		{"uv run --with torch --extra cpu -- torchrun train.py", "torchrun", "--no_python /opt/py train.py", "left out"},
		{"poetry run python -m accelerate.commands.launch --num_processes 2 train.py", "accelerate", "--no_python /opt/py train.py", "poetry run"},
		{"conda run --no-capture-output -n ml deepspeed --num_gpus 1 train.py --zero", "deepspeed", "/opt/py train.py --zero", "conda run"},
		{"nohup torchrun train.py", "torchrun", "--no_python /opt/py train.py", "nohup"},
		{"srun -N 2 --ntasks-per-node=1 --gres gpu:4 torchrun --nnodes 2 train.py", "torchrun", "--no_python /opt/py train.py", "srun"},
		{"env NCCL_DEBUG=INFO OMP_NUM_THREADS=4 torchrun train.py", "torchrun", "--no_python env NCCL_DEBUG=INFO OMP_NUM_THREADS=4 /opt/py train.py", "before each rank"},
		{"numactl --cpunodebind=0 -m 0 nice -n 5 torchrun train.py", "torchrun", "--no_python numactl --cpunodebind=0 -m 0 nice -n 5 /opt/py train.py", "before each rank"},
		{"taskset -c 0-3 mpirun -np 2 python train.py", "mpi", "taskset -c 0-3 /opt/py", "before each rank"},
		{"timeout -k 5 3h torchrun \\\n  --nproc_per_node=1 \\\n  train.py", "torchrun", "timeout -k 5 3h /opt/py train.py", "before each rank"},
		{"python -um torch.distributed.run train.py", "torchrun", "--no_python /opt/py train.py", "torch.distributed.run"},
		{"python3 -W ignore -X faulthandler -m torch.distributed.launch --use_env train.py", "torchrun", "--no_python /opt/py train.py", "torch.distributed.launch"},
		{"accelerate-launch --num_machines 1 train.py", "accelerate", "--no_python /opt/py train.py", "accelerate-launch"},
		{"torchrun -m pkg.train --lr 1", "torchrun", "--no_python /opt/py -m pkg.train --lr 1", "torchrun in run.command"},
		{"ray job submit --address http://h:8265 --working-dir . -- python train.py", "ray", "/opt/py train.py", "left out, as dlwb sets it: --address --working-dir"},
		{"uv run python train.py", "plain", "uv run python train.py", ""},
		{"env A=1 python train.py torchrun", "plain", "env A=1 python train.py torchrun", ""},
		{"mytool --backend deepspeed run", "plain", "mytool --backend deepspeed run", ""},
	} {
		words, err := Split(c.command)
		if err != nil {
			t.Fatal(err)
		}
		if found := Launcher(words); found != c.engine && c.engine != "plain" {
			t.Errorf("%s: the launcher is that of %q", c.command, found)
		}
		plan, _ := firstArgv(t, c.engine, c.command, nil)
		got := ""
		for _, p := range plan.Nodes[0] {
			got += Join(p.Argv) + "\n"
		}
		if notes := strings.Join(plan.Notes, "\n"); !strings.Contains(got, c.want) || !strings.Contains(notes, c.note) {
			t.Errorf("%s\n  got %s\n  want %s\n  notes %s\n  want %s", c.command, got, c.want, notes, c.note)
		}
	}
}

func TestAVariableBeforeALauncherIsTheUsersOwn(t *testing.T) {
	words, _ := Split("env MASTER_PORT=1234 torchrun train.py")
	_, err := Make("torchrun", cluster(2, 0), Job{Command: words})
	if err == nil || !strings.Contains(err.Error(), "MASTER_PORT") {
		t.Errorf("it is not refused: %v", err)
	}
}

func TestALauncherThatTheCommandStartsItselfIsRefusedOrRunOnceOnEachNode(t *testing.T) {
	sources := map[string]string{
		"run.sh":         "#!/bin/bash\nset -e\n# torchrun is next\necho torchrun train.py\nexport A=1\nCUDA_VISIBLE_DEVICES=0 torchrun \\\n  --nproc_per_node 2 train.py \"$@\"\n",
		"scripts/py.sh":  "cd src && \"$PYTHON\" -m torch.distributed.launch x.py\n",
		"scripts/if.sh":  "if ! accelerate launch train.py; then exit 1; fi\n",
		"scripts/box.sh": "singularity exec --nv img.sif torchrun train.py\n",
		"quiet.sh":       "pip install torchrun x.py\npython train.py --launcher deepspeed\n",
	}
	for _, c := range []struct{ command, where string }{
		{"bash run.sh", "run.sh, line 6: starts torchrun"},
		{"./run.sh --lr 1", "run.sh, line 6: starts torchrun"},
		{"bash scripts/py.sh", "scripts/py.sh, line 1: starts torch.distributed.launch"},
		{"sh scripts/if.sh", "scripts/if.sh, line 1: starts accelerate"},
		{"bash scripts/box.sh", "scripts/box.sh, line 1: starts torchrun"},
		{"bash -c 'cd src && torchrun train.py'", "line 1 of the shell's text in run.command: starts torchrun"},
		{"bash -lc 'source a\nuv run torchrun train.py'", "line 2 of the shell's text in run.command: starts torchrun"},
		{"nsys profile -o out torchrun train.py", "run.command, behind nsys profile -o out starts torchrun"},
		{"bash quiet.sh", ""},
		{"bash missing.sh", ""},
		{"sh -c 'python train.py --x deepspeed y.py'", ""},
	} {
		words, err := Split(c.command)
		if err != nil {
			t.Fatal(err)
		}
		job := Job{Command: words, Sources: sources}
		_, err = Make("torchrun", cluster(2, 2), job)
		if (err != nil) != (c.where != "") || err != nil && (!strings.Contains(err.Error(), c.where) || !strings.Contains(err.Error(), "run.engine: plain")) {
			t.Errorf("%s: %v\nwant %s", c.command, err, c.where)
		}
		if StartsItself(words, sources) != (c.where != "") {
			t.Errorf("%s: StartsItself is wrong", c.command)
		}
		plan, err := Make("plain", cluster(2, 2), job)
		want := 4
		if c.where != "" {
			want = 2
		}
		if err != nil || plan.WorldSize != want {
			t.Errorf("%s: plain starts %d: %v", c.command, plan.WorldSize, err)
		}
	}
}

func TestWhatOnlyAShellHasIsSaid(t *testing.T) {
	for command, want := range map[string]string{
		"export A=1": "run.env", "source venv/bin/activate": "active already", "cd src": "only a shell has", "srun python train.py": "only what follows it",
	} {
		words, err := Split(command)
		if err == nil {
			_, err = Make("plain", cluster(1, 0), Job{Command: words})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	for command, want := range map[string]string{
		"pip install -r req.txt\npython train.py": "another command begins in the next line",
		"# the baseline\ntrain.py":                "begins a comment",
		"torchrun --node_rank=$RANK train.py":     "as dlwb sets it",
	} {
		if _, err := Split(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	for _, command := range []string{"train.py\n  --lr 1\n", "train.py lr=1\n  python.x=2\n", "torchrun --nproc_per_node=2\n  train.py\n", "train.py --color a#b", "train.py '#x'"} {
		if _, err := Split(command); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
}
