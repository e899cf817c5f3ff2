"""Rare positives, one record in a hundred: who finds them, in how many of how many runs.

    python benchmarks/rare_positives.py [n_runs]

delta 1e-5, every run with partition, pool and test rows of its own: 20,000 rows of adult.data
private, 2,500 the pool, one in a hundred of either above 50K by leaving out others; 6,000 other
rows are scored, with as many positives as they have.

Learners: record moments as they are; with balanced decisions; and voting by 200 balanced logistic
teachers, whose labels of 200 points are asked by margin (`--teacher
logistic:class_weight=balanced --strategy margin`).
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from public_data import ADULT_TARGET, adult
from secretballot import PATEClassifier, RecordMomentsClassifier
from secretballot.named_learners import teacher_by_name

DELTA, EPSILONS, RATE = 1e-5, (0.5, 1.0, 2.0), 0.01


#: Classes that are said of the scored rows, and the probability of class 1.
Shares = tuple[np.ndarray, np.ndarray]


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


def moments(parts: Parts, epsilon: float, _: int, **settings: Any) -> Shares:
    """Return what record moments say of the scored rows."""
    model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA, **settings)
    model.fit(parts.X, parts.y, X_public=parts.pool, classes=[0, 1])
    return model.predict(parts.X_test), model.predict_proba(parts.X_test)[:, 1]


def balanced_votes(parts: Parts, epsilon: float, run: int) -> Shares:
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
    return model.predict(X_test), model.predict_proba(X_test)[:, 1]


LEARNERS: dict[str, Callable[[Parts, float, int], Shares]] = {
    "moments": moments,
    "moments, balanced": partial(moments, class_weight="balanced"),
    "balanced teachers, margin": balanced_votes,
}


def scores(said: Shares, truth: np.ndarray) -> tuple[float, float, float]:
    """Return recall and specificity in per cent, and the area under the curve."""
    found, shares = said
    recall, specificity = found[truth == 1].mean(), 1 - found[truth == 0].mean()
    return 100 * recall, 100 * specificity, 100 * roc_auc_score(truth, shares)


def main(n_runs: int) -> None:
    """Print the table as Markdown."""
    print(f"{n_runs} runs each\n\n| learner | epsilon | recall: least | mean | specificity | AUC |")
    print("|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for learner, said in LEARNERS.items():
            parts = (adult_parts(run) for run in range(n_runs))
            found = [scores(said(one, epsilon, run), one.y_test) for run, one in enumerate(parts)]
            recall, specificity, area = np.array(found).T
            print(
                f"| {learner} | {epsilon:g} | {recall.min():.0f} | {recall.mean():.0f} |"
                f" {specificity.mean():.0f} | {area.mean():.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
