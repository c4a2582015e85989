"""Small trainings by real frameworks, each printing as it does by default, beside the truth.

usage: frameworks.py NAME, with CORPUS_TRUTH naming the file for the truth. corpus.py runs them in a pipe and in a terminal.
Each scenario is a function whose decorator names the packages that it needs.
"""
import os
import sys
import warnings

from scenario import SCENARIOS, blobs, net, scenario, torch_loaders
from truth import keep, truth


@scenario("xgboost")
def xgboost_watchlist():
    import xgboost as xgb
    x, y = blobs(); v, w = blobs(200, seed=9)
    got = {}
    xgb.train({"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss", "merror"]}, xgb.DMatrix(x, y), 15,
              evals=[(xgb.DMatrix(x, y), "train"), (xgb.DMatrix(v, w), "valid")], evals_result=got)
    for split, name in (("train", "train"), ("valid", "val")):
        for metric, values in got[split].items():
            for i, value in enumerate(values):
                keep(f"{name}/{metric}", i, value, ".5f")


@scenario("xgboost")
def xgboost_sklearn():
    import xgboost as xgb
    x, y = blobs(classes=2); v, w = blobs(200, classes=2, seed=9)
    m = xgb.XGBRegressor(n_estimators=12, eval_metric=["rmse", "mae"])
    m.fit(x, y, eval_set=[(x, y), (v, w)], verbose=3)
    for split, metrics in m.evals_result().items():
        for metric, values in metrics.items():
            for i in [i for i in range(12) if i % 3 == 0 or i == 11]:
                keep(f"{split}-{metric}", i, values[i], ".5f")


@scenario("lightgbm")
def lightgbm_log_evaluation():
    import lightgbm as lgb
    x, y = blobs(classes=2); v, w = blobs(200, classes=2, seed=9)
    got = {}
    lgb.train({"objective": "binary", "metric": ["binary_logloss", "auc"], "num_leaves": 7}, lgb.Dataset(x, y), 40,
              valid_sets=[lgb.Dataset(x, y), lgb.Dataset(v, w)], valid_names=["training", "held_out"],
              callbacks=[lgb.log_evaluation(5), lgb.record_evaluation(got)])
    for split, metrics in got.items():
        for metric, values in metrics.items():
            for i in range(4, 40, 5):
                name = f"train/{metric}" if split == "training" else f"held_out/{metric}"
                keep(name, i + 1, values[i], ".6g", aka=[f"{split}/{metric}", f"{split}'s {metric}"])


@scenario("catboost")
def catboost_verbose():
    from catboost import CatBoostClassifier
    x, y = blobs(classes=2); v, w = blobs(200, classes=2, seed=9)
    m = CatBoostClassifier(iterations=60, verbose=5, allow_writing_files=False, learning_rate=.1)
    m.fit(x, y, eval_set=(v, w))
    r = m.get_evals_result()
    for i in [i for i in range(60) if i % 5 == 0 or i == 59]:
        keep("train/loss", i, r["learn"]["Logloss"][i], ".7f", aka=["learn"])
        keep("test/loss", i, r["validation"]["Logloss"][i], ".7f", aka=["test", "val/loss"])


@scenario("scikit-learn")
def sklearn_mlp():
    from sklearn.neural_network import MLPClassifier
    x, y = blobs()
    m = MLPClassifier((16,), max_iter=25, verbose=True, random_state=0, early_stopping=True).fit(x, y)
    for i, (loss, score) in enumerate(zip(m.loss_curve_, m.validation_scores_)):
        keep("loss", i + 1, loss, ".8f")
        keep("val/score", i + 1, score, ".6f", x_strict=False)


@scenario("scikit-learn")
def sklearn_boosting():
    from sklearn.ensemble import GradientBoostingRegressor
    x, y = blobs()
    m = GradientBoostingRegressor(n_estimators=30, verbose=1, subsample=.8, random_state=0).fit(x, y)
    for i in list(range(10)) + [19, 29]:
        keep("train/loss", i + 1, m.train_score_[i], ".4f")
        keep("oob_improve", i + 1, m.oob_improvement_[i], ".4f")


@scenario("keras", "torch")
def keras_fit():
    keras_run(1)


@scenario("keras", "torch")
def keras_fit_lines():
    keras_run(2)


