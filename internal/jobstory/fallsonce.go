package jobstory

// FallsOnce is a training of PyTorch with four ranks, the last of which ends with a fault
// in its first life: where there is no file $FELL yet. It falls before it joins the others,
// who wait for it: where one falls that has joined, Gloo's next meeting hangs now and then,
// without dlwb, too.
const FallsOnce = `import os, sys, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
if rank == 3 and not os.path.exists(os.environ["FELL"]):
    open(os.environ["FELL"], "w").close()
    sys.exit("the first life ends here")
dist.init_process_group("gloo")
sum = torch.ones(1)
dist.all_reduce(sum)
print("rank", rank, "sum", int(sum), flush=True)
dist.destroy_process_group()
`
