"""Sums ones over all workers by MultiWorkerMirroredStrategy; with "wait", for ever."""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def total():
    def one():
        return tf.distribute.get_replica_context().all_reduce("sum", tf.ones(()))

    return strategy.reduce("mean", strategy.run(one), axis=None)


rank = int(os.environ["RANK"])
print(f"rank {rank} of {strategy.num_replicas_in_sync}: sum {int(total())} version {tf.__version__}", flush=True)
while "wait" in sys.argv:
    print(f"waiting {os.getpid()}", flush=True)
    total()
    time.sleep(0.2)
