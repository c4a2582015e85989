"""Sums ones over all workers of Ray Train; with "wait", for ever."""
import os
import sys

import ray
from ray.train import ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer

workers = int(os.environ["DLWB_WORKERS"])


def work(config):
    import os
    import time

    import ray
    import torch
    import torch.distributed as dist

    ones = torch.ones(1)
    dist.all_reduce(ones)
    rank = dist.get_rank()
    node = ray.get_runtime_context().get_node_id()
    print(f"rank {rank} of {dist.get_world_size()}: sum {int(ones)} on {node} version {ray.__version__}", flush=True)
    while config["wait"]:
        print(f"waiting {os.getpid()}", flush=True)
        dist.all_reduce(torch.ones(1))
        time.sleep(0.2)


ray.init()
print("nodes", len([n for n in ray.nodes() if n["Alive"]]), flush=True)
TorchTrainer(work, train_loop_config={"wait": "wait" in sys.argv},
             torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(num_workers=workers)).fit()
print("trained", flush=True)
