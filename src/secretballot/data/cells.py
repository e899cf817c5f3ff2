"""What one cell of a table means: a string, a number or nothing.

Every rule here looks at one cell at a time, so that what becomes of a private row never depends on
the other rows of its file. A null or a fraction gives a whole column of a typed table another type,
so a value must also mean the same in every type that can hold it: 3 and 3.0, a day's length in
seconds or in nanoseconds.
"""

import contextlib
import datetime
import decimal
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from secretballot._typing import BoolArray, FloatArray, IntArray, ObjectArray
from secretballot._written import with_point

#: Cells that say "nothing is known", compared without regard to case.
_MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "none", "null"})

#: Numbers beyond this size count as unreadable: single precision, which tree learners use, still
#: holds them.
LARGEST_NUMBER = 1e30

_GATHERED = str, datetime.date
_FLOATS = np.dtype(np.float32), np.dtype(np.float64), pd.Float32Dtype(), pd.Float64Dtype()


class OddCells(NamedTuple):
    """The cells of a column that could not be read as what the column holds.

    Attributes
    ----------
    strange : ndarray of int64
        Rows whose cell says something that the column has no place for.
    missing : int
        How many rows say nothing.
    """

    strange: IntArray
    missing: int


def is_missing(text: str) -> bool:
    """Return whether a stripped cell is one of `_MISSING_WORDS`."""
    return text.lower() in _MISSING_WORDS


def whole(text: str) -> str:
    """Return "1" for "1.0": an integer that went through floating point is still that
    number."""
    head, point, tail = text.partition(".")
    return head if point and tail.strip("0") == "" and head.lstrip("+-").isdigit() else text


def coded(texts: Iterable[str]) -> tuple[IntArray, list[str]]:
    """Return the place of every string in the list of distinct strings, and that list.

    A dictionary distinguishes strings exactly; the tables behind `pandas.factorize` are not held to
    that for every text (zero bytes, lone surrogates) in every version.
    """
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    return codes, list(places)


def coded_texts(column: "pd.Series[Any]") -> tuple[IntArray, list[str]]:
    """Return the place of every cell in a list of distinct strings, and that list: `coded` of
    `texts_of`, which looks at each distinct cell once. The list may hold strings of no cell."""
    codes, distinct = _distinct_cells(column)
    places, texts = coded([*map(text_of, distinct), ""])
    return places[codes], texts  # a null has code -1, which picks the last entry


def texts_of(column: "pd.Series[Any]") -> ObjectArray:
    """Return the cells of a column as stripped strings, "" where a cell is null.

    A value reads alike in every type of column that holds it exactly: "3" for the integer 3, the
    float 3.0 and the text "3.0"; "0" for the float -0.0; "1.5" for the decimal 1.50. What pandas
    rounded before, such as integers beyond 2**53 in a column that one null made a column of
    floats, stays rounded.

    Parameters
    ----------
    column : pandas.Series, shape (n_rows,)
        Cells of any type.

    Returns
    -------
    ndarray of str objects, shape (n_rows,)
    """
    codes, texts = coded_texts(column)
    return np.array(texts, dtype=object)[codes]


def known_texts(column: "pd.Series[Any]") -> list[str]:
    """Return the texts of the cells that say anything."""
    return [text for text in texts_of(column) if not is_missing(text)]


def numbers_of(column: "pd.Series[Any]", *, decimal_comma: bool = False) -> FloatArray:
    """Return the cells of a column as floats, nan where a cell holds no finite number of ordinary
    size. There is no negative zero in the result.

    Parameters
    ----------
    column : pandas.Series, shape (n_rows,)
        Cells of any type; strings are read with a decimal point.
    decimal_comma : bool
        Whether strings with a decimal comma are numbers as well.

    Returns
    -------
    ndarray of float, shape (n_rows,)
    """
    if _is_plain_number(column.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=math.nan) + 0.0
        return np.where(np.abs(numbers) <= LARGEST_NUMBER, numbers, math.nan)
    codes, distinct = _distinct_cells(column)
    if decimal_comma:
        distinct = [with_point(cell) if isinstance(cell, str) else cell for cell in distinct]
    numbers = np.array([*map(number_of, distinct), math.nan], dtype=np.float64)
    return numbers[codes]


