"""Columns of free text: which terms a cell has, of a vocabulary or of hashed places that public
knowledge alone has fixed.

What is kept of a cell is a bit for each term, whatever the encoding, so that a cell takes as many
bytes as any other.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from secretballot._typing import AnyArray, FloatArray, IntArray
from secretballot.datasets.cells import Holds, OddCells, coded_texts, is_missing
from secretballot.datasets.words import terms_in, words_in

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


@dataclass(frozen=True)
class TextColumn(ABC):
    """A column of free text: one encoded column for each term, and one for cells without any.

    Parameters
    ----------
    name : str
        Name of the column.
    """

    name: str

    holds: ClassVar[Holds] = "words"

    @property
    @abstractmethod
    def terms(self) -> tuple[str, ...]:
        """Names of the encoded columns, after the name of the column, without the last one."""

    @abstractmethod
    def places_of(self, text: str) -> set[int]:
        """Return the places of the terms that a text has."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (*(f"{self.name}={term}" for term in self.terms), f"{self.name}=(no word)")

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of what is kept of a cell: one bit for each encoded column."""
        return np.dtype((np.uint8, (-(-(len(self.terms) + 1) // 8),)))

    def compact(self, cells: "pd.Series[Any]") -> tuple[AnyArray, OddCells]:
        """Return which terms the cells have, as bits, shape (n_rows, n_bytes), and which cells are
        missing or strange."""
        codes, distinct = coded_texts(cells)
        missing = np.array([is_missing(text) for text in distinct], dtype=bool)
        without = np.empty(len(distinct), dtype=bool)
        bits = np.empty((len(distinct), self.compact_type.shape[0]), dtype=np.uint8)
        for rows in _row_blocks(len(distinct), len(self.terms) + 1):
            known = [
                set[int]() if missing[row] else self.places_of(distinct[row])
                for row in range(rows.start, rows.stop)
            ]
            table = np.zeros((len(known), len(self.terms) + 1), dtype=bool)
            for row, places in enumerate(known):
                table[row, list(places)] = True
            table[:, -1] = without[rows] = [not places for places in known]
            bits[rows] = np.packbits(table, axis=1)
        strange: IntArray = np.flatnonzero((without & ~missing)[codes]).astype(np.int64)
        return bits[codes], OddCells(strange, int(missing[codes].sum()))

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
    name : str
        Name of the column.
    words : tuple of str
        Public vocabulary, in lower case.
    """

    words: tuple[str, ...]

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

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "text", "words": list(self.words)}


@dataclass(frozen=True)
class WeightedTextColumn(WordsColumn):
    """The same with a public weight for each word, and each cell brought to length 1: rare words
    count for more, and words of a short cell for more than those of a long one.

    Parameters
    ----------
    name : str
        Name of the column.
    words : tuple of str
        Public vocabulary, in lower case.
    weights : tuple of float
        Of the words; multiples of `WEIGHT_UNIT`, at most `MOST_WEIGHT`.
    """

    weights: tuple[float, ...]

    def _widen_some(self, has: AnyArray, out: FloatArray) -> None:
        units = np.rint(np.array(self.weights) / WEIGHT_UNIT).astype(np.int64)
        entries = has[:, :-1] * units
        squares = (entries * units).sum(axis=1)  # exact: of integers, each below 2**63 together
        out[:, :-1] = entries / np.sqrt(np.maximum(squares, 1))[:, None]
        out[:, -1] = has[:, -1]

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {
            "kind": "text",
            "encoding": "tfidf",
            "words": list(self.words),
            "weights": list(self.weights),
        }


@dataclass(frozen=True)
class HashedTextColumn(TextColumn):
    """A column of free text without a vocabulary: each word goes to one of a public number of
    places by a public hash, and a cell tells which places it has words in.

    Parameters
    ----------
    name : str
        Name of the column.
    width : int
        Number of places.
    bigrams : bool
        Whether two words that follow on each other are hashed, too.
    """

    width: int
    bigrams: bool = False

    @property
    def terms(self) -> tuple[str, ...]:
        """The numbers of the places."""
        return tuple(str(place) for place in range(self.width))

    def places_of(self, text: str) -> set[int]:
        """Return the places of the words of a text."""
        return {self._hashed_place(term) for term in terms_in(text, bigrams=self.bigrams)}

    def _hashed_place(self, term: str) -> int:
        # any string can be encoded in this way, lone surrogates too
        content = term.encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.width

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {
            "kind": "text",
            "encoding": "hashed",
            "width": self.width,
            "bigrams": self.bigrams,
        }


def _row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield rows in blocks of which a table with so many columns takes little memory."""
    step = max(1, _CELLS_AT_ONCE // width)
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))
