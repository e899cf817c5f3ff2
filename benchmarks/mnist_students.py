"""Accuracy of students on MNIST from the published votes of 250 teachers, with nothing released but
noisy counts.

    python benchmarks/mnist_students.py [n_runs]

The pool is images 0-8999, whose labels no student reads (they did score the exploration of the
graph student's design); images 9000-9999 are held out and only scored. All pool images are asked,
so that the public geometry needs no choice of queries; every setting is a default, the rest is
marginal likelihood. Points are described by histograms of gradient orientations.

The noise is exact, at the price of the multi-class Gaussian release. The ledger is one in memory:
these votes were published without noise long ago.
"""

from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

from cells import head_of, number_given, row_of, text_of
from public_data import mnist, mnist_votes
from secretballot import (
    Ledger,
    NoisyCountsClassifier,
    PrivacyBudget,
    Votes,
    release,
    votes_of_counts,
)
from secretballot.accounting import noisy_votes
from secretballot.students import GraphCountsClassifier, fit_student

DELTA = 1e-5
N_POOL = 9000
EPSILONS = (0.5, 1.0, 1.97)
N_ORIENTATIONS = 8
CELL = 4  # pixels from one histogram to the next


def orientation_histograms(images: np.ndarray) -> np.ndarray:
    """Return square-rooted, normalised histograms of gradient orientations: (n, 28, 28) to (n,
    392).

    Each gradient falls into its two nearest of eight orientations, and histograms overlap by half a
    cell.
    """
    smooth = gaussian_filter(images.astype(np.float64), (0, 0.7, 0.7))
    down, across = np.gradient(smooth, axis=(1, 2))
    size = np.hypot(across, down)
    turn = np.arctan2(down, across) / (2 * np.pi) % 1.0 * N_ORIENTATIONS
    lower = np.floor(turn).astype(int) % N_ORIENTATIONS
    part = turn - np.floor(turn)
    maps = []
    for orientation in range(N_ORIENTATIONS):
        share = np.where(lower == orientation, 1 - part, 0.0)
        share += np.where((lower + 1) % N_ORIENTATIONS == orientation, part, 0.0)
        pooled = gaussian_filter(size * share, (0, CELL / 2, CELL / 2))[
            :, CELL // 2 :: CELL, CELL // 2 :: CELL
        ]
        maps.append(pooled.reshape(len(images), -1))
    histograms = np.sqrt(np.hstack(maps))
    return histograms / np.linalg.norm(histograms, axis=1, keepdims=True)


def accuracy(
    student: Any, epsilon: float, votes: Votes, features: np.ndarray, truth: np.ndarray
) -> float:
    """Release the pool's counts once and return the held-out accuracy of the student, in
    percent."""
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    ledger = Ledger.in_memory(dataset="MNIST", budget=budget)
    released = release(votes, noisy_votes(budget, votes.shape, release="counts"), ledger, budget)
    fitted = fit_student(student, features[:N_POOL], released, random_state=0)
    return 100 * float((fitted.predict(features[N_POOL:]) == truth[N_POOL:]).mean())


def main(n_runs: int) -> None:
    """Print one row for each epsilon and student."""
    data, votes = mnist(), votes_of_counts(mnist_votes(), classes=list(range(10)))
    features = orientation_histograms(data.X_test.reshape(-1, 28, 28) / 255.0)
    print(head_of("epsilon", "student", "accuracy (sd)"))
    for epsilon in EPSILONS:
        for student in (NoisyCountsClassifier(random_state=0), GraphCountsClassifier()):
            scores = [
                accuracy(student, epsilon, votes, features, data.y_test) for _ in range(n_runs)
            ]
            print(row_of(epsilon, type(student).__name__, text_of(scores, 2)), flush=True)


if __name__ == "__main__":
    main(number_given(5))
