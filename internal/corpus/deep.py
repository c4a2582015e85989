"""Scenarios of networks: trainers around PyTorch and JAX, and the loops of their handbooks."""
import logging
import os
import sys

from scenario import blobs, net, scenario, torch_loaders
from truth import keep


@scenario("torchbearer", "torch")
def torchbearer_trial():
    import torch
    import torchbearer
    from torchbearer import Trial
    @torchbearer.callbacks.on_step_training
    def told(state):
        for k in ("running_acc", "running_loss"):
            if k in state[torchbearer.METRICS]:
                x = state[torchbearer.EPOCH] * 8 + state[torchbearer.BATCH] + 1
                keep(k, x, round(state[torchbearer.METRICS][k], 4), ".17g", x_strict=False, count_min=1, count_max=32, required=False)
    n = net(); train, val = torch_loaders()
    t = Trial(n, torch.optim.Adam(n.parameters(), 1e-2), torch.nn.CrossEntropyLoss(), metrics=["acc", "loss"], callbacks=[told]).with_train_generator(train).with_val_generator(val)
    for i, e in enumerate(t.run(4)):
        for k in ("acc", "loss", "val_acc", "val_loss"):
            keep(k.replace("val_", "val/"), i, e[k], ".4g", x_strict=False, count_min=1, count_max=64, required="val" not in k)


@scenario("pytorch-tabnet", "torch")
def tabnet():
    from pytorch_tabnet.tab_model import TabNetClassifier
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = TabNetClassifier(n_d=4, n_a=4, seed=0)
    m.fit(x, y, eval_set=[(v, w)], eval_metric=["accuracy", "logloss"], max_epochs=6, batch_size=100, virtual_batch_size=50)
    for i in range(6):
        for k in ("loss", "val_0_accuracy", "val_0_logloss"):
            keep(k.replace("val_0_", "val/"), i, m.history[k][i], ".5f", aka=[k, k.replace("val_0", "val/0")])


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
    losses = numpyro.infer.SVI(model, guide, numpyro.optim.Adam(.05), numpyro.infer.Trace_ELBO()).run(jax.random.PRNGKey(1), 1000).losses; losses = jax.device_get(losses)
    for i in range(50, 1001, 50):
        keep("avg. loss", i, sum(losses[i - 50:i]) / 50, ".4f", aka=["avg_loss", "loss"], count_min=1, count_max=20)
        keep("init loss", i, losses[0], ".4f", aka=["init_loss"], x_strict=False, count_min=1, count_max=20, required=False)


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
