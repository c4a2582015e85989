"""Its last rank fails in the first life of all, and all sum ones in the second."""
import os
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
rank, world, life = dist.get_rank(), dist.get_world_size(), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if life == 0 and rank == world - 1:
    sys.exit("the first life ends here")
dist.all_reduce(torch.ones(1))
print(f"rank {rank} of {world}: sum {int(ones)} life {life} version {torch.__version__}", flush=True)
dist.destroy_process_group()
