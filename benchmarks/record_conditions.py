"""Record moments on UCI Adult where things are less than ideal: few or skewed public points, users
with many rows, rare positives, wrong labels.

    python benchmarks/record_conditions.py [n_runs]

The split of record_moments.py: private adult.data; one half of adult.test is the public pool, whose
labels are never read, and the other is only scored. Defaults throughout, delta 1e-5. Nothing was
chosen on the held-out half. Results go to build/record_conditions.jsonl, one line a cell; a run
that is interrupted goes on.

- Pool: its first rows, 100 to 5,000.
- Skewed pools: men alone, people over 45 alone; everybody is scored.
- Users: the private rows, in random order, belong to users of so many rows each, and a user is
  protected as a whole.
- Wrong labels: a share of the private labels is turned around; the true ones are scored. Beside it
  boosted trees without privacy.
- Rare positives: 1 % of the private records and of the pool, by leaving out others; the area under
  the curve. Beside it DP gradient descent on a linear encoding.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from adult_students import Half, dp_gradient_descent, half
from cells import Cells, head_of, number_given, row_of, text_of
from real_tables import BUILD
from record_moments import DELTA
from secretballot import Ledger, PrivacyBudget, RecordMomentsClassifier, RecordVotesClassifier
from secretballot.bases import TableBasis

EPSILONS = (0.5, 1.0)
RARE = 0.01
Found = dict[str, float]


def moments(one: Half, epsilon: float, units: np.ndarray | None = None) -> Any:
    """Return fitted record moments."""
    budget = PrivacyBudget(epsilon, DELTA)
    ledger = None
    if units is not None:
        ledger = Ledger.in_memory(dataset="adult", budget=budget, unit="user")
    model = RecordMomentsClassifier(epsilon=epsilon, delta=DELTA, ledger=ledger)
    return model.fit(one.X, one.y, X_public=one.pool, classes=[0, 1], units=units)


def accuracy(model: Any, one: Half) -> float:
    """Return the share of held-out rows that are right, in percent."""
    return 100 * float(np.mean(model.predict(one.held_out) == one.y_held_out))


def with_pool(chosen: Callable[[Any], Any], one: Half, epsilon: float, _: int) -> Found:
    """Return what both learners make of a part of the pool."""
    one = replace(one, pool=chosen(one.pool))
    model = moments(one, epsilon)
    votes = RecordVotesClassifier(epsilon=epsilon, delta=DELTA)
    votes.fit(one.X, one.y, X_public=one.pool, classes=[0, 1])
    uncovered = 100 * model.coverage_.uncovered
    return {"moments": accuracy(model, one), "votes": accuracy(votes, one), "uncovered": uncovered}


def with_users(n_rows: int, one: Half, epsilon: float, run: int) -> Found:
    """Return the accuracy where users have so many rows each."""
    units = np.random.default_rng(run).permutation(len(one.y)) // n_rows
    return {"moments": accuracy(moments(one, epsilon, units), one)}


def with_noise(share: float, one: Half, epsilon: float, run: int) -> Found:
    """Return the accuracy where a share of the private labels is wrong."""
    wrong = np.random.default_rng(run).random(len(one.y)) < share
    noisy, basis = replace(one, y=np.where(wrong, 1 - one.y, one.y)), TableBasis().fit(one.pool)
    trees = HistGradientBoostingClassifier(random_state=0).fit(basis.transform(one.X), noisy.y)
    plain = 100 * float(np.mean(trees.predict(basis.transform(one.held_out)) == one.y_held_out))
    return {"moments": accuracy(moments(noisy, epsilon), noisy), "boosting, no privacy": plain}


def with_few_positives(one: Half, epsilon: float, run: int) -> Found:
    """Return areas under the curve with 1 % positives."""
    # classes of the pool, which no learner sees: to make a pool with few positives
    rng, y_pool = np.random.default_rng(run), half(exchanged=True).y_held_out

    def kept(y: np.ndarray) -> np.ndarray:
        few = rng.permutation(np.flatnonzero(y == 1))[: round(RARE / (1 - RARE) * np.sum(y == 0))]
        return np.sort(np.append(np.flatnonzero(y == 0), few))

    rows, public = kept(one.y), kept(y_pool)
    rare = replace(one, X=one.X.iloc[rows], y=one.y[rows], pool=one.pool.iloc[public])
    shares = moments(rare, epsilon).predict_proba(one.held_out)[:, 1]
    X, y, _, X_test, y_test = one.linear
    w = dp_gradient_descent(X[rows], y[rows], epsilon, rng)
    return {
        "moments": 100 * roc_auc_score(one.y_held_out, shares),
        "DP gradient descent": 100 * roc_auc_score(y_test, X_test @ w[:-1]),
    }


CONDITIONS: dict[str, Callable[[Half, float, int], Found]] = {
    **{
        f"pool of {n} rows": partial(with_pool, lambda pool, n=n: pool.iloc[:n])
        for n in (100, 250, 1000, 2500, 5000)
    },
    "men alone": partial(with_pool, lambda pool: pool[pool["sex"] == "Male"]),
    "over 45 alone": partial(with_pool, lambda pool: pool[pool["age"] > 45]),
    **{f"{n} rows of a user": partial(with_users, n) for n in (1, 3, 10, 30, 100)},
    **{f"{share:.0%} wrong labels": partial(with_noise, share) for share in (0.0, 0.1, 0.2, 0.3)},
    "1 % positives, area": with_few_positives,
}


def main(n_runs: int) -> None:
    """Compute all cells that are not known, and print one row for each condition."""
    warnings.simplefilter("ignore")  # of skewed pools: "uncovered" counts them
    cells, one = Cells(BUILD / "record_conditions.jsonl"), half()
    print(head_of("condition", "figure", *(f"epsilon {e:g}" for e in EPSILONS)))
    for name, compute in CONDITIONS.items():
        found = [
            [
                cells.found({"of": name, "epsilon": e, "run": run}, partial(compute, one, e, run))
                for run in range(n_runs)
            ]
            for e in EPSILONS
        ]
        for figure in found[0][0]:
            texts = [text_of([each[figure] for each in runs]) for runs in found]
            print(row_of(name, figure, *texts), flush=True)


if __name__ == "__main__":
    main(number_given(3))
