"""Partition units into disjoint shards by a rule under which one unit touches one teacher.

A rule is safe when the shard of a unit depends on nothing but that unit and public values: never on
the other rows, on their order or on how many there are. Even, shuffled, sorted or stratified splits
break this when a unit is added or removed.

Canonical bytes of a unit's id: the same person in another file, column type or neighbouring
table is the same id.

A column's type depends on its other rows: one missing cell turns ``1`` into ``1.0``, one letter
turns ``1`` into ``"1"``. If the id's bytes followed the type, one unit could move every other unit
to another shard. So an integer is one id however it is written. Merging two spellings is always
safe (two units in one shard still reach one teacher); splitting one unit is not.
"""

import numbers
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np

from secretballot.core.errors import DataError, Parameter, ParameterError, check_count, wrong
from secretballot.core.types import AnyArray, IntArray, UnsignedArray

_SHORTEST_KEY, _LONGEST_KEY = 16, 64
_MOST_SHARDS = 2**32  # the square of a remainder must fit in 64 bits
_ROWS_NAMED = 5


class KeyedHashPartition:
    """Assign every unit to the shard given by a keyed hash of its id.

    Parameters
    ----------
    n_teachers : int
        Number of shards K, public and chosen without looking at the data.
    key : bytes, 16 to 64 bytes
        Key of the hash, drawn once per dataset. The guarantee does not rest on its secrecy.

    Privacy
    -------
    Unit : one id, with any number of records.
    Relation : add or remove one unit.
    Sensitivity : one unit touches one shard, hence one teacher, whatever the number of records is.

    Raises
    ------
    ParameterError
        If `n_teachers` is not an integer of at least 1, or `key` is not 16 to 64 bytes.

    Examples
    --------
    >>> partition = sb.teachers.KeyedHashPartition(5, key=bytes(16))
    >>> shards = partition.assign(["ann", "bob", "ann"])
    >>> bool(shards[0] == shards[2])
    True
    """

    def __init__(self, n_teachers: int, key: bytes) -> None:
        self.n_teachers = check_count("n_teachers", n_teachers)
        if not self.n_teachers <= _MOST_SHARDS:
            raise wrong("n_teachers", n_teachers, f"at most {_MOST_SHARDS:,}")
        if not isinstance(key, bytes) or not _SHORTEST_KEY <= len(key) <= _LONGEST_KEY:
            raise ParameterError(
                Parameter("key"),
                f" must be {_SHORTEST_KEY} to {_LONGEST_KEY} bytes; draw it once per dataset.",
            )
        self._hash = blake2b(key=key, digest_size=16, person=b"secretballot")

    def assign(self, unit_ids: Any) -> IntArray:
        """Return the shard number of every row.

        Parameters
        ----------
        unit_ids : array-like of shape (n_records,)
            Integers or text, one id per record; lists, numpy arrays, pandas and polars
            columns.

        Returns
        -------
        ndarray of shape (n_records,), int64
            Shard numbers from 0 to `n_teachers` - 1.

        Raises
        ------
        DataError
            If an id is missing or is neither an integer nor text; the message names row numbers
            only.
        """
        return shards_of_digests(self.digests(unit_ids), self.n_teachers)

    def digests(self, unit_ids: Any) -> UnsignedArray:
        """Return the keyed hash of the unit of every row, as two halves of 64 bits.

        What takes the place of the ids in a table that is kept: equal ids have equal hashes,
        and two ids with one hash only go to one shard together.

        Parameters
        ----------
        unit_ids : array-like of shape (n_records,)
            As for `assign`.

        Returns
        -------
        ndarray of uint64, shape (n_records, 2)

        Raises
        ------
        DataError
            As `assign` does.
        """
        known: dict[object, bytes] = {}
        hashes, unfit = [], []
        for row, value in enumerate(_values_of(unit_ids)):
            try:
                # equal values of different types may differ in being exact
                key = (value.__class__, value)
                if key not in known:
                    keyed = self._hash.copy()
                    keyed.update(canonical_id(value))
                    known[key] = keyed.digest()
                hashes.append(known[key])
            except (TypeError, ValueError, ArithmeticError):  # of a list, as it has no hash
                unfit.append(row)
        if unfit:
            named = ", ".join(map(str, unfit[:_ROWS_NAMED])) + ", ..." * (len(unfit) > _ROWS_NAMED)
            raise DataError(
                f"unit ids in {len(unfit)} rows (rows {named}, counted from 0) are missing, or"
                " neither integers nor text; give every record its unit's id, as text or as an"
                " exact integer."
            )
        return np.frombuffer(b"".join(hashes), dtype=">u8").astype(np.uint64).reshape(-1, 2)


