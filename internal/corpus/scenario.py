"""What the scenarios share: their list, the data that they learn, a small network."""
SCENARIOS = {}


def scenario(*packages):
    def add(f):
        SCENARIOS[f.__name__.replace("_", "-")] = (f, packages)
        return f
    return add


def blobs(n=400, d=8, classes=3, seed=0):
    """Points around a few centres: learnt in a second, never perfectly."""
    import numpy as np
    r = np.random.default_rng(seed)
    y = r.integers(0, classes, n)
    centres = np.random.default_rng(1).normal(size=(classes, d))
    return (centres[y] + 1.2 * r.normal(size=(n, d))).astype("float32"), y.astype("int64")


def torch_loaders(batch=50):
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    torch.manual_seed(0)
    def make(seed, n):
        x, y = blobs(n, seed=seed)
        return DataLoader(TensorDataset(torch.tensor(x), torch.tensor(y)), batch_size=batch)
    return make(0, 400), make(9, 200)


def net():
    import torch
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


