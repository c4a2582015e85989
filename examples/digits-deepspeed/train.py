"""DeepSpeed's ZeRO on handwritten digits, also without GPUs."""
import os

import torch
import torch.nn.functional as F

if not torch.cuda.is_available():
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed

import digits


def model():
    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T).contiguous(), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


gpu = torch.cuda.is_available()
deepspeed.init_distributed(dist_backend="nccl" if gpu else "gloo")
rank, world = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
net = model()
engine, _, _, _ = deepspeed.initialize(model=net, optimizer=torch.optim.SGD(net.parameters(), lr=digits.RATE), config={
    "train_batch_size": digits.BATCH, "train_micro_batch_size_per_gpu": digits.BATCH // world,
    "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False, "gradient_clipping": 0.0,
    "steps_per_print": 10**9})
x, y, val_x, val_y = (torch.tensor(part, device=engine.device) for part in digits.load())
for epoch in range(digits.EPOCHS):
    for index in digits.batches(epoch, rank, world):
        loss = F.cross_entropy(engine(x[index]), y[index])
        engine.backward(loss)
        engine.step()
    with torch.no_grad():
        out = engine.module(val_x)
        val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
    if rank == 0:
        print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {loss.item():.4f} val_loss {val:.4f} val_acc {acc:.4f}", flush=True)
