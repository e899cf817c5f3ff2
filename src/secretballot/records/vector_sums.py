"""What each record adds to a sum: its coordinates times what a public model misses of its target:
a class, several labels, or a number."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import LARGEST_INTEGER, check_count
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerModel,
)
from secretballot.bases.integer_targets import TargetModel
from secretballot.core.private import Private, RecordSums
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.records.mapped_rows import MappedRows

#: Bound of a vector's norm, whose square a certificate can state.
LARGEST_BOUND = math.isqrt(LARGEST_INTEGER)
#: Integers for 1.0 in a residual, at most: finer ones tell no more than probabilities do, and the
#: squares of residuals add up to less than 2^63.
LARGEST_UNIT = PROBABILITY_UNIT
#: Of a record: that it is there, and what else is counted.
MOST_MARKS = 4
_BLOCK_ENTRIES = 2**18  # numbers that one block of rows takes, which stays in the cache
_LARGEST_ENTRY = 2**44  # of the sum over one person's rows


@dataclass(frozen=True, eq=False)
class Residuals:
    """What one stage asks of every record; public.

    Parameters
    ----------
    model : IntegerModel or TargetModel
        What is predicted so far.
    unit : int
        Integers for 1.0 in a residual, at most `LARGEST_UNIT`.
    bound : int
        Largest L2 norm of the vector of one unit of privacy, at most `LARGEST_BOUND`.
    mark_weight : int
        What a record adds to one further coordinate for each of its marks; at most a quarter of the
        bound.
    n_marks : int
        Number of marks, at most `MOST_MARKS`.
    without_marked : bool
        Whether a record with the last mark adds its marks alone.

    Raises
    ------
    ParameterError
        If a number is out of its range.

    Examples
    --------
    >>> from secretballot.bases.integer_model import IntegerModel
    >>> model = IntegerModel.of(np.zeros((3, 1)))
    >>> sb.records.Residuals(model, unit=1024, bound=10_000).n_coordinates
    3
    """

    model: IntegerModel | TargetModel
    unit: int
    bound: int
    mark_weight: int = 0
    n_marks: int = 0
    without_marked: bool = False

    def __post_init__(self) -> None:
        if not check_count("unit", self.unit) <= LARGEST_UNIT:
            raise ParameterError(
                f"The residual unit is {self.unit}; it must be at most {LARGEST_UNIT}."
            )
        if not check_count("bound", self.bound) <= LARGEST_BOUND:
            raise ParameterError(
                Parameter("bound"), f" is {self.bound}; it must be at most {LARGEST_BOUND}."
            )
        if self.without_marked and not self.n_marks:
            raise ParameterError("A stage without marked records has no mark to know them by.")
        # four marks of a quarter of the bound each leave the rest of a vector most of it
        if not 0 <= self.n_marks <= MOST_MARKS or not 0 <= self.mark_weight <= self.bound // 4:
            raise ParameterError(
                f"A stage has {self.n_marks} marks of weight {self.mark_weight}; it takes up to"
                f" {MOST_MARKS}, of at most a quarter of the bound, {self.bound}."
            )

    @property
    def n_coordinates(self) -> int:
        """Integers in the sum."""
        return self.model.weights.size + self.n_marks


#: What is multiplied, and what stands beside it: see `RecordSums`.
Block = tuple[IntArray, IntArray, IntArray]


class Records(Private):
    """Private records, of which each stage makes a sealed sum.

    Made by `class_records`, `target_records`, `label_records` or `parted_records`.

    Parameters
    ----------
    blocks : callable
        Returns the blocks of a stage's sum, from what it asks.
    guarantee : Guarantee
        Whose vectors are bounded.

    Examples
    --------
    >>> from secretballot.records import class_records
    >>> class_records(np.array([[3, 4]]), np.array([1]), 2)
    Records(Guarantee(unit='record', relation='add-remove'), records=<private>)
    """

    __slots__ = ("__blocks", "guarantee")
    _refusal = "private records refuse to {}; ask the door for a noisy sum over them."

    def __init__(
        self, blocks: Callable[[Residuals], Iterator[Block]], guarantee: Guarantee
    ) -> None:
        self.__blocks, self.guarantee = blocks, guarantee

    def blocks(self, asked: Residuals) -> Iterator[Block]:
        """Return the blocks of a stage's sum; private."""
        return self.__blocks(asked)

    def sums(self, asked: Residuals) -> RecordSums:
        """Return the sum of all vectors of a stage, sealed.

        Raises
        ------
        ParameterError
            If the model or the marks asked for are not those of the records.
        """
        found, n = self.__blocks(asked), asked.n_coordinates
        if self.guarantee.unit == "label":
            return RecordSums.of_labels(found, asked.unit, 4 * asked.bound**2, coordinates=n)
        return RecordSums.of_products(found, asked.bound, self.guarantee, coordinates=n)

    def __repr__(self) -> str:
        return f"Records({self.guarantee!r}, records=<private>)"


