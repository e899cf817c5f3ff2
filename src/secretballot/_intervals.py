"""Intervals in one form, whatever pandas made of them."""

from numbers import Real
from typing import Any

import pandas as pd


def plain_interval(interval: "pd.Interval[Any]") -> "pd.Interval[Any]":
    """Return an interval whose numeric ends are integers where they can be, else floating point.

    pandas keeps all ends of a column in one type: beside a missing cell, or beside one with a
    fraction, (0, 1] becomes (0.0, 1.0], which is another text.
    """
    left, right = (_plain_end(end) for end in (interval.left, interval.right))
    return pd.Interval(left, right, closed=interval.closed)


def _plain_end(end: Any) -> Any:
    if not isinstance(end, Real):
        return end  # a time
    number = float(end)
    return int(number) if number.is_integer() else number
