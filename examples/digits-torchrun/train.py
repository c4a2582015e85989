"""PyTorch's DistributedDataParallel on handwritten digits."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import digits


def model():
    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def main():
    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    net = DistributedDataParallel(model().to(device), device_ids=[device.index] if gpu else None)
    optimizer = torch.optim.SGD(net.parameters(), lr=digits.RATE)
    x, y, val_x, val_y = (torch.tensor(part, device=device) for part in digits.load())
    for epoch in range(digits.EPOCHS):
        for index in digits.batches(epoch, rank, world):
            loss = F.cross_entropy(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net.module(val_x)
            val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
        if rank == 0:
            print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {loss.item():.4f} val_loss {val:.4f} val_acc {acc:.4f}", flush=True)
    dist.destroy_process_group()


main()
