"""Scenarios of networks: trainers around PyTorch and JAX, and the loops of their handbooks."""
import logging
import os
import sys

from scenario import blobs, net, scenario, torch_loaders
from truth import keep


@scenario("poutyne", "torch")
def poutyne_fit():
    import torch
    from poutyne import Model
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = Model(net(), torch.optim.Adam(net().parameters(), 1e-2), "cross_entropy", batch_metrics=["accuracy"])
    n = net(); m = Model(n, torch.optim.Adam(n.parameters(), 1e-2), "cross_entropy", batch_metrics=["accuracy"])
    for e in m.fit(x, y, validation_data=(v, w), epochs=5, batch_size=50):
        for k in ("loss", "acc", "val_loss", "val_acc"):
            keep(k.replace("val_", "val/"), e["epoch"], e[k], ".6f")


@scenario("torchbearer", "torch")
def torchbearer_trial():
    import torch
    from torchbearer import Trial
    n = net(); train, val = torch_loaders()
    t = Trial(n, torch.optim.Adam(n.parameters(), 1e-2), torch.nn.CrossEntropyLoss(), metrics=["acc", "loss"]).with_train_generator(train).with_val_generator(val)
    for i, e in enumerate(t.run(4)):
        for k in ("acc", "loss", "val_acc", "val_loss"):
            keep(k.replace("val_", "val/"), i, e[k], ".4g", x_strict=False, count_min=1, count_max=64, required="val" not in k)
        for k in ("running_acc", "running_loss"):
            keep(k, i, 0, ".4g", required=False, count_min=1, count_max=64)


@scenario("pytorch-tabnet", "torch")
def tabnet():
    from pytorch_tabnet.tab_model import TabNetClassifier
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = TabNetClassifier(n_d=4, n_a=4, seed=0)
    m.fit(x, y, eval_set=[(v, w)], eval_metric=["accuracy", "logloss"], max_epochs=6, batch_size=100, virtual_batch_size=50)
    for i in range(6):
        for k in ("loss", "val_0_accuracy", "val_0_logloss"):
            keep(k.replace("val_0_", "val/"), i, m.history[k][i], ".5f", aka=[k, k.replace("val_0", "val/0")])


@scenario("pykeen", "torch")
def pykeen_pipeline():
    from pykeen.pipeline import pipeline
    r = pipeline(dataset="Nations", model="TransE", model_kwargs={"embedding_dim": 8}, training_kwargs={"num_epochs": 8}, random_seed=0, device="cpu",
                 evaluation_kwargs={"use_tqdm": False})
    for i, v in enumerate(r.losses):
        keep("loss", i + 1, v, ".3g", count_min=1, count_max=8)
        keep("prev_loss", i + 1, v, ".3g", required=False, count_min=1, count_max=8)


@scenario("neurolab")
def neurolab_newff():
    import numpy as np
    if not hasattr(np, "float"):
        np.float, np.int, np.bool = float, int, bool  # it is older than their removal
    import neurolab as nl
    x, y = blobs(100, 2)
    np.random.seed(0)
    n = nl.net.newff([[x[:, i].min(), x[:, i].max()] for i in range(2)], [5, 1]); n.trainf = nl.train.train_gd
    for i, v in enumerate(n.train(x, (y[:, None] - 1).astype(float), epochs=30, show=5, goal=0.0)):
        if (i + 1) % 5 == 0:
            keep("error", i + 1, v, ".17g")


@scenario("monai", "pytorch-ignite", "torch")
def monai_trainer():
    import torch
    from ignite.engine import Events
    from monai.engines import SupervisedTrainer
    from monai.handlers import StatsHandler
    from torch.utils.data import DataLoader
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    x, y = blobs()
    data = [{"image": torch.tensor(a), "label": torch.tensor(b)} for a, b in zip(x, y)]
    m = net()
    t = SupervisedTrainer(torch.device("cpu"), 3, DataLoader(data, batch_size=50), m, torch.optim.Adam(m.parameters(), 1e-2), torch.nn.CrossEntropyLoss(),
                          train_handlers=[StatsHandler(tag_name="train_loss", output_transform=lambda o: o[0]["loss"])])
    @t.on(Events.ITERATION_COMPLETED)
    def _(e): keep("train/loss", e.state.iteration, e.state.output[0]["loss"], ".4f", x_strict=False)
    t.run()


