"""Scenarios of trainers around PyTorch that print in their own ways."""
import os
import sys

from scenario import blobs, net, scenario, torch_loaders
from truth import keep


@scenario("deepxde", "torch")
def deepxde_function():
    os.environ["DDE_BACKEND"] = "pytorch"
    import deepxde as dde
    import numpy as np
    dde.config.set_random_seed(0)
    data = dde.data.Function(dde.geometry.Interval(-1, 1), lambda x: np.sin(3 * x), 16, 50)
    m = dde.Model(data, dde.nn.FNN([1, 12, 1], "tanh", "Glorot uniform")); m.compile("adam", lr=1e-2, metrics=["l2 relative error"])
    h, _ = m.train(iterations=200, display_every=20)
    for i, step in enumerate(h.steps):
        keep("train/loss", step, np.sum(h.loss_train[i]), ".2e"); keep("test/loss", step, np.sum(h.loss_test[i]), ".2e")
        keep("test/metric", step, h.metrics_test[i][0], ".2e")


@scenario("torchtuples", "torch")
def torchtuples_fit():
    import torch
    import torchtuples as tt
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = tt.Model(net(), torch.nn.CrossEntropyLoss(), tt.optim.Adam(1e-2))
    told = m.fit(x, y, batch_size=50, epochs=6, val_data=(v, w), metrics={"acc": lambda z, y: (z.argmax(1) == y).float().mean()}).to_pandas()
    for i in range(6):
        for k in ("train_loss", "train_acc", "val_loss", "val_acc"):
            keep(k.replace("_", "/"), i, told[k][i], ".4f")


@scenario("river")
def river_progressive():
    from river import datasets, evaluate, linear_model, metrics, preprocessing
    def made(): return preprocessing.StandardScaler() | linear_model.LogisticRegression()
    for s in evaluate.iter_progressive_val_score(datasets.Phishing(), made(), metrics.Accuracy(), step=100):
        keep("accuracy", s["Step"], s["Accuracy"].get() * 100, ".2f")
    evaluate.progressive_val_score(datasets.Phishing(), made(), metrics.Accuracy(), print_every=100)


@scenario("poutyne", "torch")
def poutyne_fit():
    import torch
    from poutyne import Callback, Model
    train, val = torch_loaders(); n = net()
    m = Model(n, torch.optim.Adam(n.parameters(), 1e-2), "cross_entropy", batch_metrics=["accuracy"], device="cpu")
    class Told(Callback):
        def on_train_batch_end(self, batch, logs):
            self.at = getattr(self, "at", 0) + 1
            for k in ("loss", "acc"):
                keep(k, self.at, logs[k], ".6f", count_min=20, count_max=32)
    for e in m.fit_generator(train, val, epochs=4, callbacks=[Told()]):
        for k in ("loss", "acc", "val_loss", "val_acc"):
            keep(k.replace("val_", "val/") if "val" in k else k + "_epoch", e["epoch"], e[k], ".6f")


@scenario("pytorch-accelerated", "torch")
def accelerated_trainer():
    import torch
    from pytorch_accelerated import Trainer
    train, val = torch_loaders(); n = net()
    t = Trainer(n, torch.nn.CrossEntropyLoss(), torch.optim.Adam(n.parameters(), 1e-2))
    t.train(train_dataset=train.dataset, eval_dataset=val.dataset, num_epochs=4, per_device_batch_size=50)
    for k in ("train_loss_epoch", "eval_loss_epoch"):
        for i, v in enumerate(t.run_history.get_metric_values(k)):
            keep(k.replace("_loss", "/loss"), i + 1, v, ".17g", aka=[k, k.replace("_loss_epoch", "/loss")], x_strict=False)


@scenario("torchtnt", "torch")
def torchtnt_logger():
    import torch
    from torchtnt.framework.auto_unit import AutoUnit
    from torchtnt.framework.fit import fit
    from torchtnt.utils.loggers import StdoutLogger
    log = StdoutLogger()
    class Unit(AutoUnit):
        def __init__(self, module): super().__init__(module=module, device=torch.device("cpu")); self.v = []
        def configure_optimizers_and_lr_scheduler(self, m): return torch.optim.Adam(m.parameters(), 1e-2), None
        def compute_loss(self, state, batch):
            x, y = batch; z = self.module(x); return torch.nn.functional.cross_entropy(z, y), z
        def on_train_step_end(self, state, batch, step, results):
            if step % 4 == 3:
                log.log_dict({"loss": results.loss.item(), "lr": .01}, step)
                keep("loss", step, results.loss.item(), ".17g"); keep("lr", step, .01, ".17g", required=False)
        def on_eval_step_end(self, state, batch, step, loss, z): self.v.append(loss.item())
        def on_eval_epoch_end(self, state):
            step = self.train_progress.num_steps_completed
            mean = sum(self.v) / len(self.v); self.v = []
            log.log("val_loss", mean, step); keep("val/loss", step, mean, ".17g")
    train, val = torch_loaders()
    fit(Unit(net()), train, val, max_epochs=3)


