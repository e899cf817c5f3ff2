"""What each record adds to a sum: its coordinates times what a public model misses of its target:
a class, several labels, or a number."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerModel,
    LinearModel,
)
from secretballot.core.private import RecordSums, Rows, Runner, run_here
from secretballot.core.types import Guarantee
from secretballot.exceptions import ParameterError

_BLOCK_ENTRIES = 2**17  # numbers that one block of rows takes, which stays in the cache
#: Integers for 1.0 in a scale, and the largest scale: squares then stay below 2^63.
SCALE_UNIT, LARGEST_SCALE = 2**12, 2**18
_LARGEST_ENTRY = 2**44  # of the sum over one person's rows


@dataclass(frozen=True, eq=False)
class Residuals:
    """What one stage asks of every record; public.

    Parameters
    ----------
    model : LinearModel
        What is predicted so far.
    unit : int
        Integers for 1.0 in a residual, at most `PROBABILITY_UNIT`.
    bound : int
        Largest L2 norm of the vector of one unit of privacy; what is longer adds nothing.
    mark_weight : int
        What a record adds to one further coordinate for each of its marks.
    n_marks : int
    without_marked : bool
        Whether a record with the last mark adds its marks alone.
    scales : ndarray of int64, shape (n_coordinates,), optional
        By which coordinates are multiplied, in units of 1 / `SCALE_UNIT`; by default all are 1.
    count_weight : int
        What a record adds to the integer of its class, or of each label that it has, of the first,
        and nothing else but its marks; 0 where it adds coordinates.
    """

    model: LinearModel
    unit: int
    bound: int
    mark_weight: int = 0
    n_marks: int = 0
    without_marked: bool = False
    scales: IntArray | None = None
    count_weight: int = 0

    def __post_init__(self) -> None:
        # squares of finer residuals could add up to more than 2^63
        if not self.unit <= PROBABILITY_UNIT:
            raise ParameterError(f"The residual unit is {self.unit}, above {PROBABILITY_UNIT}.")

    @property
    def n_coordinates(self) -> int:
        """Integers in the sum."""
        return self.model.weights.size + self.n_marks

    def scaled(self, rows: IntArray) -> IntArray:
        """Return the coordinates of rows, each times its scale."""
        coordinates = rows[:, : len(self.model.weights)]
        return coordinates if self.scales is None else coordinates * self.scales // SCALE_UNIT


class Records(NamedTuple):
    """Some private records in a public basis, a row of each part for each record.

    Attributes
    ----------
    coordinates : ndarray of int, shape (n_records, n_coordinates + n_cells)
        Rows of a `LinearModel`, each a function of that record and public values alone; cut to
        `LARGEST_COORDINATE`.
    targets : ndarray of int64, shape (n_records,) or (n_records, n_columns)
        Indices from 0, of classes. Or numbers from 0 to `PROBABILITY_UNIT`, and cut to lie there;
        a negative one is missing, and its record adds nothing in that column.
    marks : ndarray of 0 and 1, shape (n_records, n_marks)
        What is counted beside, each mark a function of that record and public values alone.
    persons : ndarray of int64, shape (n_records,), or None
        Numbers of the persons whose records they are, from 0, ascending from block to block of a
        part: all records of a person are together, and are bounded together.
    """

    coordinates: IntArray
    targets: IntArray
    marks: IntArray
    persons: IntArray | None = None

    def __repr__(self) -> str:
        return "Records(<private>)"


def vector_sums(
    parts: Iterable[Any],
    asked: Residuals,
    guarantee: Guarantee,
    records_of: Callable[[Any], Iterable[Records]] = iter,
    run: Runner = run_here,
) -> RecordSums:
    """Return the sum of the vectors of all units, sealed.

    Parameters
    ----------
    parts : iterable
        Whatever `records_of` takes, lists of Records by default. Every person is in one part with
        all records.
    asked : Residuals
    guarantee : Guarantee
    records_of : callable, optional
        From a part to its records, block by block; of persons where the guarantee is about users.
    run : callable, optional
        As for `RecordSums.of_products`.
    """
    vectors = _of_persons if guarantee.unit == "user" else _of_records
    rows_of = partial(_vectors_of_part, records_of=records_of, vectors=vectors, asked=asked)
    n = asked.n_coordinates
    return RecordSums.of_products(parts, rows_of, asked.bound, guarantee, coordinates=n, run=run)


def _vectors_of_part(
    part: Any,
    records_of: Callable[[Any], Iterable[Records]],
    vectors: Callable[[Iterable[Records], Residuals], Iterator[Rows]],
    asked: Residuals,
) -> Iterator[Rows]:
    blocks = (piece for block in records_of(part) for piece in _in_pieces(block, asked))
    return vectors(blocks, asked)


def label_sums(coordinates: IntArray, classes: IntArray, asked: Residuals) -> RecordSums:
    """Return the sum over records of which the classes alone are private, sealed.

    Parameters
    ----------
    coordinates, classes
        As those of `Records`; coordinates are public.
    asked : Residuals
        Of classes, without marks.

    Notes
    -----
    How much a row is shortened follows from its features alone. So what a replaced label moves is
    the shortened features times the difference of two residuals: one entry of the residuals goes up
    by the unit that is asked, another one down (of two classes there is one entry, which moves by
    the unit). That has at most twice the length that is asked as bound.
    """
    moved, squared = asked.unit**2 * min(2, asked.model.weights.shape[1]), 4 * asked.bound**2

    def products() -> Iterator[Rows]:
        block = Records(coordinates, classes, np.empty((len(classes), 0), dtype=np.int64))
        for part in _in_pieces(block, asked):
            lengths = np.full(len(part.coordinates), moved)
            kept = _shortened_rows(asked.scaled(part.coordinates), lengths, squared)
            yield kept, part.targets, asked.model.parts_of(part.coordinates, asked.unit)

    return RecordSums.of_labels(products(), asked.unit, squared, coordinates=asked.n_coordinates)


def _in_pieces(block: Records, asked: Residuals) -> Iterator[Records]:
    """Yield a block in pieces that stay in the cache, with coordinates that are cut."""
    size = max(1, _BLOCK_ENTRIES // asked.n_coordinates)
    for start in range(0, len(block.coordinates), size):
        part: Any = [None if one is None else one[start : start + size] for one in block]
        yield Records(cut_coordinates(part[0]).astype(np.int64), *part[1:])


def cut_coordinates(coordinates: IntArray) -> IntArray:
    """Return coordinates cut to `LARGEST_COORDINATE`."""
    return np.clip(coordinates, -LARGEST_COORDINATE, LARGEST_COORDINATE)


def _of_records(blocks: Iterable[Records], asked: Residuals) -> Iterator[Rows]:
    """Yield coordinates, residuals and weighted marks."""
    # the marks are orthogonal to the rest, which gets what they leave of the bound
    rest = asked.bound**2 - asked.n_marks * asked.mark_weight**2
    for block in blocks:
        kept, residuals = _products(block, asked, rest)
        yield kept, residuals, asked.mark_weight * block.marks.astype(np.int64)


def _of_persons(blocks: Iterable[Records], asked: Residuals) -> Iterator[Rows]:
    """Yield one row for each person, and ones beside."""
    for vectors in _person_vectors(blocks, asked):
        whole = _shortened_vectors(vectors, asked.bound)
        yield whole, np.ones((len(whole), 1), dtype=np.int64), whole[:, :0]


def _person_vectors(blocks: Iterable[Records], asked: Residuals) -> Iterator[IntArray]:
    """Yield the sum over the rows of each person, before it is shortened; shape (n_persons,
    n_coordinates).

    The last person of a block may have rows in the next one, and any number of them.
    """
    last, begun = -1, np.empty((0, asked.n_coordinates), dtype=np.int64)
    for block in blocks:
        assert block.persons is not None
        starts = np.flatnonzero(np.diff(block.persons, prepend=-1))
        kept, residuals = _products(block, asked, asked.bound**2)
        sums = [np.add.reduceat(kept * column[:, None], starts, axis=0) for column in residuals.T]
        moments = np.stack(sums, axis=2).reshape(len(starts), -1)
        marked = asked.mark_weight * np.add.reduceat(block.marks.astype(np.int64), starts, axis=0)
        vectors = np.column_stack([moments, marked])
        if block.persons[0] == last:
            vectors[0] += begun[0]
        else:
            yield begun
        yield vectors[:-1]
        last, begun = int(block.persons[-1]), vectors[-1:]
    yield begun


def _products(part: Records, asked: Residuals, squared_bound: int) -> tuple[IntArray, IntArray]:
    """Return two integer tables with a row for each record, whose vector is the outer product of
    its rows, hardly longer than the bound."""
    if not asked.count_weight:
        residuals = _residuals(part, asked)
        lengths = np.einsum("ij,ij->i", residuals, residuals)
        return _shortened_rows(asked.scaled(part.coordinates), lengths, squared_bound), residuals
    n_records = len(part.targets)
    counts = np.zeros((n_records, asked.model.weights.size), dtype=np.int64)
    if part.targets.ndim == 1:
        counts[np.arange(n_records), part.targets] = asked.count_weight
    else:
        counts[:, : part.targets.shape[1]] = asked.count_weight * (part.targets > 0)
    ones = np.ones((n_records, 1), dtype=np.int64)
    return counts, _without_marked(ones, part, asked)


def _without_marked(residuals: IntArray, part: Records, asked: Residuals) -> IntArray:
    """Return residuals, with zeros where a record adds its marks alone."""
    if asked.without_marked:
        residuals[part.marks[:, -1] > 0] = 0
    return residuals


def _residuals(part: Records, asked: Residuals) -> IntArray:
    """Return what the model misses of some records in the units that are asked; each row a function
    of that record and of what is asked."""
    targets: Any = part.targets
    if isinstance(asked.model, IntegerModel):
        residuals = -asked.model.parts_of(part.coordinates, asked.unit)
        # of two classes one residual is the other's negative
        own_column = np.arange(residuals.shape[1]) if residuals.shape[1] > 1 else 1
        residuals += asked.unit * (targets[:, None] == own_column)
    else:
        missed = np.minimum(targets, PROBABILITY_UNIT) - asked.model.predictions(part.coordinates)
        residuals = (missed * asked.unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT
        residuals[targets < 0] = 0
    return _without_marked(residuals, part, asked)


def _shortened_rows(coordinates: IntArray, of_residuals: IntArray, squared_bound: int) -> IntArray:
    """Return coordinates whose product with residuals of these squared norms has at most this
    squared norm, per row.

    Shrunk and cut toward zero, which lengthens none; a row that is too long all the same, by the
    last digit of a root, is left out of the sum (`RecordSums`).
    """
    of_coordinates = np.einsum("ij,ij->i", coordinates, coordinates)
    lengths = np.sqrt(of_coordinates.astype(np.float64)) * np.sqrt(of_residuals.astype(np.float64))
    factors = np.minimum(1.0, np.sqrt(float(squared_bound)) / np.maximum(lengths, 1.0))
    factors[of_residuals == 0] = 0  # what adds nothing is no reason to leave its marks out
    kept: IntArray = (coordinates * factors[:, None]).astype(np.int64)
    return kept


def _shortened_vectors(vectors: IntArray, bound: int) -> IntArray:
    """Return vectors of at most this norm, shrunk and cut toward zero as by `_shortened_rows`."""
    cut = np.clip(vectors, -_LARGEST_ENTRY, _LARGEST_ENTRY)
    # the square of a number of 44 bits does not fit 64: add up the squares of its halves, exactly
    high, low = cut >> 20, cut & (2**20 - 1)
    squares = (
        np.einsum("ij,ij->i", high, high) * 2.0**40
        + np.einsum("ij,ij->i", high, low) * 2.0**21
        + np.einsum("ij,ij->i", low, low)
    )
    factors = np.minimum(1.0, bound / np.maximum(np.sqrt(squares), 1.0))
    kept: IntArray = (cut * factors[:, None]).astype(np.int64)
    return kept
