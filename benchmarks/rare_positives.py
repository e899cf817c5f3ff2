"""Rare positives, one record in a hundred: who finds them, in how many of how many runs.

    python benchmarks/rare_positives.py [n_runs]

delta 1e-5, every run with partition, pool and test rows of its own: 20,000 rows of adult.data
private, 2,500 the pool, one in a hundred of either above 50K by leaving out others; 6,000 other
rows are scored, with as many positives as they have.

Learners: record moments as they are; with balanced decisions; and voting by 200 balanced logistic
teachers, whose labels of 200 points are asked by margin (`--teacher
logistic:class_weight=balanced --strategy margin`).
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from public_data import ADULT_TARGET, adult
from secretballot import PATEClassifier, PrivacyBudget, RecordMomentsClassifier
from secretballot.named_learners import teacher_by_name
from secretballot.queries import MarginSampling

DELTA, EPSILONS, RATE = 1e-5, (0.5, 1.0, 2.0), 0.01


class Parts(NamedTuple):
    """Private records, the public pool, and scored rows."""

    X: pd.DataFrame
    y: np.ndarray
    pool: pd.DataFrame
    X_test: pd.DataFrame
    y_test: np.ndarray


def adult_parts(run: int) -> Parts:
    """Return a split of adult.data in which one row in a hundred is positive."""
    table = adult().train
    y = table[ADULT_TARGET].astype(str).str.startswith(">").to_numpy().astype(int)
    X = table.drop(columns=[ADULT_TARGET])
    order = np.random.default_rng(run).permutation(len(X))
    test, rest = order[:6000], order[6000:]
    negatives, positives = rest[y[rest] == 0], rest[y[rest] == 1]
    n_pool = 2500
    n_private = min(20_000, len(negatives) - n_pool)
    few, fewer = round(RATE * n_private), round(RATE * n_pool)
    private = np.append(negatives[: n_private - few], positives[:few])
    left = negatives[n_private - few : n_private - few + n_pool - fewer]
    pool = np.append(left, positives[few : few + fewer])
    return Parts(X.iloc[private], y[private], X.iloc[pool], X.iloc[test], y[test])


def moments(parts: Parts, epsilon: float, **settings: Any) -> Any:
    """Return fitted record moments."""
    budget = PrivacyBudget(epsilon, DELTA)
    model = RecordMomentsClassifier(epsilon=budget.epsilon, delta=budget.delta, **settings)
    return model.fit(parts.X, parts.y, X_public=parts.pool, classes=[0, 1])


def balanced_votes(parts: Parts, epsilon: float, run: int) -> Any:
    """Return the student of balanced teachers, whose labels are asked by margin."""
    teacher = teacher_by_name("logistic:class_weight=balanced", 2)
    encoded = pd.get_dummies(pd.concat([parts.pool, parts.X, parts.X_test])).to_numpy(float)
    start, stop = len(parts.pool), len(parts.pool) + len(parts.X)
    scale = encoded[:start].std(axis=0)
    encoded = (encoded - encoded[:start].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    model = PATEClassifier(
        teacher,
        teacher_by_name("logistic:class_weight=balanced", 2),
        n_teachers=200,
        n_queries=200,
        strategy=MarginSampling(),
        mechanism="labels",
        epsilon=epsilon,
        delta=DELTA,
        random_state=run,
    )
    pool, X = encoded[:start], encoded[start:stop]
    model.fit(X, parts.y, X_public=pool, classes=[0, 1])
    return _OnEncoded(model, encoded[stop:])


class _OnEncoded:
    """A model of encoded rows, asked about the scored ones."""

    def __init__(self, model: Any, rows: np.ndarray) -> None:
        self.model, self.rows = model, rows

    def predict(self, _: Any) -> np.ndarray:
        return np.asarray(self.model.predict(self.rows))

    def predict_proba(self, _: Any) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self.rows))


LEARNERS: dict[str, Callable[[Parts, float, int], Any]] = {
    "moments": lambda parts, epsilon, run: moments(parts, epsilon),
    "moments, balanced": lambda parts, epsilon, run: moments(
        parts, epsilon, class_weight="balanced"
    ),
    "balanced teachers, margin": balanced_votes,
}


def scores(model: Any, parts: Parts) -> tuple[float, float, float]:
    """Return recall and specificity in per cent, and the area under the curve."""
    found, truth = np.asarray(model.predict(parts.X_test)), parts.y_test
    area = roc_auc_score(truth, np.asarray(model.predict_proba(parts.X_test))[:, 1])
    return (
        100 * float(found[truth == 1].mean()),
        100 * float(1 - found[truth == 0].mean()),
        100 * float(area),
    )


def main(n_runs: int) -> None:
    """Print the table as Markdown."""
    print(f"{n_runs} runs each\n\n| learner | epsilon | recall: least | mean | specificity | AUC |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for learner, fitted in LEARNERS.items():
            parts = (adult_parts(run) for run in range(n_runs))
            found = [scores(fitted(one, epsilon, run), one) for run, one in enumerate(parts)]
            recall, specificity, area = np.array(found).T
            print(
                f"| {learner} | {epsilon:g} | {recall.min():.0f} | {recall.mean():.0f} |"
                f" {specificity.mean():.0f} | {area.mean():.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
