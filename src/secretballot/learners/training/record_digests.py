"""Digests of records: whether two tables share rows, found out without keeping a row.

A row is hashed by itself, with a key that is drawn in this process and leaves it never. Of a table
are kept the smallest hashes of those rows that occur once: a row that is kept of one table is kept
of every part that contains it, unless that part has many smaller ones. All of it is private, and
stays in memory.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from secretballot.ensemble.stored_table import StoredTable
from secretballot.learners.training.inputs import n_columns, n_rows
from secretballot.privacy.noise import entropy_bytes

__all__ = ["RecordDigests", "record_digests", "rows_among_stored"]

Hashes = NDArray[np.uint64]

MOST_KEPT = 1 << 14  # 128 KiB for a table
_LEAST_SHARED = 5  # rows that both tables would have kept, before a share of them says anything
_BLOCK = 1 << 15  # rows hashed at once
_HALF, _THIRD = np.uint64(32), np.uint64(29)
_MIXER = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64


@dataclass(frozen=True, eq=False, repr=False)
class RecordDigests:
    """What is known of the rows of a table, all of it private.

    Attributes
    ----------
    n_rows, n_columns : int
    whole : int
        Digest of all rows, in any order.
    kept : ndarray of uint64, ascending
        Smallest hashes of rows that occur once.
    n_single : int
        Rows that occur once.
    """

    n_rows: int
    n_columns: int
    whole: int
    kept: Hashes
    n_single: int

    def same_rows(self, other: "RecordDigests") -> bool:
        """Return whether both tables have the same rows, in any order."""
        return (self.n_rows, self.whole) == (other.n_rows, other.whole)

    def shared(self, other: "RecordDigests") -> float:
        """Return the share, of the table with fewer rows that occur once, of those that occur once
        in the other too; 0 where they are too few to tell."""
        ends = [one.kept[-1] for one in (self, other) if one.n_single > len(one.kept)]
        mine, others = (
            one.kept[: np.searchsorted(one.kept, min(ends), side="right")] if ends else one.kept
            for one in (self, other)
        )
        fewer = min(len(mine), len(others))
        if fewer < _LEAST_SHARED:
            return 0.0
        return len(np.intersect1d(mine, others, assume_unique=True)) / fewer


def record_digests(X: Any) -> RecordDigests | None:
    """Return what there is to know of the rows of a table; None where they cannot be hashed.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    """
    try:
        hashes = _row_hashes(X)
    except Exception:  # of cells that are of no kind that pandas hashes; nothing is told of them
        return None
    values, counts = np.unique(hashes, return_counts=True)
    single = values[counts == 1]
    whole = int(np.add.reduce(_mixed_bits(hashes), dtype=np.uint64))
    return RecordDigests(n_rows(X), n_columns(X), whole, single[:MOST_KEPT].copy(), len(single))


def rows_among_stored(points: RecordDigests, table: StoredTable) -> tuple[bool, float]:
    """Return whether some points are all rows of a stored table, and the share, of those points
    that occur once, of those that occur once in the table."""
    seen, whole = np.zeros(len(points.kept), dtype=np.int64), np.zeros(1, dtype=np.uint64)
    for block in table.blocks():
        hashes = _row_hashes(block.X)
        whole += np.add.reduce(_mixed_bits(hashes), dtype=np.uint64)
        if len(seen):
            places = np.minimum(np.searchsorted(points.kept, hashes), len(seen) - 1)
            np.add.at(seen, places[points.kept[places] == hashes], 1)
    equal = (points.n_rows, points.whole) == (table.count_rows(), int(whole[0]))
    return equal, float(np.mean(seen == 1)) if len(seen) else 0.0


@cache
def _hash_key() -> int:
    return int.from_bytes(entropy_bytes(16), "big")


@cache
def _column_multipliers(n: int) -> Hashes:
    """Return an odd number for each column."""
    drawn = np.random.default_rng(_hash_key()).integers(0, 1 << 64, size=n, dtype=np.uint64)
    return drawn | np.uint64(1)


def _row_hashes(X: Any) -> Hashes:
    multipliers = _column_multipliers(n_columns(X))
    if sparse.issparse(X):
        matrix: Any = X
        return _mixed_bits(_sparse_sums(matrix.tocsr(), multipliers))
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, place] for place in range(n_columns(X))]
    elif X.dtype.kind in "biuf":
        return _mixed_bits(_dense_sums(X, multipliers))
    else:
        columns = [pd.Series(X[:, place], dtype=object) for place in range(n_columns(X))]
    sums = np.zeros(n_rows(X), dtype=np.uint64)
    for column, multiplier in zip(columns, multipliers, strict=True):
        sums += _mixed_bits(_cell_hashes(column)) * multiplier
    return _mixed_bits(sums)


def _dense_sums(X: Any, multipliers: Hashes) -> Hashes:
    sums = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _BLOCK):
        part = _mixed_bits(_float_bits(np.asarray(X[start : start + _BLOCK], dtype=np.float64)))
        sums[start : start + _BLOCK] = part @ multipliers
    return sums


def _sparse_sums(X: Any, multipliers: Hashes) -> Hashes:
    cells = _mixed_bits(_float_bits(X.data.astype(np.float64))) * multipliers[X.indices]
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(cells, dtype=np.uint64)])
    sums: Hashes = ends[X.indptr[1:]] - ends[X.indptr[:-1]]  # which wraps around, as sums do
    return sums


def _cell_hashes(column: Any) -> Hashes:
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _float_bits(column.to_numpy(dtype=np.float64, na_value=np.nan))
    # pandas takes a key of 16 letters
    cells = column.to_numpy() if column.dtype == object else column.array
    return pd.util.hash_array(cells, hash_key=f"{_hash_key() >> 64:016x}")


def _float_bits(values: NDArray[np.float64]) -> Hashes:
    bits: Hashes = np.ascontiguousarray(values + 0.0).view(np.uint64)  # 0.0 and -0.0 are one
    return bits


def _mixed_bits(bits: Hashes) -> Hashes:
    """Return hashes to which every bit matters."""
    bits = (bits ^ (bits >> _HALF)) * _MIXER
    return bits ^ (bits >> _THIRD)
