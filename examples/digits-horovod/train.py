"""Horovod's DistributedOptimizer of PyTorch on handwritten digits."""
import horovod.torch as hvd
import torch
import torch.nn.functional as F

import digits


def model():
    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T).contiguous(), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def main():
    hvd.init()
    device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
    net = model().to(device)
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(net.parameters(), lr=digits.RATE), named_parameters=net.named_parameters())
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    x, y, val_x, val_y = (torch.tensor(part, device=device) for part in digits.load())
    for epoch in range(digits.EPOCHS):
        for index in digits.batches(epoch, hvd.rank(), hvd.size()):
            loss = F.cross_entropy(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(val_x)
            val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {loss.item():.4f} val_loss {val:.4f} val_acc {acc:.4f}", flush=True)


main()
