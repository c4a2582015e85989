"""Sums ones over all ranks by DeepSpeed; with "wait", for ever."""
import os
import sys
import time

os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo")
ones = torch.ones(1)
deepspeed.comm.all_reduce(ones)
print(f"rank {deepspeed.comm.get_rank()} of {deepspeed.comm.get_world_size()}: sum {int(ones)} version {deepspeed.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    deepspeed.comm.all_reduce(torch.ones(1))
    time.sleep(0.2)
