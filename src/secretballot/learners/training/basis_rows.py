"""Private rows in a public basis: each by itself, to the last bit, and by the gateway."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot.bases import Basis
from secretballot.foreign_code import is_exact, result_of, rows_alone
from secretballot.teachers.rows import n_rows


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
    missing = np.zeros((1, n_coordinates), dtype=np.int64)
    return _asked_rows(basis, basis.integers, rows, missing)


def mapped_rows(basis: Basis, rows: Any, width: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the rows of private rows as `basis.rows` does, zeros where it gives none, where it
    does, and which are covered; each by itself, in one pass where that is exact: arrays of shape
    (n_rows, width), (n_rows,) and (n_rows,).

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    together = result_of(partial(basis.mapped, rows)) if is_exact(basis) else None
    if together is not None:
        return together[0], np.ones(len(together[1]), dtype=np.bool_), together[1]
    missing = np.zeros((1, width), dtype=np.int64)
    return *_asked_rows(basis, basis.rows, rows, missing), covered_rows(basis, rows)


def covered_rows(basis: Any, rows: Any) -> BoolArray:
    """Return which private rows the public points cover, no where the basis does not say; shape
    (n_rows,). The basis is asked as in `integer_rows`.

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    covered: BoolArray = _asked_rows(basis, basis.covered, rows, np.zeros(1, dtype=np.bool_))[0]
    return covered


def _asked_rows(
    basis: Any, asked: Callable[[Any], Any], rows: Any, missing: Any
) -> tuple[Any, BoolArray]:
    """Return what a method of a basis answers for every row, `missing` in place of no answer, and
    where one is."""

    def ask(part: Any) -> Any:
        found = np.asarray(asked(part))
        kinds = "b" if missing.dtype == np.bool_ else "iu"
        if found.dtype.kind not in kinds or found.shape != (n_rows(part), *missing.shape[1:]):
            raise ValueError("one row of integers, or one bool, is to be returned for each row")
        return found.astype(missing.dtype)

    together = result_of(partial(ask, rows)) if is_exact(basis) else None
    if together is not None:
        return together, np.ones(len(together), dtype=np.bool_)
    alone = rows_alone(ask, rows)
    known = np.array([one is not None for one in alone], dtype=np.bool_)
    return np.concatenate([missing if one is None else one for one in alone]), known
