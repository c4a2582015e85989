"""Trains a small network and tells its loss in several styles at once.

Called by TestOneRunGivesTheSameCurveFromEachSource with a folder, in which it
leaves one log for each style, an event file, metrics.csv, trainer_state.json,
log.jsonl, and truth.json: the losses with all their digits.
"""
import json
import os
import struct
import sys
import time

import torch

out, epochs, length = sys.argv[1], 3, 20


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def varint(n):
    some = b""
    while n > 127:
        some, n = some + bytes([n & 127 | 128]), n >> 7
    return some + bytes([n])


class Events:
    """The records that torch.utils.tensorboard writes, where it is missing."""

    def __init__(self, folder):
        self.file = open(os.path.join(folder, "events.out.tfevents.1.run"), "wb")
        self.record(b"\x1a" + varint(13) + b"brain.Event:2")

    def record(self, payload):
        event = b"\x09" + struct.pack("<d", time.time()) + payload
        head = struct.pack("<Q", len(event))
        self.file.write(head + masked(head) + event + masked(event))

    def add_scalar(self, tag, value, step):
        name = tag.encode()
        entry = b"\x0a" + varint(len(name)) + name + b"\x15" + struct.pack("<f", value)
        summary = b"\x0a" + varint(len(entry)) + entry
        self.record(b"\x10" + varint(step) + b"\x2a" + varint(len(summary)) + summary)

    def close(self):
        self.file.close()


def writer():
    try:
        from torch.utils.tensorboard import SummaryWriter
        return SummaryWriter(out)
    except ImportError:
        return Events(out)


def log(style, text, end="\n"):
    with open(os.path.join(out, style + ".log"), "a") as f:
        f.write(text + end)


def told(epoch, i, step, loss, mean):
    """One step, in the words of each style."""
    log("imagenet", f"Epoch: [{epoch}][{i:4d}/{length}]\tTime  0.353 ( 0.871)\tData  0.001 ( 0.293)\tLoss {loss:.4e} ({mean:.4e})\tAcc@1   0.39 (  0.14)")
    log("nanogpt", f"iter {step}: loss {loss:.4f}, time {101.1 + step:.2f}ms, mfu 35.21%")
    log("titan", f"\x1b[31mstep: {step:2}  \x1b[32mloss: {loss:7.4f}  \x1b[38;2;180;60;0mgrad_norm:  2.9110  \x1b[33mmemory: 51.01GiB(54.80%)  \x1b[34mtps: 5,912\x1b[39m")
    log("mmengine", f"2024/02/11 10:11:12 - mmengine - INFO - Epoch(train)  [{epoch + 1}][{i:2d}/{length}]  lr: 1.0000e-02  eta: 0:12:01  time: 0.5741  data_time: 0.0061  memory: 732  loss: {loss:.4f}")
    log("transformers", str({"loss": round(loss, 4), "learning_rate": 1e-2, "epoch": step / length}))
    log("horovod", f"[1,1]<stdout>:step={step} loss={loss + 1:.6f}\n[1,0]<stdout>:step={step} loss={loss:.6f}")


def bar(epoch, i, loss, val):
    val = f", val_loss={val:.3f}" if val is not None else ""
    log("lightning", f"\rEpoch {epoch}: {100 * i // length:3d}%|{'█' * (i // 2):10}| {i}/{length} [00:00<00:01, 99.33it/s, v_num=3, train_loss={loss:.3f}{val}]", end="")


def main():
    torch.manual_seed(7)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    x = torch.randn(256, 8)
    y = x.sin().sum(1, keepdim=True)
    events, truth, rows, history = writer(), {"train": [], "val": []}, [], []
    val = None
    for epoch in range(epochs):
        mean = 0.0
        for i in range(1, length + 1):
            step = epoch * length + i
            pick = torch.randint(0, 192, (32,))
            loss = torch.nn.functional.mse_loss(net(x[pick]), y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = loss.item()
            mean += (now - mean) / i
            truth["train"].append([step, now])
            told(epoch, i, step, now, mean)
            bar(epoch, i, now, val)
            events.add_scalar("train_loss", now, step)
            rows.append(f"{epoch},{step},{now},")
            history.append({"epoch": step / length, "loss": round(now, 4), "step": step})
        with torch.no_grad():
            val = torch.nn.functional.mse_loss(net(x[192:]), y[192:]).item()
        truth["val"].append([step, val])
        bar(epoch, length, now, val)
        events.add_scalar("val_loss", val, step)
        rows.append(f"{epoch},{step},,{val}")
        history.append({"epoch": float(epoch + 1), "eval_loss": val, "step": step})
        log("mmengine", f"2024/02/11 10:11:13 - mmengine - INFO - Epoch(val) [{epoch + 1}][8/8]    loss: {val:.4f}  data_time: 0.0015  time: 0.0700")
        log("transformers", str({"eval_loss": val, "eval_runtime": 1.8003, "epoch": float(epoch + 1)}))
    events.close()
    for name, text in {
        "metrics.csv": "epoch,step,train_loss,val_loss\n" + "\n".join(rows) + "\n",
        "trainer_state.json": json.dumps({"global_step": step, "max_steps": step, "num_train_epochs": epochs, "log_history": history}, indent=2),
        "log.jsonl": "".join(json.dumps(entry) + "\n" for entry in history),
        "truth.json": json.dumps(truth),
    }.items():
        with open(os.path.join(out, name), "w") as f:
            f.write(text)


main()
