"""Private targets as they are given: numbers, or columns of labels, each read from itself alone."""

import math
import numbers
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import result_of

#: What a truth value becomes beside a text.
_TRUTH_VALUES = {"True": True, "False": False}


def number_of(cell: Any) -> float:
    """Return a private target as floating point, from itself alone; nan for what is no number.

    One odd cell makes texts of all others, in an array and where a file is read, or complex
    numbers; so these are what they were before.
    """
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        cell = _TRUTH_VALUES.get(cell.strip(), cell)
    # a length of time passes for an integer in numpy
    known = isinstance(cell, numbers.Real | Decimal | np.bool_ | str)
    if known and not isinstance(cell, np.timedelta64):
        number = result_of(partial(_float_or_infinite, cell))  # None of a text that is no number
        return math.nan if number is None else number
    return math.nan


def _float_or_infinite(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer too large
        return math.inf if cell > 0 else -math.inf


def columns_of(y: Any, n_columns: int) -> list[Any]:
    """Return the columns of a private table, of shape (n_records, n_columns).

    Raises
    ------
    DataError
        If it is no such table; no cell is named.
    """
    if isinstance(y, list | tuple):
        rows = all(isinstance(row, list | tuple | np.ndarray) for row in y)
        if rows and all(len(row) == n_columns for row in y):
            return [[row[k] for row in y] for k in range(n_columns)]
    shape = getattr(y, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != n_columns:
        raise DataError(
            Parameter("y"), f" is no table of {n_columns} columns; give one for each label."
        )
    if hasattr(y, "toarray"):
        y = y.toarray()
    return [y.iloc[:, k] if hasattr(y, "iloc") else y[:, k] for k in range(n_columns)]


def cells_of(y: Any) -> list[Any]:
    """Return private targets, of shape (n_records,) or (n_records, 1), one by one, each as it was
    given.

    Raises
    ------
    DataError
        If they are no single column.
    """
    if isinstance(y, list | tuple):
        return list(y)
    shape = getattr(y, "shape", None)
    if shape is None or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
        raise DataError(
            Parameter("y"), " is no single column; give one private target for each row of X."
        )
    if hasattr(y, "iloc"):
        column = y.iloc[:, 0] if len(shape) == 2 else y
        return list(column.tolist())
    column = np.asarray(y).ravel()
    if column.dtype.kind in "Mm":
        return [None] * len(column)  # numpy's own would be plain integers
    cells: list[Any] = column.tolist()
    return cells
