package jobstory

// FallsOnce is a training of PyTorch with four ranks, the last of which ends with a fault
// in its first life: where there is no file $FELL yet.
const FallsOnce = `import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
dist.all_reduce(torch.ones(1))
if rank == 3 and not os.path.exists(os.environ["FELL"]):
    open(os.environ["FELL"], "w").close()
    sys.exit("the first life ends here")
sum = torch.ones(1)
dist.all_reduce(sum)
print("rank", rank, "sum", int(sum), flush=True)
dist.destroy_process_group()
`
