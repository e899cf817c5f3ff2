"""Take rows of a table, whatever it is: an array, a sparse matrix or a frame, always as a copy of
their own; and units of protection, by the ids of their rows.

A copy, because a learner may write into what it is given, and a teacher that saw another teacher's
writing would carry one unit into two votes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from secretballot._typing import IntArray, Matrix
from secretballot.core.partition import KeyedHashPartition, canonical_id
from secretballot.exceptions import DataError, Parameter


def as_table(X: Any) -> Any:
    """Return a frame, CSR matrix or array whose rows are records, of a type that no single row
    decides."""
    if is_sparse(X):
        return X.tocsr()
    # the width of a text array is the longest text of all rows, which no single shard may know
    return X.astype(object) if not hasattr(X, "iloc") and X.dtype.kind in "US" else X


def n_rows(table: Matrix) -> int:
    """Return the number of rows."""
    return int(table.shape[0])


def take_rows(table: Matrix, rows: npt.NDArray[np.intp]) -> Any:
    """Return a copy of some rows, in a form that depends on these rows alone.

    `rows` has shape (n_taken,).
    """
    if hasattr(table, "iloc"):
        part = table.iloc[rows].reset_index(drop=True)
        part.attrs = {}
        return part
    # numpy may keep the order in memory of the whole table, which a frame's columns or a transposed
    # file chose
    return (
        _own_form(table[rows]) if is_sparse(table) else np.array(table[rows], order="C", copy=True)
    )


def row_block(table: Matrix, start: int, stop: int) -> Any:
    """Return a copy of the rows from `start` to `stop`."""
    if hasattr(table, "iloc"):
        return table.iloc[start:stop].copy()
    return table[start:stop].copy() if is_sparse(table) else np.array(table[start:stop])


def block_bounds(n: int, block_rows: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) of consecutive blocks that cover `n` rows."""
    for start in range(0, n, block_rows):
        yield start, min(start + block_rows, n)


def is_sparse(table: Any) -> bool:
    """Return whether `table` is a scipy sparse matrix or array."""
    return bool(sp.issparse(table))


def _own_form(part: Any) -> Any:
    """Sort and sum a sparse part and give it the index type of its own size, not that of the whole
    matrix.

    Stored zeros go: in a matrix of blocks, a neighbour's value stores zeros in the other rows of
    its block.
    """
    part.sum_duplicates()
    part.eliminate_zeros()
    if max(part.nnz, *part.shape) <= np.iinfo(np.int32).max:
        part.indices = part.indices.astype(np.int32, copy=False)
        part.indptr = part.indptr.astype(np.int32, copy=False)
    return part


def unit_numbers(units: Any, n_records: int) -> IntArray:
    """Return a number for the unit of every record: 0, 1, ... in the order of their first records.

    Private.

    Parameters
    ----------
    units : array-like of shape (n_records,)
        Ids as `KeyedHashPartition.assign` takes them: 7, 7.0 and "7" are one unit.
    n_records : int

    Returns
    -------
    ndarray of int64, shape (n_records,)

    Raises
    ------
    DataError
        If an id is missing or is none, or there is not one for each record; the message names row
        numbers only.
    """
    found = len(KeyedHashPartition(1, bytes(16)).assign(units))  # refuses what is no id
    check_ids(found, n_records)
    column = units.to_numpy() if hasattr(units, "to_numpy") else units
    known: dict[bytes, int] = {}
    ids = (
        canonical_id(value) for value in (column.tolist() if hasattr(column, "tolist") else column)
    )
    return np.array([known.setdefault(one, len(known)) for one in ids], dtype=np.int64)


def check_ids(found: int, n_records: int) -> None:
    """Refuse another number of ids than there are records.

    Raises
    ------
    DataError
    """
    if found != n_records:
        raise DataError(
            Parameter("units"),
            f" has {found} ids for {n_records} records; give one id for each record.",
        )