@scenario("mmengine", "torch")
def mmengine_runner():
    import torch
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner
    train, _ = torch_loaders()
    class M(BaseModel):
        def __init__(self): super().__init__(); self.net = net()
        def forward(self, x, y, mode): return {"loss": torch.nn.functional.cross_entropy(self.net(x), y)}
        def train_step(self, data, optim):
            loss = self(*data, mode="loss")["loss"]; optim.update_params(loss); return {"loss": loss.detach()}
    class Keep(Hook):
        priority = "VERY_LOW"
        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if (batch_idx + 1) % 4 == 0:
                keep("loss", runner.iter + 1, runner.message_hub.get_scalar("train/loss").mean(4), ".4f", x_strict=False)
                keep("lr", runner.iter + 1, .01, ".4e", x_strict=False)
    Runner(M(), "/tmp/corpus-mm", train, optim_wrapper=dict(optimizer=dict(type="Adam", lr=.01)), train_cfg=dict(by_epoch=True, max_epochs=3),
           default_hooks=dict(logger=dict(type="LoggerHook", interval=4), checkpoint=None), custom_hooks=[Keep()], log_processor=dict(window_size=4)).train()


@scenario("catalyst", "torch")
def catalyst_runner():
    import torch
    from catalyst import dl
    train, val = torch_loaders(); m = net()
    class Keep(dl.Callback):
        def __init__(self): super().__init__(order=1000)
        def on_epoch_end(self, runner):
            for split, values in runner.epoch_metrics.items():
                if split != "_epoch_":
                    for k in ("loss", "accuracy01"):
                        keep({"train": "train/", "valid": "val/"}[split] + k, runner.epoch_step, float(values[k]), ".6g", x_strict=False)
                    for k in values:
                        if k not in ("loss", "accuracy01"):
                            keep({"train": "train/", "valid": "val/"}[split] + k, runner.epoch_step, float(values[k]), ".6g", required=False, count_min=1, count_max=9)
    dl.SupervisedRunner().train(model=m, criterion=torch.nn.CrossEntropyLoss(), optimizer=torch.optim.Adam(m.parameters(), 1e-2),
                                loaders={"train": train, "valid": val}, num_epochs=4, verbose=False,
                                callbacks=[dl.AccuracyCallback(input_key="logits", target_key="targets", topk=(1,)), Keep()], logdir=None)


@scenario("pytorch-widedeep", "torch")
def widedeep_trainer():
    import numpy as np
    from pytorch_widedeep import Trainer
    from pytorch_widedeep.metrics import Accuracy
    from pytorch_widedeep.models import TabMlp, WideDeep
    x, y = blobs(classes=2)
    m = WideDeep(deeptabular=TabMlp(column_idx={f"f{i}": i for i in range(8)}, continuous_cols=[f"f{i}" for i in range(8)], mlp_hidden_dims=[8]))
    t = Trainer(m, objective="binary", metrics=[Accuracy], seed=0)
    t.fit(X_tab=x.astype("float32"), target=y.astype("float32"), n_epochs=4, batch_size=80, val_split=.25)
    for k, values in t.history.items():
        for i, v in enumerate(values):
            keep(k.replace("train_", "train/").replace("val_", "val/"), i + 1, v, ".3g", aka=[k.split("_")[1]], count_min=1, count_max=24, x_strict=False, required="loss" in k)


@scenario("torch-geometric", "torch")
def geometric_gcn():
    import torch
    from torch_geometric.nn import GCNConv
    x, y = blobs(); x, y = torch.tensor(x), torch.tensor(y)
    torch.manual_seed(0)
    edges = torch.randint(0, 400, (2, 3000)); edges = edges[:, y[edges[0]] == y[edges[1]]]
    class GCN(torch.nn.Module):
        def __init__(self): super().__init__(); self.a, self.b = GCNConv(8, 16), GCNConv(16, 3)
        def forward(self): return self.b(self.a(x, edges).relu(), edges)
    m = GCN(); opt = torch.optim.Adam(m.parameters(), 5e-3)
    for epoch in range(1, 21):
        out = m(); loss = torch.nn.functional.cross_entropy(out[:200], y[:200]); opt.zero_grad(); loss.backward(); opt.step()
        hit = (m().argmax(1) == y).float()
        train, val, test = hit[:200].mean().item(), hit[200:300].mean().item(), hit[300:].mean().item()
        print(f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train:.4f}, Val: {val:.4f}, Test: {test:.4f}")
        keep("loss", epoch, loss, ".4f")
        for k, v in (("train", train), ("val", val), ("test", test)):
            keep(k, epoch, v, ".4f", aka=[f"{k}/accuracy", f"{k}/acc", f"{k}/value"])


