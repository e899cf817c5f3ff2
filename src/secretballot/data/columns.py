"""What one column of a table becomes in the matrix.

Every column is fixed by public cells or by what the user declares. Encoding looks at one cell at a
time, in two steps: what it says is kept in few bytes (`compact`), and that becomes the columns of
the matrix (`widen`). A table that does not fit in memory is kept between the two. Of a free text a
bit is kept for each term, whatever the encoding, so that a cell takes as many bytes as any other.
"""

import functools
import hashlib
import math
import re
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from secretballot._times import DATE_PARTS, SECONDS_A_DAY, duration_seconds, iso_text, time_seconds
from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray
from secretballot.data.cells import (
    LARGEST_NUMBER,
    Holds,
    OddCells,
    coded_texts,
    is_missing,
    numbers_of,
    texts_of,
    vectors_of,
)

#: What is kept of a cell that holds no date; no date has so many seconds.
NO_DATE = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Name of the column.
    """

    name: str

    kind: ClassVar[str]
    holds: ClassVar[Holds]
    #: Whether cells that it has no place for count as "other", rather than as missing.
    has_other: ClassVar[bool] = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return ()

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON: its kind, and all that it is fixed by."""
        parts = {
            part.name: getattr(self, part.name) for part in fields(self) if part.name != "name"
        }
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in parts.items()}
        return {"kind": self.kind, **plain}


@dataclass(frozen=True)
class IgnoredColumn(Column):
    """A column that is no feature; `reason` says why, for the person who runs the program."""

    reason: str = "declared so"

    kind: ClassVar[str] = "ignored"
    holds: ClassVar[Holds] = "categories"


class FeatureColumn(Column, ABC):
    """A column that is encoded."""

    @property
    @abstractmethod
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell."""

    @abstractmethod
    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return what the cells say, shape (n_rows, ...), and which of them are missing or
        strange."""

    @abstractmethod
    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_features), from what `compact` returned."""


class _ColumnOfTexts(FeatureColumn):
    """A column whose cells are read as texts, each distinct one once."""

    @abstractmethod
    def _read(self, texts: Sequence[str]) -> tuple[AnyArray, BoolArray]:
        """Return what is kept of texts, shape (n_texts, ...), and which of them say nothing that
        the column has a place for."""

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        codes, texts = coded_texts(cells)
        kept, unread = self._read(texts)
        missing = np.array([is_missing(text) for text in texts], dtype=bool)
        strange: IntArray = np.flatnonzero((unread & ~missing)[codes]).astype(np.int64)
        return kept[codes], OddCells(strange, int((unread & missing)[codes].sum()))


@dataclass(frozen=True)
class NumericColumn(FeatureColumn):
    """A column of numbers: the public median where nothing is known, then centred and scaled.

    Parameters
    ----------
    median : float
        Stands in for a missing number.
    center, scale : float
        The encoded value is ``(number - center) / scale``; `scale` is positive.
    indicator : bool
        Whether a second encoded column says 1 where the number was missing.
    decimal_comma : bool
        Whether texts with a decimal comma are numbers as well.
    """

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
        document = super().to_json()
        return document | ({"decimal": ","} if document.pop("decimal_comma") else {})


@dataclass(frozen=True)
class CategoricalColumn(_ColumnOfTexts):
    """A column of categories: one encoded column for each, and one for "other" (unseen and missing
    ones).

    Parameters
    ----------
    categories : tuple of str
        Public categories, without "other".
    """

    categories: tuple[str, ...]

    kind: ClassVar[str] = "categorical"
    holds: ClassVar[Holds] = "categories"
    has_other: ClassVar[bool] = True

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

    def _read(self, texts: Sequence[str]) -> tuple[AnyArray, BoolArray]:
        places, other = self.spellings, len(self.categories)
        kept = np.array([places.get(text, other) for text in texts], dtype=self.compact_type)
        return kept, kept == other

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_categories + 1), from what `compact` returned."""
        out[:] = 0.0
        out[np.arange(len(kept)), kept] = 1.0


