"""Time and peak memory of teachers and votes against records, queries and teachers, and of votes
read from a file.

Three sizes each, one process per row. Memory is what the work added to the peak above its inputs.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BASE = {"records": 50_000, "queries": 20_000, "teachers": 100}
SIZES = {
    "records": (50_000, 100_000, 200_000),
    "queries": (20_000, 40_000, 80_000),
    "teachers": (100, 200, 400),
}
LEARNERS = ("logistic", "tree")
FEATURES = 30
FILE_ROWS = (250_000, 500_000, 1_000_000)
FILE_TEACHERS = 250


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ensemble_once(
    learner: str, records: int, queries: int, teachers: int
) -> tuple[float, float, float]:
    """Return seconds of fitting, seconds of voting, and megabytes."""
    import numpy as np

    from secretballot.teachers import KeyedHashPartition, TeacherEnsemble, teacher_by_name

    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(records, FEATURES)), rng.normal(size=(queries, FEATURES))
    y = (X @ rng.normal(size=FEATURES) + rng.normal(size=records) > 0).astype(int)
    teacher = teacher_by_name(learner)
    before, start = _peak(), time.perf_counter()
    shards = KeyedHashPartition(teachers, bytes(16)).assign(np.arange(records))
    ensemble = TeacherEnsemble.fit(teacher, X, y, shards, n_teachers=teachers, n_classes=2)
    fitted = time.perf_counter()
    ensemble.vote_counts(X_public)
    return fitted - start, time.perf_counter() - fitted, _peak() - before


def file_once(path: str) -> tuple[float, float, float]:
    """Return seconds, a nought, and megabytes; the pages of the mapped file count, though they
    can be dropped."""
    from secretballot import read_votes

    before, start = _peak(), time.perf_counter()
    read_votes(path, classes=[0, 1])
    return time.perf_counter() - start, 0.0, _peak() - before


def _measured(*arguments: object) -> list[float]:
    command = [sys.executable, __file__, "--one", *(str(argument) for argument in arguments)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [float(number) for number in output.split()]


def _write_votes(path: Path, rows: int) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    votes = np.lib.format.open_memmap(path, mode="w+", dtype=np.int8, shape=(rows, FILE_TEACHERS))
    for start in range(0, rows, 50_000):
        votes[start : start + 50_000] = rng.integers(0, 2, size=votes[start : start + 50_000].shape)
    votes.flush()


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        kind, *sizes = sys.argv[2:]
        print(
            *(
                file_once(sizes[0])
                if kind == "file"
                else ensemble_once(kind, *(int(size) for size in sizes))
            )
        )
        return
    print(f"{'learner':>9} {'varied':>9} {'size':>8} {'fit s':>7} {'vote s':>7} {'MB':>6}")
    for learner in LEARNERS:
        for name, sizes in SIZES.items():
            for size in sizes:
                fit, vote, memory = _measured(learner, *{**BASE, name: size}.values())
                print(
                    f"{learner:>9} {name:>9} {size:>8} {fit:>7.2f} {vote:>7.2f} {memory:>6.0f}",
                    flush=True,
                )
    print(
        f"\nvotes of {FILE_TEACHERS} teachers read from .npy (int8)\n{'queries':>9} {'s':>7}"
        f" {'MB':>6} {'file MB':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows in FILE_ROWS:
            path = Path(folder) / "votes.npy"
            _write_votes(path, rows)
            seconds, _, memory = _measured("file", path)
            print(
                f"{rows:>9} {seconds:>7.2f} {memory:>6.0f} {rows * FILE_TEACHERS / 2**20:>8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
