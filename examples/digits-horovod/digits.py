"""scikit-learn's handwritten digits, and where a model of three layers begins.

The same file lies beside every example with this model, so that all of them
learn the same: whatever starts them, and on however many ranks."""
import numpy as np
from sklearn.datasets import load_digits

SIZES = [64, 128, 64, 10]
EPOCHS, BATCH, RATE = 10, 60, 0.3
TRAINED_ON = 1500


def load():
    """Images and labels to train on, and those to validate with."""
    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    order = np.random.RandomState(0).permutation(len(x))
    train, val = order[:TRAINED_ON], order[TRAINED_ON:]
    return x[train], y[train], x[val], y[val]


def weights():
    """A matrix and a vector for each layer."""
    chance = np.random.RandomState(1)
    for fan_in, fan_out in zip(SIZES, SIZES[1:]):
        bound = fan_in ** -0.5
        yield (chance.uniform(-bound, bound, (fan_in, fan_out)).astype(np.float32),
               chance.uniform(-bound, bound, fan_out).astype(np.float32))


def batches(epoch, rank, world):
    """Which images a rank takes, step by step: a batch is shared by all ranks."""
    order = np.random.RandomState(100 + epoch).permutation(TRAINED_ON)
    for start in range(0, TRAINED_ON, BATCH):
        yield order[start:start + BATCH][rank::world]