@dataclass(frozen=True)
class BooleanColumn(CategoricalColumn):
    """A column of truth values, as programs write them: True, true, TRUE and the like."""

    categories: tuple[str, ...] = ("False", "True")

    kind: ClassVar[str] = "boolean"
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
        return {"kind": self.kind}


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
class DateColumn(_ColumnOfTexts):
    """A column of days or points in time: days from the public median, and parts of the date.

    Parameters
    ----------
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

    median: int
    scale: float = 1.0
    parts: tuple[str, ...] = ()
    indicator: bool = False
    style: str = "iso"

    kind: ClassVar[str] = "date"
    holds: ClassVar[Holds] = "dates"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        missing = ("missing",) if self.indicator else ()
        return (self.name, *(f"{self.name}={part}" for part in (*self.parts, *missing)))

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its seconds since 1970, and `NO_DATE` without a date."""
        return np.dtype(np.int64)

    def _read(self, texts: Sequence[str]) -> tuple[AnyArray, BoolArray]:
        read = (time_seconds(text, self.style) for text in texts)
        kept = np.array([NO_DATE if one is None else one for one in read], dtype=np.int64)
        return kept, kept == NO_DATE

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_features), from what `compact` returned."""
        unknown = kept == NO_DATE
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
        document = super().to_json() | {"median": iso_text(self.median)}
        return {"kind": self.kind, "format": document.pop("style"), **document}


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
class VectorColumn(FeatureColumn):
    """A column of vectors, such as embeddings or the pixels of images: centred by the public mean
    of each place, scaled by one public number, so that distances keep their proportions.

    Parameters
    ----------
    center : tuple of float
        One for each place; a vector of which nothing is known is encoded as this one.
    scale : float
        Positive.
    """

    center: tuple[float, ...]
    scale: float = 1.0

    kind: ClassVar[str] = "vector"
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


def _odd_cells(cells: "pd.Series[Any]", unknown: BoolArray) -> OddCells:
    """Return which of the cells that could not be read say something, and how many say nothing."""
    rows: IntArray = np.flatnonzero(unknown).astype(np.int64)
    unread = np.array([not is_missing(text) for text in texts_of(cells.iloc[rows])], dtype=bool)
    return OddCells(rows[unread], int(rows.size - unread.sum()))


#: How a column of free text can be encoded; the first one is the default.
TEXT_ENCODINGS = ("words", "tfidf", "hashed")
#: Weights of words are multiples of this, so that sums of their squares are exact integers: a
#: length that is rounded once is the same for a cell alone and among others.
WEIGHT_UNIT = 0.001
#: Of one word; the squares of all weights of a column add up to less than 2**63.
MOST_WEIGHT = 1000.0
#: Encoded columns of one column of text, at most.
MOST_TERMS = 2**16
#: Places that words are hashed to unless the schema says how many.
HASHED_PLACES = 1024
_CELLS_AT_ONCE = 2**22  # entries of a table of cells and terms that are held at a time


class TextColumn(_ColumnOfTexts):
    """A column of free text: one encoded column for each term, and one for cells without any."""

    kind: ClassVar[str] = "text"
    encoding: ClassVar[str]
    holds: ClassVar[Holds] = "words"
    has_other: ClassVar[bool] = True

    @property
    @abstractmethod
    def terms(self) -> tuple[str, ...]:
        """Names of the encoded columns, after the name of the column, without the last one."""

    @abstractmethod
    def places_of(self, text: str) -> set[int]:
        """Return the places of the terms that a text has."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (*(f"{self.name}={term}" for term in self.terms), f"{self.name}=(no word)")

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: one bit for each encoded column."""
        return np.dtype((np.uint8, (-(-(len(self.terms) + 1) // 8),)))

    def _read(self, texts: Sequence[str]) -> tuple[AnyArray, BoolArray]:
        without = np.empty(len(texts), dtype=bool)
        bits = np.empty((len(texts), self.compact_type.shape[0]), dtype=np.uint8)
        for rows in _row_blocks(len(texts), len(self.terms) + 1):
            known = [
                set[int]() if is_missing(text) else self.places_of(text) for text in texts[rows]
            ]
            table = np.zeros((len(known), len(self.terms) + 1), dtype=bool)
            for row, places in enumerate(known):
                table[row, list(places)] = True
            table[:, -1] = without[rows] = [not places for places in known]
            bits[rows] = np.packbits(table, axis=1)
        return bits, without

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        encoding = {} if self.encoding == TEXT_ENCODINGS[0] else {"encoding": self.encoding}
        return {"kind": self.kind, **encoding, **super().to_json()}

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_terms + 1), from what `compact` returned."""
        for rows in _row_blocks(len(kept), out.shape[1]):
            self._widen_some(np.unpackbits(kept[rows], axis=1, count=out.shape[1]), out[rows])

    def _widen_some(self, has: AnyArray, out: FloatArray) -> None:
        out[:] = has


@dataclass(frozen=True)
class WordsColumn(TextColumn):
    """A column of free text: whether a cell has each word of a public vocabulary.

    Parameters
    ----------
    words : tuple of str
        Public vocabulary, in lower case.
    """

    words: tuple[str, ...]

    encoding: ClassVar[str] = "words"

    @property
    def terms(self) -> tuple[str, ...]:
        """The words."""
        return self.words

    @cached_property
    def _word_places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def places_of(self, text: str) -> set[int]:
        """Return the places of the words that a text has."""
        return {self._word_places[word] for word in words_in(text) if word in self._word_places}


