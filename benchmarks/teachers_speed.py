"""250 logistic teachers, fitted and asked for 10,000 votes each, beside the plain scikit-learn
loop.

The loop runs twice: with BLAS threads left alone, as it would be written, and with one BLAS thread.
Shards of 146 rows and 105 features are cut from Adult. Rounds are interleaved and the median is
printed; the votes must agree. What threads that are left alone cost depends on who else computes:
they wait for each other in every small product.
"""

import os
import sys
import time

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
if any(name in os.environ for name in THREAD_VARIABLES):
    # threads can only be left alone in a process that was started so
    left = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    os.execve(sys.executable, [sys.executable, *sys.argv], left)

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from public_data import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
from secretballot.data import Schema
from secretballot.teachers import TeacherEnsemble

N_TEACHERS, SHARD_ROWS, FEATURES, QUERIES = 250, 146, 105, 10_000
ROUNDS = 3


def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return private rows, their classes, and the points that are asked."""
    people = adult()
    schema = Schema.from_json(ADULT_SCHEMA, public=people.test)
    X = np.concatenate([schema.encode(part) for part in people])
    y = np.concatenate([part[ADULT_TARGET] == ADULT_CLASSES[1] for part in people])
    common = np.sort(np.argsort(np.count_nonzero(X, axis=0))[-FEATURES:])
    n = N_TEACHERS * SHARD_ROWS
    return X[:n, common], y[:n].astype(np.int64), X[n : n + QUERIES, common]


def main() -> None:
    """Run every way in turn, print the medians and their ratios, and compare the votes."""
    X, y, points = tables()
    shards = np.arange(len(y)) % N_TEACHERS

    def loop() -> np.ndarray:
        counts = np.zeros((QUERIES, 2), dtype=np.int64)
        parts = [np.flatnonzero(shards == number) for number in range(N_TEACHERS)]
        for model in [LogisticRegression().fit(X[rows], y[rows]) for rows in parts]:
            counts[np.arange(QUERIES), model.predict(points)] += 1
        return counts

    def pinned_loop() -> np.ndarray:
        with threadpool_limits(1):
            return loop()

    def ours(n_jobs: int = 1) -> np.ndarray:
        given = {"n_teachers": N_TEACHERS, "n_classes": 2, "n_jobs": n_jobs}
        ensemble = TeacherEnsemble.fit(LogisticRegression(), X, y, shards, **given)
        return ensemble.vote_counts(points)._unseal()[0]

    ways = {
        "plain loop, BLAS threads left alone": loop,
        "plain loop, one BLAS thread": pinned_loop,
        "TeacherEnsemble": ours,
        "TeacherEnsemble, n_jobs=2": lambda: ours(2),
    }
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    times: dict[str, list[float]] = {name: [] for name in ways}
    votes = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            votes[name] = way()
            times[name].append(time.perf_counter() - start)
    alone, pinned, *_ = (float(np.median(found)) for found in times.values())
    print("| | seconds | loop left alone, times that | loop with one thread |\n|---|---|---|---|")
    for name, found in times.items():
        seconds = float(np.median(found))
        print(f"| {name} | {seconds:.3f} | {alone / seconds:.2f} | {pinned / seconds:.2f} |")
    reference = votes["plain loop, one BLAS thread"]
    differ = max(int(np.abs(counts - reference).sum()) // 2 for counts in votes.values())
    print(f"votes that differ from that loop's, of {N_TEACHERS * QUERIES:,}: {differ}")


if __name__ == "__main__":
    main()
