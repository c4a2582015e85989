"""Ray Train on handwritten digits: one worker for each process that dlwb plans."""
import os

import ray
from ray.train import ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer


def work(_):
    import ray.train.torch
    import torch
    import torch.nn.functional as F

    import digits

    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    rank, world = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    device = ray.train.torch.get_device()
    net = ray.train.torch.prepare_model(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(net.parameters(), lr=digits.RATE)
    x, y, val_x, val_y = (torch.tensor(part, device=device) for part in digits.load())
    for epoch in range(digits.EPOCHS):
        for index in digits.batches(epoch, rank, world):
            loss = F.cross_entropy(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(val_x)
            val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
        if rank == 0:
            print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {loss.item():.4f} val_loss {val:.4f} val_acc {acc:.4f}", flush=True)
        ray.train.report({"val_loss": val, "val_acc": acc})


gpus = int(os.environ.get("DLWB_GPUS", 0))
ray.init()
TorchTrainer(work, train_loop_config={}, torch_config=TorchConfig(backend="nccl" if gpus else "gloo"),
             scaling_config=ScalingConfig(num_workers=int(os.environ.get("DLWB_WORKERS", 1)), use_gpu=gpus > 0)).fit()
