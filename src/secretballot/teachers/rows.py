"""Take rows of a table, whatever it is: an array, a sparse matrix or a frame, always as a copy of
their own.

A copy, because a learner may write into what it is given, and a teacher that saw another teacher's
writing would carry one unit into two votes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from secretballot._typing import Matrix
from secretballot._validation import name_part
from secretballot.exceptions import DataError

_INT32_MAX = np.iinfo(np.int32).max


def as_table(X: Any, name: str = "X") -> Any:
    """Return `X` as a pandas frame, a CSR matrix or an array whose rows are records.

    Arrays have the shape (n_rows, ...) that they came with.

    Raises
    ------
    DataError
        If `X` has no rows to take.
    """
    if hasattr(X, "iloc"):
        return X
    if is_sparse(X):
        return X.tocsr()
    if isinstance(X, np.ma.MaskedArray):
        raise DataError(name_part(name), " is a masked array; fill or drop what is masked.")
    # of a list numpy would find one type for all cells, so that one of them changed all others
    table = np.empty(()) if isinstance(X, list | tuple) else np.asarray(X)
    if table.ndim == 0:
        raise DataError(
            name_part(name),
            f" has the type {type(X).__name__}; give an array, a frame or a sparse matrix with one"
            " row per record.",
        )
    # The width of a text array is the longest text of all rows, which no single shard may know.
    return table.astype(object) if table.dtype.kind in "US" else table


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
    if max(part.nnz, *part.shape) <= _INT32_MAX:
        part.indices = part.indices.astype(np.int32, copy=False)
        part.indptr = part.indptr.astype(np.int32, copy=False)
    return part
