"""Seconds and peak memory of record moments by the number of records, beside the same maps and sums
by hand; four stages.

    python benchmarks/record_speed.py [n_runs] [n_records n_features ...]

Every fit has a process of its own, whose peak memory is that of the fit: the table of floating
point numbers, the pool of 5,000 points and the libraries included. `added` is what the fit adds to
the peak. Coordinates are mapped in blocks of rows; up to 2^29 of them are kept, in four
bytes each, and those of a larger table are mapped anew for each stage.

`by hand` is plain numpy in the same process: each cell's place among the pool's values by a search,
bins and ranks rotated by one product, four times a logistic residual, vectors cut to the bound and
added up, in floating point and blocks of rows. It fits no basis, checks nothing and draws no noise.
"""

import os

# one BLAS thread, so that figures do not depend on the machine
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

from cells import head_of, number_given, row_of

SIZES = ((100_000, 200), (1_000_000, 50), (1_000_000, 200), (10_000_000, 20))
N_PUBLIC, BLOCK, STAGES = 5_000, 100_000, 4


def resident() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def by_hand(X: Any, y: Any, basis: Any, bound: float) -> float:
    """Return the processor seconds of the same maps and sums in plain numpy."""
    used, rows = time.process_time(), 10_000
    weights = basis._rotation.weights / 2.0**18
    mean = basis._rotation.offset / 2.0**28
    columns = []
    for column in basis._columns:
        distinct, counts = np.unique(column.sorted_values, return_counts=True)
        shares = 2 * (np.cumsum(counts) - counts / 2) / counts.sum() - 1
        bends = np.minimum(1, -np.log(np.maximum(1 - shares**2, 1e-9)) / 3)
        bins = np.searchsorted(column.edges, distinct, side="right")
        columns.append((distinct, np.column_stack([shares, bends]), bins))
    n_bins = [len(column.edges) + 1 for column in basis._columns]
    begin = np.append(0, np.cumsum([n + 2 for n in n_bins]))
    blocks = []
    for start in range(0, len(X), rows):
        cells = X[start : start + rows]
        features = np.zeros((len(cells), begin[-1]))
        every = np.arange(len(cells))
        for j, (distinct, shares, bins) in enumerate(columns):
            at = np.minimum(np.searchsorted(distinct, cells[:, j]), len(distinct) - 1)
            features[every, begin[j] + bins[at]] = 1
            features[:, begin[j] + n_bins[j] : begin[j + 1]] = shares[at]
        inner = features @ weights - mean
        blocks.append(np.column_stack([inner, np.full(len(inner), 0.5)]).astype(np.float32))
    model = np.zeros(blocks[0].shape[1])
    for _ in range(STAGES):
        total = np.zeros(len(model))
        for place, coordinates in enumerate(blocks):
            told = y[place * rows : (place + 1) * rows]
            missed = told - 1 / (1 + np.exp(-(coordinates @ model)))
            lengths = np.linalg.norm(coordinates, axis=1) * np.abs(missed)
            total += (missed * np.minimum(1, bound / np.maximum(lengths, 1e-9))) @ coordinates
        model += total / len(X)
    return time.process_time() - used


def fit(n_records: int, n_features: int) -> None:
    """Print what one fit takes, as JSON."""
    from secretballot import RecordMomentsClassifier

    rng = np.random.default_rng(0)
    pool = rng.normal(size=(N_PUBLIC, n_features)).astype(np.float32)
    weights = rng.normal(size=n_features) / np.sqrt(n_features)
    X, y = np.empty((n_records, n_features), dtype=np.float32), np.empty(n_records, dtype=int)
    for start in range(0, n_records, BLOCK):
        block = rng.normal(size=(min(BLOCK, n_records - start), n_features)).astype(np.float32)
        X[start : start + BLOCK], y[start : start + BLOCK] = block, block @ weights > 0
    before, begun, used = resident(), time.perf_counter(), time.process_time()
    model = RecordMomentsClassifier(epsilon=1.0, delta=1e-9, n_stages=STAGES)
    model.fit(X, y, X_public=pool, classes=[0, 1])
    found = {
        "seconds": time.perf_counter() - begun,
        "processor": time.process_time() - used,
        "peak": resident(),
        "added": resident() - before,
        "accuracy": 100 * float(np.mean(model.predict(X[:BLOCK]) == y[:BLOCK])),
        "coordinates": len(model.certificate_["released"]["values"][0]),
    }
    found["by_hand"] = by_hand(X, y, model.student_.basis, 0.5)
    print(json.dumps(found))


def main(n_runs: int, sizes: list[tuple[int, int]]) -> None:
    """Print one row for each size."""
    figures = "coordinates", "seconds", "processor seconds", "by hand", "ratio"
    print(head_of("records", "features", *figures, "table, MiB", "peak, MiB", "added, MiB"))
    for n_records, n_features in sizes:
        runs = []
        for _ in range(n_runs):
            command = [sys.executable, __file__, "fit", str(n_records), str(n_features)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
        mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        mean |= {
            "ratio": mean["processor"] / mean["by_hand"],
            "table": n_records * n_features * 4 / 2**20,
        }
        shown = [
            "coordinates",
            "seconds",
            "processor",
            "by_hand",
            "ratio",
            "table",
            "peak",
            "added",
        ]
        cells = (f"{mean[name]:,.1f}" for name in shown)
        print(row_of(f"{n_records:,}", n_features, *cells), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        fit(int(sys.argv[2]), int(sys.argv[3]))
    else:
        given = [int(one) for one in sys.argv[2:]]
        main(number_given(1), list(zip(given[::2], given[1::2], strict=True)) or list(SIZES))
