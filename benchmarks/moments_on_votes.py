"""Record moments on top of another release, and votes on top of moments, against moments alone.

    python benchmarks/moments_on_votes.py [n_runs]

UCI Adult as in record_moments.py: adult.data private, halves of adult.test as public pool and held
out, exchanged from run to run. Every way has the same (epsilon, delta = 1e-5) in all: two releases
have half of the squared shift each, as Gaussian noise composes, which is more than a ledger that
adds epsilons would leave them. The settings were fixed before these rows were scored.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import math
import sys
import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import secretballot as sb
from record_moments import DELTA, Half, half
from secretballot.accounting.gaussian import gaussian_mu

EPSILONS = (0.5, 1.0)
#: Points at which teachers are asked where the moments are least sure.
N_UNSURE = 300


def half_of(epsilon: float) -> sb.PrivacyBudget:
    """Return the budget of one of two releases that together have this epsilon."""
    shift = gaussian_mu(epsilon, DELTA) / math.sqrt(2)
    return sb.PrivacyBudget(brentq(lambda e: gaussian_mu(e, DELTA) - shift, 1e-4, epsilon), DELTA)


def linear_model() -> Pipeline:
    """Return a logistic regression on encoded columns."""
    texts, numbers = (
        make_column_selector(dtype_exclude="number"),
        make_column_selector(dtype_include="number"),
    )
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers)
    )
    return make_pipeline(encoder, LogisticRegression(max_iter=1000))


def moments(one: Half, budget: sb.PrivacyBudget, start: Any = None) -> Any:
    """Return a fit by moments, on top of a release where there is one."""
    model = sb.RecordMomentsClassifier(epsilon=budget.epsilon, delta=budget.delta)
    return model.fit(one.X, one.y, X_public=one.pool, classes=[0, 1], start=start)


def corrected(one: Half, budget: sb.PrivacyBudget, first: Any, *, ask: bool) -> Pipeline:
    """Return a student of the labels of a first release, teachers asked where it is least sure."""
    labels = np.asarray(first.released_.label_values).copy()
    if ask:
        votes = sb.PATEClassifier(
            linear_model(),
            strategy=sb.queries.MarginSampling(FrozenEstimator(first.student_), spread=1),
            n_queries=N_UNSURE,
            epsilon=budget.epsilon,
            delta=budget.delta,
        )
        votes.fit_labels(one.X, one.y, X_public=one.pool, classes=[0, 1])
        told = votes.released_
        labels[told.queries[told.answered]] = told.label_values
    return linear_model().fit(one.pool, labels)


def scores(one: Half, epsilon: float) -> dict[str, float]:
    """Return the accuracy of every way, in percent."""
    part = half_of(epsilon)
    first = moments(one, part)
    by_record = sb.RecordVotesClassifier(epsilon=part.epsilon, delta=part.delta)
    by_record.fit_labels(one.X, one.y, X_public=one.pool, classes=[0, 1])
    voted = sb.PATEClassifier(linear_model(), epsilon=part.epsilon, delta=part.delta)
    voted.fit_labels(one.X, one.y, X_public=one.pool, classes=[0, 1])
    coins = np.random.default_rng(0).integers(0, 2, len(one.y))
    wrong = sb.RecordMomentsClassifier(epsilon=8.0, delta=DELTA)
    wrong.fit_labels(one.X, coins, X_public=one.pool, classes=[0, 1])
    found = {
        "all on moments": moments(one, sb.PrivacyBudget(epsilon, DELTA)),
        "half on moments, nothing else": first,
        "half on moments, on votes of records": moments(one, part, by_record.released_),
        "half on moments, on votes of 250 teachers": moments(one, part, voted.released_),
        "half on moments, on moments": moments(one, part, first.released_),
        "half on moments, on a model of coins": moments(one, part, wrong.released_),
        "student of the labels of half on moments": corrected(one, part, first, ask=False),
        f"the same, votes at the {N_UNSURE} least sure": corrected(one, part, first, ask=True),
    }
    return {
        name: 100 * float(np.mean(model.predict(one.held_out) == one.y_held_out))
        for name, model in found.items()
    }


def main(n_runs: int) -> None:
    """Print one row for each way, at every epsilon."""
    halves = [half(False), half(True)]
    for epsilon in EPSILONS:
        runs = [scores(halves[run % 2], epsilon) for run in range(n_runs)]
        print(f"\nepsilon {epsilon:g}, {n_runs} runs\n\n| way | accuracy | less all on moments |")
        print("|---|---|---|")
        for name in runs[0]:
            gains = [run[name] - run["all on moments"] for run in runs]
            spread = np.std(gains, ddof=1) / math.sqrt(n_runs) if n_runs > 1 else 0.0
            mean = np.mean([run[name] for run in runs])
            print(f"| {name} | {mean:.2f} | {np.mean(gains):+.2f} ({spread:.2f}) |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
