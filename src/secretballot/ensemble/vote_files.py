"""Read files of votes or counts in blocks, whatever framework wrote them."""

import contextlib
import csv
import os
import stat
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._validation import check_choice, check_count
from secretballot.ensemble.tally import blocks_of, check_classes, check_counts, count_votes
from secretballot.exceptions import DataError, ParameterError, SecretBallotError

__all__ = ["read_counts"]

CountArray = npt.NDArray[np.int32]

_BLOCK_CELLS = 2**20


@dataclass(frozen=True)
class _Table:
    """The public width of a file's table, its rows in blocks, and its column names if it has any."""

    n_columns: int
    blocks: Iterator[npt.NDArray[Any]]
    names: tuple[str, ...] | None = None


def read_counts(
    path: Path, kind: str | None, classes: object, n_teachers: int | None
) -> tuple[CountArray, list[Any], int]:
    """Read a file of votes or counts; see `VoteCounts.read`.

    Returns
    -------
    counts : ndarray of shape (n_queries, C), int32
    classes : list of length C
    n_teachers : int
    """
    if kind is not None:
        check_choice("kind", kind, ("votes", "counts"))
    if n_teachers is not None:
        check_count("n_teachers", n_teachers)
    values = None if classes is None else check_classes(classes)
    table = _open(path, values, kind)
    guessed = kind is None
    kind = kind or _kind_by_shape(table.n_columns, values, n_teachers)
    if kind == "votes":
        if values is None:
            raise ParameterError("classes are missing; votes can only be counted for declared classes.")
        counts, found = count_votes(table.blocks, values, n_teachers)
        return counts, values, found
    width = None if values is None else len(values)
    counts, found = check_counts(_by_class(table, values), width, n_teachers)
    if guessed and n_teachers is None and (len(counts) == 1 or found <= table.n_columns):
        raise DataError(_AMBIGUOUS)
    return counts, check_classes(range(table.n_columns)) if values is None else values, found


def _by_class(table: _Table, classes: list[Any] | None) -> Iterator[npt.NDArray[Any]]:
    """Return the blocks of counts with their columns in the order of the classes, by name where columns have names.

    Raises
    ------
    DataError
        If the names are neither the classes nor mere positions: counts must not go to the wrong class in silence.
    """
    names = table.names
    if names is None or classes is None or len(names) != len(classes):
        return table.blocks
    wanted = [str(value) for value in classes]
    if sorted(names) == sorted(wanted):
        order = [names.index(name) for name in wanted]
        return (block[:, order] for block in table.blocks)
    if list(names) == [str(position) for position in range(len(names))]:
        return table.blocks
    raise DataError(
        f"the columns of counts are named {', '.join(names)}, but the classes are {', '.join(wanted)}; "
        "name each column by its class."
    )


_AMBIGUOUS = "the file could hold votes or counts; say which by kind='votes' or kind='counts'."


def _kind_by_shape(n_columns: int, classes: list[Any] | None, n_teachers: int | None) -> str:
    """Tell votes from counts by public numbers alone: a guess from the values could differ between neighbours."""
    if classes is not None and n_columns != len(classes):
        return "votes"
    if n_teachers is not None and n_columns == n_teachers:
        raise DataError(_AMBIGUOUS)
    return "counts"


def _open(path: Path, classes: list[Any] | None, kind: str | None) -> _Table:
    openers: dict[str, Callable[[Path], _Table]] = {
        ".npy": _open_npy,
        ".csv": lambda file: _open_csv(file, classes, kind),
        ".parquet": _open_parquet,
    }
    suffix = path.suffix.lower()
    if suffix not in openers:
        raise DataError(f"the file {str(path)!r} must end in .npy, .csv or .parquet.")
    try:
        found = path.stat()
    except OSError as error:
        raise DataError(f"the file {str(path)!r} cannot be read: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.R_OK):
        raise DataError(f"the file {str(path)!r} cannot be read: it is not a readable file.")
    if found.st_size == 0:
        raise DataError(f"the file {str(path)!r} is empty.")
    with _readable(path):
        table = openers[suffix](path)
    return _Table(table.n_columns, _read_all(path, table.blocks), table.names)


def _read_all(path: Path, blocks: Iterator[npt.NDArray[Any]]) -> Iterator[npt.NDArray[Any]]:
    with _readable(path):
        yield from blocks


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn whatever a reader raises into one sentence, since its own message may quote the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except SecretBallotError:
        raise
    except Exception:
        kind = path.suffix.lower()
        raise DataError(
            f"the file {str(path)!r} is no readable {kind} table; it is damaged, cut short or of another kind."
        ) from None


def _open_npy(path: Path) -> _Table:
    # A memory map checks the header's claim against the file's size and never unpickles.
    table = np.lib.format.open_memmap(path, mode="r")
    if table.ndim != 2:
        raise DataError(
            f"the file {str(path)!r} has {table.ndim} dimensions; give one row per query and two dimensions."
        )
    return _Table(table.shape[1], blocks_of(table))


def _open_csv(path: Path, classes: list[Any] | None, kind: str | None) -> _Table:
    with path.open(newline="", encoding="utf-8-sig") as file:
        first = next(csv.reader(file))
    if not first[0].strip():
        raise DataError(f"the file {str(path)!r} has a first column without a name; write it without the row index.")
    words = kind == "counts" and not all(_is_number(cell) for cell in first)
    has_header = words or (kind != "counts" and not _is_data(first, classes))
    names = tuple(cell.strip() for cell in first) if has_header else None
    options: dict[str, Any] = {
        "header": 0 if has_header else None,
        "chunksize": max(1, _BLOCK_CELLS // len(first)),
        "low_memory": False,
        "index_col": False,
        "skipinitialspace": True,
        "encoding": "utf-8-sig",
        # With classes that are words, "NA" may be one of them; with numbers, it is a missing vote.
        "keep_default_na": not _is_text(classes),
        "na_values": [""],
    }
    return _Table(len(first), _csv_blocks(path, options), names)


def _csv_blocks(path: Path, options: dict[str, Any]) -> Iterator[npt.NDArray[Any]]:
    import pandas as pd

    with pd.read_csv(path, **options) as frames:
        for frame in frames:
            yield frame.to_numpy()


def _is_data(cells: list[str], classes: list[Any] | None) -> bool:
    """Return whether the first line is data: declared words, or numbers."""
    if classes is not None and _is_text(classes):
        return all(cell.strip() in classes for cell in cells)
    return all(_is_number(cell) for cell in cells)


def _is_text(classes: list[Any] | None) -> bool:
    return classes is not None and isinstance(classes[0], str)


def _is_number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return False
    return True


def _open_parquet(path: Path) -> _Table:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError("reading .parquet needs pyarrow; install secretballot[parquet].") from None
    names = pq.read_schema(path).names
    if any(name.startswith("__index_level_") for name in names):
        raise DataError(f"the file {str(path)!r} holds a row index; write it without the row index.")
    return _Table(len(names), _parquet_blocks(path, max(1, _BLOCK_CELLS // max(1, len(names)))), tuple(names))


def _parquet_blocks(path: Path, rows: int) -> Iterator[npt.NDArray[Any]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=rows):
            yield batch.to_pandas().to_numpy()
