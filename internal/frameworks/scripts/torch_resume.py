"""Saves a whole checkpoint and then half of one, and loses its last rank; with a
checkpoint in DLWB_CHECKPOINT it goes on from that."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
path = os.environ.get("DLWB_CHECKPOINT")
if path:
    state = torch.load(path)
    ones = state["ones"].clone()
    dist.all_reduce(ones)
    print(f"rank {rank} of {world}: sum {int(ones)} from {os.path.basename(path)} given {os.path.basename(sys.argv[2])} version {torch.__version__}", flush=True)
    dist.destroy_process_group()
    sys.exit()
os.makedirs("ckpt", exist_ok=True)
if rank == 0:
    torch.save({"ones": torch.ones(1)}, "ckpt/.step-1.pt")
    os.rename("ckpt/.step-1.pt", "ckpt/step-1.pt")
time.sleep(float(os.environ["HOME_AFTER"]))  # dlwb has brought it home by then
if rank == 0:
    torch.save({"ones": torch.ones(1)}, "ckpt/step-2.pt")
    os.truncate("ckpt/step-2.pt", 100)  # as it is in the middle of a save
dist.barrier()
if rank == world - 1:
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    time.sleep(1)
