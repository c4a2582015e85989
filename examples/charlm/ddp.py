"""The model and its training with PyTorch: DistributedDataParallel."""
import contextlib
import os
import re
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Lost(Exception):
    """Another rank is not there any more."""


@contextlib.contextmanager
def together():
    """What the ranks do together fails with a RuntimeError when one is gone."""
    try:
        yield
    except RuntimeError as e:
        if not re.search("connection|peer|socket|timed out|NCCL", str(e), re.IGNORECASE):
            raise
        raise Lost("lost another rank: " + str(e).splitlines()[0]) from None


class Model(torch.nn.Module):
    def __init__(self, vocab, context, embed, hidden):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, embed)
        self.hidden = torch.nn.Linear(context * embed, hidden)
        self.out = torch.nn.Linear(hidden, vocab)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(self.embed(x).flatten(1))))


class Trainer:
    checkpoint = "checkpoint.pt"
    validation_rows = 8192

    def __init__(self, vocab, args):
        self.rank = int(os.environ.get("RANK", 0))
        self.world = int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_RANK", 0))
        ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        # NCCL refuses two ranks on one GPU, so GPUs are used only when every
        # rank of this node has one to itself.
        cuda = torch.cuda.is_available() and torch.cuda.device_count() >= ranks_here
        self.device = torch.device("cuda", local) if cuda else torch.device("cpu")
        self.backend = "nccl" if cuda else "gloo"
        if cuda:
            torch.cuda.set_device(self.device)
        if self.world > 1:
            with together():
                dist.init_process_group(self.backend)
        torch.manual_seed(args.seed)
        self.bare = Model(vocab, args.context, args.embed, args.hidden).to(self.device)
        self.model = self.bare
        if self.world > 1:
            self.model = DistributedDataParallel(self.bare, device_ids=[local] if cuda else None)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=args.lr)

    def about(self):
        where = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads a rank"
        how = f"DistributedDataParallel ({self.backend})" if self.world > 1 else "one process"
        return f"PyTorch {torch.__version__}, {how}, {where}"

    def size(self):
        return sum(p.numel() for p in self.bare.parameters())

    def rows(self, batch):
        flat = torch.frombuffer(bytearray(b"".join(batch)), dtype=torch.uint8)
        rows = flat.view(len(batch), -1).long().to(self.device)
        return rows[:, :-1], rows[:, -1]

    def step(self, batch, lr, more):
        """One step; returns the sum over all ranks of the loss and of more."""
        x, y = self.rows(batch)
        for group in self.opt.param_groups:
            group["lr"] = lr
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.opt.zero_grad()
        with together():
            loss.backward()  # DistributedDataParallel averages the gradients here
        self.opt.step()
        return self.add_up([loss.item()] + more)

    @torch.no_grad()
    def loss(self, batch):
        x, y = self.rows(batch)
        return torch.nn.functional.cross_entropy(self.bare(x), y).item()

    @torch.no_grad()
    def logits(self, context):
        x = torch.frombuffer(bytearray(context), dtype=torch.uint8).long().to(self.device)
        return self.bare(x.unsqueeze(0))[0].tolist()

    def add_up(self, values):
        """The sum over all ranks of each value."""
        if self.world == 1:
            return values
        t = torch.tensor(values, dtype=torch.float64, device=self.device)
        with together():
            dist.all_reduce(t)
        return t.tolist()

    def share(self, values):
        """Rank 0's values, on every rank."""
        return self.add_up([v if self.rank == 0 else 0.0 for v in values])

    def save(self, path, state):
        torch.save({**state, "model": self.bare.state_dict(), "adam": self.opt.state_dict()}, path)

    def load(self, path):
        """Take over a checkpoint that only rank 0 has, on every rank."""
        box = [None]
        if self.rank == 0 and os.path.exists(path):
            box = [torch.load(path, map_location="cpu")]
        if self.world > 1:
            with together():
                dist.broadcast_object_list(box)
        if box[0]:
            self.bare.load_state_dict(box[0]["model"])
            self.opt.load_state_dict(box[0]["adam"])
        return box[0]

    def close(self, code=0):
        """Leave together, when every rank is done."""
        if self.world == 1:
            sys.exit(code)
        dist.barrier()
        if self.backend == "gloo":
            # Taking gloo apart joins its threads while Python's lock is held,
            # and one of them may be waiting for that lock (seen with PyTorch
            # 1.13: one exit in ten hung for ever). All is saved: just leave.
            sys.stdout.flush()
            os._exit(code)
        dist.destroy_process_group()
        sys.exit(code)
