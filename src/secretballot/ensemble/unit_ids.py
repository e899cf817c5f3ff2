"""Canonical bytes of a unit's id: the same person in another file, column type or neighbouring
table is the same id.

A column's type depends on its other rows: one missing cell turns ``1`` into ``1.0``, one letter
turns ``1`` into ``"1"``. If the id's bytes followed the type, one unit could move every other unit
to another shard. So an integer is one id however it is written. Merging two spellings is always
safe (two units in one shard still reach one teacher); splitting one unit is not.
"""

import math
import numbers
import re
import unicodedata
from decimal import Decimal

import numpy as np

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# What a table's missing cell looks like after a careless conversion to text; no unit may hide
# behind it.
_MISSING_TEXT = frozenset({"", "nan", "NaN", "-nan", "<NA>", "None", "NaT"})
_MISSING_TYPES = frozenset({"NAType", "NaTType", "MaskedConstant"})
_EXACT_FLOAT = 2**53
_LONGEST_INTEGER = 10**40  # what `_WHOLE` takes for a number
_MOST_BITS = 4096


def canonical_id(value: object) -> bytes | None:
    """Return the canonical bytes of one unit id, or None where it is missing.

    Parameters
    ----------
    value : int, str, bytes, float or decimal.Decimal
        An integer in any of these types, or text. Text that spells an integer is that
        number; other text is stripped and normalised (NFC).

    Returns
    -------
    bytes or None
        None for None, nan, pandas' missing values, empty text and the words a conversion makes of
        them.

    Raises
    ------
    TypeError
        If `value` is a truth value, a fractional number, a float too large to be exact, or of
        another type.
    """
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return None
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("a truth value is no unit id")
    if isinstance(value, numbers.Integral):
        return _from_integer(int(value))
    if isinstance(value, (float, np.floating)):
        return _from_float(value)
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, bytes):
        return _from_text(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, str):
        return _from_text(value)
    raise TypeError("a unit id is an integer or text")


def _from_integer(number: int) -> bytes:
    if abs(number) < _LONGEST_INTEGER:
        return b"i%d" % number
    if number.bit_length() > _MOST_BITS:
        raise TypeError("an id has at most some hundred digits")
    return b"s%d" % number  # as text that spells it


def _from_float(value: "float | np.floating") -> bytes | None:
    number = float(value)
    if math.isnan(number):
        return None
    digits = int(np.finfo(type(value)).nmant) + 1 if isinstance(value, np.floating) else 53
    # Beyond the limit neighbouring integers share one float, so the id that was meant is lost.
    if not abs(number) < 2 ** min(digits, 53) or not number.is_integer():
        raise TypeError("a float id must be an integer below the type's exact range")
    return b"i%d" % int(number)


def _from_decimal(value: Decimal) -> bytes | None:
    if value.is_nan():
        return None
    if (
        not value.is_finite()
        or abs(value.adjusted()) > _MOST_BITS
        or value != value.to_integral_value()
    ):
        raise TypeError("a decimal id must be an integer of some hundred digits")
    return _from_integer(int(value))


def _from_text(text: str) -> bytes | None:
    text = text.strip()
    if text in _MISSING_TEXT:
        return None
    if _WHOLE.fullmatch(text):
        return b"i%d" % int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        # A file whose other ids are all numbers would have been read as floats; agree with that
        # reading.
        if abs(number) < _EXACT_FLOAT and number.is_integer():
            return b"i%d" % int(number)
    return b"s" + unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
