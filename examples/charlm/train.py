#!/usr/bin/env python3
"""charlm: a character-level language model, trained data-parallel.

The text is one that every machine has: the source of Python's own standard
library. The model (Bengio et al. 2003) looks at the last few characters,
embeds them, and predicts the next one through one hidden layer.

With PyTorch it is trained with DistributedDataParallel (NCCL on GPUs, gloo on
CPUs); start it with torchrun, one rank per GPU. Without PyTorch the same model
is trained in plain Python, its gradients averaged over sockets, so that it
trains anywhere; start one process per rank with MASTER_ADDR, MASTER_PORT,
WORLD_SIZE and RANK set. Started alone it is a world of one.

    python train.py --seconds 40
    torchrun --nproc-per-node 2 train.py --epochs 5 --steps 2000 --resume
"""
import argparse
import glob
import math
import os
import random
import signal
import sys
import sysconfig
import time

try:
    import torch
except ImportError:
    torch = None
if torch is None:
    from plain import Lost, Trainer
else:
    from ddp import Lost, Trainer

# What a step costs differs by a factor of a thousand between the two, so each
# has sizes of its own. Every one can be set by a flag.
SIZES = {
    "plain": dict(context=4, embed=8, hidden=32, batch=16, lr=0.03),
    "torch": dict(context=16, embed=24, hidden=256, batch=256, lr=0.002),
}


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--epochs", type=int, default=4, help="how often to stop for a validation and a checkpoint")
    p.add_argument("--steps", type=int, default=0, help="optimizer steps in all (default: as many as --seconds allow)")
    p.add_argument("--seconds", type=float, default=40, help="train for about so long, never half as long again; the first steps tell the speed")
    p.add_argument("--vocab", type=int, default=64, help="keep so many characters; the rarer ones become one")
    p.add_argument("--out", default="outputs", help="directory of checkpoint and sample")
    p.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    p.add_argument("--seed", type=int, default=1)
    for name in ("context", "embed", "hidden", "batch"):
        p.add_argument("--" + name, type=int, default=None)
    p.add_argument("--lr", type=float, default=None)
    args = p.parse_args()
    for name, value in SIZES["plain" if torch is None else "torch"].items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    if min(args.epochs, args.vocab - 1, args.context, args.embed, args.hidden, args.batch) < 1:
        p.error("epochs, vocab, context, embed, hidden and batch must be positive")
    return args


def corpus(vocab, limit=3_000_000):
    """The text as numbers, split into training and validation by file, and the
    characters they stand for. Every rank reads the same."""
    folder = sysconfig.get_paths()["stdlib"]
    texts, total = [], 0
    for name in sorted(glob.glob(os.path.join(folder, "*.py"))):
        with open(name, "rb") as f:
            texts.append(f.read().replace(b"    ", b"\t"))  # an indent is one character
        total += len(texts[-1])
        if total > limit:
            break
    if total < 10_000:
        sys.exit(f"charlm: {folder} holds no Python source to train on (a stripped-down installation?)")
    some = b"".join(texts[::4])
    chars = sorted(range(128), key=lambda c: (-some.count(c), c))[: vocab - 1]
    number = bytearray(256)  # what is rare, or not ASCII, becomes 0
    for i, c in enumerate(chars):
        number[c] = i + 1
    texts = [text.translate(number) for text in texts]
    val = b"".join(texts[4::10])
    train = b"".join(text for i, text in enumerate(texts) if i % 10 != 4)
    return train, val, "\ufffd" + "".join(map(chr, chars))


def batches(data, context, size, rng):
    """Endless random batches: rows of context + 1 characters, the last one to
    be predicted from those before."""
    last = len(data) - context - 1
    while True:
        starts = [rng.randrange(last) for _ in range(size)]
        yield [data[s : s + context + 1] for s in starts]


def learning_rate(step, steps, peak):
    """Linear warm-up, then half a cosine down to a tenth (Loshchilov and Hutter 2017)."""
    warm = max(1, steps // 20)
    if step < warm:
        return peak * (step + 1) / warm
    done = (step - warm) / max(1, steps - warm)
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done))))


def validate(trainer, rows):
    """The mean loss over rows that are never trained on; each rank takes its share."""
    share = rows[trainer.rank :: trainer.world]
    total = sum(trainer.loss(share[i : i + 256]) * len(share[i : i + 256]) for i in range(0, len(share), 256))
    total, n = trainer.add_up([total, float(len(share))])
    return total / n


def generate(trainer, chars, context, length, rng, temperature=0.7):
    """Text that the model writes by itself."""
    start = chars.index("\n") if "\n" in chars else 0
    out = [start] * context
    for _ in range(length):
        scores = trainer.logits(bytes(out[-context:]))
        top = max(scores)
        weights = [math.exp((s - top) / temperature) for s in scores]
        weights[0] = 0.0  # the stand-in for rare characters
        out.append(rng.choices(range(len(weights)), weights)[0])
    return "".join(chars[i] for i in out[context:]).replace("\t", "    ")


class Stop:
    """Set by SIGTERM: what is learnt is saved before the process ends."""

    def __init__(self):
        self.asked = False
        signal.signal(signal.SIGTERM, self.ask)

    def ask(self, *_):
        self.asked = True


