"""Record moments on UCI Adult at equal (epsilon, delta = 1e-5), by the settings fixed beforehand.

    python benchmarks/record_moments.py [n_runs]

Private: adult.data. adult.test is cut once, as in adult_students.py, into a public pool, whose
labels are never read, and a held-out half, which is only scored. The settings were chosen on splits
of adult.data alone (record_moments_study.py).

Beside it, on the same split: DP gradient descent on a linear encoding, and on the same public basis
with the best of several settings *in hindsight*, which no private run could know; and, without
privacy, logistic regression on both and boosted trees.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import math
import sys
import time

import numpy as np
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from adult_students import SPLIT_SEED, dp_gradient_descent, encoded
from secretballot import PrivacyBudget, RecordMomentsClassifier
from secretballot.bases import TableBasis
from secretballot.datasets import ADULT_CLASSES, ADULT_TARGET, adult
from secretballot.privacy.accounting.gaussian import gaussian_mu

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0)
#: Steps, learning rates and clipping lengths of descent in the public basis.
DESCENTS = [
    (steps, rate, clip) for steps in (20, 60) for rate in (4.0, 16.0) for clip in (0.5, 1.0)
]


def split() -> tuple[object, np.ndarray, object, object, np.ndarray]:
    """Return the private table and its classes, the pool, the held-out table and its classes."""
    data = adult()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.test))
    pool, held_out = (data.test.iloc[half] for half in np.array_split(order, 2))
    tables = [frame.drop(columns=ADULT_TARGET) for frame in (data.train, pool, held_out)]
    y, y_test = (
        (frame[ADULT_TARGET] == ADULT_CLASSES[1]).to_numpy().astype(int)
        for frame in (data.train, held_out)
    )
    return tables[0], y, tables[1], tables[2], y_test


def calibration_error(shares: np.ndarray, y: np.ndarray, n_bins: int = 10) -> float:
    """Return the mean distance of predicted probability and frequency, over bins of equal size."""
    order = np.argsort(shares)
    gaps = [
        len(part) * abs(shares[part].mean() - y[part].mean())
        for part in np.array_split(order, n_bins)
    ]
    return float(sum(gaps) / len(y))


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


def main(n_runs: int) -> None:
    """Print what holds without privacy, then one row for each epsilon."""
    X, y, pool, held_out, y_test = split()
    basis = TableBasis().fit(pool)
    Z, Z_test = (
        np.column_stack([basis.transform(table), np.full(len(table), 0.5)])
        for table in (X, held_out)
    )
    linear = encoded()
    trees = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=200)
    without = {
        "linear encoding": LogisticRegression(max_iter=1000)
        .fit(linear[0], linear[1])
        .score(linear[3], linear[4]),
        "same basis": LogisticRegression(C=10, max_iter=2000).fit(Z, y).score(Z_test, y_test),
        "boosted trees": trees.fit(linear[0], linear[1]).score(linear[3], linear[4]),
    }
    print("Without privacy: " + ", ".join(f"{k} {100 * v:.2f}" for k, v in without.items()))
    print(
        "\n| epsilon | record moments | sd | area under the curve | log loss | calibration error |"
        " descent, linear | descent, same basis, best of"
        f" {len(DESCENTS)} in hindsight | seconds |\n" + "|---" * 9 + "|"
    )
    for epsilon in EPSILONS:
        rows = []
        for _ in range(n_runs):
            begun = time.perf_counter()
            model = RecordMomentsClassifier(budget=PrivacyBudget(epsilon, DELTA))
            model.fit(X, y, X_public=pool, classes=[0, 1])
            seconds = time.perf_counter() - begun
            shares = model.predict_proba(held_out)[:, 1]
            rows.append(
                (
                    100 * np.mean((shares > 0.5) == y_test),
                    100 * roc_auc_score(y_test, shares),
                    log_loss(y_test, shares),
                    100 * calibration_error(shares, y_test),
                    seconds,
                )
            )
        accuracy, area, loss, error, seconds = np.mean(rows, axis=0)
        deviation = np.std([row[0] for row in rows], ddof=1) if n_runs > 1 else 0.0
        plain = [
            100
            * np.mean((np.column_stack([linear[3], np.ones(len(linear[4]))]) @ w > 0) == linear[4])
            for w in (
                dp_gradient_descent(linear[0], linear[1], epsilon, np.random.default_rng(run))
                for run in range(n_runs)
            )
        ]
        same = max(
            np.mean(
                [
                    100
                    * np.mean((Z_test @ descent_in_basis(Z, y, epsilon, one, run) > 0) == y_test)
                    for run in range(min(n_runs, 2))
                ]
            )
            for one in DESCENTS
        )
        print(
            f"| {epsilon:g} | {accuracy:.2f} | {deviation:.2f} | {area:.2f} | {loss:.4f} |"
            f" {error:.2f} | {np.mean(plain):.2f} | {same:.2f} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