def keras_run(verbose):
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    keras.utils.set_random_seed(0)
    x, y = blobs(); v, w = blobs(200, seed=9)
    m = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)])
    m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2, name="top2")])
    class Keep(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs):
            for k, value in logs.items():
                keep(k.replace("val_", "val/"), epoch + 1, value, ".4f")
    m.fit(x, y, validation_data=(v, w), epochs=6, verbose=verbose, callbacks=[Keep()])
    for k, value in m.evaluate(v, w, verbose=verbose, return_dict=True).items():
        keep("eval/" + k, 6, value, ".4f", required=False)


@scenario("lightning", "torch")
def lightning_bar():
    lightning_run({})


@scenario("lightning", "torch", "rich")
def lightning_rich():
    from lightning.pytorch.callbacks import RichProgressBar
    lightning_run({"callbacks": [RichProgressBar(leave=True)]})


def lightning_run(options):
    import torch
    import lightning as L
    class Lit(L.LightningModule):
        def __init__(self):
            super().__init__(); self.net = net(); self.kept = {}
        def step(self, batch, name, **how):
            x, y = batch; z = self.net(x); loss = torch.nn.functional.cross_entropy(z, y)
            self.log(f"{name}_loss", loss, prog_bar=True, **how); self.log(f"{name}_acc", (z.argmax(1) == y).float().mean(), prog_bar=True, on_step=False, on_epoch=True)
            return loss
        def training_step(self, batch, i):
            return self.step(batch, "train", on_step=False, on_epoch=True)
        def validation_step(self, batch, i): self.step(batch, "val")
        def on_train_epoch_end(self):
            for k, v in self.trainer.callback_metrics.items():
                # In a pipe its bar is drawn once, at the end.
                keep(k.replace("_", "/", 1), self.current_epoch, v, ".3f", x_strict=False, count_min=4 if sys.stdout.isatty() else 1, count_max=4)
        def configure_optimizers(self): return torch.optim.Adam(self.parameters(), 1e-2)
    train, val = torch_loaders()
    L.Trainer(max_epochs=4, logger=False, enable_checkpointing=False, accelerator="cpu", **options).fit(Lit(), train, val)


@scenario("skorch", "torch")
def skorch_print_log():
    import torch
    from skorch import NeuralNetClassifier
    x, y = blobs()
    m = NeuralNetClassifier(net(), criterion=torch.nn.CrossEntropyLoss, max_epochs=8, lr=.1).fit(x, y)
    for e in m.history:
        for k in ("train_loss", "valid_acc", "valid_loss"):
            keep(k.replace("valid_", "val/").replace("train_", "train/"), e["epoch"], e[k], ".4f")


@scenario("pytorch-ignite", "torch")
def ignite_logging():
    import logging
    import torch
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(name)s %(levelname)s: %(message)s")
    log = logging.getLogger("run")
    m = net(); f = torch.nn.CrossEntropyLoss(); train, val = torch_loaders()
    t = create_supervised_trainer(m, torch.optim.Adam(m.parameters(), 1e-2), f)
    e = create_supervised_evaluator(m, {"accuracy": Accuracy(), "nll": Loss(f)})
    @t.on(Events.ITERATION_COMPLETED(every=4))
    def _(engine):
        keep("loss", engine.state.iteration, engine.state.output, ".4f")
        log.info("Epoch[%d] Iteration[%d/%d] Loss: %.4f", engine.state.epoch, engine.state.iteration, len(train), engine.state.output)
    @t.on(Events.EPOCH_COMPLETED)
    def _(engine):
        for name, data in (("Training", train), ("Validation", val)):
            got = e.run(data).metrics; n = engine.state.epoch; split = "train" if name == "Training" else "val"
            log.info("%s Results - Epoch: %d  Avg accuracy: %.2f Avg nll: %.2f", name, n, got["accuracy"], got["nll"])
            for k in got: keep(f"{split}/{k}", n, got[k], ".2f", x_strict=False)
    t.run(train, max_epochs=3)


@scenario("transformers", "torch")
def transformers_trainer():
    hf_run(dict(logging_steps=5, eval_strategy="epoch"))


@scenario("transformers", "torch")
def transformers_no_bar():
    hf_run(dict(logging_steps=5, eval_strategy="steps", eval_steps=10, disable_tqdm=True))


