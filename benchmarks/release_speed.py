"""Time a release of 1,000,000 binary queries from counts to labels, exact noise included.

    python benchmarks/release_speed.py [n_queries]

Prints seconds, queries a second and peak memory.
"""

import os

# BLAS threads would compete with the sampler's own
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import resource
import time

import numpy as np

from cells import number_given
from secretballot.accounting import teacher_shape
from secretballot.core.mechanisms import NoisyVotes, State
from secretballot.core.noise import ExactNoise

# the noise is given, not calibrated: only the drawing is timed
N_TEACHERS, SIGMA = 250, 58.7


def main(n_queries: int) -> None:
    """Draw, and print one row."""
    rng = np.random.default_rng(0)
    ones = rng.integers(0, N_TEACHERS + 1, n_queries)
    counts = np.column_stack([N_TEACHERS - ones, ones])
    noise, shape = ExactNoise(), teacher_shape(n_queries, 2, N_TEACHERS)
    noise.discrete_gaussian(SIGMA, 10)  # loads the sampler
    start = time.perf_counter()
    NoisyVotes(scale=SIGMA).draw(shape, [counts], noise, State())
    exact = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("| queries | seconds | queries/s | peak MiB |\n" + "|---" * 4 + "|")
    print(f"| {n_queries:,} | {exact:.2f} | {n_queries / exact:.0f} | {peak:.0f} |")


if __name__ == "__main__":
    main(number_given(1_000_000))
