"""Held-out accuracy on UCI Adult at equal (epsilon, delta): ours, hard-label PATE, DP gradient descent, no privacy.

adult.data (32,561 rows) is private. adult.test is cut in two by a fixed permutation: the first half is the public pool,
its labels unseen; the second half is the held-out test. Every number is the mean of 5 seeds of partition and noise.

Nothing was tuned on adult.test. Three settings were chosen on adult.data alone (18,000 rows played private, 7,000
public and the rest test): capital gain and loss on a log scale; logistic teachers with weak regularisation, since a
vote averages variance away but not bias; and about 72 records per teacher, 36 where epsilon is below 0.25, since a
louder vote is then worth more than a better one.
"""

import math
import sys
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from secretballot.datasets import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
from secretballot.datasets.schema import Schema
from secretballot.ensemble.teacher_names import teacher_by_name
from secretballot.privacy.accounting.gaussian import gaussian_mu

EPSILONS = (0.1, 0.5, 1.0, 2.0)
DELTA = 1e-5
STATED_RECORDS = 32_000
Floats = NDArray[np.float64]


def teachers_for(epsilon: float) -> int:
    """Return the number of teachers by the rule above, from public numbers."""
    return STATED_RECORDS // (36 if epsilon < 0.25 else 72)


def dp_gradient_descent(X: Floats, y: Floats, epsilon: float, rng: np.random.Generator, steps: int = 50) -> Floats:
    """Full-batch gradient descent with clipped gradients and Gaussian noise: the peer for linear models.

    Floating-point noise, good for a comparison and for nothing else.
    """
    rows = np.column_stack([X, np.ones(len(X))])
    rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 3.0)
    sigma, w = 3.0 * math.sqrt(steps) / gaussian_mu(epsilon, DELTA), np.zeros(rows.shape[1])
    for _ in range(steps):
        gradient = rows.T @ (1 / (1 + np.exp(-rows @ w)) - y) + rng.normal(0, sigma, len(w))
        w -= 2.0 * gradient / len(rows)
    return w


def main(seeds: int) -> None:
    data = adult()
    for frame in (data.train, data.test):
        for column in ("capital-gain", "capital-loss"):
            frame[column] = np.log1p(frame[column].astype(float))
    order = np.random.default_rng(0).permutation(len(data.test))
    half = len(order) // 2
    public, test = data.test.iloc[order[:half]], data.test.iloc[order[half:]]
    schema = Schema.from_json(ADULT_SCHEMA, public=public.drop(columns=ADULT_TARGET))
    X, X_public, X_test = (schema.encode(frame.drop(columns=ADULT_TARGET)) for frame in (data.train, public, test))
    y, y_test = data.train[ADULT_TARGET].to_numpy(), test[ADULT_TARGET].to_numpy()
    positive = (y == ADULT_CLASSES[1]).astype(float)
    bare = LogisticRegression(max_iter=2000).fit(X, y)
    print(f"no privacy, logistic regression: {100 * bare.score(X_test, y_test):.1f}")
    print(
        f"{'epsilon':>8} {'teachers':>8} {'ours':>12} {'hard labels':>12} {'DP-GD':>12}   mean (deviation) of {seeds}"
    )
    for epsilon in EPSILONS:
        k = teachers_for(epsilon)
        scores: dict[str, list[float]] = {"ours": [], "hard": [], "gd": []}
        for seed in range(seeds):
            setting = {"n_teachers": k, "budget": sb.PrivacyBudget(epsilon, DELTA), "random_state": seed}
            for name, more in (("ours", {}), ("hard", {"release": "labels", "student": LogisticRegression()})):
                model = sb.PATEClassifier(teacher_by_name("logistic"), **setting, **more)
                model.fit(X, y, X_public=X_public, classes=list(ADULT_CLASSES))
                scores[name].append(100 * model.score(X_test, y_test))
            w = dp_gradient_descent(X, positive, epsilon, np.random.default_rng(seed))
            guess = np.where(
                np.column_stack([X_test, np.ones(len(X_test))]) @ w > 0, ADULT_CLASSES[1], ADULT_CLASSES[0]
            )
            scores["gd"].append(100 * float(np.mean(guess == y_test)))
        cells = [f"{np.mean(values):6.1f} ({np.std(values):3.1f})" for values in scores.values()]
        print(f"{epsilon:>8} {k:>8} {' '.join(f'{cell:>12}' for cell in cells)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