def class_records(
    coordinates: IntArray | MappedRows,
    classes: IntArray,
    n_classes: int,
    persons: IntArray | None = None,
    marks: IntArray | None = None,
    relation: str = "add-remove",
) -> Records:
    """Return records whose target is a class.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
        Each row a function of that record and public values alone. None beyond
        `LARGEST_COORDINATE`.
    classes : ndarray of int64, shape (n_records,)
        Indices from 0.
    n_classes : int
    persons : ndarray of int64, shape (n_records,), optional
        Number of the person whose record it is; all records of one are bounded together.
    marks : ndarray of 0 and 1, shape (n_records, n_marks), optional
        What is counted beside, each mark a function of that record and public values alone.
    relation : {"add-remove", "replace-one"}

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.
    """
    part = _Part(coordinates, classes, persons, marks)
    columns = 1 if n_classes == 2 else n_classes
    return Records(lambda asked: part.vectors(asked, columns, IntegerModel), part.promise(relation))


def target_records(
    coordinates: IntArray | MappedRows,
    targets: IntArray,
    persons: IntArray | None = None,
    marks: IntArray | None = None,
    relation: str = "add-remove",
) -> Records:
    """Return records whose targets are numbers; the other parameters are those of `class_records`.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
    targets : ndarray of int64, shape (n_records, n_columns)
        From 0 to `PROBABILITY_UNIT`, and cut to lie there; a negative one is missing, and its
        record adds nothing in that column.

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.
    """
    if targets.ndim != 2:
        raise DataError("Targets of records are no table; give one row for each record.")
    part = _Part(coordinates, np.clip(targets, -1, PROBABILITY_UNIT), persons, marks)
    columns = targets.shape[1]
    return Records(lambda asked: part.vectors(asked, columns, TargetModel), part.promise(relation))


def label_records(coordinates: IntArray | MappedRows, classes: IntArray, n_classes: int) -> Records:
    """Return records of which the classes alone are private; parameters, with their shapes, are
    those of `class_records`.

    Notes
    -----
    How much a row is shortened follows from its features alone. So what a replaced label moves is
    the shortened features times the difference of two residuals: one entry of the residuals goes up
    by the unit that is asked, another one down (of two classes there is one entry, which moves by
    the unit). That has at most twice the length that is asked as bound.
    """
    part = _Part(coordinates, classes)
    columns = 1 if n_classes == 2 else n_classes
    guarantee = Guarantee(unit="label", relation="replace-one")
    return Records(lambda asked: part.labelled_rows(asked, columns), guarantee)


def parted_records(parts: Callable[[], Iterator[Records]], guarantee: Guarantee) -> Records:
    """Return records that are too many to be held at once.

    Parameters
    ----------
    parts : callable
        Returns an iterator over the parts, the same ones at every call, of this guarantee. All
        records of one unit of privacy are in one part.
    guarantee : Guarantee
    """
    return Records(
        lambda asked: (block for part in parts() for block in part.blocks(asked)), guarantee
    )


