"""Sums ones over all ranks by Accelerate; with "wait", for ever."""
import os
import sys
import time

import accelerate
import torch
from accelerate import Accelerator

a = Accelerator(cpu=True)
total = a.reduce(torch.ones(1), reduction="sum")
print(f"rank {a.process_index} of {a.num_processes}: sum {int(total)} version {accelerate.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    a.reduce(torch.ones(1), reduction="sum")
    time.sleep(0.2)
a.end_training()
