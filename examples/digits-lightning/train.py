"""Lightning and Hydra on handwritten digits: train.py max_epochs=5 lr=0.05."""
import hydra
import lightning as L
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

import digits


class Order(torch.utils.data.Sampler):
    """The images of this rank, in the order in which all examples take them."""

    def __init__(self, rank, world):
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter([i for batch in digits.batches(self.epoch, self.rank, self.world) for i in batch.tolist()])

    def __len__(self):
        return digits.TRAINED_ON // self.world


class Digits(L.LightningModule):
    """A classifier of three layers."""

    def __init__(self, lr):
        super().__init__()
        self.lr = lr
        layers = []
        for matrix, vector in digits.weights():
            layer = torch.nn.Linear(*matrix.shape)
            layer.weight.data, layer.bias.data = torch.tensor(matrix.T), torch.tensor(vector)
            layers += [layer, torch.nn.ReLU()]
        self.net = torch.nn.Sequential(*layers[:-1])

    def training_step(self, batch, _):
        self.loss = F.cross_entropy(self.net(batch[0]), batch[1])
        return self.loss

    def validation_step(self, batch, _):
        out = self.net(batch[0])
        self.log("val_loss", F.cross_entropy(out, batch[1]), sync_dist=True)
        self.log("val_acc", (out.argmax(1) == batch[1]).float().mean(), sync_dist=True)

    def on_train_epoch_end(self):
        if self.global_rank == 0:
            seen = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch + 1}/{self.trainer.max_epochs} loss {self.loss.item():.4f} "
                  f"val_loss {seen['val_loss']:.4f} val_acc {seen['val_acc']:.4f}", flush=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)

    def train_dataloader(self):
        x, y, _, _ = digits.load()
        world = self.trainer.world_size
        return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=digits.BATCH // world,
                          sampler=Order(self.trainer.global_rank, world))

    def val_dataloader(self):
        _, _, x, y = digits.load()
        return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=len(x))


@hydra.main(config_path="conf", config_name="config", version_base=None)
def main(cfg):
    trainer = L.Trainer(accelerator="auto", strategy="ddp", devices=cfg.devices, num_nodes=cfg.num_nodes, max_epochs=cfg.max_epochs,
                        use_distributed_sampler=False, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Digits(cfg.lr))


main()
