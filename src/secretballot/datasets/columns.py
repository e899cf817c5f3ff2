"""What one column of a table becomes in the matrix.

Every column is fixed by public cells or by what the user declares. Encoding looks at one cell at a
time, in two steps: what it says is kept in few bytes (`compact`), and that becomes the columns of
the matrix (`widen`). A table that does not fit in memory is kept between the two.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from secretballot._times import (
    DATE_PARTS,
    SECONDS_A_DAY,
    duration_seconds,
    iso_text,
    time_seconds,
)
from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray
from secretballot.datasets.cells import (
    LARGEST_NUMBER,
    Holds,
    OddCells,
    coded_texts,
    is_missing,
    numbers_of,
    texts_of,
    vectors_of,
)
from secretballot.datasets.text_columns import TextColumn

#: What is kept of a cell that holds no date; no date has so many seconds.
_NO_DATE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: the public median where nothing is known, then centred and scaled.

    Parameters
    ----------
    name : str
        Name of the column.
    median : float
        Stands in for a missing number.
    center, scale : float
        The encoded value is ``(number - center) / scale``; `scale` is positive.
    indicator : bool
        Whether a second encoded column says 1 where the number was missing.
    decimal_comma : bool
        Whether texts with a decimal comma are numbers as well.
    """

    name: str
    median: float
    center: float = 0.0
    scale: float = 1.0
    indicator: bool = False
    decimal_comma: bool = False

    holds: ClassVar[Holds] = "numbers"
    kind: ClassVar[str] = "numeric"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name, f"{self.name}=missing") if self.indicator else (self.name,)

    def numbers(self, cells: "pd.Series[Any]") -> FloatArray:
        """Return the cells as numbers, nan where they hold none."""
        return numbers_of(cells, decimal_comma=self.decimal_comma)

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its number, nan without one."""
        return np.dtype(np.float64)

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return what the cells say, shape (n_rows,), and which of them are missing or strange."""
        numbers = self.numbers(cells)
        return numbers, _odd_cells(cells, np.isnan(numbers))

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, 1 or 2), from what `compact` returned."""
        unknown = np.isnan(kept)
        encoded = (np.where(unknown, self.median, kept) - self.center) / self.scale
        np.clip(encoded, -LARGEST_NUMBER, LARGEST_NUMBER, out=out[:, 0])
        if self.indicator:
            out[:, 1] = unknown

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {
            "kind": self.kind,
            "median": self.median,
            "center": self.center,
            "scale": self.scale,
            "indicator": self.indicator,
            **({"decimal": ","} if self.decimal_comma else {}),
        }


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories: one encoded column for each, and one for "other" (unseen and missing
    ones).

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Public categories, without "other".
    """

    name: str
    categories: tuple[str, ...]

    holds: ClassVar[Holds] = "categories"

    @property
    def spellings(self) -> dict[str, int]:
        """The place of each text that is one of the categories."""
        return {category: place for place, category in enumerate(self.categories)}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (
            *(f"{self.name}={category}" for category in self.categories),
            f"{self.name}=(other)",
        )

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: the place of its category, the last one for "other"."""
        return np.min_scalar_type(len(self.categories))

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return places of categories, shape (n_rows,), and which cells in "other" are missing or
        strange."""
        places, other = self.spellings, len(self.categories)
        codes, distinct = coded_texts(cells)
        place = np.array([places.get(text, other) for text in distinct], dtype=self.compact_type)
        unseen = place == other
        nothing = np.array([is_missing(text) for text in distinct], dtype=bool)
        strange: IntArray = np.flatnonzero((unseen & ~nothing)[codes]).astype(np.int64)
        return place[codes], OddCells(strange, int((unseen & nothing)[codes].sum()))

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_categories + 1), from what `compact` returned."""
        out[:] = 0.0
        out[np.arange(len(kept)), kept] = 1.0

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "categorical", "categories": list(self.categories)}


@dataclass(frozen=True)
class BooleanColumn(CategoricalColumn):
    """A column of truth values, as programs write them: True, true, TRUE and the like.

    Parameters
    ----------
    name : str
        Name of the column.
    """

    categories: tuple[str, ...] = ("False", "True")

    holds: ClassVar[Holds] = "truth values"

    @property
    def spellings(self) -> dict[str, int]:
        """The place of each text that is a truth value."""
        return {
            spelling: place
            for place, text in enumerate(self.categories)
            for spelling in (text, text.lower(), text.upper())
        }

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "boolean"}


@dataclass(frozen=True)
class DurationColumn(NumericColumn):
    """A column of lengths of time, or of times of day since midnight, in seconds."""

    holds: ClassVar[Holds] = "lengths of time"
    kind: ClassVar[str] = "duration"

    def numbers(self, cells: "pd.Series[Any]") -> FloatArray:
        """Return the cells in seconds, nan where they hold no length of time."""
        codes, distinct = coded_texts(cells)
        seconds = [duration_seconds(text) for text in distinct]
        values = np.array(
            [math.nan if value is None else value for value in seconds], dtype=np.float64
        )
        return np.asarray(values[codes], dtype=np.float64)


@dataclass(frozen=True)
class DateColumn:
    """A column of days or points in time: days from the public median, and parts of the date.

    Parameters
    ----------
    name : str
        Name of the column.
    median : int
        Stands in for a missing date; seconds since 1970-01-01.
    scale : float
        The first encoded value is the days since the median, over `scale`.
    parts : tuple of str
        Of `DATE_PARTS`; each becomes an encoded column, about centred and scaled.
    indicator : bool
        Whether a further encoded column says 1 where the date was missing.
    style : str
        How days are written, one of `DATE_FORMATS`; ISO 8601 is always read.
    """

    name: str
    median: int
    scale: float = 1.0
    parts: tuple[str, ...] = ()
    indicator: bool = False
    style: str = "iso"

    holds: ClassVar[Holds] = "dates"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        missing = ("missing",) if self.indicator else ()
        return (self.name, *(f"{self.name}={part}" for part in (*self.parts, *missing)))

    def seconds(self, cells: "pd.Series[Any]") -> tuple[IntArray, BoolArray]:
        """Return the cells in seconds since 1970-01-01, and which of them hold no date; these are 0
        seconds."""
        codes, distinct = coded_texts(cells)
        read = [time_seconds(text, self.style) for text in distinct]
        values = np.array([value or 0 for value in read], dtype=np.int64)
        unknown = np.array([value is None for value in read], dtype=bool)
        return np.asarray(values[codes], dtype=np.int64), np.asarray(unknown[codes], dtype=bool)

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its seconds since 1970, and `_NO_DATE` without a date."""
        return np.dtype(np.int64)

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return what the cells say, shape (n_rows,), and which of them are missing or strange."""
        seconds, unknown = self.seconds(cells)
        return np.where(unknown, _NO_DATE, seconds), _odd_cells(cells, unknown)

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_features), from what `compact` returned."""
        unknown = kept == _NO_DATE
        seconds = np.where(unknown, self.median, kept)
        days = (seconds / SECONDS_A_DAY - self.median / SECONDS_A_DAY) / self.scale
        np.clip(days, -LARGEST_NUMBER, LARGEST_NUMBER, out=out[:, 0])
        for place, part in enumerate(self.parts, start=1):
            middle, deviation = DATE_PARTS[part]
            out[:, place] = (part_of_dates(part, seconds) - middle) / deviation
        if self.indicator:
            out[:, -1] = unknown

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {
            "kind": "date",
            "format": self.style,
            "median": iso_text(self.median),
            "scale": self.scale,
            "parts": list(self.parts),
            "indicator": self.indicator,
        }