def hf_run(options):
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments
    torch.manual_seed(0)
    class Data(torch.utils.data.Dataset):
        def __len__(self): return 64
        def __getitem__(self, i):
            return {"input_ids": torch.tensor([(i * 7 + j) % 50 for j in range(8)]), "labels": torch.tensor(i % 2)}
    class Keep(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "train_runtime" in logs: return
            for k, v in logs.items():
                if k in ("epoch", "total_flos") or k.endswith("runtime"): continue
                name = {"learning_rate": "lr"}.get(k, k.replace("eval_", "eval/"))
                # Beside the epoch that it prints a reader sees no step.
                keep(name, float(f"{logs['epoch']:.4g}"), v, ".4g", required=not k.endswith("_per_second"))
    m = BertForSequenceClassification(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32))
    def score(p):
        import numpy as np
        return {"accuracy": float((np.argmax(p.predictions, 1) == p.label_ids).mean())}
    args = TrainingArguments("/tmp/corpus-hf", num_train_epochs=3, per_device_train_batch_size=4, save_strategy="no", report_to=[], use_cpu=True, **options)
    Trainer(m, args, train_dataset=Data(), eval_dataset=Data(), callbacks=[Keep()], compute_metrics=score).train()


@scenario("accelerate", "torch", "tqdm")
def accelerate_tqdm():
    import torch
    from accelerate import Accelerator
    from tqdm.auto import tqdm
    a = Accelerator(cpu=True); m = net(); train, val = torch_loaders()
    m, opt, train, val = a.prepare(m, torch.optim.Adam(m.parameters(), 1e-2), train, val)
    bar = tqdm(range(5 * len(train)), disable=not a.is_local_main_process)
    for epoch in range(5):
        total = 0
        for x, y in train:
            loss = torch.nn.functional.cross_entropy(m(x), y); a.backward(loss); opt.step(); opt.zero_grad(); total += loss.item(); bar.update(1)
        hits = sum((m(x).argmax(1) == y).sum().item() for x, y in val)
        a.print(f"epoch {epoch}: train loss {total / len(train):.4f}, eval accuracy {hits / 2:.2f}%")
        keep("train/loss", epoch, total / len(train), ".4f"); keep("eval/accuracy", epoch, hits / 2, ".2f", aka=["val/accuracy"])


@scenario("torch", "tqdm")
def tqdm_postfix():
    import torch
    from tqdm import tqdm
    m = net(); opt = torch.optim.Adam(m.parameters(), 1e-2); train, val = torch_loaders(10)
    for epoch in range(3):
        bar = tqdm(train, desc=f"Epoch {epoch + 1}/3", mininterval=0)
        for i, (x, y) in enumerate(bar):
            loss = torch.nn.functional.cross_entropy(m(x), y); loss.backward(); opt.step(); opt.zero_grad()
            bar.set_postfix(loss=f"{loss.item():.4f}", lr=opt.param_groups[0]["lr"])
            keep("loss", epoch * 40 + i + 1, loss.item(), ".4f", aka=["train/loss"], count_min=30, count_max=120)
            keep("lr", epoch * 40 + i + 1, .01, ".2g", required=False, count_min=1, count_max=120)
        with torch.no_grad():
            v = sum(torch.nn.functional.cross_entropy(m(x), y).item() for x, y in val) / len(val)
        tqdm.write(f"val loss {v:.4f}")
        keep("val/loss", epoch + 1, v, ".4f", x_strict=False)


@scenario("fastai", "torch")
def fastai_learner():
    import torch
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.metrics import accuracy
    from fastai.callback.core import Callback
    from fastai.data.load import DataLoader
    def make(seed, n):
        x, y = blobs(n, seed=seed)
        return DataLoader(list(zip(torch.tensor(x), torch.tensor(y))), bs=50)
    learn = Learner(DataLoaders(make(0, 400), make(9, 200)), net(), loss_func=torch.nn.CrossEntropyLoss(), metrics=accuracy)
    learn.fit(5, 1e-2)
    for i, (a, b, c) in enumerate(learn.recorder.values):
        keep("train/loss", i, a, ".6f"); keep("val/loss", i, b, ".6f"); keep("accuracy", i, c, ".6f", aka=["val/accuracy"])


