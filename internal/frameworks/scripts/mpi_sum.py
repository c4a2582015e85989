"""Sums ones over all ranks by mpi4py; with "wait", for ever."""
import os
import sys
import time

import mpi4py
from mpi4py import MPI

comm = MPI.COMM_WORLD
assert comm.Split_type(MPI.COMM_TYPE_SHARED).size == int(os.environ["OMPI_COMM_WORLD_LOCAL_SIZE"])
print(f"rank {comm.rank} of {comm.size}: sum {comm.allreduce(1)} version {mpi4py.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    comm.allreduce(1)
    time.sleep(0.2)
