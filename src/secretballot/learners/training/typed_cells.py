"""Private cells in the types that public data have, one cell at a time.

The type of a column follows from all of its cells, in lists, numpy and pandas alike: one missing or
odd cell turns integers into floats and everything into objects. So what a cell becomes here depends
on the cell and on the public type alone. Cells are numbers, texts and missing values; points in
time where both columns have such a type. What cannot be read so is refused: every function returns
None, and the caller says which column.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import FloatArray, ObjectArray

_EXACT_BELOW = 2.0**53
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_PLAIN = (str, Number, np.bool_, type(pd.NA), type(pd.NaT), type(None))
_REFUSALS = (ValueError, TypeError, ArithmeticError, NotImplementedError)


def _value_or_none(read: Callable[[], Any]) -> Any:
    """Return what a conversion yields, None where it fails; errors and warnings may quote cells."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return read()
    except _REFUSALS:
        return None


def table_of_rows(rows: Sequence[Any]) -> ObjectArray | None:
    """Return rows of plain cells as objects, shape (n_rows, n_features); None if they are none.

    numpy is never asked to make one array of all rows: it would choose one type for them.
    """
    if not all(isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1 for row in rows):
        return None
    width = len(rows[0]) if rows else 0
    if not width or any(len(row) != width for row in rows):
        return None
    table = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            table[number, place] = cell
    return table if _are_all(table, _PLAIN) else None


def are_numbers(cells: ObjectArray) -> bool:
    """Return whether all cells, of any shape, are numbers of Python's or numpy's."""
    return _are_all(cells, _NUMBERS)


def _are_all(cells: ObjectArray, kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, cells.ravel().tolist())))


def _plain_cells(cells: Any) -> list[Any]:
    """Return cells, of any shape, as Python objects.

    Raises
    ------
    TypeError
        If one is no number, no text and not missing. What can be changed in place would join the
        shards that share it.
    """
    objects = np.asarray(cells.astype(object), dtype=object)
    if not _are_all(objects, _PLAIN):
        raise TypeError("a cell is no single value")
    return list(objects.ravel().tolist())


def array_as(X: Any, kind: np.dtype[Any]) -> Any:
    """Return a table in the type of public ones: floating point for numbers, else objects.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
    kind : dtype
        Of the public data.

    Returns
    -------
    array or sparse matrix, or None
    """
    real = X.dtype.kind in "biuf"
    if not real and not (isinstance(X, np.ndarray) and X.dtype.kind in "OUT"):
        return None
    if kind.kind in "biuf":
        # single precision holds integers of two bytes; everything else gets double. Through double,
        # whatever X has: one cell may have given X another type, and rounding twice differs from
        # rounding once.
        single = kind.itemsize <= 2 or kind == np.float32

        def numbers() -> Any:
            found = X.astype(np.float64) if real else _cells_as_floats(X)
            return found.astype(np.float32) if single else found

        return _value_or_none(numbers)
    if real or kind.kind not in "OUT":
        return None

    def objects() -> Any:
        cells = _plain_cells(X)
        if kind.kind == "U":
            # numpy makes texts of all cells beside one text, and pads with zero characters
            cells = [str(cell).rstrip("\0") for cell in cells]
        return np.array(cells, dtype=object).reshape(X.shape)

    return _value_or_none(objects)


def _cells_as_floats(cells: Any) -> FloatArray:
    numbers = [_cell_as_float(cell) for cell in _plain_cells(cells)]
    return np.array(numbers, dtype=np.float64).reshape(cells.shape)


def _cell_as_float(cell: Any) -> float:
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real  # one complex cell makes all others complex
    return math.nan if _is_missing(cell) else float(cell)


def _float_or_nan(cell: Any) -> float:
    try:
        return _cell_as_float(cell)
    except _REFUSALS:
        return math.nan


def _is_missing(cell: Any) -> bool:
    no_value = cell is None or cell is pd.NA or cell is pd.NaT
    return no_value or (isinstance(cell, float) and cell != cell)


def column_as(column: "pd.Series[Any]", kind: Any) -> Any:
    """Return a column, of shape (n,), in the type of the public one; None where that cannot be."""
    return _value_or_none(lambda: _column_as(column, kind))


def _column_as(column: "pd.Series[Any]", kind: Any) -> Any:
    own = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _public_categories(column, kind)
    if _is_real(kind):
        if _is_real(own):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return _cells_as_floats(column)
    if pd.api.types.is_datetime64_any_dtype(kind):  # in the public unit
        return column.astype(kind).array if pd.api.types.is_datetime64_any_dtype(own) else None
    if _holds_numbers(own):
        return None
    words = _words(column)
    if pd.api.types.is_object_dtype(kind):
        # a bare array of objects would get a type by its cells
        return pd.Series(np.array(words, dtype=object), dtype=object)
    if pd.api.types.is_string_dtype(kind):
        texts = [None if _is_missing(cell) else str(cell) for cell in words]
        return pd.array(texts, dtype=kind)
    return None


def _holds_numbers(kind: Any) -> bool:
    """Return whether cells are numbers as all of them together made them.

    Of one type, that is, or equal ones as one category.

    pandas makes 1.0 of 1 beside a fraction, and 1 of True beside a 1.
    """
    if isinstance(kind, pd.CategoricalDtype):
        known = kind.categories
        return _holds_numbers(known.dtype) or any(
            isinstance(category, Number) for category in known
        )
    return pd.api.types.is_numeric_dtype(kind) or isinstance(kind, pd.SparseDtype)


def _is_real(kind: Any) -> bool:
    if isinstance(kind, pd.SparseDtype):
        kind = kind.subtype  # pandas takes sparse points in time for numbers, of any unit
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def _words(column: "pd.Series[Any]") -> list[Any]:
    """Return the cells as Python objects, each in one form whatever the type of its column."""
    cells = (one.item() if isinstance(one, np.generic) else one for one in _plain_cells(column))
    # a signalling nan of a decimal refuses every comparison, also inside pandas
    cells = (float(one) if isinstance(one, Decimal) else one for one in cells)
    return [math.nan if _is_missing(cell) else cell for cell in cells]


def _public_categories(
    column: "pd.Series[Any]", kind: pd.CategoricalDtype
) -> pd.Categorical | None:
    """Return the public category of every cell, a missing one where there is none."""
    categories = kind.categories
    if _is_real(categories.dtype):
        known = categories.to_numpy(dtype=np.float64).tolist()
        if not all(abs(number) < _EXACT_BELOW for number in known):
            return None  # a gap elsewhere in the column would blur such numbers
        cells = list(map(_float_or_nan, np.asarray(column.astype(object), dtype=object)))
    elif _is_real(column.dtype):
        return None
    else:
        known, cells = _words(pd.Series(categories)), _words(column)
    places = {category: place for place, category in enumerate(known)}
    codes = np.array([places.get(cell, -1) for cell in cells], dtype=np.int64)
    return pd.Categorical.from_codes(codes, dtype=kind)
