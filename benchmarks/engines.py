"""Engines side by side: 200 forests on one machine by each, and 10,000 teachers asked a million
questions.

Every row runs in a process of its own, which starts the small cluster that it needs; starting is
not timed. `python benchmarks/engines.py` prints the first table, `python benchmarks/engines.py
release` the second one. Peak memory is that of the driver alone.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_AUTH_MODE", "disabled")

ENGINES = [(engine, workers) for engine in ("local", "dask", "ray") for workers in (1, 2)]
N_FORESTS, TREES, SHARD_ROWS, FEATURES, QUERIES = 200, 20, 300, 20, 10_000
MANY, PART, WIDTH, QUESTIONS = 10_000, 30, 10, 1_000_000


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["forests"]:
        forests(words[1], int(words[2]))
    elif words[:1] == ["questions"]:
        questions(words[1], int(words[2]), int(words[3]), int(words[4]))
    elif words[:1] == ["release"]:
        for engine, workers in (("local", 2), ("dask", 2), ("ray", 2)):
            if len(words) == 1 or engine in words:
                row("questions", engine, workers, MANY, QUESTIONS)
    else:
        for engine, workers in ENGINES:
            row("forests", engine, workers)


def row(*words: object) -> None:
    subprocess.run([sys.executable, __file__, *map(str, words)], check=True)


def forests(engine: str, workers: int) -> None:
    """Train 200 forests and let them vote; print the times and a digest of the counts."""
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    from secretballot.teachers import TeacherEnsemble

    rng = np.random.default_rng(0)
    X, y = labelled(rng, N_FORESTS * SHARD_ROWS, FEATURES)
    points = rng.normal(size=(QUERIES, FEATURES))
    with running(engine, workers) as how:
        began = time.perf_counter()
        ensemble = TeacherEnsemble.fit(
            RandomForestClassifier(TREES),
            X,
            y,
            np.arange(len(X)) % N_FORESTS,
            n_teachers=N_FORESTS,
            n_classes=2,
            **how,
        )
        trained = time.perf_counter()
        counts = ensemble.vote_counts(points)
        voted = time.perf_counter()
        show("forests", engine, workers, trained - began, voted - trained, counts)


def questions(engine: str, workers: int, n_teachers: int, n_points: int) -> None:
    """Let linear teachers vote on many points and release the labels; print times and memory."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import secretballot as sb
    from secretballot.teachers import TeacherEnsemble

    rng = np.random.default_rng(0)
    X, y = labelled(rng, n_teachers * PART, WIDTH)
    points = rng.normal(size=(n_points, WIDTH))
    budget = sb.PrivacyBudget(1.0, 1e-8)
    with running(engine, workers) as how:
        began = time.perf_counter()
        ensemble = TeacherEnsemble.fit(
            LogisticRegression(C=1e4, max_iter=100),
            X,
            y,
            np.arange(len(X)) % n_teachers,
            n_teachers=n_teachers,
            n_classes=2,
            **how,
        )
        trained = time.perf_counter()
        counts = ensemble.vote_counts(points)
        voted = time.perf_counter()
        ledger = sb.Ledger.in_memory(dataset="many", budget=budget)
        mechanism = sb.accounting.noisy_votes(budget, counts.shape)
        released = sb.release(counts, mechanism, ledger, budget)
        done = time.perf_counter()
        print(f"released {len(released.labels):,} labels in {done - voted:.1f} s", end="; ")
        show("questions", engine, workers, trained - began, voted - trained, counts)


def labelled(rng: Any, n_rows: int, n_columns: int) -> tuple[Any, Any]:
    X = rng.normal(size=(n_rows, n_columns))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows) > 0).astype(int)


def show(
    what: str, engine: str, workers: int, trained: float, voted: float, counts: object
) -> None:
    import hashlib

    content: Any = counts
    digest = hashlib.sha256(content._unseal()[0].tobytes()).hexdigest()[:8]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(
        f"{what}, {engine}, {workers}: trained {trained:.1f} s, voted {voted:.1f} s,"
        f" driver's peak {peak:,.0f} MB, counts {digest}",
        flush=True,
    )


@contextmanager
def running(engine: str, workers: int) -> Iterator[dict[str, Any]]:
    """Yield the settings of an engine with so many workers, all of which have begun."""
    if engine == "local":
        yield {"n_jobs": workers}
    elif engine == "dask":
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit="8GiB"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.wait_for_workers(workers)
            warm(client)
            yield {"engine": client}
    else:
        import ray

        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        warm("ray")
        yield {"engine": "ray"}
        ray.shutdown()


def warm(engine: Any) -> None:
    """Let every worker import what it needs."""
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    from secretballot.teachers import TeacherEnsemble

    rng = np.random.default_rng(1)
    X, y = labelled(rng, 400, FEATURES)
    few = TeacherEnsemble.fit(
        RandomForestClassifier(2),
        X,
        y,
        np.arange(400) % 8,
        n_teachers=8,
        n_classes=2,
        engine=engine,
    )
    few.vote_counts(X)


if __name__ == "__main__":
    main()
