"""Accuracy of released students on UCI Adult at equal (epsilon, delta = 1e-5), by the rules fixed
beforehand.

    python benchmarks/adult_students.py [n_runs]

Private: adult.data. adult.test is cut once, by a fixed permutation, into a public pool, whose
labels are never read, and a held-out half, which is only scored. Nothing was chosen on either: the
rules below use public numbers, and were studied on splits of adult.data. Partition and noise differ
in every run.

Beside it, on the same split and encoding: logistic regression without privacy. And from the
reference figures, on other encodings and all of adult.test: hard-label PATE with the number of
teachers and of queries that turned out best.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from cells import head_of, number_given, row_of, text_of
from public_data import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
from secretballot import PATEClassifier, PrivacyBudget
from secretballot.accounting.calibration import gaussian_mu
from secretballot.data.schema import Schema
from secretballot.learners.pate_mechanisms import choose_teachers

DELTA = 1e-5
SPLIT_SEED = 2026
SKEWED = ["capital-gain", "capital-loss"]  # amounts of money: on a log scale, by public knowledge
REFERENCE = {0.1: 79.5, 0.5: 82.1, 1.0: 83.0, 2.0: 83.5}
STATED_RECORDS = 32_561


def dp_gradient_descent(
    X: np.ndarray,
    y: np.ndarray,
    epsilon: float,
    rng: np.random.Generator,
    steps: int = 50,
    clip: float = 3.0,
) -> np.ndarray:
    """Return weights by full-batch gradient descent on clipped rows with Gaussian noise: the peer
    for linear models.

    Floating-point noise: good for a comparison, and for nothing else.
    """
    rows = np.column_stack([X, np.ones(len(X))])
    rows = rows * np.minimum(1.0, clip / np.linalg.norm(rows, axis=1, keepdims=True))
    sigma, w = clip * math.sqrt(steps) / gaussian_mu(epsilon, DELTA), np.zeros(rows.shape[1])
    for _ in range(steps):
        gradient = rows.T @ (1 / (1 + np.exp(-rows @ w)) - y) + rng.normal(0, sigma, len(w))
        w -= 2.0 * gradient / len(rows)
    return w


@dataclass(frozen=True)
class Half:
    """One half of adult.test as the public pool, the other one held out; adult.data private."""

    X: pd.DataFrame
    y: np.ndarray
    pool: pd.DataFrame
    held_out: pd.DataFrame
    y_held_out: np.ndarray

    @property
    def linear(self) -> tuple[np.ndarray, ...]:
        """X and y of the private part, the public pool, X and y of the held-out part, encoded by
        the public schema and pool."""
        frames = [on_log_scale(frame) for frame in (self.X, self.pool, self.held_out)]
        schema = Schema.from_json(ADULT_SCHEMA, public=frames[1])
        X, pool, held_out = (schema.encode(frame) for frame in frames)
        centre = pool.mean(axis=0)
        return X - centre, self.y, pool - centre, held_out - centre, self.y_held_out


def half(exchanged: bool = False) -> Half:
    """Return the split, or the one with pool and held-out rows exchanged."""
    data = adult()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.test))
    halves = [data.test.iloc[rows] for rows in np.array_split(order, 2)]
    pool, held_out = reversed(halves) if exchanged else halves
    (X, y), (pool, _), (held_out, y_held_out) = map(parted, (data.train, pool, held_out))
    return Half(X, y, pool, held_out, y_held_out)


def parted(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features, and the classes as 0 and 1."""
    y = (frame[ADULT_TARGET] == ADULT_CLASSES[1]).to_numpy().astype(int)
    return frame.drop(columns=ADULT_TARGET), y


def on_log_scale(features: pd.DataFrame) -> pd.DataFrame:
    """Return the features with amounts of money on a log scale."""
    return features.assign(**{name: np.log1p(features[name]) for name in SKEWED})


def accuracies(epsilon: float, release: str, n_runs: int) -> tuple[int, int, list[float]]:
    """Return K, the number of queries and the held-out accuracy of every run, in percent."""
    X, y, X_public, X_test, y_test = half().linear
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    K = choose_teachers(budget, STATED_RECORDS, X.shape[1])
    scores, n_queries = [], 0
    for run in range(n_runs):
        model = PATEClassifier(
            n_teachers=K,
            epsilon=budget.epsilon,
            delta=budget.delta,
            mechanism=release,
            random_state=run,
        )
        model.fit(X, y, X_public=X_public, classes=[0, 1])
        scores.append(100 * float((model.predict(X_test) == y_test).mean()))
        n_queries = len(model.released_.queries)
    return K, n_queries, scores


def main(n_runs: int) -> None:
    """Print one row for each epsilon and kind of release."""
    X, y, _, X_test, y_test = half().linear
    without = 100 * LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
    print(f"Logistic regression on the private records, without privacy: {without:.2f}\n")
    print(head_of("epsilon", "release", "K", "queries", "accuracy (sd)", "hard labels, hindsight"))
    for epsilon, hard in REFERENCE.items():
        for release in ("counts", "labels"):
            K, n_queries, scores = accuracies(epsilon, release, n_runs)
            cells = epsilon, release, K, n_queries, text_of(scores, 2), hard
            print(row_of(*cells), flush=True)


if __name__ == "__main__":
    main(number_given(5))
