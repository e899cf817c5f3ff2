"""Time a release of 1,000,000 binary queries from counts to labels, exact noise included.

    python benchmarks/release_speed.py [n_queries]

Prints seconds, queries per second and peak memory of the mechanisms with exact noise, and the
ratio to the same arithmetic with numpy's floating noise, for scale only: floating noise is not safe
to release (Mironov 2012).
"""

import os

# BLAS threads would compete with the sampler's own
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import resource
import sys
import time
from collections.abc import Callable

import numpy as np

from secretballot.accounting import PrivacyBudget, teacher_shape
from secretballot.core.mechanisms import NoisyVotes, SparseVector, State
from secretballot.core.noise import ExactNoise

N_TEACHERS = 250
# the noise below is given, not calibrated: only the drawing is timed
BUDGET = PrivacyBudget(1.0, 1e-6)


def peak_mib() -> float:
    """Return the peak resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def floating_labels(counts: np.ndarray, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """Return labels with numpy's floating Gaussian noise: fast, and not private."""
    return (2 * (counts[:, 1] + rng.normal(0, sigma, len(counts))) >= N_TEACHERS).astype(np.int64)


def main() -> None:
    n_queries = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    rng = np.random.default_rng(0)
    ones = rng.integers(0, N_TEACHERS + 1, n_queries)
    counts = np.column_stack([N_TEACHERS - ones, ones])
    noise = ExactNoise()
    noise.discrete_gaussian(58.7, 10)  # loads the sampler
    before = peak_mib()

    shape = teacher_shape(n_queries, 2, N_TEACHERS)
    sparse = SparseVector(
        threshold_scale=3.0, query_scale=3.0, threshold=46, max_abstentions=n_queries
    )
    stable = np.tile([N_TEACHERS, 0], (n_queries, 1))
    runs = {
        "Gaussian labels": lambda: NoisyVotes(scale=58.7).draw(shape, [counts], noise, State()),
        "sparse vector, all stable": lambda: sparse.draw(shape, [stable], noise, State()),
    }
    floating = timed(lambda: floating_labels(counts, 58.7, rng))
    print(f"{n_queries} binary queries, {N_TEACHERS} teachers, {os.cpu_count()} cores")
    print(f"{'':28}{'seconds':>9}{'queries/s':>12}{'numpy floats x':>16}{'peak MiB':>10}")
    for name, work in runs.items():
        seconds = timed(work)
        print(
            f"{name:28}{seconds:9.2f}{n_queries / seconds:12.0f}"
            f"{seconds / floating:16.0f}{peak_mib():10.0f}"
        )
    print(
        f"{'numpy floats (not private)':28}{floating:9.3f}{n_queries / floating:12.0f}"
        f"{1:16}{'':>10}"
    )
    print(
        f"before the first release: {before:.0f} MiB, of which counts {counts.nbytes / 2**20:.0f}"
    )


if __name__ == "__main__":
    main()