@dataclass(frozen=True)
class WeightedTextColumn(WordsColumn):
    """The same with a public weight for each word, and each cell brought to length 1: rare words
    count for more, and words of a short cell for more than those of a long one.

    Parameters
    ----------
    words : tuple of str
        Public vocabulary, in lower case.
    weights : tuple of float
        Of the words; multiples of `WEIGHT_UNIT`, at most `MOST_WEIGHT`.
    """

    weights: tuple[float, ...]

    encoding: ClassVar[str] = "tfidf"

    def _widen_some(self, has: AnyArray, out: FloatArray) -> None:
        units = np.rint(np.array(self.weights) / WEIGHT_UNIT).astype(np.int64)
        entries = has[:, :-1] * units
        squares = (entries * units).sum(axis=1)  # exact: of integers, each below 2**63 together
        out[:, :-1] = entries / np.sqrt(np.maximum(squares, 1))[:, None]
        out[:, -1] = has[:, -1]


@dataclass(frozen=True)
class HashedTextColumn(TextColumn):
    """A column of free text without a vocabulary: each word goes to one of a public number of
    places by a public hash, and a cell tells which places it has words in.

    Parameters
    ----------
    width : int
        Number of places.
    bigrams : bool
        Whether two words that follow on each other are hashed, too.
    """

    width: int
    bigrams: bool = False

    encoding: ClassVar[str] = "hashed"

    @property
    def terms(self) -> tuple[str, ...]:
        """The numbers of the places."""
        return tuple(str(place) for place in range(self.width))

    def places_of(self, text: str) -> set[int]:
        """Return the places of the words of a text."""
        words = _listed_words(text)
        pairs = map(" ".join, pairwise(words)) if self.bigrams else ()
        return {self._hashed_place(term) for term in (*words, *pairs)}

    def _hashed_place(self, term: str) -> int:
        # any string can be encoded in this way, lone surrogates too
        content = term.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.width


def _row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield rows in blocks of which a table with so many columns takes little memory."""
    step = max(1, _CELLS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


#: Words kept of a column of free text unless the schema says how many, the most frequent ones.
MOST_WORDS = 300
#: A word must stand in so many public cells, or it tells of none but them.
_FEWEST_CELLS = 2
#: A word that stands in a larger share of the public cells tells them from no others.
_LARGEST_SHARE = 0.95
_WORD = re.compile(r"[^\W_]+")


def folded(text: str) -> str:
    """Return a text as its words are compared: without regard to case, accents composed."""
    return unicodedata.normalize("NFC", text.casefold())


def words_in(text: str) -> set[str]:
    """Return the words of a text, each once: letters and digits that stand together, with their
    combining marks, without regard to case."""
    return set(_listed_words(text))


def _listed_words(text: str) -> list[str]:
    whole = folded(text)
    return (_WORD if whole.isascii() else _marked_word()).findall(whole)


@functools.cache
def _marked_word() -> re.Pattern[str]:
    """Return the pattern of a word whose letters may have marks: many languages write vowels so."""
    every = map(chr, range(sys.maxunicode + 1))
    marks = "".join(one for one in every if unicodedata.category(one).startswith("M"))
    return re.compile(rf"[^\W_](?:[^\W_]|[{marks}])*")


def is_word(text: str) -> bool:
    """Return whether a string is one word, as `words_in` finds it."""
    return words_in(text) == {text}


def frequent_words(texts: Iterable[str], most: int = MOST_WORDS) -> tuple[str, ...]:
    """Return the words that stand in most of some public texts, sorted, at most so many."""
    listed = list(texts)
    counts = Counter(word for text in listed for word in words_in(text) if len(word) > 1)
    kept = [
        word
        for word, count in counts.items()
        if count >= _FEWEST_CELLS and count <= _LARGEST_SHARE * len(listed)
    ]
    return tuple(sorted(sorted(kept, key=lambda word: (-counts[word], word))[:most]))


def word_weights(words: Sequence[str], texts: Iterable[str]) -> FloatArray:
    """Return how much each word tells, by the share of some public texts that have it.

    Inverse document frequency, ln((1 + texts) / (1 + texts with the word)) + 1, as scikit-learn's
    TfidfVectorizer has it: at least 1, and more the rarer a word is.

    Parameters
    ----------
    words : sequence of str
    texts : iterable of str

    Returns
    -------
    ndarray of float, shape (n_words,)
    """
    listed = [words_in(text) for text in texts]
    counts = Counter(word for found in listed for word in found)
    having = np.array([counts[word] for word in words], dtype=np.float64)
    return np.asarray(np.log((1 + len(listed)) / (1 + having)) + 1, dtype=np.float64)