@scenario("gpytorch", "torch")
def gpytorch_regression():
    import gpytorch
    import torch
    x = torch.linspace(0, 1, 40); torch.manual_seed(0); y = torch.sin(6 * x) + .1 * torch.randn(40)
    class GP(gpytorch.models.ExactGP):
        def __init__(self, lik):
            super().__init__(x, y, lik); self.m, self.k = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        def forward(self, x): return gpytorch.distributions.MultivariateNormal(self.m(x), self.k(x))
    lik = gpytorch.likelihoods.GaussianLikelihood(); m = GP(lik); m.train(); lik.train()
    opt = torch.optim.Adam(m.parameters(), .1); mll = gpytorch.mlls.ExactMarginalLogLikelihood(lik, m)
    for i in range(20):
        opt.zero_grad(); loss = -mll(m(x), y); loss.backward()
        a, b = m.k.base_kernel.lengthscale.item(), lik.noise.item()
        print("Iter %d/%d - Loss: %.3f   lengthscale: %.3f   noise: %.3f" % (i + 1, 20, loss.item(), a, b))
        opt.step()
        keep("loss", i + 1, loss, ".3f"); keep("lengthscale", i + 1, a, ".3f", required=False); keep("noise", i + 1, b, ".3f", required=False)


@scenario("pyro-ppl", "torch")
def pyro_svi():
    import pyro
    import torch
    from pyro import distributions as D
    pyro.set_rng_seed(0); data = torch.randn(50) + 2
    def model():
        m = pyro.sample("m", D.Normal(0., 5.))
        with pyro.plate("d", 50): pyro.sample("x", D.Normal(m, 1.), obs=data)
    def guide():
        pyro.sample("m", D.Normal(pyro.param("a", torch.tensor(0.)), pyro.param("b", torch.tensor(1.), constraint=D.constraints.positive)))
    svi = pyro.infer.SVI(model, guide, pyro.optim.Adam({"lr": .05}), pyro.infer.Trace_ELBO())
    for j in range(200):
        loss = svi.step()
        if j % 20 == 0:
            print("[iteration %04d] loss: %.4f" % (j + 1, loss / 50))
            keep("loss", j + 1, loss / 50, ".4f")


@scenario("numpyro", "jax")
def numpyro_svi():
    import jax
    import numpyro
    from numpyro import distributions as D
    data = jax.random.normal(jax.random.PRNGKey(0), (50,)) + 2
    def model(): numpyro.sample("x", D.Normal(numpyro.sample("m", D.Normal(0., 5.)), 1.), obs=data)
    guide = numpyro.infer.autoguide.AutoNormal(model)
    r = numpyro.infer.SVI(model, guide, numpyro.optim.Adam(.05), numpyro.infer.Trace_ELBO()).run(jax.random.PRNGKey(1), 1000)
    keep("avg. loss", 1000, r.losses[950:].mean(), ".4f", required=False, aka=["loss", "avg/loss", "avg_loss"], x_strict=False, count_min=1, count_max=30)
    keep("init loss", 0, r.losses[0], ".4f", required=False, aka=["init_loss"], count_min=1, count_max=30)


@scenario("equinox", "optax", "jax")
def equinox_loop():
    import equinox as eqx, jax, optax
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = eqx.nn.MLP(8, 3, 16, 1, key=jax.random.PRNGKey(0)); opt = optax.adamw(1e-2); s = opt.init(eqx.filter(m, eqx.is_array))
    @eqx.filter_jit
    def loss(m, x, y): return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(m)(x), y).mean()
    @eqx.filter_jit
    def make_step(m, s):
        value, g = eqx.filter_value_and_grad(loss)(m, x, y); u, s = opt.update(g, s, eqx.filter(m, eqx.is_array)); return eqx.apply_updates(m, u), s, value
    for step in range(60):
        m, s, value = make_step(m, s)
        if step % 10 == 0:
            t, acc = loss(m, v, w), (jax.vmap(m)(v).argmax(-1) == w).mean()
            print(f"step={step}, train_loss={value.item()}, test_loss={t.item()}, test_accuracy={acc.item()}")
            keep("train/loss", step, value.item(), ".17g"); keep("test/loss", step, t.item(), ".17g"); keep("test/accuracy", step, acc.item(), ".17g")


@scenario("dm-haiku", "optax", "jax")
def haiku_loop():
    import haiku as hk, jax, optax
    x, y = blobs()
    f = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([16, 3])(x)))
    p = f.init(jax.random.PRNGKey(0), x); opt = optax.adam(1e-2); s = opt.init(p)
    loss = lambda p: optax.softmax_cross_entropy_with_integer_labels(f.apply(p, x), y).mean()
    for step in range(50):
        value, g = jax.value_and_grad(loss)(p); u, s = opt.update(g, s); p = optax.apply_updates(p, u)
        if step % 10 == 0:
            acc = float((f.apply(p, x).argmax(-1) == y).mean())
            print({"step": step, "accuracy": f"{acc:.3f}", "loss": f"{value:.3f}"})
            keep("loss", step, value, ".3f"); keep("accuracy", step, acc, ".3f")


