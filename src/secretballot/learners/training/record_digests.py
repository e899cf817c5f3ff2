"""Hashes of rows, by which equal rows are found without keeping a row.

A row is hashed by itself, with a key that is drawn in this process and leaves it never. All of it
is private, and stays in memory.
"""

from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from secretballot.core.noise import entropy_bytes
from secretballot.foreign_code import result_of
from secretballot.learners.training.inputs import n_columns
from secretballot.teachers.rows import n_rows

Hashes = NDArray[np.uint64]

_BLOCK = 1 << 15  # rows hashed at once
_HALF, _THIRD = np.uint64(32), np.uint64(29)
_MIXER = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64


def row_hashes(X: Any) -> Hashes | None:
    """Return a hash of every row of a table, by the key of this process; None where they cannot be
    hashed.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    """
    return result_of(partial(_row_hashes, X))


def rows_digest(hashes: Hashes) -> int:
    """Return the digest of rows, in any order, by their hashes."""
    return int(np.add.reduce(_mixed_bits(hashes), dtype=np.uint64))


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
