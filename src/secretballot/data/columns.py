"""What one column of a table becomes in the matrix.

Every column is fixed by public cells or by what the user declares. Encoding looks at one cell at a
time, in two steps: what it says is kept in few bytes (`compact`), and that becomes the columns of
the matrix (`widen`). A table that does not fit in memory is kept between the two. Of a free text a
bit is kept for each term, whatever the encoding, so that a cell takes as many bytes as any other.
"""

import contextlib
import functools
import hashlib
import math
import re
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
from pydantic import Field, PlainSerializer, PlainValidator, ValidationError

from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Json, JsonView, Names
from secretballot._validation import shown
from secretballot._written import (
    DATE_FORMATS,
    DATE_PARTS,
    SECONDS_A_DAY,
    DateFormat,
    iso_text,
    time_seconds,
)
from secretballot.core.types import Model
from secretballot.data.cells import (
    LARGEST_NUMBER,
    OddCells,
    coded_texts,
    is_missing,
    known_texts,
    numbers_of,
    whole,
)
from secretballot.exceptions import DataError

_Cells: TypeAlias = "pd.Series[Any]"
#: What is kept of cells, and which of them say nothing that the column has a place for.
_Kept = tuple[AnyArray, BoolArray]

#: What is kept of a cell that holds no date; no date has so many seconds.
_NO_DATE = np.iinfo(np.int64).min

# What a schema may say of a column; the description is what a message says it must be. Texts are
# checked by functions of ours: pydantic knows no lone surrogates.
_Text = Annotated[str, PlainValidator(str)]
_MOST: Json = {"strict": True, "le": LARGEST_NUMBER, "allow_inf_nan": False}
_Number = Annotated[float, Field(ge=-LARGEST_NUMBER, description="a number", **_MOST)]
_Scale = Annotated[float, Field(gt=0, description="a positive number", **_MOST)]
_TrueOrFalse = Annotated[bool, Field(strict=True, description="true or false")]


class Column(Model):
    """A column of a table.

    Attributes
    ----------
    name : str
        Name of the column.
    """

    name: _Text

    kind: ClassVar[str]
    #: What its cells are, for messages.
    holds: ClassVar[str]
    #: What cells are that it has no place for; `holds` and the source of the schema are filled in.
    strange: ClassVar[str] = "are no {holds}"
    #: Whether cells that it has no place for count as "other", rather than as missing.
    has_other: ClassVar[bool] = False

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        return ()

    def to_json(self) -> Json:
        """Return the column as JSON: its kind, and all that it is fixed by."""
        parts = self.model_dump(exclude={"name"})
        plain = {key: list(v) if isinstance(v, tuple) else v for key, v in parts.items()}
        return {"kind": self.kind, **plain}


class IgnoredColumn(Column):
    """A column that is no feature; `reason` says why, for the person who runs the program."""

    reason: _Text = "declared so"

    kind = "ignored"
    holds = "categories"