@scenario("stable-baselines3")
def stable_baselines_ppo():
    from stable_baselines3 import PPO
    from stable_baselines3.common.logger import HumanOutputFormat, KVWriter, Logger
    class Keep(KVWriter):
        def write(self, values, excluded, step=0):
            for k, v in values.items():
                if k in excluded and "stdout" in (excluded[k] or ()): continue
                if k.startswith("time/") and k != "time/fps":
                    continue
                # It rounds what Python calls a float, and nothing else.
                form = ".3g" if isinstance(v, float) else ".17g"
                if form != ".3g":
                    v = float(str(v))
                keep({"train/learning_rate": "lr"}.get(k, k), step, v, form, required=k not in ("time/fps", "train/n_updates", "rollout/ep_len_mean", "train/clip_range"), aka=[k])
        def close(self): pass
    m = PPO("MlpPolicy", "CartPole-v1", n_steps=256, n_epochs=2, seed=0, device="cpu")
    m.set_logger(Logger(None, [HumanOutputFormat(sys.stdout), Keep()]))
    m.learn(1536)


@scenario("flax", "optax", "jax")
def flax_loop():
    import jax, jax.numpy as jnp, optax
    x, y = blobs()
    p = {"w": jnp.zeros((8, 3)), "b": jnp.zeros(3)}; tx = optax.adam(1e-1); s = tx.init(p)
    def f(p):
        z = x @ p["w"] + p["b"]
        return optax.softmax_cross_entropy_with_integer_labels(z, y).mean(), (z.argmax(-1) == y).mean()
    step = jax.jit(jax.value_and_grad(f, has_aux=True))
    for i in range(12):
        (loss, acc), g = step(p); u, s = tx.update(g, s); p = optax.apply_updates(p, u)
        print(f"step: {i}, {loss=}, accuracy: {acc * 100:.2f}")
        keep("loss", i, loss, ".8g", required=False); keep("accuracy", i, acc * 100, ".2f")


@scenario("sentence-transformers", "torch")
def sentence_transformers():
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses, models
    from transformers import TrainerCallback
    torch.manual_seed(0)
    words = ["a", "b", "c", "d", "e", "f", "g", "h"]
    bow = models.BoW(vocab=words); dense = models.Dense(len(words), 8)
    m = SentenceTransformer(modules=[bow, dense])
    data = Dataset.from_dict({"sentence1": [words[i % 8] for i in range(32)], "sentence2": [words[(i + 1) % 8] for i in range(32)], "score": [float(i % 2) for i in range(32)]})
    class Keep(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "train_runtime" in logs: return
            for k, v in logs.items():
                if k != "epoch": keep({"learning_rate": "lr"}.get(k, k), float(f"{logs['epoch']:.4g}"), v, ".4g")
    args = SentenceTransformerTrainingArguments("/tmp/corpus-st", num_train_epochs=2, per_device_train_batch_size=4, logging_steps=2, save_strategy="no", report_to=[], use_cpu=True)
    SentenceTransformerTrainer(m, args, train_dataset=data, loss=losses.CosineSimilarityLoss(m), callbacks=[Keep()]).train()


@scenario("torch")
def absl_style_logging():
    import logging
    import torch
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    m = net(); opt = torch.optim.SGD(m.parameters(), .1); train, val = torch_loaders()
    step = 0
    for epoch in range(4):
        for x, y in train:
            loss = torch.nn.functional.cross_entropy(m(x), y); loss.backward()
            g = torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0); opt.step(); opt.zero_grad(); step += 1
            if step % 4 == 0:
                logging.info("step=%d loss=%.5f |grad|=%.3f", step, loss.item(), g)
                keep("loss", step, loss.item(), ".5f"); keep("grad", step, g, ".3f", aka=["|grad|", "grad_norm"])


import classic  # noqa: E402: their scenarios join the list
import deep  # noqa: E402
import evolution  # noqa: E402
import ranks  # noqa: E402
import search  # noqa: E402
import trainers  # noqa: E402


def main():
    warnings.filterwarnings("ignore")
    SCENARIOS[sys.argv[1]][0]()
    sys.stdout.flush()
    truth.write()


if __name__ == "__main__":
    main()
