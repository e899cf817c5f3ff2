"""Mechanisms on the published votes of 250 teachers: how right their labels are at equal prices.

    python benchmarks/mechanisms.py [n_runs]

MNIST: 9000 test images, ten classes. Adult: 16,281 rows, two classes. Every run asks points drawn
at random, and draws its noise from a seed: good for a comparison only. Of confident voting three
points are asked for each answer, at a threshold of 200 votes.
"""

import sys

import numpy as np

from public_data import ADULT_TARGET, adult, adult_votes, mnist, mnist_votes
from secretballot.accounting import PrivacyBudget, confident_labels, noisy_votes, teacher_shape
from secretballot.core.mechanisms import Mechanism, State
from secretballot.planning.votes_forecast import SeededNoise
from secretballot.released import labels_in

DELTA, TEACHERS, THRESHOLD = 1e-5, 250, 200
EPSILONS, ANSWERS = (0.5, 1.0, 2.0, 4.0), (25, 50, 100, 200)
Votes = tuple[np.ndarray, np.ndarray]


def votes_of_mnist() -> Votes:
    """Return counts of shape (9000, 10), and the true class of each image."""
    counts = mnist_votes()
    return counts, mnist()[3][: len(counts)].astype(np.int64)


def votes_of_adult() -> Votes:
    """Return counts of shape (16281, 2), and the true class of each row."""
    target = adult()[1][ADULT_TARGET].astype(str).str.strip()
    return adult_votes(), target.str.startswith(">50K").to_numpy().astype(np.int64)


def mechanisms(
    budget: PrivacyBudget, answers: int, n_classes: int
) -> dict[str, tuple[Mechanism, int]]:
    """Return what gives so many answers at one price, and how many points each asks."""
    shape = teacher_shape(answers, n_classes, TEACHERS)
    confident = confident_labels(
        budget,
        teacher_shape(3 * answers, n_classes, TEACHERS),
        threshold=THRESHOLD,
        max_answers=answers,
    )

    def voting(budget: PrivacyBudget, noise: str) -> tuple[Mechanism, int]:
        return noisy_votes(budget, shape, noise=noise), answers

    return {
        "gaussian": voting(budget, "gaussian"),
        "confident": (confident, 3 * answers),
        "laplace": voting(budget, "laplace"),
        "laplace, delta 0": voting(PrivacyBudget(budget.epsilon, 0.0), "laplace"),
    }


def accuracies(
    mechanism: Mechanism, asked: int, votes: Votes, rng: np.random.Generator, n_runs: int
) -> tuple[float, float]:
    """Return the mean number of answers and the share of them that are right."""
    counts, truth = votes
    given, right = 0, 0
    for _ in range(n_runs):
        rows = rng.permutation(len(truth))[:asked]
        shape = teacher_shape(asked, counts.shape[1], TEACHERS)
        opened = counts[rows], np.zeros_like(counts[rows])
        drawn, _ = mechanism.draw(shape, opened, SeededNoise(rng), State())
        labels = np.full(asked, -1)
        labels[: len(drawn)] = labels_in(mechanism, shape, drawn)[0]
        given += int((labels >= 0).sum())
        right += int((labels == truth[rows]).sum())
    return given / n_runs, right / max(1, given)


def print_accuracies(name: str, votes: Votes, n_runs: int) -> None:
    counts, truth = votes
    n_classes, rng = counts.shape[1], np.random.default_rng(0)
    plurality = float((counts.argmax(axis=1) == truth).mean())
    print(f"{name}: share of right labels, mean of {n_runs} runs; plurality {plurality:.3f}")
    for epsilon in EPSILONS:
        for answers in ANSWERS:
            cells = []
            kinds = mechanisms(PrivacyBudget(epsilon, DELTA), answers, n_classes)
            for kind, (mechanism, asked) in kinds.items():
                given, right = accuracies(mechanism, asked, votes, rng, n_runs)
                cells.append(f"{kind} {right:.3f} of {given:.0f}")
            print(f"  epsilon {epsilon:g}, {answers} answers: {'; '.join(cells)}", flush=True)


def main(n_runs: int = 20) -> None:
    print_accuracies("MNIST", votes_of_mnist(), n_runs)
    print_accuracies("Adult", votes_of_adult(), n_runs)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