def shards_of_digests(digests: UnsignedArray, n_shards: int) -> IntArray:
    """Return the shard number of every row, int64 of shape (n_records,), by the hashes of its unit,
    uint64 of shape (n_records, 2)."""
    divisor = np.uint64(n_shards)
    high, low = digests[:, 0] % divisor, digests[:, 1] % divisor
    # 128 bits reduced modulo K: the bias between shards is below K / 2**128
    return ((high * np.uint64(2**64 % n_shards) + low) % divisor).astype(np.int64)


class PositionPartition:
    """Assign the record at each position to a shard fixed by the position alone.

    Parameters
    ----------
    n_teachers : int
        Number of shards K.
    n_records : int
        Number of records n, public and fixed; at least K.

    Privacy
    -------
    Unit : one record.
    Relation : replace one record, which keeps its position; n is public. Under add or remove this
        rule is not safe.
    Sensitivity : one record touches one shard, hence one teacher.

    Raises
    ------
    ParameterError
        If a number is not an integer of at least 1, or there are more teachers than records.

    Examples
    --------
    >>> sb.teachers.PositionPartition(n_teachers=3, n_records=9).assign()
    array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    """

    def __init__(self, n_teachers: int, n_records: int) -> None:
        self.n_teachers = check_count("n_teachers", n_teachers)
        self.n_records = check_count("n_records", n_records)
        if self.n_teachers > self.n_records:
            wanted = f"at most n_records, {n_records}, as every teacher needs a record"
            raise wrong("n_teachers", n_teachers, wanted)

    def assign(self) -> IntArray:
        """Return the shard number of every position, an int64 array of shape (n_records,)."""
        return np.arange(self.n_records, dtype=np.int64) % self.n_teachers


def _values_of(unit_ids: Any) -> Iterable[object]:
    """Give the ids of a column, each as it is: how many digits of a float are exact depends on its
    type."""
    column: AnyArray
    if isinstance(unit_ids, np.ma.MaskedArray):
        column = np.array(unit_ids.tolist(), dtype=object)  # masked entries become None
    elif hasattr(unit_ids, "to_numpy"):
        column = np.asarray(unit_ids.to_numpy())
    elif isinstance(unit_ids, np.ndarray) or not isinstance(unit_ids, Iterable):
        column = np.asarray(unit_ids)
    else:
        # As objects: numpy would turn [1, "a"] into text and [1, None] into floats, each id by its
        # neighbours.
        column = np.array(list(unit_ids), dtype=object)
    if column.ndim != 1 or column.dtype.kind not in "biufOSUT" or isinstance(unit_ids, str | bytes):
        raise DataError(
            # their type may tell how long the longest one is
            f"unit ids have {column.ndim} dimensions, or are of another kind; give one id per"
            " record, a single column of integers or text."
        )
    return column if column.dtype.kind == "f" else column.tolist()


_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# What a table's missing cell looks like after a careless conversion to text; no unit may hide
# behind it.
_MISSING_TEXT = frozenset({"", "nan", "NaN", "-nan", "<NA>", "None", "NaT"})
_EXACT_FLOAT = 2**53
_LONGEST_INTEGER = 10**40  # what `_WHOLE` takes for a number
_MOST_BITS = 4096


def canonical_id(value: object) -> bytes:
    """Return the canonical bytes of one unit id.

    Parameters
    ----------
    value : int, str, bytes, float or decimal.Decimal
        An integer in any of these types, or text. Text that spells an integer is that
        number; other text is stripped and normalised (NFC).

    Raises
    ------
    TypeError, ValueError, ArithmeticError
        If it is missing (None, nan, pandas' missing values, empty text and the words that a
        conversion makes of them), a truth value, a fractional number, a float too large to be
        exact, or of another type.
    """
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return _from_integer(int(value))
    if isinstance(value, (float, np.floating, Decimal)):
        # Beyond these digits neighbouring integers share one float, so the id that was meant is
        # lost.
        floats = not isinstance(value, Decimal)
        digits = min(np.finfo(np.asarray(value).dtype).nmant + 1, 53) if floats else _MOST_BITS
        if not abs(value) < 2**digits or value != int(value):
            raise TypeError("an id that is a number must be an exact integer")
        return _from_integer(int(value))
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return _from_text(value.strip())
    raise TypeError("a unit id is an integer or text")


def _from_integer(number: int) -> bytes:
    if abs(number) < _LONGEST_INTEGER:
        return b"i%d" % number
    if number.bit_length() > _MOST_BITS:
        raise TypeError("an id has at most some hundred digits")
    return b"s%d" % number  # as text that spells it


def _from_text(text: str) -> bytes:
    if text in _MISSING_TEXT:
        raise TypeError("an id is missing")
    if _WHOLE.fullmatch(text):
        return b"i%d" % int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        # A file whose other ids are all numbers would have been read as floats; agree with that
        # reading.
        if abs(number) < _EXACT_FLOAT and number.is_integer():
            return b"i%d" % int(number)
    return b"s" + unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
