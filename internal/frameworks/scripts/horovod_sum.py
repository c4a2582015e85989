"""Sums ones over all ranks by Horovod; with "wait", for ever."""
import os
import sys
import time

import horovod
import horovod.torch as hvd
import torch

hvd.init()
assert hvd.local_size() * hvd.cross_size() == hvd.size()
assert hvd.mpi_enabled() == ("HOROVOD_RANK" not in os.environ)
ones = hvd.allreduce(torch.ones(1), op=hvd.Sum)
print(f"rank {hvd.rank()} of {hvd.size()}: sum {int(ones)} version {horovod.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    hvd.allreduce(torch.ones(1), op=hvd.Sum)
    time.sleep(0.2)
