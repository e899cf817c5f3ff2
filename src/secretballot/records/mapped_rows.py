"""Coordinates of records, mapped block by block, so that no more than a bounded part of them is
held."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import sklearn

from secretballot._typing import BoolArray, IntArray
from secretballot.bases.integer_model import with_constant
from secretballot.core.private import Private
from secretballot.foreign_code import is_exact, isolated, result_of, rows_alone
from secretballot.teachers.rows import block_bounds, n_rows, row_block, take_rows

#: Coordinates, of four bytes each, that are kept; more are mapped anew whenever they are asked for.
MOST_KEPT = 2**29
_BLOCK_ENTRIES = 2**20  # coordinates of one block of rows, which stays in the cache


class _FittedBasis(Protocol):
    """What maps rows, each by itself."""

    n_directions_: int

    def integers(self, X: Any) -> IntArray:
        """Return coordinates, int64 of shape (n_rows, n_directions)."""

    def covered(self, X: Any) -> BoolArray:
        """Return which rows the public points cover, bool of shape (n_rows,)."""


class MappedRows(Private):
    """The coordinates of a private table, which are computed when some of its rows are asked for.

    A row's coordinates do not depend on the rows around it, to the last bit; so it makes no
    difference in which blocks they are computed, or how often.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    table : array, sparse matrix or frame of shape (n_records, n_features)
        Private.

    Attributes
    ----------
    shape : tuple of int
        Records, and coordinates of each, the constant's last.

    Examples
    --------
    >>> basis = sb.bases.TableBasis().fit([[age] for age in range(60)])
    >>> rows = MappedRows(basis, np.array([[20.0], [30.0]]))
    >>> rows, rows.shape == (2, basis.n_directions_ + 1)
    (MappedRows(<private>), True)
    """

    __slots__ = ("__basis", "__table", "shape")
    _refusal = "mapped rows refuse to {}; ask the door for a noisy sum over them."

    def __init__(self, basis: _FittedBasis, table: Any) -> None:
        self.__basis, self.__table = basis, table
        self.shape = n_rows(table), basis.n_directions_ + 1

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | IntArray) -> IntArray:
        """Return the coordinates of some records, int64."""
        if isinstance(rows, slice):
            part = row_block(self.__table, *rows.indices(len(self))[:2])
        else:
            part = take_rows(self.__table, rows)
        # what a private cell could make a library say stays unsaid
        with isolated(0, sklearn.get_config()):
            integers, known = integer_rows(self.__basis, part, self.shape[1] - 1)
        rows_found = with_constant(integers)
        rows_found[~known] = 0
        return rows_found

    def blocks(self) -> list[tuple[int, int]]:
        """Return first and last row of consecutive blocks that bound what is in memory."""
        return list(block_bounds(len(self), max(1, _BLOCK_ENTRIES // self.shape[1])))

    def __repr__(self) -> str:
        return "MappedRows(<private>)"


def mapped_rows(basis: _FittedBasis, table: Any) -> tuple[IntArray | MappedRows, BoolArray]:
    """Return coordinates of a private table for records, and which rows the public points
    cover.

    All rows are mapped once, before anything is spent. Up to `MOST_KEPT` coordinates are kept, in
    four bytes each; of a larger table none are, and they are mapped anew for every stage.

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Fitted to public points.
    table : array, sparse matrix or frame of shape (n_records, n_features)
        Private.
    """
    rows = MappedRows(basis, table)
    kept: Any = np.empty(rows.shape, dtype=np.int32) if np.prod(rows.shape) <= MOST_KEPT else None
    covered = np.empty(len(rows), dtype=np.bool_)
    for start, stop in rows.blocks():
        block = rows[start:stop]
        if kept is not None:
            kept[start:stop] = block
        with isolated(0, sklearn.get_config()):
            covered[start:stop] = covered_rows(basis, row_block(table, start, stop))
    return rows if kept is None else kept, covered


def integer_rows(basis: Any, rows: Any, n_coordinates: int) -> tuple[IntArray, BoolArray]:
    """Return coordinates of private rows, zeros where the basis gives none, and where it does.

    Parameters
    ----------
    basis : object with `integers`
        A basis of this package maps a block at once, which is exact; any other one row at a time.
    rows : array, sparse matrix or frame of shape (n_rows, n_features)
    n_coordinates : int
        Of the public points.

    Returns
    -------
    integers : ndarray of int64, shape (n_rows, n_coordinates)
    known : ndarray of bool, shape (n_rows,)

    Raises
    ------
    ResourceError
        If the machine failed.

    Privacy
    -------
    Sensitivity : every row follows from itself and the basis alone.
    """

    def ask(part: Any) -> IntArray:
        table = np.asarray(basis.integers(part))
        if table.dtype.kind not in "iu" or table.shape != (n_rows(part), n_coordinates):
            raise ValueError("integers(X) must return one row of integers for each row")
        return table.astype(np.int64)

    return _asked_rows(basis, ask, rows, np.zeros((1, n_coordinates), dtype=np.int64))


def covered_rows(basis: Any, rows: Any) -> BoolArray:
    """Return which private rows the public points cover, no where the basis does not say; shape
    (n_rows,). The basis is asked as in `integer_rows`.

    Raises
    ------
    ResourceError
        If the machine failed.
    """

    def ask(part: Any) -> BoolArray:
        found = np.asarray(basis.covered(part))
        if found.dtype != np.bool_ or found.shape != (n_rows(part),):
            raise ValueError("covered(X) must return one bool for each row")
        return found

    covered: BoolArray = _asked_rows(basis, ask, rows, np.zeros(1, dtype=np.bool_))[0]
    return covered


def _asked_rows(
    basis: Any, ask: Callable[[Any], Any], rows: Any, missing: Any
) -> tuple[Any, BoolArray]:
    """Return what is answered for every row, `missing` in place of no answer, and where one is."""
    together = result_of(partial(ask, rows)) if is_exact(basis) else None
    if together is not None:
        return together, np.ones(len(together), dtype=np.bool_)
    alone = rows_alone(ask, rows)
    known = np.array([one is not None for one in alone], dtype=np.bool_)
    return np.concatenate([missing if one is None else one for one in alone]), known
