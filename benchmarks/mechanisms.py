"""Mechanisms on the published votes of 250 teachers: how right their labels are at equal prices.

    python benchmarks/mechanisms.py

MNIST: 9000 test images, ten classes. Adult: 16,281 rows, two classes. Points are drawn at random,
and noise from a seed, as in plans: good for a comparison only. Of confident voting three points are
asked for each answer, at a threshold of 200 votes.
"""

import itertools

import numpy as np

from public_data import ADULT_CLASSES, ADULT_TARGET, adult, adult_votes, mnist, mnist_votes
from secretballot.accounting import PrivacyBudget, confident_labels, noisy_votes, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import Mechanism
from secretballot.planning.stand_in import VoteSample, forecast, vote_accuracy

DELTA, TEACHERS, THRESHOLD = 1e-5, 250, 200
EPSILONS, ANSWERS = (0.5, 1.0, 2.0, 4.0), (25, 50, 100, 200)


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


def print_accuracies(name: str, counts: np.ndarray, truth: np.ndarray) -> None:
    """Print what each mechanism answers, and the share of it that is right."""
    n_classes, votes = counts.shape[1], VoteSample(TEACHERS, counts, truth)
    print(f"{name}: share of right labels; plurality {vote_accuracy(votes):.3f}")
    for epsilon, answers in itertools.product(EPSILONS, ANSWERS):
        cells, budget = [], PrivacyBudget(epsilon, DELTA)
        for kind, (mechanism, asked) in mechanisms(budget, answers, n_classes).items():
            found = forecast(
                votes, Terms(mechanism, teacher_shape(asked, n_classes, TEACHERS), budget)
            )
            cells.append(f"{kind} {found.label_accuracy:.3f} of {found.answered:.0f}")
        print(f"  epsilon {epsilon:g}, {answers} answers: {'; '.join(cells)}", flush=True)


if __name__ == "__main__":
    target = adult().test[ADULT_TARGET]
    print_accuracies("MNIST", mnist_votes(), mnist().y_test[: len(mnist_votes())])
    print_accuracies("Adult", adult_votes(), (target == ADULT_CLASSES[1]).to_numpy().astype(int))