class FeatureColumn(Column, ABC):
    """A column that is encoded."""

    @classmethod
    def of_public(cls, name: str, cells: _Cells, **given: Any) -> Self | None:
        """Return a column with all that public cells say of it, None where they say nothing.

        Parameters
        ----------
        name : str
        cells : pandas.Series, shape (n_rows,)
        **given
            What they have no say in, as in JSON.
        """
        found = cls.public_parts(cells, given)
        return None if found is None else cls(**{"name": name, **found, **given})

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return what public cells say of a column that has some parts, as in JSON; None where they
        hold nothing of its kind."""
        return {}

    @property
    @abstractmethod
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell."""

    @abstractmethod
    def kept(self, cells: _Cells) -> _Kept:
        """Return what is kept of the cells, shape (n_rows, ...), and which of them say nothing that
        the column has a place for."""

    def compact(self, cells: _Cells) -> tuple[AnyArray, OddCells]:
        """Return what the cells say, shape (n_rows, ...), and which of them are missing or
        strange."""
        kept, unread = self.kept(cells)
        rows: IntArray = np.flatnonzero(unread).astype(np.int64)
        codes, texts = coded_texts(cells.iloc[rows])
        says = ~np.array([is_missing(text) for text in texts], dtype=bool)[codes]
        return kept, OddCells(rows[says], int(rows.size - says.sum()))

    @abstractmethod
    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_features), from what `compact` returned."""


class _ColumnOfTexts(FeatureColumn):
    """A column whose cells are read as texts, each distinct one once."""

    @abstractmethod
    def _read(self, texts: Sequence[str]) -> _Kept:
        """Return what is kept of texts, shape (n_texts, ...), and which of them say nothing that
        the column has a place for."""

    def kept(self, cells: _Cells) -> _Kept:
        codes, texts = coded_texts(cells)
        kept, unread = self._read(texts)
        return kept[codes], unread[codes]


class NumericColumn(FeatureColumn):
    """A column of numbers, as texts or as numbers: the public median where nothing is known, then
    centred and scaled.

    Attributes
    ----------
    median : float
        Takes the place of a missing number.
    center, scale : float
        The encoded value is ``(number - center) / scale``; `scale` is positive.
    indicator : bool
        Whether a second encoded column says 1 where the number was missing.
    decimal : {".", ","}
        Whether texts with a decimal comma are numbers as well.
    """

    median: _Number
    center: _Number
    scale: _Scale
    indicator: _TrueOrFalse
    decimal: Annotated[Literal[".", ","], Field(description="one of ., ,")] = "."

    kind = "numeric"
    holds = "numbers"

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return what public cells say, None where none is a number."""
        numbers = numbers_of(cells, decimal_comma=given.get("decimal") == ",")
        finite = numbers[np.isfinite(numbers)]
        if not finite.size:
            return None
        return {
            "median": float(np.median(finite)),
            "center": float(finite.mean()),
            "scale": _usable_scale(float(finite.std()), finite),
            "indicator": bool(finite.size < numbers.size),
        }

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        return (self.name, f"{self.name}=missing") if self.indicator else (self.name,)

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its number, nan without one."""
        return np.dtype(np.float64)

    def kept(self, cells: _Cells) -> _Kept:
        """Return the numbers, shape (n_rows,), and which cells hold none."""
        numbers = numbers_of(cells, decimal_comma=self.decimal == ",")
        return numbers, np.isnan(numbers)

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, 1 or 2), from what `compact` returned."""
        unknown = np.isnan(kept)
        encoded = (np.where(unknown, self.median, kept) - self.center) / self.scale
        np.clip(encoded, -LARGEST_NUMBER, LARGEST_NUMBER, out=out[:, 0])
        if self.indicator:
            out[:, 1] = unknown


def _usable_scale(spread: float, known: FloatArray) -> float:
    """Return a standard deviation of what is known, of any shape, 1 where it is within rounding of
    zero: dividing a constant column by it would blow up other values."""
    return spread if spread > 1e-9 * float(np.abs(known).max()) else 1.0


def _categories_in(listed: Any) -> Names:
    """Return the texts of listed categories, each once."""
    usable = isinstance(listed, list | tuple) and all(
        isinstance(one, str | int | float | bool) for one in listed
    )
    if not usable:
        raise ValueError
    return tuple(dict.fromkeys(whole(str(one).strip()) for one in listed))


class OneHotColumn(_ColumnOfTexts):
    """A column of categories: one encoded column for each, and one for "other" (unseen and missing
    ones)."""

    has_other = True
    strange = "are none of the {holds} of {source}"

    #: Without "other"; public.
    categories: ClassVar[Names]

    @property
    def spellings(self) -> dict[str, int]:
        """The place of each text that is one of the categories."""
        return {category: place for place, category in enumerate(self.categories)}

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        return tuple(f"{self.name}={category}" for category in (*self.categories, "(other)"))

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: the place of its category, the last one for "other"."""
        return np.min_scalar_type(len(self.categories))

    def _read(self, texts: Sequence[str]) -> _Kept:
        places, other = self.spellings, len(self.categories)
        kept = np.array([places.get(text, other) for text in texts], dtype=self.compact_type)
        return kept, kept == other

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_categories + 1), from what `compact` returned."""
        out[:] = 0.0
        out[np.arange(len(kept)), kept] = 1.0


