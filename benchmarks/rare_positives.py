"""Rare positives of UCI Adult, one record in a hundred: the area under the curve, in percent.

    python benchmarks/rare_positives.py [n_runs]

delta 1e-5, every run with partition, pool and test rows of its own: 20,000 rows of adult.data
private, 2,500 the pool, one in a hundred of either above 50K by leaving out others; 6,000 other
rows are scored, with as many positives as they have.

Learners: record moments, and voting by 200 balanced logistic teachers, whose labels of 200 points
are asked by margin (`--teacher logistic:class_weight=balanced --strategy margin`).
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from cells import number_given, text_of
from public_data import ADULT_TARGET, adult
from secretballot import PATEClassifier, RecordMomentsClassifier
from secretballot.named_learners import teacher_by_name

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


def moments(parts: Parts, epsilon: float, _: int) -> Any:
    """Return what record moments say of the scored rows."""
    model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA)
    model.fit(parts.X, parts.y, X_public=parts.pool, classes=[0, 1])
    return model.predict_proba(parts.X_test)[:, 1]


def balanced_votes(parts: Parts, epsilon: float, run: int) -> Any:
    """Return what the student of balanced teachers says, whose labels are asked by margin."""
    encoded = pd.get_dummies(pd.concat([parts.pool, parts.X, parts.X_test])).to_numpy(float)
    start, stop = len(parts.pool), len(parts.pool) + len(parts.X)
    scale = encoded[:start].std(axis=0)
    encoded = (encoded - encoded[:start].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    pool, X, X_test = np.split(encoded, [start, stop])
    balanced = [teacher_by_name("logistic:class_weight=balanced", 2) for _ in range(2)]
    asked = {"n_teachers": 200, "n_queries": 200, "mechanism": "labels", "strategy": "margin"}
    model = PATEClassifier(*balanced, **asked, epsilon=epsilon, delta=DELTA, random_state=run)
    model.fit(X, parts.y, X_public=pool, classes=[0, 1])
    return model.predict_proba(X_test)[:, 1]


def main(n_runs: int) -> None:
    """Print one row for each epsilon: mean and standard deviation of the runs."""
    print("| epsilon | moments | balanced teachers, margin |\n|---|---|---|")
    for epsilon in EPSILONS:
        cells = []
        for learner in (moments, balanced_votes):
            runs = [(adult_parts(run), run) for run in range(n_runs)]
            areas = [roc_auc_score(one.y_test, learner(one, epsilon, run)) for one, run in runs]
            cells.append(text_of([100 * area for area in areas]))
        print(f"| {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(number_given(20))
