"""A sweep by Ray Tune on handwritten digits: as many trials at once as dlwb plans processes, bad ones ended early."""
import os
from pathlib import Path

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler


def trial(config):
    import torch
    import torch.nn.functional as F
    from ray import tune

    import digits

    layers = []
    for matrix, vector in digits.weights():
        layer = torch.nn.Linear(*matrix.shape)
        layer.weight.data, layer.bias.data = torch.tensor(matrix.T), torch.tensor(vector)
        layers += [layer, torch.nn.ReLU()]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = torch.nn.Sequential(*layers[:-1]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=config["momentum"])
    x, y, val_x, val_y = (torch.tensor(part, device=device) for part in digits.load())
    for epoch in range(digits.EPOCHS):
        for index in digits.batches(epoch, 0, 1):
            loss = F.cross_entropy(net(x[index]), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            out = net(val_x)
            val, acc = F.cross_entropy(out, val_y).item(), (out.argmax(1) == val_y).float().mean().item()
        tune.report({"epoch": epoch + 1, "loss": loss.item(), "val_loss": val, "val_acc": acc})


gpus, workers = int(os.environ.get("DLWB_GPUS", 0)), int(os.environ.get("DLWB_WORKERS", 1))
ray.init()
found = tune.Tuner(
    tune.with_resources(trial, {"cpu": 1, "gpu": 1 if gpus else 0}),
    param_space={"lr": tune.grid_search([0.01, 0.1, 0.3]), "momentum": tune.grid_search([0.0, 0.5])},
    # The driver writes a directory for each trial there, with its progress.csv.
    run_config=tune.RunConfig(name="sweep", storage_path=str(Path("outputs").resolve())),
    tune_config=tune.TuneConfig(metric="val_loss", mode="min", max_concurrent_trials=workers, scheduler=ASHAScheduler(grace_period=3)),
).fit()
if found.errors:
    raise SystemExit(f"{len(found.errors)} trials have failed: {found.errors[0]}")
best = found.get_best_result()
print(f"best of {len(found)}: lr {best.config['lr']} momentum {best.config['momentum']} "
      f"val_loss {best.metrics['val_loss']:.4f} val_acc {best.metrics['val_acc']:.4f}", flush=True)
