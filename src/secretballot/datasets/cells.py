"""What one cell of a table means: a text, a number or nothing.

Every rule here looks at one cell at a time, so that what becomes of a private row never depends on the other
rows of its file.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["LARGEST_NUMBER", "MISSING_WORDS", "is_missing", "numbers_of", "texts_of", "whole"]

#: Cells that say "nothing is known", compared without regard to case.
MISSING_WORDS = frozenset({"", "?", "na", "n/a", "nan", "none", "null"})

#: Numbers beyond this size count as unreadable: single precision, which tree learners use, still holds them.
LARGEST_NUMBER = 1e30

ObjectArray = NDArray[np.object_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def is_missing(text: str) -> bool:
    """Return whether a stripped cell is one of `MISSING_WORDS`."""
    return text.lower() in MISSING_WORDS


def whole(text: str) -> str:
    """Return "1" for "1.0": a whole number that went through floating point is still that number."""
    head, point, tail = text.partition(".")
    return head if point and tail.strip("0") == "" and head.lstrip("+-").isdigit() else text


def texts_of(column: "pd.Series[Any]") -> ObjectArray:
    """Return the cells of a column as stripped texts, "" where a cell is null.

    A whole number reads alike whether it was stored as an integer, as a float or as text ("3", never "3.0"),
    because one null turns an integer column of a Parquet file into floats.

    Parameters
    ----------
    column : pandas.Series, shape (n_rows,)
        Cells of any type.

    Returns
    -------
    ndarray of str objects, shape (n_rows,)
    """
    codes, distinct = _distinct(column)
    texts = np.array([*map(_text, distinct), ""], dtype=object)
    return np.asarray(texts[codes], dtype=object)  # a null has code -1, which picks the last entry


def numbers_of(column: "pd.Series[Any]") -> FloatArray:
    """Return the cells of a column as floats, nan where a cell holds no finite number of ordinary size.

    Parameters
    ----------
    column : pandas.Series, shape (n_rows,)
        Cells of any type; texts are read with a decimal point.

    Returns
    -------
    ndarray of float, shape (n_rows,)
    """
    codes, distinct = _distinct(column)
    numbers = np.array([*map(_number, distinct), math.nan], dtype=np.float64)
    return np.asarray(numbers[codes], dtype=np.float64)


def _distinct(column: "pd.Series[Any]") -> tuple[IntArray, list[object]]:
    """Return the place of every cell in the list of distinct cells, -1 for a null, and that list."""
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) not in ("string", "empty"):
        # True, 1 and 1.0 hash alike: in a column of mixed types one cell would take the text of another.
        null = column.isna().to_numpy()
        return np.where(null, -1, np.arange(len(column))), list(column)
    codes, distinct = pd.factorize(column, use_na_sentinel=True)
    return np.asarray(codes, dtype=np.int64), list(distinct)


def _text(cell: object) -> str:
    return whole(str(cell).strip())


def _number(cell: object) -> float:
    try:
        number = float(cell)  # type: ignore[arg-type]  # any cell may come; what float refuses is no number
    except (TypeError, ValueError):
        return math.nan
    return number if abs(number) <= LARGEST_NUMBER else math.nan
