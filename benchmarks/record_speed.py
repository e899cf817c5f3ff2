"""Seconds and peak memory of record moments by the number of records; two stages.

    python benchmarks/record_speed.py [n_runs] [n_records n_features ...]

Every fit has a process of its own, whose peak memory is that of the fit: the table of floating
point numbers, the pool of 5,000 points and the libraries included. `added` is what the fit adds to
the peak. Coordinates are mapped in blocks of rows; up to 2^29 of them are kept, in four
bytes each, and those of a larger table are mapped anew for each stage.
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

import numpy as np

SIZES = ((100_000, 200), (300_000, 200), (1_000_000, 200), (1_000_000, 20), (10_000_000, 20))
N_PUBLIC, BLOCK = 5_000, 100_000


def resident() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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
    model = RecordMomentsClassifier(epsilon=1.0, delta=1e-6, n_stages=2)
    model.fit(X, y, X_public=pool, classes=[0, 1])
    found = {
        "seconds": time.perf_counter() - begun,
        "processor": time.process_time() - used,
        "peak": resident(),
        "added": resident() - before,
        "accuracy": 100 * float(np.mean(model.predict(X[:BLOCK]) == y[:BLOCK])),
        "coordinates": model.certificate_["mechanism"]["coordinates"],
    }
    print(json.dumps(found))


def main(n_runs: int, sizes: list[tuple[int, int]]) -> None:
    """Print one row for each size."""
    print(
        "| records | features | coordinates | seconds | processor seconds | table, MiB |"
        " peak, MiB | added, MiB |\n" + "|---" * 8 + "|"
    )
    for n_records, n_features in sizes:
        runs = []
        for _ in range(n_runs):
            command = [sys.executable, __file__, "fit", str(n_records), str(n_features)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
        mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        print(
            f"| {n_records:,} | {n_features} | {mean['coordinates']:.0f} | {mean['seconds']:.0f} |"
            f" {mean['processor']:.0f} |"
            f" {n_records * n_features * 4 / 2**20:,.0f} | {mean['peak']:,.0f} |"
            f" {mean['added']:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        fit(int(sys.argv[2]), int(sys.argv[3]))
    else:
        given = [int(one) for one in sys.argv[2:]]
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 1,
            list(zip(given[::2], given[1::2], strict=True)) or list(SIZES),
        )