class Run:
    """One training: where it is, and when it ends."""

    def __init__(self, args, trainer, data, say):
        self.args, self.trainer, self.say = args, trainer, say
        self.train, self.val, self.chars = data
        self.path = os.path.join(args.out, trainer.checkpoint)
        self.step, self.steps = 0, args.steps
        self.asked = self.late = False

    def resume(self):
        about = {"chars": self.chars, "context": self.args.context, "embed": self.args.embed, "hidden": self.args.hidden}
        state = self.trainer.load(self.path)
        if not state:
            self.say(f"no checkpoint in {self.args.out}, starting anew")
            return
        for name, value in about.items():
            if state["about"][name] != value:
                sys.exit(f"charlm: {self.path} was saved by a run with other {name}; repeat its settings, or leave --resume out")
        self.step, self.steps = state["step"], self.steps or state["steps"]
        self.say(f"resumed from {self.path} at step {self.step} of {self.steps}")

    def save(self):
        if self.trainer.rank == 0:
            os.makedirs(self.args.out, exist_ok=True)
            about = {"chars": self.chars, "context": self.args.context, "embed": self.args.embed, "hidden": self.args.hidden}
            self.trainer.save(self.path + ".tmp", {"about": about, "step": self.step, "steps": self.steps})
            os.replace(self.path + ".tmp", self.path)  # whole or not at all

    def begin(self):
        """Get ready for the first step. From now on SIGTERM is a wish."""
        args, rank = self.args, self.trainer.rank
        self.stream = batches(self.train, args.context, args.batch, random.Random(args.seed * 1000 + self.step * 17 + rank))
        self.stop = Stop()
        self.began = time.monotonic()

    def advance(self, lr):
        """One step on every rank; returns the mean loss. With it the ranks tell
        each other whether to end: any was asked to, or rank 0's clock says that
        the machine got slower than measured."""
        late = self.trainer.rank == 0 and not self.args.steps and time.monotonic() - self.began > 1.5 * self.args.seconds
        loss, asked, late = self.trainer.step(next(self.stream), lr, [float(self.stop.asked), float(late)])
        self.step += 1
        self.asked, self.late = asked > 0, late > 0
        return loss / self.trainer.world

    def measure(self):
        """How many steps fit into --seconds: rank 0's clock decides for all. The
        steps that this takes count."""
        loss = self.advance(learning_rate(0, 1000, self.args.lr))
        self.say(f"step 1 loss: {loss:.4f}, measuring the speed")
        began, on = time.perf_counter(), True
        while on and not self.asked:
            self.advance(learning_rate(self.step, 1000, self.args.lr))
            n, seconds = self.step - 1, time.perf_counter() - began
            on = self.trainer.share([float(n < 3 or n < 200 and seconds < 0.6)])[0]
        per_second = self.trainer.share([n / seconds])[0]
        self.steps = max(self.args.epochs * 5, int(self.args.seconds * per_second))
        self.say(f"{per_second:.0f} steps/s, so {self.steps} steps in about {self.args.seconds:.0f} s")

    def fit(self):
        """Train to the last step, with a line now and then and a validation and a
        checkpoint after each epoch."""
        rng = random.Random(self.args.seed)
        held = [next(batches(self.val, self.args.context, 1, rng))[0] for _ in range(self.trainer.validation_rows)]
        per_epoch = -(-self.steps // self.args.epochs)
        # A hundred lines in all, each the mean of enough rows to say something.
        every = max(-(-self.steps // 100), -(-512 // (self.args.batch * self.trainer.world)))
        last, losses = time.perf_counter(), []
        while self.step < self.steps:
            lr = learning_rate(self.step, self.steps, self.args.lr)
            losses.append(self.advance(lr))
            place = f"epoch {(self.step - 1) // per_epoch + 1}/{self.args.epochs} step {self.step}/{self.steps}"
            ends = self.asked or self.late or self.step == self.steps
            if self.step == 1 or self.step % every == 0 and self.steps - self.step >= every or ends:
                now = time.perf_counter()
                speed = len(losses) * self.args.batch * self.trainer.world / (now - last)
                self.say(f"{place} loss: {sum(losses) / len(losses):.4f} lr: {lr:.2e} tokens/s: {speed:.0f}")
                last, losses = now, []
            if self.asked:
                self.save()
                self.say(f"asked to end: saved {self.path} at step {self.step}")
                self.trainer.close(143)
            if self.late:
                self.say(f"slower than expected: {1.5 * self.args.seconds:g} s are over, ending at step {self.step}")
            if self.step % per_epoch == 0 or ends:
                paused = time.perf_counter()
                val_loss = validate(self.trainer, held)
                self.save()
                self.say(f"{place} val_loss: {val_loss:.4f} (saved {self.path})")
                last += time.perf_counter() - paused  # the steps before it count too
            if self.late:
                return

    def sample(self):
        if self.trainer.rank != 0:
            return
        os.makedirs(self.args.out, exist_ok=True)
        text = generate(self.trainer, self.chars, self.args.context, 400, random.Random(self.args.seed))
        with open(os.path.join(self.args.out, "sample.txt"), "w") as f:
            f.write(text + "\n")
        self.say("a sample of what it writes now:")
        for line in text.splitlines():
            self.say("    " + line)


def main():
    args = arguments()
    train, val, chars = corpus(args.vocab)
    trainer = Trainer(len(chars), args)

    def say(text):
        if trainer.rank == 0:
            print(text, flush=True)

    say(f"charlm: {trainer.about()}, world size {trainer.world}")
    say(f"{len(train):,} characters to train on, {len(val):,} to validate; {len(chars)} different; {trainer.size():,} parameters")
    run = Run(args, trainer, (train, val, chars), say)
    if args.resume:
        run.resume()
    run.begin()
    if not run.steps:
        run.measure()
    run.fit()
    run.sample()
    trainer.close()


if __name__ == "__main__":
    try:
        main()
    except Lost as e:
        sys.stdout.flush()
        print(f"charlm: {e}", file=sys.stderr, flush=True)
        os._exit(1)  # not through the libraries' clean-up, which would wait for the others
