"""Sums ones over all ranks by torch.distributed; with "wait", for ever."""
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
ones = torch.ones(1)
dist.all_reduce(ones)
rank, world = dist.get_rank(), dist.get_world_size()
print(f"rank {rank} of {world}: sum {int(ones)} version {torch.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    dist.all_reduce(torch.ones(1))
    time.sleep(0.2)
dist.destroy_process_group()
