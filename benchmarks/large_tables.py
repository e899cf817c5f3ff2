"""Private tables of any size: time, memory and disk of `secretballot learn`.

    python benchmarks/large_tables.py [n_rows ...]

20 columns of Parquet, written here in files of a million rows: ten of normal numbers, six of
categories, two of dates, a truth value and the class; 5,000 public points, 20,000 rows to score on,
epsilon 1, delta 1e-9. Each line is a process of its own. Columns of the table:

- method: record moments, or votes of 250 logistic teachers.
- where: "memory" reads the table at once, from one file, as far as that goes; "disk" block by
  block, from a folder of files.
- time, the time of all processors together, the most memory that the process held (its resident
  size, without the cache of files),
  the most space that its folder took, and the accuracy of the student.
"""

import json
import resource
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from cells import head_of, row_of

SIZES = (100_000, 1_000_000, 10_000_000)
MOST_IN_MEMORY = 1_000_000  # rows that are read at once for comparison
FILE_ROWS = 1_000_000
FOLDER = Path("build/large-tables")
LETTERS = np.array([f"c{i}" for i in range(12)])

METHODS = ("record-moments", "pate")


def rows(n: int, seed: int) -> pa.Table:
    """Return labelled rows of a logistic class."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 10))
    letters = rng.integers(0, len(LETTERS), (n, 6))
    days = rng.integers(17_000, 19_000, (n, 2)).astype("datetime64[D]")
    truth = rng.random(n) < 0.4
    logit = numbers[:, 0] - numbers[:, 1] + 0.5 * numbers[:, 2] + (letters[:, 0] < 4) + truth - 1
    ill = rng.random(n) < 1 / (1 + np.exp(-2 * logit))
    columns = {f"n{i}": pa.array(numbers[:, i]) for i in range(10)}
    columns |= {f"c{i}": pa.array(LETTERS[letters[:, i]]) for i in range(6)}
    columns |= {f"d{i}": pa.array(days[:, i]) for i in range(2)}
    columns |= {"t": pa.array(truth), "ill": pa.array(np.where(ill, "yes", "no"))}
    return pa.table(columns)


def write_tables(n_rows: int) -> Path:
    """Write the tables of a size unless they are there; return the folder of the private one."""
    folder = FOLDER / str(n_rows)
    private = folder / "private"
    if (folder / "test.parquet").exists():
        return private
    shutil.rmtree(folder, ignore_errors=True)
    private.mkdir(parents=True)
    for place, start in enumerate(range(0, n_rows, FILE_ROWS)):
        part = rows(min(FILE_ROWS, n_rows - start), seed=place + 10)
        parquet.write_table(part, private / f"{place:04d}.parquet", row_group_size=100_000)
    if n_rows <= MOST_IN_MEMORY:
        whole = pa.concat_tables([parquet.read_table(path) for path in sorted(private.iterdir())])
        parquet.write_table(whole, folder / "whole.parquet")
    parquet.write_table(rows(5_000, seed=1).drop_columns(["ill"]), folder / "public.parquet")
    parquet.write_table(rows(20_000, seed=2), folder / "test.parquet")
    return private


def bytes_under(folder: Path) -> int:
    """Return the size of all files in a folder, which may be written to."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total


def learn(method: str, where: str, private: str, out: str) -> None:
    """Learn in this process; print accuracy, seconds and the most memory it held, in bytes."""
    import secretballot.runs.tables as tables
    from secretballot.runs.run import run
    from secretballot.runs.spec import RunSpec

    folder = Path(private).parent
    tables._MOST_IN_MEMORY = 10**9
    how: dict[str, object] = {"method": method, "n_jobs": 2 if method == "pate" else 1}
    if method == "pate":
        how |= {"n_teachers": 250}
    spec = RunSpec.read(
        private=folder / "whole.parquet" if where == "memory" else Path(private),
        public=folder / "public.parquet",
        target="ill",
        classes=("no", "yes"),
        evaluate=folder / "test.parquet",
        epsilon=1.0,
        delta=1e-9,
        ledger="own",
        out=Path(out),
        exclude=("report",),
        **how,
    )
    started = time.monotonic()
    made = run(spec)
    seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps([made.accuracy, seconds, peak]))


def measured(method: str, where: str, private: Path) -> list[str]:
    """Return times, memory, disk and accuracy of one run in a process of its own."""
    out = private.parent / f"out-{method}-{where}"
    shutil.rmtree(out, ignore_errors=True)
    disk, before = 0, resource.getrusage(resource.RUSAGE_CHILDREN)
    child = subprocess.Popen(
        [sys.executable, __file__, "learn", method, where, str(private), str(out)],
        stdout=subprocess.PIPE,
        text=True,
    )
    while child.poll() is None:
        disk = max(disk, bytes_under(out))
        time.sleep(0.2)
    said = child.stdout.read() if child.stdout is not None else ""
    if child.returncode:
        raise SystemExit(f"{method} from {where} ended with {child.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    accuracy, seconds, peak = json.loads(said.splitlines()[-1])
    figures = seconds, processors, peak / 1e9, disk / 1e9, 100 * accuracy
    return [f"{one:.2f}" for one in figures]


def main(sizes: list[int]) -> None:
    """Print the table."""
    figures = "time, s", "processors, s", "memory, GB", "disk, GB", "accuracy, %"
    print(head_of("rows", "method", "where", *figures))
    for n_rows in sizes:
        private = write_tables(n_rows)
        for method in METHODS:
            for where in ("memory", "disk")[n_rows > MOST_IN_MEMORY :]:
                print(row_of(f"{n_rows:,}", method, where, *measured(method, where, private)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["learn"]:
        learn(*sys.argv[2:])
    else:
        main([int(float(size)) for size in sys.argv[1:]] or list(SIZES))
