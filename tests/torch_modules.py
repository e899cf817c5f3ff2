"""Modules and learners of PyTorch for tests; import it inside of tests, since it imports torch."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

SIDE, CLASSES = 6, 3


def dense():
    return nn.Sequential(nn.Linear(SIDE**2, 9), nn.ReLU(), nn.Dropout(0.3), nn.Linear(9, CLASSES))


def convolutional():
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.Conv2d(3, 5, 2),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(5, CLASSES),
    )


def normalised():
    return nn.Sequential(
        nn.Linear(SIDE**2, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, CLASSES)
    )


class Noisy(nn.Module):
    """Draws as many numbers as its rows make it draw."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(SIDE**2, CLASSES)

    def forward(self, X):
        return self.inner(X) + torch.poisson(X[:, :1].abs())


class Mixing(nn.Module):
    """Finds out how the others fare, as no module should be able to."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(SIDE**2, CLASSES)

    def forward(self, X):
        return Leak.apply(self.inner(X))


class Leak(torch.autograd.Function):
    """Adds a mean over all slots."""

    @staticmethod
    def forward(X):
        return X.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, slope):
        return slope

    @staticmethod
    def vmap(info, in_dims, X):
        return X + X.mean(), 0


class Looped(nn.Module):
    """Looks at values, which cannot be vectorised."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(SIDE**2, CLASSES)

    def forward(self, X):
        return self.inner(X) if float(X.sum()) < 1e9 else self.inner(X * 0)


class Lookup(nn.Module):
    """Takes words by their number, and knows ten."""

    def __init__(self):
        super().__init__()
        self.words, self.last = nn.Embedding(10, 4), nn.Linear(4, CLASSES)

    def forward(self, X):
        return self.last(self.words(X[:, 0].round().long()))


class Gambler(ClassifierMixin, BaseEstimator):
    """Draws from torch's global generator and changes its settings."""

    def __init__(self, lazily=False):
        self.lazily = lazily

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.drawn_ = float(torch.rand(()))
        torch.set_default_dtype(torch.float64)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(2)
        torch.set_grad_enabled(False)
        torch.manual_seed(int(abs(X.sum()) * 1000))
        self.more_ = torch.rand(3).tolist()
        return self

    def predict(self, X):
        return (torch.rand(len(X)) * (self.drawn_ + 2)).long().numpy() % CLASSES


def too_narrow():
    return nn.Linear(SIDE**2, 2)


def linear():
    return nn.Linear(SIDE**2, CLASSES)


def small_teacher():
    """Return a teacher, as ``--teacher torch_modules:small_teacher`` asks for one."""
    from secretballot import TorchClassifier

    return TorchClassifier(linear, n_steps=4, batch_size=8, device="cpu")
