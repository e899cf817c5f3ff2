"""250 logistic teachers, fitted and asked for 10,000 votes each, beside the plain scikit-learn
loop.

The loop runs twice: with BLAS threads left alone, as it would be written, and with one BLAS thread.
Shards of 146 rows and 105 features are cut from Adult. Rounds are interleaved and the median is
printed; the votes must agree.

What unpinned threads cost depends on who else computes: they wait for each other in every small
product, and a core that is busy elsewhere keeps all of them waiting. So everything is measured
twice, the second time beside one other busy process.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
N_TEACHERS, SHARD_ROWS, FEATURES, QUERIES = 250, 146, 105, 10_000
ROUNDS = 3


def main() -> None:
    if any(name in os.environ for name in THREAD_VARIABLES):
        # Threads can only be left alone in a process that was started so.
        environment = {
            name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES
        }
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    from public_data import ADULT_CLASSES, ADULT_SCHEMA, ADULT_TARGET, adult
    from secretballot.data import Schema
    from secretballot.teachers import TeacherEnsemble

    people = adult()
    schema = Schema.from_json(ADULT_SCHEMA, public=people.test)
    X = np.concatenate([schema.encode(part) for part in people])
    common = np.sort(np.argsort(np.count_nonzero(X, axis=0))[-FEATURES:])
    targets = np.concatenate([part[ADULT_TARGET] for part in people])
    X, y = X[:, common], (targets == ADULT_CLASSES[1]).astype(np.int64)
    n_private = N_TEACHERS * SHARD_ROWS
    X_private, y_private, X_public = (
        X[:n_private],
        y[:n_private],
        X[n_private : n_private + QUERIES],
    )
    shards = np.arange(n_private) % N_TEACHERS
    parts = [np.flatnonzero(shards == number) for number in range(N_TEACHERS)]

    def loop() -> tuple[float, object]:
        counts = np.zeros((QUERIES, 2), dtype=np.int64)
        models = [LogisticRegression().fit(X_private[rows], y_private[rows]) for rows in parts]
        fitted = time.perf_counter()
        for model in models:
            counts[np.arange(QUERIES), model.predict(X_public)] += 1
        return fitted, counts

    def pinned_loop() -> tuple[float, object]:
        with threadpool_limits(1):
            return loop()

    def ours(n_jobs: int) -> tuple[float, object]:
        ensemble = TeacherEnsemble.fit(
            LogisticRegression(),
            X_private,
            y_private,
            shards,
            n_teachers=N_TEACHERS,
            n_classes=2,
            n_jobs=n_jobs,
        )
        fitted = time.perf_counter()
        return fitted, ensemble.vote_counts(X_public)._unseal()[0]

    ways: dict[str, Callable[[], tuple[float, object]]] = {
        "plain loop, BLAS threads left alone": loop,
        "plain loop, one BLAS thread": pinned_loop,
        "TeacherEnsemble": lambda: ours(1),
        "TeacherEnsemble, n_jobs=2": lambda: ours(2),
    }
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    measure(ways, "nothing else started")
    with busy_process():
        measure(ways, "beside one busy process")


@contextlib.contextmanager
def busy_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(ways: dict[str, Callable[[], tuple[float, object]]], title: str) -> None:
    """Run every way in turn, print the medians and their ratios, and compare the votes."""
    import numpy as np

    fits: dict[str, list[float]] = {name: [] for name in ways}
    votes: dict[str, list[float]] = {name: [] for name in ways}
    results = {}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            fitted, results[name] = way()
            fits[name].append(fitted - start)
            votes[name].append(time.perf_counter() - fitted)
    median = {
        name: statistics.median(a + b for a, b in zip(fits[name], votes[name], strict=True))
        for name in ways
    }
    print(f"{title:36} {'fit s':>7} {'vote s':>7} {'both s':>7} {'alone/':>7} {'pinned/':>8}")
    alone, pinned = (median[name] for name in list(ways)[:2])
    for name, seconds in median.items():
        fit, vote = statistics.median(fits[name]), statistics.median(votes[name])
        print(
            f"{name:36} {fit:7.3f} {vote:7.3f} {seconds:7.3f} {alone / seconds:7.2f}"
            f" {pinned / seconds:8.2f}"
        )
    reference = results["plain loop, one BLAS thread"]
    differ = {name: int(np.abs(counts - reference).sum()) // 2 for name, counts in results.items()}
    print(
        f"votes that differ from the loop with one thread, of {N_TEACHERS * QUERIES:,}:"
        f" {max(differ.values())}"
    )


if __name__ == "__main__":
    main()