@scenario("clu", "jax")
def clu_writer():
    from absl import logging as absl
    from clu import metric_writers
    import torch
    absl.set_verbosity(absl.INFO); absl.use_absl_handler()
    w = metric_writers.LoggingWriter(); m = net(); opt = torch.optim.Adam(m.parameters(), 1e-2); train, _ = torch_loaders()
    step = 0
    for _ in range(3):
        for x, y in train:
            z = m(x); loss = torch.nn.functional.cross_entropy(z, y); opt.zero_grad(); loss.backward(); opt.step(); step += 1
            if step % 4 == 0:
                acc = (z.argmax(1) == y).float().mean().item()
                w.write_scalars(step, {"loss": loss.item(), "accuracy": acc})
                keep("loss", step, loss.item(), ".6g"); keep("accuracy", step, acc, ".6g")
    w.flush()


@scenario("tinygrad")
def tinygrad_mnist():
    from tinygrad import Tensor, nn
    from tinygrad.helpers import trange
    x, y = blobs(); x, y = Tensor(x), Tensor(y.astype("int32"))
    Tensor.manual_seed(0)
    a, b = nn.Linear(8, 16), nn.Linear(16, 3); f = lambda: b(a(x).relu())
    opt = nn.optim.Adam(nn.state.get_parameters([a, b]), lr=1e-2); Tensor.training = True
    for i in (t := trange(20)):
        opt.zero_grad(); loss = f().sparse_categorical_crossentropy(y).backward(); opt.step()
        acc = ((f().argmax(1) == y).mean() * 100).item(); v = loss.item()
        t.set_description(f"loss: {v:6.2f} test_accuracy: {acc:5.2f}%")
        keep("loss", i, v, ".2f", x_strict=False, count_min=1, count_max=20); keep("test/accuracy", i, acc, ".2f", x_strict=False, count_min=1, count_max=20)


@scenario("torchmetrics", "torch")
def torchmetrics_loop():
    import torch
    from torchmetrics import MetricCollection
    from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score
    m = net(); opt = torch.optim.Adam(m.parameters(), 1e-2); train, val = torch_loaders()
    scores = MetricCollection({"acc": MulticlassAccuracy(3, average="micro"), "f1": MulticlassF1Score(3)})
    for epoch in range(5):
        for x, y in train:
            loss = torch.nn.functional.cross_entropy(m(x), y); opt.zero_grad(); loss.backward(); opt.step()
        for x, y in val: scores.update(m(x), y)
        got = scores.compute(); scores.reset()
        print(f"epoch {epoch}:", got)
        for k, v in got.items(): keep(k, epoch, v, ".4f", aka=["val/" + k])


@scenario("trl", "transformers", "torch")
def trl_sft():
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, TrainerCallback
    from trl import SFTConfig, SFTTrainer
    torch.manual_seed(0)
    words = ["<pad>", "<eos>"] + [f"w{i}" for i in range(20)]
    tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<eos>")); tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok = PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", eos_token="<eos>")
    m = GPT2LMHeadModel(GPT2Config(vocab_size=22, n_positions=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1, pad_token_id=0))
    class Keep(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "train_runtime" in logs: return
            for k, v in logs.items():
                if k != "epoch": keep({"learning_rate": "lr"}.get(k, k), float(f"{logs['epoch']:.4g}"), v, ".4g", required=k in ("loss", "mean_token_accuracy"), aka=[k])
    data = Dataset.from_list([{"text": " ".join(f"w{(i + j) % 20}" for j in range(12))} for i in range(40)])
    SFTTrainer(m, SFTConfig("/tmp/corpus-trl", num_train_epochs=3, per_device_train_batch_size=4, logging_steps=5, save_strategy="no", report_to=[], use_cpu=True, bf16=False),
               train_dataset=data, processing_class=tok, callbacks=[Keep()]).train()


@scenario("d3rlpy", "torch")
def d3rlpy_dqn():
    import d3rlpy
    import numpy as np
    r = np.random.default_rng(0); done = np.zeros(400); done[49::50] = 1
    data = d3rlpy.dataset.MDPDataset(r.normal(size=(400, 4)).astype("float32"), r.integers(0, 2, (400, 1)), r.random((400, 1)).astype("float32"), done)
    d3rlpy.seed(0)
    got = d3rlpy.algos.DQNConfig(batch_size=16).create(device="cpu:0").fit(data, n_steps=120, n_steps_per_epoch=20, logger_adapter=d3rlpy.logging.NoopAdapterFactory(), show_progress=False)
    for epoch, values in got:
        for k, v in values.items():
            keep(k, 20 * epoch, v, ".17g", required=k == "loss", x_strict=False)


@scenario("sb3-contrib")
def sb3_contrib_trpo():
    from sb3_contrib import TRPO
    from stable_baselines3.common.logger import HumanOutputFormat, KVWriter, Logger
    class Keep(KVWriter):
        def write(self, values, excluded, step=0):
            for k, v in values.items():
                if k in excluded and "stdout" in (excluded[k] or ()) or k.startswith("time/") and k != "time/fps": continue
                form = ".3g" if isinstance(v, float) else ".17g"
                keep({"train/learning_rate": "lr"}.get(k, k), step, float(str(v)) if form != ".3g" else v, form, required=k in ("rollout/ep_rew_mean", "train/value_loss"), aka=[k])
        def close(self): pass
    m = TRPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=0, device="cpu")
    m.set_logger(Logger(None, [HumanOutputFormat(sys.stdout), Keep()])); m.learn(1024)


