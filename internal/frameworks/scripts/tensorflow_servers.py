"""Sums ones over the workers by parameter servers: each adds one to a variable
that a server holds. The evaluator waits for what the chief writes."""
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
kind, done = config["task"]["type"], pathlib.Path(os.environ["DONE"])
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
print(kind, config["task"]["index"], "of", {k: len(v) for k, v in config["cluster"].items()}, flush=True)
if kind == "ps" or kind == "worker":
    server = tf.distribute.Server(resolver.cluster_spec(), job_name=kind, task_index=config["task"]["index"], protocol="grpc")
    server.join()  # for ever, as TensorFlow's own guide has it
elif kind == "evaluator":
    while not done.exists():
        time.sleep(0.2)
    print("evaluated", done.read_text(), flush=True)
else:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        total = tf.Variable(0.0)

    @tf.function
    def add():
        total.assign_add(1.0)

    for _ in range(10):
        coordinator.schedule(add)
    coordinator.join()
    print(f"total {int(total.numpy())} on {total.device} version {tf.__version__}", flush=True)
    done.with_suffix(".new").write_text(str(int(total.numpy())))
    done.with_suffix(".new").rename(done)