@scenario("mmengine", "torch")
def mmengine_runner():
    import logging
    import tempfile
    import torch
    from mmengine.evaluator import BaseMetric
    from mmengine.model import BaseModel
    from mmengine.runner import LogProcessor, Runner
    class Net(BaseModel):
        def __init__(self): super().__init__(); self.n = net()
        def forward(self, x, y, mode):
            z = self.n(x)
            return {"loss": torch.nn.functional.cross_entropy(z, y)} if mode == "loss" else (z, y)
    class Hits(BaseMetric):
        def process(self, batch, out): self.results.append((int((out[0].argmax(1) == out[1]).sum()), len(out[1])))
        def compute_metrics(self, r): return {"accuracy": 100 * sum(a for a, _ in r) / sum(b for _, b in r)}
    class Told(LogProcessor):
        def get_log_after_iter(self, runner, i, mode):
            tag, text = super().get_log_after_iter(runner, i, mode)
            if mode == "train":
                for k in ("lr", "loss"):
                    keep(k, runner.iter + 1, tag[k], ".4e" if k == "lr" else ".4f", aka=["train/" + k])
            return tag, text
        def get_log_after_epoch(self, runner, i, mode, *a):
            got = super().get_log_after_epoch(runner, i, mode, *a)
            keep("val/accuracy", runner.epoch, got[0]["accuracy"], ".4f")
            return got
    train, val = torch_loaders(); n = Net()
    with tempfile.TemporaryDirectory() as d:
        Runner(n, d, train_dataloader=train, train_cfg=dict(by_epoch=True, max_epochs=3, val_interval=1), optim_wrapper=dict(optimizer=torch.optim.Adam(n.parameters(), 1e-2)),
               val_dataloader=val, val_cfg=dict(), val_evaluator=[Hits(prefix=None)], log_processor=Told(window_size=4), default_hooks=dict(logger=dict(type="LoggerHook", interval=4)),
               randomness=dict(seed=0)).train()


@scenario("pykeen", "torch")
def pykeen_pipeline():
    from pykeen.pipeline import pipeline
    r = pipeline(dataset="Nations", model="TransE", training_kwargs=dict(num_epochs=12, use_tqdm_batch=False), random_seed=0, device="cpu")
    for i, v in enumerate(r.losses):
        keep("loss", i + 1, v, ".3g", x_strict=False, count_min=1, count_max=12)
        if i: keep("prev_loss", i + 1, r.losses[i - 1], ".3g", x_strict=False, count_min=1, count_max=12, required=False)


@scenario("vowpalwabbit")
def vowpal_wabbit():
    import vowpalwabbit as vw
    x, y = blobs(classes=2)
    m = vw.Workspace("--loss_function logistic", quiet=False)
    at, last, before = 1, 0., 0
    for i in range(256):
        m.learn(f"{2 * int(y[i]) - 1} | " + " ".join(f"f{k}:{v:.4f}" for k, v in enumerate(x[i])))
        if i + 1 == at:
            told = m.get_sum_loss()
            keep("average loss", at, told / at, ".6f", aka=["average_loss", "loss"]); keep("since last", at, (told - last) / (at - before), ".6f", aka=["since_last", "since_last_loss"], required=False)
            at, last, before = 2 * at, told, at
    m.finish()


@scenario("lifelines")
def lifelines_cox():
    import numpy as np
    import pandas as pd
    from lifelines import CoxPHFitter
    from lifelines.fitters import coxph_fitter
    r = np.random.default_rng(0); x = r.normal(size=(200, 2))
    d = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "T": r.exponential(np.exp(-x[:, 0] + .5 * x[:, 1])), "E": 1})
    told, solve = [], coxph_fitter.spsolve
    def solved(h, g, **how):
        delta = solve(h, g, **how); told.append([np.linalg.norm(delta), g.dot(delta) / 2]); return delta
    coxph_fitter.spsolve = solved
    likely, of = [], coxph_fitter.SemiParametricPHFitter
    for name in ("_get_efron_values_single", "_get_efron_values_batch"):
        def kept(*a, inner=getattr(of, name)):
            got = inner(*a); likely.append(got[2]); return got
        setattr(of, name, staticmethod(kept) if isinstance(of.__dict__[name], staticmethod) else kept)
    CoxPHFitter().fit(d, "T", "E", show_progress=True)
    for i, (length, decrement) in enumerate(told):
        keep("norm_delta", i + 1, length, ".2e", required=False); keep("newton_decrement", i + 1, decrement, ".2e", required=False)
        keep("log_lik", i + 1, likely[i], ".5f")
