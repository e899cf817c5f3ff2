"""Teachers of PyTorch on MNIST: all shards of a stack at once against one after another, and the
student that their votes teach.

Every teacher is a small convolutional network on 60 training images. One after another is timed on
the first teachers and counted up to all. The student learns from the votes on 9,000 test images and
is measured on the other 1,000. Times are seconds of the processor, which other programs
on the machine hardly change.

Run it with one thread (``make bench`` sets that)::

    python benchmarks/torch_teachers.py [n_teachers]
"""

import time

import numpy as np
import torch
from torch import nn

import secretballot as sb
from cells import number_given, text_of
from mnist_students import accuracy, orientation_histograms
from public_data import mnist
from secretballot.teachers import torch_classifier
from secretballot.teachers.ensemble import Shards, TeacherEnsemble

SHARD, QUERIES = 60, 9000
STEPS = 90  # of 20 images: 30 passes
ALONE = 50  # teachers that are timed one by one
RUNS, EPSILON = 3, 1.0  # releases, each with noise of its own


def small_network() -> nn.Module:
    """Return two convolutions and two dense layers: 15,000 parameters."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)),
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(400, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def main(n_teachers: int) -> None:
    """Time the teachers, and teach a student by their votes."""
    data = mnist()
    rows = np.random.default_rng(0).permutation(len(data.X_train))[: n_teachers * SHARD]
    X, y = data.X_train[rows] / np.float32(255), data.y_train[rows]
    shards = np.arange(len(X)) // SHARD
    public = data.X_test / np.float32(255)
    learner = sb.TorchClassifier(small_network, n_steps=STEPS, optimizer="adam:lr=0.003")
    kind = learner._checked_recipe().device
    together = torch_classifier._MOST_SLOTS[kind]
    print(
        f"torch {torch.__version__}, {n_teachers} teachers of {SHARD} images,"
        f" {STEPS} steps of {learner.batch_size}, at most {together} in a stack"
    )

    def trained(n_slots: int, n_first: int) -> tuple[TeacherEnsemble, float]:
        torch_classifier._MOST_SLOTS[kind] = n_slots
        first = shards < n_first
        start = time.process_time()
        source = Shards(X[first], y[first], shards[first], n_first)
        ensemble = TeacherEnsemble.fit(learner, source, n_classes=10)
        return ensemble, time.process_time() - start

    trained(together, 2)  # what torch loads when it first computes is nobody's
    alone = trained(1, ALONE)[1] * n_teachers / ALONE
    ensemble, at_once = trained(together, n_teachers)
    print(f"trained: together {at_once:.1f} s, one by one {alone:.1f} s ({alone / at_once:.1f})")
    votes = ensemble.vote_counts(public[:QUERIES], classes=list(range(10)))

    features = orientation_histograms(data.X_test.reshape(-1, 28, 28) / 255.0)
    student = sb.GraphCountsClassifier()
    scores = [accuracy(student, EPSILON, votes, features, data.y_test) for _ in range(RUNS)]
    print(f"student at epsilon {EPSILON:g}, delta 1e-05: {text_of(scores, 2)}")


if __name__ == "__main__":
    main(number_given(1000))
