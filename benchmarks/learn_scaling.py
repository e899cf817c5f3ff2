"""Time and peak memory of one fit against records, queries and teachers: three sizes each, one
process per fit.

Linear growth shows as a constant last column but one: time per unit beyond the smallest size.
"""

import resource
import subprocess
import sys
import time

BASE = {"records": 40_000, "queries": 10_000, "teachers": 100}
SIZES = {
    "records": (40_000, 80_000, 160_000),
    "queries": (10_000, 20_000, 40_000),
    "teachers": (100, 200, 400),
}
FEATURES = 30


def fit_once(records: int, queries: int, teachers: int) -> tuple[float, float]:
    """Return seconds of one fit, and the megabytes by which it raised the peak above the data's
    own."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import secretballot as sb

    rng = np.random.default_rng(0)
    weights = rng.normal(size=FEATURES)
    X, X_public = rng.normal(size=(records, FEATURES)), rng.normal(size=(queries, FEATURES))
    y = (X @ weights + rng.normal(size=records) > 0).astype(int)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    model = sb.PATEClassifier(
        LogisticRegression(),
        n_teachers=teachers,
        epsilon=1.0,
        delta=1e-6,
        random_state=0,
    )
    model.fit(X, y, X_public=X_public, classes=[0, 1])
    seconds = time.perf_counter() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    if len(sys.argv) == 5 and sys.argv[1] == "--one":
        print(*fit_once(*(int(value) for value in sys.argv[2:])))
        return
    print(f"{'varied':>9} {'size':>8} {'seconds':>8} {'MB':>7}")
    for name, sizes in SIZES.items():
        for size in sizes:
            setting = {**BASE, name: size}
            command = [
                sys.executable,
                __file__,
                "--one",
                *(str(value) for value in setting.values()),
            ]
            seconds, memory = subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.split()
            print(f"{name:>9} {size:>8} {float(seconds):>8.2f} {float(memory):>7.0f}", flush=True)


if __name__ == "__main__":
    main()
