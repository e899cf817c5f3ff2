"""What each record adds to a sum: its coordinates times what a public model misses of its target:
a class, several labels, or a number."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerModel,
)
from secretballot.bases.integer_targets import TargetModel
from secretballot.core.private import Private, RecordSums
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, ParameterError
from secretballot.records.mapped_rows import MappedRows

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
        Integers for 1.0 in a residual, at most `PROBABILITY_UNIT`.
    bound : int
        Largest L2 norm of the vector of one unit of privacy; what is longer adds nothing.
    mark_weight : int
        What a record adds to one further coordinate for each of its marks.
    n_marks : int
    without_marked : bool
        Whether a record with the last mark adds its marks alone.

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
        # squares of finer residuals could add up to more than 2^63
        if not self.unit <= PROBABILITY_UNIT:
            raise ParameterError(f"The residual unit is {self.unit}, above {PROBABILITY_UNIT}.")

    @property
    def n_coordinates(self) -> int:
        """Integers in the sum."""
        return self.model.weights.size + self.n_marks


#: What is multiplied, and what stands beside it: see `RecordSums`.
Block = tuple[IntArray, IntArray, IntArray]


class Records(Private):
    """Private records, of which each stage makes a sealed sum.

    Made by `private_records`, `label_records` or `parted_records`.

    Parameters
    ----------
    blocks : callable
        Returns the blocks of a stage's sum, from what it asks.
    guarantee : Guarantee
        Whose vectors are bounded.

    Examples
    --------
    >>> from secretballot.records import private_records
    >>> private_records(np.array([[3, 4]]), np.array([1]), 2)
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


def private_records(
    coordinates: IntArray | MappedRows,
    targets: IntArray,
    n_classes: int,
    persons: IntArray | None = None,
    marks: IntArray | None = None,
    relation: str = "add-remove",
) -> Records:
    """Return records whose target is a class, or one or more numbers.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
        Each row a function of that record and public values alone; cut to `LARGEST_COORDINATE`.
    targets : ndarray of int64, shape (n_records,) or (n_records, n_columns)
        Indices from 0, of classes. Or numbers from 0 to `PROBABILITY_UNIT`, and cut to lie there;
        a negative one is missing, and its record adds nothing in that column.
    n_classes : int
        0 of numbers.
    persons : ndarray of int64, shape (n_records,), optional
        Number of the person whose record it is; all records of one are bounded together.
    marks : ndarray of 0 and 1, shape (n_records, n_marks), optional
        What is counted beside, each mark a function of that record and public values alone.
    relation : {"add-remove", "replace-one"}

    Raises
    ------
    DataError
        If the shapes do not fit; no value is named.
    """
    if targets.ndim != (1 if n_classes else 2):
        raise DataError("Targets of records are no table; give one row for each record.")
    part = _Part(coordinates, targets, n_classes, persons, marks)
    unit = "record" if persons is None else "user"
    return Records(part.vectors, Guarantee.model_validate({"unit": unit, "relation": relation}))


def label_records(coordinates: IntArray | MappedRows, classes: IntArray, n_classes: int) -> Records:
    """Return records of which the classes alone are private; parameters, with their shapes, are
    those of `private_records`.

    Notes
    -----
    How much a row is shortened follows from its features alone. So what a replaced label moves is
    the shortened features times the difference of two residuals: one entry of the residuals goes up
    by the unit that is asked, another one down (of two classes there is one entry, which moves by
    the unit). That has at most twice the length that is asked as bound.
    """
    part = _Part(coordinates, classes, n_classes)
    return Records(part.labelled_rows, Guarantee(unit="label", relation="replace-one"))


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
        n_classes: int,
        persons: IntArray | None = None,
        marks: IntArray | None = None,
    ) -> None:
        marks = np.empty((len(coordinates), 0), dtype=np.int64) if marks is None else marks
        given = [one for one in (targets, marks, persons) if one is not None]
        if len(coordinates.shape) != 2 or any(len(one) != len(coordinates) for one in given):
            raise DataError(
                "Coordinates, classes and persons of records do not fit together; give one row, one"
                " class and one person for each record."
            )
        self._coordinates = coordinates
        cut = targets if n_classes else np.clip(targets, -1, PROBABILITY_UNIT)
        self._targets, self._persons = cut.astype(np.int64), persons
        self._marks = (marks != 0).astype(np.int8)
        self._kind = IntegerModel if n_classes else TargetModel
        columns = n_classes if n_classes > 2 else 1 if n_classes else targets.shape[1]
        self._shape = coordinates.shape[1], columns

    def vectors(self, asked: Residuals) -> Iterator[Block]:
        """Return coordinates, residuals and weighted marks; those of one person as one row."""
        self._check(asked)
        return self._of_records(asked) if self._persons is None else self._of_persons(asked)

    def labelled_rows(self, asked: Residuals) -> Iterator[Block]:
        """Return shortened coordinates, labels, and what the model predicts of them."""
        self._check(asked)
        assert isinstance(asked.model, IntegerModel)
        moved = asked.unit**2 * min(2, self._shape[1])
        for rows in self._slices():
            coordinates = self._cut(rows)
            lengths = np.full(len(coordinates), moved)
            kept = _shortened_rows(coordinates, lengths, 4 * asked.bound**2)
            yield kept, self._targets[rows], asked.model.parts_of(coordinates, asked.unit)

    def _check(self, asked: Residuals) -> None:
        # found out here, as a class that the model does not know would raise for its records alone
        fits = asked.model.weights.shape == self._shape and isinstance(asked.model, self._kind)
        if not fits or asked.n_marks != self._marks.shape[1]:
            need = *self._shape, self._marks.shape[1], self._kind.__name__
            raise ParameterError(
                "The stage's model or its marks do not fit the records, which need"
                f" coordinates, columns, marks and kind {need}."
            )

    def _cut(self, rows: "slice | IntArray") -> IntArray:
        found = np.clip(self._coordinates[rows], -LARGEST_COORDINATE, LARGEST_COORDINATE)
        return found.astype(np.int64)

    def _slices(self) -> Iterator[slice]:
        size = max(1, _BLOCK_ENTRIES // self._shape[0])
        for start in range(0, len(self._coordinates), size):
            yield slice(start, start + size)

    def _of_records(self, asked: Residuals) -> Iterator[Block]:
        # the marks are orthogonal to the rest, which gets what they leave of the bound
        rest = asked.bound**2 - asked.n_marks * asked.mark_weight**2
        for rows in self._slices():
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
        coordinates, targets = self._cut(rows), self._targets[rows]
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
