package jobstory

// FallsOnce is a training of PyTorch with four ranks, the last of which ends with a fault
// in its first life: where there is no file $FELL yet. With PyTorch 1 it falls when all have
// met: the agents of torchrun there use up their restarts where one falls before. With
// PyTorch 2 it falls before that: else Gloo's next meeting hangs now and then, also without
// dlwb.
const FallsOnce = `import os, sys, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
def fall():
    if rank == 3 and not os.path.exists(os.environ["FELL"]):
        open(os.environ["FELL"], "w").close()
        sys.exit("the first life ends here")
old = torch.__version__.startswith("1.")
if not old: fall()
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if old: fall()
sum = torch.ones(1)
dist.all_reduce(sum)
print("rank", rank, "sum", int(sum), flush=True)
dist.destroy_process_group()
`
