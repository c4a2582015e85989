"""Transformers' Trainer teaches a tiny GPT-2 the bytes of Python's own sources.

Nothing is downloaded: the model is made from its configuration, and bytes need
no tokenizer. Trainer finds the other ranks by what torchrun tells it."""
import argparse
import os
import pathlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

LENGTH = 64


def read():
    """The sources as pieces of so many bytes."""
    files = sorted(pathlib.Path(os.__file__).parent.glob("*.py"))
    text = b"".join(f.read_bytes() for f in files[:60])
    pieces = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    return pieces[: len(pieces) // LENGTH * LENGTH].view(-1, LENGTH)


class Pieces(torch.utils.data.Dataset):
    def __init__(self, pieces):
        self.pieces = pieces

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, i):
        return {"input_ids": self.pieces[i], "labels": self.pieces[i]}


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--out", default=os.environ.get("DLWB_RESULTS", "out"))
args = parser.parse_args()
set_seed(1)
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2,
                                   bos_token_id=0, eos_token_id=0, pad_token_id=0))
pieces = read()
trainer = Trainer(
    model=model, train_dataset=Pieces(pieces[64:]), eval_dataset=Pieces(pieces[:64]),
    args=TrainingArguments(output_dir=args.out, max_steps=args.steps, per_device_train_batch_size=16, learning_rate=3e-3,
                           logging_steps=10, eval_strategy="steps", eval_steps=args.steps, save_steps=args.steps,
                           report_to=[], disable_tqdm=True, ddp_find_unused_parameters=False))
trainer.train()
