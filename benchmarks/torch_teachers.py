"""Teachers of PyTorch on MNIST: all shards of a stack at once against one after another, and the
student that their votes teach.

Every teacher is a small convolutional network on 60 training images. One after another is timed on
the first teachers and counted up to all. The student learns from the votes on 9,000 test images and
is measured on the other 1,000. Times are seconds of the processor, which other programs
on the machine hardly change.

Run it with one thread (``make bench`` sets that)::

    nice -n 10 python benchmarks/torch_teachers.py --teachers 1000 --steps 90
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time

import numpy as np
import torch
from torch import nn

import secretballot as sb
from mnist_students import orientation_histograms
from public_data import mnist
from secretballot.teachers import torch_classifier
from secretballot.teachers.ensemble import TeacherEnsemble

SHARD = 60
QUERIES = 9000


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--teachers", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=90, help="of 20 images: 90 are 30 passes")
    parser.add_argument("--alone", type=int, default=50, help="teachers timed one by one")
    parser.add_argument("--together", type=int, default=None, help="teachers in a stack")
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--runs", type=int, default=3, help="releases, each with noise of its own")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--device", default="auto")
    chosen = parser.parse_args()
    data = mnist()
    rows = np.random.default_rng(0).permutation(len(data.X_train))[: chosen.teachers * SHARD]
    X, y = data.X_train[rows] / np.float32(255), data.y_train[rows]
    shards = np.arange(len(X)) // SHARD
    public = data.X_test / np.float32(255)
    learner = sb.TorchClassifier(
        small_network,
        n_steps=chosen.steps,
        optimizer="adam:lr=0.003",
        device=chosen.device,
    )
    kind, usual = learner._checked_recipe().device, dict(torch_classifier._MOST_SLOTS)
    together = chosen.together or usual[kind]
    print(
        f"torch {torch.__version__}, {chosen.teachers} teachers of {SHARD} images,"
        f" {chosen.steps} steps of {learner.batch_size}, at most {together} in a stack"
    )

    def trained(n_slots: int, n_teachers: int) -> tuple[TeacherEnsemble, float]:
        torch_classifier._MOST_SLOTS[kind] = n_slots
        first = shards < n_teachers
        start = time.process_time()
        ensemble = TeacherEnsemble.fit(
            learner, X[first], y[first], shards[first], n_teachers=n_teachers, n_classes=10
        )
        return ensemble, time.process_time() - start

    trained(together, 2)  # what torch loads when it first computes is nobody's
    few, alone = trained(1, chosen.alone)
    alone *= chosen.teachers / chosen.alone
    ensemble, at_once = trained(together, chosen.teachers)
    print(f"trained: together {at_once:.1f} s, one by one {alone:.1f} s")
    print(f"ratio {alone / at_once:.1f}")
    torch_classifier._MOST_SLOTS[kind] = 1
    start = time.process_time()
    few.vote_counts(public[:1000])
    alone = (time.process_time() - start) * chosen.teachers / chosen.alone * chosen.queries / 1000
    torch_classifier._MOST_SLOTS[kind] = together
    start = time.process_time()
    votes = ensemble.vote_counts(public[: chosen.queries], classes=list(range(10)))
    at_once = time.process_time() - start
    print(f"voted on {chosen.queries}: together {at_once:.1f} s, one by one {alone:.1f} s")
    right = votes._unseal()[0].argmax(axis=1) == data.y_test[: chosen.queries]
    print(f"plurality of all teachers, without noise: {right.mean():.4f}")

    # All public images are asked, and the counts released, as in mnist_students.py. The ledger is
    # one in memory: MNIST is public.
    budget = sb.PrivacyBudget(chosen.epsilon, 1e-5)
    mechanism = sb.accounting.noisy_votes(budget, votes.shape, release="counts")
    features = orientation_histograms(data.X_test.reshape(-1, 28, 28) / 255.0)
    scores = []
    for _ in range(chosen.runs):
        ledger = sb.Ledger.in_memory(dataset="MNIST", budget=budget)
        labels = sb.release(votes, mechanism, ledger, budget)
        student = sb.fit_student(
            sb.GraphCountsClassifier(), features[: chosen.queries], labels, random_state=0
        )
        held_out = features[chosen.queries :], data.y_test[chosen.queries :]
        scores.append(np.mean(student.predict(held_out[0]) == held_out[1]))
    print(
        f"student at epsilon {chosen.epsilon:g}, delta 1e-05: {np.mean(scores):.4f}, from"
        f" {min(scores):.4f} to {max(scores):.4f} in {chosen.runs} releases"
    )


if __name__ == "__main__":
    main()
