"""Record moments on UCI Adult at equal (epsilon, delta = 1e-5), by the settings fixed beforehand.

    python benchmarks/record_moments.py [n_runs]

Private: adult.data. adult.test is cut once, as in adult_students.py, into a public pool, whose
labels are not read, and a held-out half, which is only scored; then the halves are exchanged,
because luck of the held-out rows alone moves an accuracy by .3. The settings were chosen on splits
of adult.data alone.

Beside it, on the same split: DP gradient descent on a linear encoding, and on the same public basis
with the best of several settings *in hindsight*, which no private run could know; and, without
privacy, logistic regression on both and boosted trees.
"""

import math
import time

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from adult_students import Half, dp_gradient_descent, half
from cells import head_of, number_given, row_of
from secretballot import RecordMomentsClassifier
from secretballot.accounting.calibration import gaussian_mu
from secretballot.bases import TableBasis

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
#: Steps, learning rates and clipping lengths of descent in the public basis.
DESCENTS = [
    (steps, rate, clip) for steps in (20, 60) for rate in (4.0, 16.0) for clip in (0.5, 1.0)
]


def descent_in_basis(
    Z: np.ndarray, y: np.ndarray, epsilon: float, setting: tuple[int, float, float], seed: int
) -> np.ndarray:
    """Return weights by full-batch gradient descent on clipped rows with Gaussian noise.

    Floating-point noise: good for a comparison, and for nothing else.
    """
    steps, rate, clip = setting
    lengths = np.linalg.norm(Z, axis=1)
    sigma, w = clip * math.sqrt(steps) / gaussian_mu(epsilon, DELTA), np.zeros(Z.shape[1])
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        residuals = expit(Z @ w) - y
        kept = residuals * np.minimum(1.0, clip / np.maximum(lengths * np.abs(residuals), 1e-9))
        w -= rate * (Z.T @ kept + rng.normal(0, sigma, len(w))) / len(Z)
    return w


def coordinates(one: Half) -> tuple[np.ndarray, np.ndarray]:
    """Return private and held-out rows in the public basis, a constant beside."""
    basis = TableBasis().fit(one.pool)
    private, held_out = (
        np.column_stack([basis.transform(table), np.full(len(table), 0.5)])
        for table in (one.X, one.held_out)
    )
    return private, held_out


def without_privacy(one: Half) -> list[float]:
    """Return the accuracy of three learners that promise nothing."""
    X, y, _, X_test, y_test = one.linear
    Z, Z_test = coordinates(one)
    trees = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=200)
    return [
        LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test),
        LogisticRegression(C=10, max_iter=2000).fit(Z, y).score(Z_test, y_test),
        trees.fit(X, y).score(X_test, y_test),
    ]


def scores_of_moments(one: Half, epsilon: float) -> list[float]:
    """Return percents and seconds of one fit."""
    begun = time.perf_counter()
    model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA)
    model.fit(one.X, one.y, X_public=one.pool, classes=[0, 1])
    seconds = time.perf_counter() - begun
    shares = model.predict_proba(one.held_out)[:, 1]
    return [
        100 * float(np.mean((shares > 0.5) == one.y_held_out)),
        100 * roc_auc_score(one.y_held_out, shares),
        log_loss(one.y_held_out, shares),
        seconds,
    ]


def scores_of_descent(one: Half, epsilon: float, n_runs: int) -> tuple[float, list[float]]:
    """Return the accuracy of descent on a linear encoding, and of every setting in the basis."""
    X, y, _, X_test, y_test = one.linear
    X_test = np.column_stack([X_test, np.ones(len(X_test))])
    weights = [
        dp_gradient_descent(X, y, epsilon, np.random.default_rng(run)) for run in range(n_runs)
    ]
    plain = float(np.mean([100 * np.mean((X_test @ w > 0) == y_test) for w in weights]))
    Z, Z_test = coordinates(one)
    basis = [
        float(
            np.mean(
                [
                    100
                    * np.mean((Z_test @ descent_in_basis(Z, y, epsilon, way, run) > 0) == y_test)
                    for run in range(min(n_runs, 2))
                ]
            )
        )
        for way in DESCENTS
    ]
    return plain, basis


def main(n_runs: int) -> None:
    """Print what holds without privacy, then one row for each epsilon."""
    halves = [half(), half(exchanged=True)]
    names = "linear encoding", "same basis", "boosted trees"
    for number, one in enumerate(halves, 1):
        told = zip(names, without_privacy(one), strict=True)
        print(
            f"Without privacy, half {number}: " + ", ".join(f"{k} {100 * v:.2f}" for k, v in told)
        )
    best = f"descent, same basis, best of {len(DESCENTS)} in hindsight"
    figures = "record moments, both halves", "AUC", "log loss", "descent, linear", best, "seconds"
    print("\n" + head_of("epsilon", *figures))
    for epsilon in EPSILONS:
        runs = np.array(
            [[scores_of_moments(one, epsilon) for _ in range(n_runs)] for one in halves]
        )
        accuracy, area, loss, seconds = runs.mean(axis=(0, 1))
        descents = [scores_of_descent(one, epsilon, n_runs) for one in halves]
        plain = np.mean([linear for linear, _ in descents])
        same = np.mean([basis for _, basis in descents], axis=0).max()
        found = (f"{one:.4g}" for one in (accuracy, area, loss, plain, same, seconds))
        print(row_of(epsilon, *found), flush=True)


if __name__ == "__main__":
    main(number_given(5))
