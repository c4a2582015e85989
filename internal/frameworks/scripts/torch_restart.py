"""Its last rank fails in the first life of all, and all sum ones in the second.
What an agent counts as a life is its own: a file tells the first one."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
rank, world = dist.get_rank(), dist.get_world_size()
if rank == world - 1 and not os.path.exists(os.environ["DONE"]):
    open(os.environ["DONE"], "x").close()
    sys.exit("the first life ends here")
life = int(os.path.exists(os.environ["DONE"]))
dist.all_reduce(torch.ones(1))
print(f"rank {rank} of {world}: sum {int(ones)} life {life} version {torch.__version__}", flush=True)
dist.destroy_process_group()
