"""Sums ones over all processes by JAX; with "wait", for ever."""
import os
import sys
import time

import jax

world, rank = int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
jax.distributed.initialize(num_processes=world, process_id=rank)
from jax.experimental import multihost_utils
import jax.numpy as jnp


def total():
    return int(multihost_utils.process_allgather(jnp.ones(1)).sum())


print(f"rank {jax.process_index()} of {jax.process_count()}: sum {total()} version {jax.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    total()
    time.sleep(0.2)
