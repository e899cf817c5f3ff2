"""Seconds of the exact learners and version spaces, and the stump beside scikit-learn's tree of
depth one.

    python benchmarks/hypotheses_speed.py [largest n]

One feature: uniform points; labels of a threshold or an interval with 10 % noise. Stumps: ten
normal features, one of which tells, with 10 % noise. `restrict` starts from the whole class and
knows 1,000 labels, with a slack of sqrt(1,000); the region of disagreement is that of all points.
Errors of all labellings are left out for intervals, which have n^2 / 2 of them and give prefix sums
instead. Each figure is the least of three.
"""

import os

# one BLAS thread, as in every benchmark here
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from secretballot.hypotheses import DecisionStumps, HypothesisClass, Intervals, Thresholds

N_FEATURES = 10
ASKED = 1000
ROUNDS = 3


def seconds(work: Callable[[], object]) -> float:
    """Return the least time of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def noisy(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the labels with one in ten turned over."""
    return (truth ^ (rng.random(len(truth)) < 0.1)).astype(np.int64)


def worlds(n: int) -> dict[str, tuple[HypothesisClass, np.ndarray, np.ndarray]]:
    """Return class, points and labels by name."""
    rng = np.random.default_rng(0)
    x, X = rng.random((n, 1)), rng.standard_normal((n, N_FEATURES))
    return {
        "thresholds": (Thresholds(), x, noisy(x[:, 0] > 0.4, rng)),
        "intervals": (Intervals(), x, noisy((x[:, 0] > 0.3) & (x[:, 0] < 0.6), rng)),
        f"stumps, d={N_FEATURES}": (DecisionStumps(N_FEATURES), X, noisy(X[:, 3] > 0.5, rng)),
    }


def row_of(family: HypothesisClass, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the seconds of erm, dichotomies and their errors, restrict, and the region of
    disagreement."""
    asked = X[:ASKED], y[:ASKED], ASKED**0.5
    space = family.version_space().restrict(*asked)

    def all_errors() -> object:
        dichotomies = family.dichotomies(X)
        return (
            dichotomies.prefix_mistakes_on(X, y)
            if isinstance(family, Intervals)
            else dichotomies.errors(y)
        )

    return [
        seconds(lambda: family.erm(X, y)),
        seconds(all_errors),
        seconds(lambda: family.version_space().restrict(*asked)),
        seconds(lambda: space.disagreement_region(X)),
    ]


def beside_a_tree(X: np.ndarray, y: np.ndarray) -> str:
    """Return a table row: errors and seconds of the exact stump and of the tree."""
    family, tree = DecisionStumps(X.shape[1]), DecisionTreeClassifier(max_depth=1)
    ours, theirs = seconds(lambda: family.erm(X, y)), seconds(lambda: tree.fit(X, y))
    errors, tree_errors = ((model.predict(X) != y).sum() for model in (family.erm(X, y), tree))
    return (
        f"| {len(X):,} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.1f} | {errors} |"
        f" {tree_errors} |"
    )


def main(largest: int) -> None:
    """Print both tables."""
    sizes = [n for n in (10_000, 100_000, 1_000_000) if n <= largest]
    print("| class | points | erm | dichotomies and errors | restrict | disagreement region |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        for name, world in worlds(n).items():
            print(
                f"| {name} | {n:,} | "
                + " | ".join(f"{value:.3f}" for value in row_of(*world))
                + " |",
                flush=True,
            )
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB\n")
    print("| points | stump erm | tree of depth one | times faster | errors | errors of the tree |")
    print("|---|---|---|---|---|---|")
    for n in sizes:
        _, X, y = worlds(n)[f"stumps, d={N_FEATURES}"]
        print(beside_a_tree(X, y), flush=True)
        print(beside_a_tree(X, np.random.default_rng(1).integers(0, 2, n)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
