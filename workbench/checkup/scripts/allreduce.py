"""One process a node: an all-reduce of ones, which must come to the world size, then
of 32 MB, timed. Arguments: rank, world size, address, port, backend. Rank 0 prints one
JSON object."""
import datetime, json, os, sys, time
import torch, torch.distributed as dist

rank, world, host, port, backend = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
dist.init_process_group(backend, init_method="tcp://%s:%s" % ("[%s]" % host if ":" in host else host, port), rank=rank, world_size=world,
                        timeout=datetime.timedelta(seconds=45))
device = "cuda" if backend == "nccl" else "cpu"
ones = torch.ones(1, device=device)
dist.all_reduce(ones)
data, took = torch.ones(8 << 20, device=device), []
for _ in range(4):
    if device == "cuda":
        torch.cuda.synchronize()
    began = time.monotonic()
    dist.all_reduce(data)
    if device == "cuda":
        torch.cuda.synchronize()
    took.append(time.monotonic() - began)
    data.fill_(1)
size = data.numel() * 4
# What goes over each node's network: 2 (n-1)/n of the data, by the ring.
if rank == 0:
    print(json.dumps({"sum": float(ones), "seconds": min(took[1:]), "bandwidth": 2 * (world - 1) / world * size / min(took[1:])}))
dist.barrier()
dist.destroy_process_group()
