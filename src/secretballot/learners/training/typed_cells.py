"""Private cells in the types that public data have, one cell at a time.

The type of a column follows from all of its cells, in lists, numpy and pandas alike: one missing or
odd cell turns integers into floats, dates into texts of another format, and everything into
objects. So what a cell becomes here depends on the cell and on the public type alone. What cannot
be read so is refused: every function returns None, and the caller says which column.
"""

import datetime
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from secretballot._intervals import plain_interval
from secretballot._typing import FloatArray, ObjectArray

_ARRAY_KINDS = "biufOUST"
_EXACT_BELOW = 2.0**53
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_PLAIN = (
    *(str, bytes, Number, np.generic, datetime.date, datetime.time, datetime.timedelta),
    *(pd.Interval, pd.Period, type(pd.NA), type(pd.NaT), type(None)),
)
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
    if not rows or not all(isinstance(row, list | tuple) or _is_flat_array(row) for row in rows):
        return None
    width = len(rows[0])
    if not width or any(len(row) != width for row in rows):
        return None
    table = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        for place, cell in enumerate(row):
            table[number, place] = cell
    return table if are_plain(table) else None


def _is_flat_array(row: Any) -> bool:
    return isinstance(row, np.ndarray) and row.ndim == 1


def are_plain(cells: ObjectArray) -> bool:
    """Return whether all cells, of any shape, are single values.

    What can be changed in place would join the shards that share it.
    """
    kinds = set(map(type, cells.ravel().tolist()))
    return all(issubclass(kind, _PLAIN) and kind is not np.void for kind in kinds)


def are_numbers(cells: ObjectArray) -> bool:
    """Return whether all cells, of any shape, are numbers of Python's or numpy's."""
    return all(issubclass(kind, _NUMBERS) for kind in set(map(type, cells.ravel().tolist())))


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
    own, real = X.dtype.kind, X.dtype.kind in "biuf"
    # of dates and lengths of time, the unit follows from all cells
    if own not in (_ARRAY_KINDS if isinstance(X, np.ndarray) else "biuf"):
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
    objects = _value_or_none(lambda: X.astype(object))
    if objects is None or not are_plain(objects):
        return None
    return _value_or_none(lambda: _as_texts(objects)) if kind.kind == "U" else objects


def _as_texts(cells: ObjectArray) -> ObjectArray:
    """Return cells as the texts that numpy makes of each in an array of texts.

    One cell that is neither text nor number keeps numpy from it for all others.
    """
    table = np.empty(cells.size, dtype=object)
    table[:] = [_cell_text(cell) for cell in cells.ravel().tolist()]
    return table.reshape(cells.shape)


def _cell_text(cell: Any) -> str:
    text = cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else str(cell)
    return text.rstrip("\0")  # numpy pads with these


def _cells_as_floats(X: Any) -> FloatArray:
    cells = X.astype(object)
    if not are_plain(cells):
        raise TypeError("a cell is no single value")
    numbers = np.array([_cell_as_float(cell) for cell in cells.ravel().tolist()], dtype=np.float64)
    return numbers.reshape(cells.shape)


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
    if isinstance(cell, Decimal):
        return cell.is_nan()  # a signalling nan refuses every comparison, also inside pandas
    return (
        cell is None
        or cell is pd.NA
        or cell is pd.NaT
        or (isinstance(cell, float) and cell != cell)
    )


def column_as(column: "pd.Series[Any]", kind: Any) -> Any:
    """Return a column, of shape (n,), in the type of the public one; None where that cannot be."""
    return _value_or_none(lambda: _column_as(column, kind))


def _column_as(column: "pd.Series[Any]", kind: Any) -> Any:
    own = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _public_categories(column, kind)
    if _is_real(kind):
        return _column_floats(column)
    if _holds_numbers(own):
        return None
    if pd.api.types.is_object_dtype(kind):
        # a bare array of objects would get a type by its cells
        return pd.Series(_canonical_objects(column), dtype=object)
    if pd.api.types.is_string_dtype(kind):
        return pd.array(
            [None if _is_missing(cell) else str(cell) for cell in _canonical_objects(column)],
            dtype=kind,
        )
    for is_time in (pd.api.types.is_datetime64_any_dtype, pd.api.types.is_timedelta64_dtype):
        if is_time(kind):  # in the public unit
            return column.astype(kind).array if is_time(own) else None
    flat = isinstance(kind, pd.PeriodDtype | pd.IntervalDtype)
    return column.array if own == kind and flat else None


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


def _column_floats(column: "pd.Series[Any]") -> FloatArray | None:
    own = column.dtype
    if _is_real(own):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if (
        pd.api.types.is_object_dtype(own)
        or pd.api.types.is_string_dtype(own)
        or isinstance(own, pd.CategoricalDtype)
    ):
        return _cells_as_floats(np.asarray(column.astype(object), dtype=object))
    return None


def _canonical_objects(column: "pd.Series[Any]") -> ObjectArray:
    """Return the cells as Python objects, each in one form whatever the type of its column.

    Raises
    ------
    TypeError
        If a cell is no single value.
    """
    cells = np.asarray(column.astype(object), dtype=object)
    if set(map(type, cells.tolist())) <= {str}:
        return cells
    if not are_plain(cells):
        raise TypeError("a cell is no single value")
    objects = np.empty(len(cells), dtype=object)
    objects[:] = [_canonical_cell(cell) for cell in cells.tolist()]
    return objects


def _canonical_cell(cell: Any) -> Any:
    if _is_missing(cell):
        return math.nan
    if isinstance(cell, datetime.datetime | np.datetime64):
        return _in_nanoseconds(pd.Timestamp(cell))
    if isinstance(cell, datetime.timedelta | np.timedelta64):
        return _in_nanoseconds(pd.Timedelta(cell))
    if isinstance(cell, pd.Interval):
        return plain_interval(cell)
    if isinstance(cell, bytes):
        # one of them makes an Arrow column bytes throughout
        return cell.decode(errors="backslashreplace")
    return cell.item() if isinstance(cell, np.generic) else cell


def _in_nanoseconds(moment: Any) -> Any:
    try:
        return moment.as_unit("ns")
    except (ValueError, OverflowError):  # beyond the years that nanoseconds reach
        return moment


def _public_categories(
    column: "pd.Series[Any]", kind: pd.CategoricalDtype
) -> pd.Categorical | None:
    """Return the public category of every cell, a missing one where there is none."""
    categories = kind.categories
    cells: Iterable[Any]
    if _is_real(categories.dtype):
        known = categories.to_numpy(dtype=np.float64).tolist()
        if not all(abs(number) < _EXACT_BELOW for number in known):
            return None  # a gap elsewhere in the column would blur such numbers
        cells = map(_float_or_nan, np.asarray(column.astype(object), dtype=object))
    elif _is_real(column.dtype):
        return None
    else:
        known, cells = (
            _canonical_objects(pd.Series(categories)).tolist(),
            _canonical_objects(column).tolist(),
        )
    places = {category: place for place, category in enumerate(known)}
    codes = np.array([places.get(cell, -1) for cell in cells], dtype=np.int64)
    return pd.Categorical.from_codes(codes, dtype=kind)