def part_of_dates(part: str, seconds: IntArray) -> FloatArray:
    """Return a part of points in time: month 1 to 12, day 1 to 31, weekday 0 (Monday) to 6, hour
    0 to 23.

    Parameters
    ----------
    part : str
        One of `DATE_PARTS`.
    seconds : ndarray of int64, shape (n,)
        Since 1970-01-01.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    days, rest = np.divmod(seconds, SECONDS_A_DAY)
    if part == "hour":
        return (rest // 3600).astype(np.float64)
    if part == "weekday":
        return ((days + 3) % 7).astype(np.float64)  # 1970-01-01 was a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    if part == "month":
        return (months.astype(np.int64) % 12 + 1).astype(np.float64)
    first = months.astype("datetime64[D]").astype(np.int64)
    return (days - first + 1).astype(np.float64)


@dataclass(frozen=True)
class VectorColumn:
    """A column of vectors, such as embeddings or the pixels of images: centred by the public mean
    of each place, scaled by one public number, so that distances keep their proportions.

    Parameters
    ----------
    name : str
        Name of the column.
    center : tuple of float
        One for each place; a vector of which nothing is known is encoded as this one.
    scale : float
        Positive.
    """

    name: str
    center: tuple[float, ...]
    scale: float = 1.0

    holds: ClassVar[Holds] = "vectors"

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return len(self.center)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(f"{self.name}[{place}]" for place in range(self.width))

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its numbers in single precision, nan without them."""
        return np.dtype((np.float32, (self.width,)))

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return the vectors, shape (n_rows, width), and which cells are missing or strange."""
        vectors = vectors_of(cells, self.width)
        return vectors.astype(np.float32), _odd_cells(cells, np.isnan(vectors[:, 0]))

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, width), from what `compact` returned."""
        encoded = (kept.astype(np.float64) - np.array(self.center)) / self.scale
        np.clip(np.nan_to_num(encoded, nan=0.0), -LARGEST_NUMBER, LARGEST_NUMBER, out=out)

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "vector", "center": list(self.center), "scale": self.scale}


def _odd_cells(cells: "pd.Series[Any]", unknown: BoolArray) -> OddCells:
    """Return which of the cells that could not be read say something, and how many say nothing."""
    rows: IntArray = np.flatnonzero(unknown).astype(np.int64)
    unread = np.array([not is_missing(text) for text in texts_of(cells.iloc[rows])], dtype=bool)
    return OddCells(rows[unread], int(rows.size - unread.sum()))


@dataclass(frozen=True)
class IgnoredColumn:
    """A column that is no feature; `reason` says why, for the person who runs the program."""

    name: str
    reason: str = "declared so"

    holds: ClassVar[Holds] = "categories"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns: none."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "ignored", "reason": self.reason}


FeatureColumn = (
    NumericColumn
    | CategoricalColumn
    | BooleanColumn
    | DateColumn
    | DurationColumn
    | TextColumn
    | VectorColumn
)
Column = FeatureColumn | IgnoredColumn
