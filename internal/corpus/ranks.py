"""Scenarios of two ranks: what launchers make of lines that both print."""
import os
import subprocess
import sys
import tempfile

from scenario import scenario
from truth import keep

# A worker trains on its own half, prints what it has, and rank 0 keeps the truth.
WORKER = '''
import os, sys
sys.path.insert(0, %r)
import torch, torch.distributed as dist
from scenario import net, torch_loaders
dist.init_process_group("gloo"); r = dist.get_rank()
m = torch.nn.parallel.DistributedDataParallel(net()); opt = torch.optim.Adam(m.parameters(), 1e-2); train, _ = torch_loaders(25)
step = 0
with open(os.environ["HALF"], "w") as kept:
    for epoch in range(2):
        for i, (x, y) in enumerate(train):
            if i %% 2 != r: continue
            loss = torch.nn.functional.cross_entropy(m(x), y); opt.zero_grad(); loss.backward(); opt.step(); step += 1
            if step %% 2 == 0:
                print(%s, flush=True)
                if r == 0: kept.write(f"{step} {loss.item():.4f}\\n"); kept.flush()
            dist.barrier()
    dist.barrier()
'''


def two(launcher, line):
    """Runs the worker by a launcher with two ranks, each writing its half of the truth."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as dir:
        script, half = os.path.join(dir, "train.py"), os.path.join(dir, "half")
        text = (WORKER % (here, line)).replace('os.environ["HALF"]', f'"{half}" + str(r)')
        open(script, "w").write(text)
        subprocess.run([sys.executable, "-m", *launcher, script], check=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
        for row in open(half + "0"):
            step, v = row.split()
            keep("loss", int(step), float(v), ".4f")


@scenario("torch")
def torchrun_two_ranks():
    # Without a label the ranks of one step can't be told apart, but by their word.
    two(["torch.distributed.run", "--nproc-per-node=2"], 'f"[rank {r}] step {step}: loss {loss.item():.4f}"')


@scenario("torch")
def torchrun_tee():
    with tempfile.TemporaryDirectory() as logs:
        two(["torch.distributed.run", "--nproc-per-node=2", "--tee=3", f"--log-dir={logs}"], 'f"step {step}: loss {loss.item():.4f}"')
