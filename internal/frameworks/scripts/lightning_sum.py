"""Sums ones over all ranks by Lightning's strategy; with "wait", for ever."""
import argparse
import os
import time

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

p = argparse.ArgumentParser()
p.add_argument("what", nargs="?")
p.add_argument("--num_nodes", type=int, default=1)
p.add_argument("--devices", type=int, default=1)
args = p.parse_args()


class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        total = self.all_gather(torch.ones(1)).sum()
        if index == 0:
            print(f"rank {self.global_rank} of {self.trainer.world_size}: sum {int(total)} version {L.__version__}", flush=True)
        if args.what == "wait":
            print(f"waiting {os.getpid()}", flush=True)
            time.sleep(0.2)
        return self.layer(batch[0]).sum()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


data = DataLoader(TensorDataset(torch.ones(100000 if args.what == "wait" else 8, 1)), batch_size=1)
trainer = L.Trainer(max_epochs=1, accelerator="cpu", strategy="ddp", num_nodes=args.num_nodes, devices=args.devices, logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Module(), data)
