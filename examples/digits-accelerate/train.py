"""Hugging Face Accelerate on handwritten digits."""
import torch
import torch.nn.functional as F
from accelerate import Accelerator

import digits


def model():
    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


accelerator = Accelerator()
net = model()
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=digits.RATE))
x, y, val_x, val_y = (torch.tensor(part, device=accelerator.device) for part in digits.load())
for epoch in range(digits.EPOCHS):
    for index in digits.batches(epoch, accelerator.process_index, accelerator.num_processes):
        loss = F.cross_entropy(net(x[index]), y[index])
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    with torch.no_grad():
        out = accelerator.unwrap_model(net)(val_x)
        val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
    accelerator.print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {loss.item():.4f} val_loss {val:.4f} val_acc {acc:.4f}", flush=True)
accelerator.end_training()