class _Part:
    """Records as coordinates in a public basis, and their targets."""

    def __init__(
        self,
        coordinates: IntArray | MappedRows,
        targets: IntArray,
        persons: IntArray | None = None,
        marks: IntArray | None = None,
    ) -> None:
        marks = np.empty((len(coordinates), 0), dtype=np.int64) if marks is None else marks
        given = [one for one in (targets, marks, persons) if one is not None]
        if coordinates.ndim != 2 or any(len(one) != len(coordinates) for one in given):
            raise DataError(
                "Coordinates, classes and persons of records do not fit together; give one row, one"
                " class and one person for each record."
            )
        self._coordinates = _four_byte_coordinates(coordinates)
        self._targets, self._persons = targets.astype(np.int64), persons
        self._marks = (marks != 0).astype(np.int8)

    def promise(self, relation: str) -> Guarantee:
        """Return whose vectors are bounded."""
        unit = "record" if self._persons is None else "user"
        return Guarantee.model_validate({"unit": unit, "relation": relation})

    def vectors(
        self, asked: Residuals, n_columns: int, kind: type[IntegerModel | TargetModel]
    ) -> Iterator[Block]:
        """Return coordinates, residuals and weighted marks; those of one person as one row."""
        self._check(asked, n_columns, kind)
        return self._of_records(asked) if self._persons is None else self._of_persons(asked)

    def labelled_rows(self, asked: Residuals, n_columns: int) -> Iterator[Block]:
        """Return shortened coordinates, labels, and what the model predicts of them."""
        self._check(asked, n_columns, IntegerModel)
        assert isinstance(asked.model, IntegerModel)
        moved = asked.unit**2 * (1 if n_columns == 1 else 2)
        for rows in self._slices(self._coordinates.shape[1]):
            coordinates = self._coordinates[rows].astype(np.int64)
            lengths = np.full(len(coordinates), moved)
            kept = _shortened_rows(coordinates, lengths, 4 * asked.bound**2)
            yield kept, self._targets[rows], asked.model.parts_of(coordinates, asked.unit)

    def _check(
        self, asked: Residuals, n_columns: int, kind: type[IntegerModel | TargetModel]
    ) -> None:
        if asked.n_marks != self._marks.shape[1]:
            raise ParameterError(
                f"The stage asks for {asked.n_marks} marks, and the records have"
                f" {self._marks.shape[1]}."
            )
        # found out here, as a class that the model does not know would raise for its records alone
        shape = self._coordinates.shape[1], n_columns
        if asked.model.weights.shape != shape or not isinstance(asked.model, kind):
            raise ParameterError(
                f"The stage's model has weights of shape {asked.model.weights.shape}; the records"
                f" need {shape[0]} by {shape[1]}, of the kind {kind.__name__}."
            )

    def _slices(self, width: int) -> Iterator[slice]:
        size = max(1, _BLOCK_ENTRIES // width)
        for start in range(0, len(self._coordinates), size):
            yield slice(start, start + size)

    def _of_records(self, asked: Residuals) -> Iterator[Block]:
        # the marks are orthogonal to the rest, which gets what they leave of the bound
        rest = asked.bound**2 - asked.n_marks * asked.mark_weight**2
        for rows in self._slices(self._coordinates.shape[1]):
            coordinates, residuals = self._residuals(rows, asked)
            kept = _shortened_products(coordinates, residuals, rest)
            yield kept, residuals, asked.mark_weight * self._marks[rows].astype(np.int64)

    def _of_persons(self, asked: Residuals) -> Iterator[Block]:
        assert self._persons is not None
        order = np.argsort(self._persons, kind="stable")
        starts = np.flatnonzero(np.diff(self._persons[order], prepend=-1))
        ends = np.append(starts[1:], len(order))
        size = max(1, _BLOCK_ENTRIES // asked.n_coordinates)
        for first in range(0, len(starts), size):
            last = min(first + size, len(ends)) - 1
            rows = order[starts[first] : ends[last]]
            owners = np.repeat(np.arange(last + 1 - first), (ends - starts)[first : last + 1])
            whole = _shortened_vectors(self._of_owners(rows, owners, asked), asked.bound)
            yield whole, np.ones((len(whole), 1), dtype=np.int64), whole[:, :0]

    def _of_owners(self, rows: IntArray, owners: IntArray, asked: Residuals) -> IntArray:
        """Return the sum over the rows of each owner, before it is shortened.

        Block by block, as a few persons may have any number of rows.
        """
        vectors = np.zeros((owners[-1] + 1, asked.n_coordinates), dtype=np.int64)
        size = max(1, _BLOCK_ENTRIES // asked.n_coordinates)
        for at in range(0, len(rows), size):
            block, own = rows[at : at + size], owners[at : at + size]
            coordinates, residuals = self._residuals(block, asked)
            kept = _shortened_products(coordinates, residuals, asked.bound**2)
            places = np.flatnonzero(np.diff(own, prepend=-1))
            sums = [
                np.add.reduceat(kept * residuals[:, [column]], places, axis=0)
                for column in range(residuals.shape[1])
            ]
            moments = np.stack(sums, axis=2).reshape(len(places), -1)
            marks = self._marks[block].astype(np.int64)
            marked = asked.mark_weight * np.add.reduceat(marks, places, axis=0)
            vectors[own[places]] += np.column_stack([moments, marked])
        return vectors

    def _residuals(self, rows: "slice | IntArray", asked: Residuals) -> tuple[IntArray, IntArray]:
        """Return coordinates of some records, and what the model misses of them in the units that
        are asked; each row a function of that record and of what is asked."""
        coordinates, targets = self._coordinates[rows].astype(np.int64), self._targets[rows]
        if isinstance(asked.model, IntegerModel):
            residuals = -asked.model.parts_of(coordinates, asked.unit)
            # of two classes one residual is the other's negative
            told = np.arange(residuals.shape[1]) if residuals.shape[1] > 1 else 1
            residuals += asked.unit * (targets[:, None] == told)
        else:
            missed = targets - asked.model.predictions(coordinates)
            residuals = (missed * asked.unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT
            residuals[targets < 0] = 0
        if asked.without_marked:
            residuals[self._marks[rows, -1] > 0] = 0
        return coordinates, residuals


def _shortened_products(coordinates: IntArray, residuals: IntArray, squared_bound: int) -> IntArray:
    """Return coordinates whose product with the residuals is hardly longer than the bound."""
    of_residuals = np.einsum("ij,ij->i", residuals, residuals)
    return _shortened_rows(coordinates, of_residuals, squared_bound)


def _four_byte_coordinates(coordinates: IntArray | MappedRows) -> IntArray | MappedRows:
    """Return coordinates in four bytes each, as no coordinate needs more; mapped rows as they are.

    Raises
    ------
    DataError
        If one is too large.
    """
    if isinstance(coordinates, MappedRows):
        return coordinates
    # the least integer of 64 bits is its own absolute value
    if coordinates.size and not (
        coordinates.max() <= LARGEST_COORDINATE and coordinates.min() >= -LARGEST_COORDINATE
    ):
        raise DataError(f"A coordinate is beyond {LARGEST_COORDINATE} in size; cut them first.")
    return coordinates.astype(np.int32, copy=False)


def _shortened_rows(coordinates: IntArray, of_residuals: IntArray, squared_bound: int) -> IntArray:
    """Return coordinates whose product with residuals of these squared norms has at most this
    squared norm, per row.

    Shrunk and cut toward zero, which lengthens none; a row that is too long all the same, by the
    last digit of a root, is left out of the sum (`RecordSums`).
    """
    of_coordinates = np.einsum("ij,ij->i", coordinates, coordinates)
    lengths = np.sqrt(of_coordinates.astype(np.float64)) * np.sqrt(of_residuals.astype(np.float64))
    factors = np.minimum(1.0, np.sqrt(float(squared_bound)) / np.maximum(lengths, 1.0))
    kept: IntArray = np.trunc(coordinates * factors[:, None]).astype(np.int64)
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
    kept: IntArray = np.trunc(cut * factors[:, None]).astype(np.int64)
    return kept
