# One all-reduce of 1 over all ranks, then one step of DDP.
import os
import sys
import time

rank = int(os.environ["RANK"])
if str(rank) in sys.argv[1:]:
    sys.exit(3)
if len(sys.argv) > 1:
    time.sleep(60)  # ended by whoever sees that the other rank failed

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
model(torch.ones(1, 2)).sum().backward()
print("rank", rank, "of world size", dist.get_world_size(), "sum", int(one), "threads", torch.get_num_threads())
dist.destroy_process_group()
