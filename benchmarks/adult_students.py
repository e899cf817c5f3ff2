"""Accuracy of released students on UCI Adult at equal (epsilon, delta = 1e-5), by the rules fixed beforehand.

    python benchmarks/adult_students.py [n_runs]

Private: adult.data. adult.test is cut once, by a fixed permutation, into a public pool, whose labels are never read,
and a held-out half, which is only scored. Nothing was chosen on either: the rules below use public numbers, and were
studied on splits of adult.data. Partition and noise differ in every run.

Beside it, from the reference figures, on other encodings and all of adult.test: hard-label PATE, best number of
teachers and queries in hindsight, and full-batch DP gradient descent.
"""

import math
import os

# one BLAS thread: teachers are small and many
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import sys  # noqa: E402

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from secretballot import GaussianAggregator, PATEClassifier, PrivacyBudget  # noqa: E402
from secretballot.datasets.schema import Schema  # noqa: E402
from secretballot.datasets.uci_adult import ADULT_SCHEMA, ADULT_TARGET, adult  # noqa: E402

DELTA = 1e-5
SPLIT_SEED = 2026
SKEWED = ["capital-gain", "capital-loss"]  # amounts of money: on a log scale, by public knowledge
REFERENCE = {0.1: (79.5, 82.8), 0.5: (82.1, 83.0), 1.0: (83.0, 83.0), 2.0: (83.5, 83.0)}


def number_of_teachers(budget: PrivacyBudget, n_records: int, n_columns: int) -> int:
    """Return K by a rule of thumb from public numbers alone.

    Releasing all counts of a pool of any size leaves a linear student of d columns with an error of about sqrt(d) / mu
    votes, where 1 / mu is the noise that one query would need. K makes that a tenth of the teachers, as far as every
    teacher still has ten records on average.
    """
    noise_of_one = GaussianAggregator.calibrate(budget, 1, release="counts").sigma
    return max(10, min(round(10 * math.sqrt(n_columns) * noise_of_one), n_records // 10))


def teacher() -> LogisticRegression:
    """Return the teacher for small shards: hardly regularised, except for its intercept.

    A free intercept follows the base rate of a dozen records, and a vote of such teachers falls to the majority class;
    liblinear shrinks it like any other weight. The columns are centred on the public pool, so that it has its meaning.
    """
    return LogisticRegression(C=10.0, solver="liblinear")


def encoded() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X and y of the private part, the public pool, X and y of the held-out part."""
    data = adult()
    order = np.random.default_rng(SPLIT_SEED).permutation(len(data.test))
    pool, held_out = (data.test.iloc[half] for half in np.array_split(order, 2))
    frames = [on_log_scale(frame) for frame in (data.train, pool, held_out)]
    schema = Schema.from_json(ADULT_SCHEMA, public=frames[1])
    X, X_public, X_test = (schema.encode(frame) for frame in frames)
    centre = X_public.mean(axis=0)
    y, y_test = ((frame[ADULT_TARGET] == ">50K").to_numpy().astype(int) for frame in (data.train, held_out))
    return X - centre, y, X_public - centre, X_test - centre, y_test


def on_log_scale(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the features with amounts of money on a log scale."""
    features = frame.drop(columns=ADULT_TARGET)
    return features.assign(**{name: np.log1p(features[name]) for name in SKEWED})


def accuracies(epsilon: float, release: str, n_runs: int) -> tuple[int, int, list[float]]:
    """Return K, the number of queries and the held-out accuracy of every run, in percent."""
    X, y, X_public, X_test, y_test = encoded()
    budget = PrivacyBudget(epsilon=epsilon, delta=DELTA)
    K = number_of_teachers(budget, len(X), X.shape[1])
    scores, n_queries = [], 0
    for run in range(n_runs):
        model = PATEClassifier(teacher(), n_teachers=K, budget=budget, release=release, random_state=run)
        model.fit(X, y, X_public=X_public, classes=[0, 1])
        scores.append(100 * float((model.predict(X_test) == y_test).mean()))
        n_queries = len(model.released_labels_.queries)
    return K, n_queries, scores


def main(n_runs: int) -> None:
    """Print one row for each epsilon and kind of release."""
    X, y, _, X_test, y_test = encoded()
    without = 100 * LogisticRegression(max_iter=1000).fit(X, y).score(X_test, y_test)
    print(f"Logistic regression on the private records, without privacy: {without:.2f}\n")
    print("| epsilon | release | K | queries | accuracy | sd | hard labels, hindsight | DP gradient descent |")
    print("|---|---|---|---|---|---|---|---|")
    for epsilon, (hard, descent) in REFERENCE.items():
        for release in ("counts", "labels"):
            K, n_queries, scores = accuracies(epsilon, release, n_runs)
            mean, deviation = np.mean(scores), np.std(scores, ddof=1) if n_runs > 1 else 0.0
            print(
                f"| {epsilon:g} | {release} | {K} | {n_queries} | {mean:.2f} | {deviation:.2f} | {hard} | {descent} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