def _distinct_cells(column: "pd.Series[Any]") -> tuple[IntArray, list[Any]]:
    """Return for every cell the place in a list of a cell that means the same, -1 for a null, and
    that list.

    Cells are gathered only where equal ones have one meaning, by `_plain_cell`, whichever comes
    first. Elsewhere they need not: True, 1 and 1.0 are equal, and so are complex numbers or
    intervals with zeros of either sign.
    """
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return np.asarray(column.cat.codes, dtype=np.int64), list(column.cat.categories)
    if _is_plain_number(kind) or (isinstance(kind, np.dtype) and kind.kind == "M"):
        codes, distinct = pd.factorize(column, use_na_sentinel=True)
        return np.asarray(codes, dtype=np.int64), list(distinct)
    cells = list(column)
    # equal texts have one meaning, and equal days; of the others every cell stands for itself
    gathered = [cell if type(cell) in _GATHERED else row for row, cell in enumerate(cells)]
    known = [key for key, nothing in zip(gathered, _null_mask(column), strict=True) if not nothing]
    places = {key: place for place, key in enumerate(dict.fromkeys(known))}
    codes = np.array([places.get(key, -1) for key in gathered], dtype=np.int64)
    return codes, [cells[key] if isinstance(key, int) else key for key in places]


def _null_mask(column: "pd.Series[Any]") -> BoolArray:
    try:
        return np.asarray(column.isna(), dtype=bool)
    # pandas compares decimals with themselves, which a signalling nan refuses
    except decimal.InvalidOperation:
        cells = (
            math.nan if isinstance(cell, decimal.Decimal) and cell.is_nan() else cell
            for cell in column
        )
        return np.array([pd.isna(cell) is True for cell in cells], dtype=bool)


def _is_plain_number(kind: Any) -> bool:
    """Return whether a column holds integers, or floats of at most double precision, and nothing
    else."""
    whole_numbers = pd.api.types.is_integer_dtype(kind) and not isinstance(kind, pd.SparseDtype)
    return whole_numbers or kind in _FLOATS


def text_of(cell: object) -> str:
    """Return one cell, which is not null, as `texts_of` does."""
    return whole(str(_plain_cell(cell)).strip())


def number_of(cell: object) -> float:
    """Return one cell, which is not null, as `numbers_of` does."""
    try:
        number = float(_plain_cell(cell))
    # any cell may come; what float refuses is no number
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number + 0.0 if abs(number) <= LARGEST_NUMBER else math.nan


def _plain_cell(cell: Any) -> Any:
    """Return a cell in the one form that its value has in every type of column."""
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real
    if isinstance(cell, float | np.floating):
        number = float(cell)
        if math.isnan(number):
            return ""
        return int(number) if number.is_integer() else number
    if isinstance(cell, int):
        # Python limits decimal digits
        # Integers of at most this many bits are written out in decimal digits.
        return cell if cell.bit_length() <= 4096 else hex(cell)
    if isinstance(cell, decimal.Decimal):
        return _plain_decimal(cell)
    if isinstance(cell, np.ndarray):
        return f"[{', '.join(map(str, cell.ravel().tolist()))}]"  # all of it, unlike str
    if isinstance(cell, pd.Interval):
        left, right = "[" if cell.closed_left else "(", "]" if cell.closed_right else ")"
        return f"{left}{text_of(cell.left)}, {text_of(cell.right)}{right}"
    # points in time and lengths of time as pandas holds them, where it can
    with contextlib.suppress(OverflowError, ValueError):
        if isinstance(cell, datetime.timedelta | np.timedelta64):
            return pd.Timedelta(cell)
        if isinstance(cell, np.datetime64):
            return pd.Timestamp(cell)
    return cell


def _plain_decimal(number: decimal.Decimal) -> str:
    """Return a decimal without the zeros at its end.

    The scale of a column depends on all of its cells.
    """
    # Decimals of at most this order of magnitude are written out without an exponent.
    if number and not (number.is_finite() and abs(number.adjusted()) <= 400):
        return str(number)
    text = f"{number:f}" if number else "0"
    return text.rstrip("0").rstrip(".") if "." in text else text