@scenario("paddlepaddle")
def paddle_fit():
    import paddle
    x, y = blobs(); v, w = blobs(200, seed=9); paddle.seed(0)
    class Data(paddle.io.Dataset):
        def __init__(self, x, y): self.x, self.y = x, y
        def __len__(self): return len(self.x)
        def __getitem__(self, i): return self.x[i], self.y[i:i + 1]
    class Keep(paddle.callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            if (step + 1) % 4 == 0 or step == 7: self.put("", step, logs)
        def put(self, split, step, logs):
            self.at = getattr(self, "epoch", 0) * 8 + step + 1
            for k in ("loss", "acc"):
                value = logs[k][0] if isinstance(logs[k], (list, tuple)) else logs[k]
                keep(split + k, self.at, float(value), ".4f", x_strict=False)
        def on_epoch_begin(self, epoch, logs=None): self.epoch = epoch
        def on_eval_end(self, logs=None): self.put("eval/", 7, logs)
    n = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.ReLU(), paddle.nn.Linear(16, 3)); m = paddle.Model(n)
    m.prepare(paddle.optimizer.Adam(.01, parameters=n.parameters()), paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy())
    m.fit(Data(x, y), Data(v, w), batch_size=50, epochs=3, verbose=2, log_freq=4, shuffle=False, callbacks=[Keep()])


@scenario("ultralytics", "torch")
def ultralytics_yolo():
    import csv
    import shutil
    import numpy as np
    from PIL import Image
    root = "/tmp/corpus-yolo"; shutil.rmtree(root, ignore_errors=True); r = np.random.default_rng(0)
    for split in ("train", "val"):
        for kind in ("images", "labels"): os.makedirs(f"{root}/{kind}/{split}")
        for i in range(8):
            a = r.integers(0, 60, (64, 64, 3)); px, py = r.integers(8, 40, 2); a[py:py + 16, px:px + 16] = 250
            Image.fromarray(a.astype("uint8")).save(f"{root}/images/{split}/{i}.png")
            open(f"{root}/labels/{split}/{i}.txt", "w").write(f"0 {(px + 8) / 64} {(py + 8) / 64} .25 .25\n")
    open(f"{root}/data.yaml", "w").write(f"path: {root}\ntrain: images/train\nval: images/val\nnames: [box]\n")
    os.environ["YOLO_OFFLINE"] = "true"
    from ultralytics import YOLO
    YOLO("yolov8n.yaml").train(data=f"{root}/data.yaml", epochs=3, imgsz=64, batch=4, device="cpu", workers=0, plots=False, project=root, name="run", amp=False, seed=0)
    for row in csv.DictReader(open(f"{root}/run/results.csv")):
        row = {k.strip(): v for k, v in row.items()}; epoch = int(float(row["epoch"]))
        for k in ("box_loss", "cls_loss", "dfl_loss"):
            keep("train/" + k, epoch, float(row["train/" + k]), ".4g", aka=[k], x_strict=False)
        for k, name in (("metrics/precision(B)", "P"), ("metrics/recall(B)", "R"), ("metrics/mAP50(B)", "mAP50"), ("metrics/mAP50-95(B)", "mAP50-95")):
            keep("val/" + name, epoch, float(row[k]), ".3g", aka=[name, "val/precision" if name == "P" else "val/recall" if name == "R" else name], x_strict=False, required=False, count_min=1, count_max=4)
