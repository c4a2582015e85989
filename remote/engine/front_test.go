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
		{"torchrun --standalone --nproc_per_node=8 train.py config/train_gpt2.py", "torchrun", "--nproc_per_node=8 --node_rank=0", "left out, as dlwb sets it: --standalone"},
		{"torchrun --nproc_per_node=8 --nnodes=2 --node_rank=0 --master_addr=123.456.123.456 --master_port=1234 train.py", "torchrun", "--nnodes=2 --nproc_per_node=8 --node_rank=0 --master_addr=10.0.0.1", ""},
		{"python -m torch.distributed.launch --nproc_per_node=8 --use_env main.py --model deit_small_patch16_224 --batch-size 256", "torchrun", "--no_python /opt/py main.py --model deit_small_patch16_224 --batch-size 256", ""},
		{"deepspeed --hostfile=myhostfile --no_ssh --node_rank=0 --master_addr=a --master_port=1 train.py --deepspeed_config ds.json", "deepspeed", "/opt/py train.py --deepspeed_config ds.json", ""},
		{`deepspeed --include="worker-2:0,1" client_entry.py --deepspeed ds_config.json`, "deepspeed", "/opt/py client_entry.py --deepspeed ds_config.json", "--include"},
		{"horovodrun -np 4 -H server1:2,server2:2 python train.py", "horovod", "-np 4 -H localhost:2,dlwb-node1:2", "left out, as dlwb sets it: -H"},
		{"horovodrun -np 4 --fusion-threshold-mb 32 --timeline-filename /tmp/t.json python train.py", "horovod", "env HOROVOD_FUSION_THRESHOLD=33554432 env HOROVOD_TIMELINE=/tmp/t.json /opt/py train.py", ""},
		{"mpirun -np 4 -H a:2,b:2 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH -mca pml ob1 -mca btl ^openib python train.py", "mpi", "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH", ""},
		{"mpiexec -n 4 -ppn 2 python train.py", "mpi", "-np 4", "taken over: -n 4 -ppn 2"},
		{"colossalai run --nproc_per_node 4 --host host1,host2 --master_addr host1 train.py --x", "torchrun", "--nproc_per_node=4 --node_rank=0", "left out, as dlwb sets it: --host --master_addr"},
		{"composer -n 2 train.py --epochs 1", "plain", "/opt/py train.py --epochs 1", "taken over: -n 2"},
		{"python -m composer.cli.launcher --nproc 2 -m pkg.train", "plain", "/opt/py -m pkg.train", ""},
		{"python main.py fit --config config.yaml", "lightning", "/opt/py main.py fit --config config.yaml", ""},
		{"make train", "plain", "make train", ""},
		{"conda run -n ml python train.py", "plain", "conda run -n ml python train.py", ""},
		{"uv run python train.py", "plain", "uv run python train.py", ""},
		{"env A=1 python train.py torchrun", "plain", "env A=1 python train.py torchrun", ""},
		{"mytool --backend deepspeed run", "plain", "mytool --backend deepspeed run", ""},
	} {
		words, err := Split(c.command)
		if err != nil {
			t.Fatal(err)
		}
		if found := Launcher(words); found != c.engine && c.engine != "plain" && c.engine != "lightning" {
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
		"Makefile":       ".PHONY: train other\nN := 2\ntrain: data\n\t@echo torchrun a.py\n\t-torchrun --nproc_per_node $(N) \\\n\t  train.py\nother: all\n\tpython train.py\n",
		"other.mk":       "go:\n\t@accelerate launch train.py\nno:\n\ttorchrun x.py\n",
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
		{"make train", "Makefile, line 5: starts torchrun"},
		{"make -j2 GPUS=2", "Makefile, line 5: starts torchrun"},
		{"make -f other.mk go", "other.mk, line 2: starts accelerate"},
		{"make other", ""},
		{"make nothing", ""},
		{"torchx run -s local_cwd dist.ddp -j 1x2 --script main.py", "run.command starts torchx run, and so does dlwb: write as run.command the script"},
		{"uv run tune run --nproc_per_node 4 full_finetune_distributed --config c.yaml", "run.command starts tune run"},
		{"axolotl train config.yaml", "run.command starts axolotl train"},
		{"axolotl preprocess config.yaml", ""},
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
		"sbatch job.sh": "provider: slurm", "docker run --gpus all img python train.py": "environment: {docker: IMAGE}", "tmux new -d 'python train.py'": "without a terminal",
		"conda activate ml": "active already", "WANDB_MODE=offline python train.py": "set it in run.env",
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
