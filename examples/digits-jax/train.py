"""JAX on handwritten digits, on several processes."""
import os

import jax

world, rank = int(os.environ.get("JAX_NUM_PROCESSES", 1)), int(os.environ.get("JAX_PROCESS_ID", 0))
if world > 1:  # the address of the coordinator JAX finds by itself
    jax.distributed.initialize(num_processes=world, process_id=rank)
import jax.numpy as jnp
from jax.experimental import multihost_utils

import digits


def forward(layers, x):
    for matrix, vector in layers[:-1]:
        x = jax.nn.relu(x @ matrix + vector)
    return x @ layers[-1][0] + layers[-1][1]


def cross_entropy(layers, x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(forward(layers, x)), y[:, None], 1).mean()


gradient = jax.jit(jax.value_and_grad(cross_entropy))


def mean_of_all(tree):
    """The mean over all processes."""
    return tree if world == 1 else jax.tree.map(lambda a: a.mean(0), multihost_utils.process_allgather(tree))


layers = [tuple(map(jnp.asarray, parts)) for parts in digits.weights()]
x, y, val_x, val_y = digits.load()
for epoch in range(digits.EPOCHS):
    for index in digits.batches(epoch, rank, world):
        loss, slope = mean_of_all(gradient(layers, x[index], y[index]))
        layers = jax.tree.map(lambda w, g: w - digits.RATE * g, layers, slope)
    if rank == 0:
        val, acc = cross_entropy(layers, val_x, val_y), (forward(layers, val_x).argmax(1) == val_y).mean()
        print(f"epoch {epoch + 1}/{digits.EPOCHS} loss {float(loss):.4f} val_loss {float(val):.4f} val_acc {float(acc):.4f}", flush=True)