class CategoricalColumn(OneHotColumn):
    """A column of categories that are listed.

    Attributes
    ----------
    categories : tuple of str
        Public categories, without "other".
    """

    categories: Annotated[  # type: ignore[misc]  # of truth values they are the class's
        Names, PlainValidator(_categories_in), Field(description="a list of strings or numbers")
    ]

    kind = "categorical"
    holds = "categories"

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return all categories among public cells."""
        return {"categories": sorted(set(known_texts(cells)))}


class BooleanColumn(OneHotColumn):
    """A column of truth values, as programs write them: True, true, TRUE and the like."""

    categories = ("False", "True")
    kind = "boolean"
    holds = "truth values"

    @property
    def spellings(self) -> dict[str, int]:
        """The place of each text that is a truth value."""
        return {
            spelling: place
            for place, text in enumerate(self.categories)
            for spelling in (text, text.lower(), text.upper())
        }


def _moment_in(text: object) -> int:
    """Return the seconds of a date as JSON has it."""
    seconds = time_seconds(text) if isinstance(text, str) else None
    if seconds is None:
        raise ValueError
    return seconds


class DateColumn(_ColumnOfTexts):
    """A column of days or points in time: days from the public median, and parts of the date.

    Attributes
    ----------
    median : int
        Takes the place of a missing date; seconds since 1970-01-01.
    scale : float
        The first encoded value is the days since the median, over `scale`.
    parts : tuple of str
        Of `DATE_PARTS`; each becomes an encoded column, about centred and scaled.
    indicator : bool
        Whether a further encoded column says 1 where the date was missing.
    format : str
        How days are written, one of `DATE_FORMATS`; ISO 8601 is always read.
    """

    format: Annotated[DateFormat, Field(description=f"one of {', '.join(DATE_FORMATS)}")] = "iso"
    median: Annotated[
        int,
        PlainValidator(_moment_in),
        PlainSerializer(iso_text),
        Field(description="a date such as 2020-02-29"),
    ]
    scale: _Scale
    parts: Annotated[
        tuple[Literal["month", "day", "weekday", "hour"], ...],
        Field(description=f"a list of {', '.join(DATE_PARTS)}"),
    ]
    indicator: _TrueOrFalse

    kind = "date"
    holds = "dates"

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return what public cells say, None where none is a date: the usual parts are those that
        differ among the cells."""
        codes, texts = coded_texts(cells)
        seconds = _seconds_of(texts, given.get("format", "iso"))[codes]
        known = np.sort(seconds[seconds != _NO_DATE])
        if not known.size:
            return None
        spread = float((known / SECONDS_A_DAY).std())
        # Parts of a date that a column has unless the schema says otherwise.
        return {
            "median": iso_text(int(known[(known.size - 1) // 2])),
            # days are divided by it, and all of them may be the same
            "scale": spread if spread > 1e-9 else 1.0,
            "parts": [
                part
                for part in ("month", "weekday", "hour")
                if np.ptp(_part_of_dates(part, known)) > 0
            ],
            "indicator": bool(known.size < seconds.size),
        }

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        missing = ("missing",) if self.indicator else ()
        return (self.name, *(f"{self.name}={part}" for part in (*self.parts, *missing)))

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its seconds since 1970, and `_NO_DATE` without a date."""
        return np.dtype(np.int64)

    def _read(self, texts: Sequence[str]) -> _Kept:
        kept = _seconds_of(texts, self.format)
        return kept, kept == _NO_DATE

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_features), from what `compact` returned."""
        unknown = kept == _NO_DATE
        seconds = np.where(unknown, self.median, kept)
        days = (seconds / SECONDS_A_DAY - self.median / SECONDS_A_DAY) / self.scale
        np.clip(days, -LARGEST_NUMBER, LARGEST_NUMBER, out=out[:, 0])
        for place, part in enumerate(self.parts, start=1):
            middle, deviation = DATE_PARTS[part]
            out[:, place] = (_part_of_dates(part, seconds) - middle) / deviation
        if self.indicator:
            out[:, -1] = unknown


def _seconds_of(texts: Sequence[str], style: str) -> IntArray:
    """Return the seconds since 1970 of texts, shape (n_texts,), and `_NO_DATE` of what is none."""
    read = (time_seconds(text, style) for text in texts)
    return np.array([_NO_DATE if one is None else one for one in read], dtype=np.int64)


def _part_of_dates(part: str, seconds: IntArray) -> FloatArray:
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
    moments = pd.DatetimeIndex(seconds.astype("datetime64[s]"))
    name = "day_of_week" if part == "weekday" else part
    return np.asarray(getattr(moments, name), dtype=np.float64)


def _vectors_of(column: "pd.Series[Any]", width: int) -> FloatArray:
    """Return the cells of a column as vectors, nan in all places where a cell is none of this
    width.

    Parameters
    ----------
    column : pandas.Series, shape (n_rows,)
        Arrays, lists or tuples of numbers, or texts such as "[0.5, -1, 2e-3]". All of the numbers
        must be finite and of ordinary size.
    width : int
        How many numbers a vector has.

    Returns
    -------
    ndarray of float, shape (n_rows, width)
        There is no negative zero in it.
    """
    vectors = np.full((len(column), width), math.nan)
    for row, cell in enumerate(column):  # cells are of any type, and each is looked at by itself
        numbers = _vector_of(cell)
        if numbers is not None and numbers.size == width:
            vectors[row] = numbers.ravel()
    usable = (np.abs(vectors) <= LARGEST_NUMBER).all(axis=1)
    vectors[~usable] = math.nan
    return vectors + 0.0


def _vector_of(cell: object) -> FloatArray | None:
    """Return the numbers of a cell that lists some, None of any other cell."""
    if isinstance(cell, str):
        text = cell.strip()
        if not (text.startswith("[") and text.endswith("]")):
            return None
        cell = text[1:-1].split(",")
    if not isinstance(cell, np.ndarray | list | tuple):
        return None
    if isinstance(cell, np.ndarray) and cell.dtype.kind == "c":  # numpy drops the imaginary part
        return None
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # any cell may come
        return np.asarray(cell, dtype=np.float64)
    return None


class VectorColumn(FeatureColumn):
    """A column of vectors, such as embeddings or the pixels of images: centred by the public mean
    of each place, scaled by one public number, so that distances keep their proportions.

    Attributes
    ----------
    center : tuple of float
        One for each place; a vector of which nothing is known is encoded as this one.
    scale : float
        Positive.
    """

    center: Annotated[
        tuple[_Number, ...],
        Field(min_length=1, description="a list of numbers, one for each place of a vector"),
    ]
    scale: _Scale

    kind = "vector"
    holds = "vectors"

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return what public cells say, None where none is a vector; the first of them, near the
        top of the table, has their width unless a center is given."""
        width = len(given.get("center", ())) or None
        if width is None and cells.dtype.kind == "O":
            # One of so many cells is a vector where a column holds vectors.
            found = map(_vector_of, cells[:1000])
            width = next((one.size for one in found if one is not None and one.size), None)
        vectors = _vectors_of(cells, width or 0)
        known = vectors[~np.isnan(vectors).any(axis=1)] if width else vectors[:0]
        if not len(known):
            return None
        scale = _usable_scale(float(np.sqrt(known.var(axis=0).mean())), known)
        return {"center": known.mean(axis=0).tolist(), "scale": scale}

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return len(self.center)

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        return tuple(f"{self.name}[{place}]" for place in range(self.width))

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: its numbers in single precision, nan without them."""
        return np.dtype((np.float32, (self.width,)))

    def kept(self, cells: _Cells) -> _Kept:
        """Return the vectors, shape (n_rows, width), and which cells hold none."""
        vectors = _vectors_of(cells, self.width)
        return vectors.astype(np.float32), np.isnan(vectors[:, 0])

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, width), from what `compact` returned."""
        encoded = (kept.astype(np.float64) - np.array(self.center)) / self.scale
        np.clip(np.nan_to_num(encoded, nan=0.0), -LARGEST_NUMBER, LARGEST_NUMBER, out=out)


#: Encoded columns of one column of text, at most.
_MOST_TERMS = 2**16
_RULE_OF_WIDTH = f"an integer from 1 to {_MOST_TERMS}"
_Width = Annotated[int, Field(strict=True, ge=1, le=_MOST_TERMS, description=_RULE_OF_WIDTH)]
_ENCODINGS = "one of words, hashed"


class _TextColumn(_ColumnOfTexts):
    """A column of free text: one encoded column for each term, and one for cells without any."""

    kind = "text"
    holds = "words that are in two of them and not in nearly all"
    strange = "have none of the words of {source}"
    has_other = True

    @property
    @abstractmethod
    def terms(self) -> Names:
        """Names of the encoded columns, after the name of the column, without the last one."""

    @abstractmethod
    def places_of(self, text: str) -> set[int]:
        """Return the places of the terms that a text has."""

    @property
    def feature_names(self) -> Names:
        """Names of the encoded columns."""
        return (*(f"{self.name}={term}" for term in self.terms), f"{self.name}=(no word)")

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: one bit for each encoded column."""
        return np.dtype((np.uint8, (-(-(len(self.terms) + 1) // 8),)))

    def _read(self, texts: Sequence[str]) -> _Kept:
        without, width = np.empty(len(texts), dtype=bool), len(self.terms) + 1
        bits = np.empty((len(texts), self.compact_type.shape[0]), dtype=np.uint8)
        # so many entries of a table of cells and terms at a time
        step = max(1, 2**22 // width)
        for start in range(0, len(texts), step):
            block = texts[start : start + step]
            table = np.zeros((len(block), width), dtype=bool)
            for row, text in enumerate(block):
                places = set[int]() if is_missing(text) else self.places_of(text)
                table[row, list(places or [-1])] = True
            without[start : start + step] = table[:, -1]
            bits[start : start + step] = np.packbits(table, axis=1)
        return bits, without

    def widen(self, kept: AnyArray, out: FloatArray) -> None:
        """Fill `out`, shape (n_rows, n_terms + 1), from what `compact` returned."""
        out[:] = np.unpackbits(kept, axis=1, count=out.shape[1])


def _words_in(listed: Any) -> Names:
    """Return listed words, folded as the words of cells are, so that they are found there."""
    usable = isinstance(listed, list | tuple) and 1 <= len(listed) <= _MOST_TERMS
    if not usable or not all(isinstance(one, str) and _is_word(_folded(one)) for one in listed):
        raise ValueError
    return tuple(dict.fromkeys(map(_folded, listed)))


class _WordsColumn(_TextColumn):
    """A column of free text: whether a cell has each word of a public vocabulary.

    Attributes
    ----------
    words : tuple of str
        Public vocabulary, in lower case.
    width : int
        How many words are taken of public cells where none are listed.
    """

    encoding: Annotated[Literal["words"], Field(description=_ENCODINGS)] = "words"
    words: Annotated[
        Names,
        PlainValidator(_words_in),
        Field(description=f"a list of 1 to {_MOST_TERMS} single words, letters and digits alone"),
    ]
    width: Annotated[_Width, Field(exclude=True)] = 300

    @classmethod
    def public_parts(cls, cells: _Cells, given: JsonView) -> Json | None:
        """Return the most frequent words of public cells, as many as the width that is given for
        them, None where no word occurs in two of them."""
        width = given.get("width", cls.model_fields["width"].default)
        words = _frequent_words(known_texts(cells), width)
        return {"words": words} if words else None

    @property
    def terms(self) -> Names:
        """The words."""
        return self.words

    @cached_property
    def _word_places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def places_of(self, text: str) -> set[int]:
        """Return the places of the words that a text has."""
        return {self._word_places[word] for word in words_in(text) if word in self._word_places}


class _HashedTextColumn(_TextColumn):
    """A column of free text without a vocabulary: each word goes to one of a public number of
    places by a public hash, and a cell shows which places it has words in.

    Attributes
    ----------
    width : int
        Number of places.
    """

    encoding: Annotated[Literal["hashed"], Field(description=_ENCODINGS)] = "hashed"
    width: _Width = 1024

    strange = "have no word"

    @property
    def terms(self) -> Names:
        """The numbers of the places."""
        return tuple(str(place) for place in range(self.width))

    def places_of(self, text: str) -> set[int]:
        """Return the places of the words of a text."""
        return set(map(self._hashed_place, words_in(text)))

    def _hashed_place(self, word: str) -> int:
        # any string can be encoded in this way, lone surrogates too
        content = word.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.width


_WORD = re.compile(r"[^\W_]+")


def _folded(text: str) -> str:
    """Return a text as its words are compared: without regard to case, accents composed."""
    return unicodedata.normalize("NFC", text.casefold())


def words_in(text: str) -> set[str]:
    """Return the words of a text, each once: letters and digits that are together, with their
    combining marks, without regard to case."""
    whole = _folded(text)
    return set((_WORD if whole.isascii() else _marked_word()).findall(whole))


@functools.cache
def _marked_word() -> re.Pattern[str]:
    """Return the pattern of a word whose letters may have marks: many languages write vowels so."""
    every = map(chr, range(sys.maxunicode + 1))
    marks = "".join(one for one in every if unicodedata.category(one).startswith("M"))
    return re.compile(rf"[^\W_](?:[^\W_]|[{marks}])*")


def _is_word(text: str) -> bool:
    """Return whether a string is one word, as `words_in` finds it."""
    return words_in(text) == {text}


def _frequent_words(listed: Sequence[str], most: int) -> Names:
    """Return the words that occur in most of some public texts, sorted, at most so many."""
    counts = Counter(word for text in listed for word in words_in(text) if len(word) > 1)
    # A word must occur in so many public cells, or it describes none but them.
    # A word that occurs in a larger share of the public cells distinguishes none of them.
    kept = [word for word, count in counts.items() if 2 <= count <= 0.95 * len(listed)]
    return tuple(sorted(sorted(kept, key=lambda word: (-counts[word], word))[:most]))


# --- what a column is, as the user declares it; public cells say what is left open ---

_FEATURES = NumericColumn, CategoricalColumn, BooleanColumn, DateColumn, _WordsColumn, VectorColumn
_KINDS: dict[Any, type[Column]] = {one.kind: one for one in (*_FEATURES, IgnoredColumn)}


def declared_column(name: str, spec: object, public: pd.DataFrame | None) -> Column:
    """Build one column from its JSON, with public cells for what the JSON leaves open.

    Parameters
    ----------
    name : str
    spec : str, list or mapping
        As `Schema.from_json` takes it.
    public : DataFrame or None
        Public table for the parts left out.

    Raises
    ------
    DataError
        If `spec` is no column, or leaves open what no public table is there to say.
    """
    # short forms of the object that `to_json` writes
    if isinstance(spec, str):
        spec = {"kind": spec}
    elif isinstance(spec, list):
        spec = {"kind": CategoricalColumn.kind, "categories": spec}
    if not isinstance(spec, Mapping) or spec.get("kind") not in tuple(_KINDS):
        raise DataError(
            f"The schema says nothing usable about column {shown(name)}; "
            f"say one of {', '.join(_KINDS)}, or list its categories."
        )
    kind = _KINDS[spec["kind"]]
    if kind is _WordsColumn and spec.get("encoding") == "hashed":
        kind = _HashedTextColumn
    # why a feature is what it is, is for people alone
    left_out = {"kind", "reason"} - kind.model_fields.keys()
    given = {key: value for key, value in spec.items() if key not in left_out}
    column = _checked(kind, name, given)
    if column is None:
        assert issubclass(kind, FeatureColumn)  # of others nothing is left open
        # public cells are read for what is left open alone
        if public is None or name not in public.columns:
            raise DataError(
                f"The schema leaves column {shown(name)} open, and there is no public table that"
                " has it; add it, give all of its parts, or declare it ignored."
            )
        found = kind.public_parts(public[name], given)
        if found is None:
            form = f" of format {given['format']}" if "format" in given else ""
            raise DataError(
                f"No public row of column {shown(name)} has {kind.holds}{form}; give its parts in"
                ' the schema, such as the "decimal" of numbers or the "format" of dates, or declare'
                " it ignored."
            )
        if kind is _WordsColumn:
            given.pop("width", None)  # the words are as many
        column = _checked(kind, name, {**found, **given})
    assert column is not None
    return column


def _checked(kind: type[Column], name: str, parts: JsonView) -> Column | None:
    """Return the column that has these parts, None where some are left out.

    Raises
    ------
    DataError
        If such a column has no such part, or a part cannot be.
    """
    problems: list[Any] = []
    try:
        return kind.model_validate({"name": name, **parts})
    except ValidationError as error:
        problems += [one for one in error.errors(include_url=False) if one["type"] != "missing"]
    if not problems:
        return None
    key = str(problems[0]["loc"][0])
    if problems[0]["type"] == "extra_forbidden":
        known = {*kind.model_fields, "kind", "reason"} - {"name"}
        raise DataError(
            f"The schema says {shown(key)} of column {shown(name)}, which such a {kind.kind} column"
            f" does not have; it may say {', '.join(sorted(known))}."
        )
    raise DataError(
        f"The schema's {key} of column {shown(name)} is {shown(parts[key])}; it must be"
        f" {kind.model_fields[key].description}."
    )
