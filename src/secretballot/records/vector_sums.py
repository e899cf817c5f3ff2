"""What each record adds to a sum: its coordinates times what a public model misses of its target:
a class, several labels, or a number."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import LARGEST_INTEGER, check_count
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerModel,
)
from secretballot.bases.integer_targets import TargetModel
from secretballot.core.private import Private as Sealed
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


class RecordSums(Sealed, ABC):
    """Private records of which a sum can be had, at the door alone.

    Attributes
    ----------
    unit : str
        Whose vectors are bounded: "record", "user" or "label".
    """

    __slots__ = ()
    _refusal = "private records refuse to {}; ask the door for a noisy sum over them."
    unit: str

    @abstractmethod
    def sum_at_the_door(self, asked: Residuals) -> IntArray:
        """Return the sum of all vectors, int64 of shape (asked.n_coordinates,); for the door alone.

        Privacy
        -------
        Sensitivity : `asked.bound` in L2 norm, for one unit added or removed.
        """


class PartedRecords(RecordSums):
    """Records that are too many to be held at once: a sum over parts, one at a time.

    Parameters
    ----------
    parts : callable
        Returns an iterator over the parts, the same ones at every call, as records of this unit.
        All records of one unit of privacy are in one part.
    unit : {"record", "user"}

    Examples
    --------
    >>> from secretballot.records import PrivateRecords
    >>> from secretballot.records.vector_sums import PartedRecords
    >>> part = PrivateRecords(np.array([[3, 4]]), np.array([1]), 2)
    >>> PartedRecords(lambda: iter([part, part]), "record")
    PartedRecords(unit='record', records=<private>)
    """

    __slots__ = ("__parts", "unit")

    def __init__(self, parts: Callable[[], Iterator["BoundedRecords"]], unit: str) -> None:
        self.__parts, self.unit = parts, unit

    def sum_at_the_door(self, asked: Residuals) -> IntArray:
        """Return the sum of all vectors, int64 of shape (asked.n_coordinates,); for the door alone.

        Privacy
        -------
        Unit, relation and sensitivity : those of the parts, as a unit is in one of them and the
            sum is of integers, hence exact in any order and grouping.
        """
        total = np.zeros(asked.n_coordinates, dtype=np.int64)
        for part in self.__parts():
            total += part.sum_at_the_door(asked)
        return total

    def __repr__(self) -> str:
        return f"PartedRecords(unit={self.unit!r}, records=<private>)"


class BoundedRecords(RecordSums):
    """Records as coordinates in a public basis, and their targets: private.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
        Each row a function of that record and public values alone. None beyond
        `LARGEST_COORDINATE`.
    targets : ndarray of int64, shape (n_records, ...)
        What each record's target is, as the kind of records has it.
    n_columns : int
        Columns that a model of these targets has.
    persons : ndarray of int64, shape (n_records,), optional
        Number of the person whose record it is; all records of one are bounded together.
    marks : ndarray of 0 and 1, shape (n_records, n_marks), optional
        What is counted beside, each mark a function of that record and public values alone.

    Attributes
    ----------
    n_columns : int
    unit : {"record", "user"}

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.
    """

    __slots__ = (
        *("__coordinates", "__marks", "__persons", "__targets"),
        *("n_columns", "unit"),
    )
    #: What predicts such targets.
    _model: ClassVar[type[IntegerModel] | type[TargetModel]]

    def __init__(
        self,
        coordinates: IntArray | MappedRows,
        targets: IntArray,
        n_columns: int,
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
        self.__coordinates = _four_byte_coordinates(coordinates)
        self.__targets, self.__persons = targets.astype(np.int64), persons
        self.__marks = (marks != 0).astype(np.int8)
        self.n_columns = n_columns
        self.unit = "record" if persons is None else "user"

    @abstractmethod
    def _model_residuals(
        self, coordinates: IntArray, targets: IntArray, asked: Residuals
    ) -> IntArray:
        """Return what the model misses of some records, in the units that are asked, int64 of shape
        (n_rows, n_columns); each row a function of that record and of what is asked."""

    def _kept_coordinates(
        self, coordinates: IntArray, residuals: IntArray, asked: Residuals, squared_bound: int
    ) -> IntArray:
        """Return coordinates whose product with the residuals is within the bound, row by row."""
        of_residuals = np.einsum("ij,ij->i", residuals, residuals)
        return _shortened_rows(coordinates, of_residuals, squared_bound)

    def sum_at_the_door(self, asked: Residuals) -> IntArray:
        """Return the sum of all vectors, int64 of shape (asked.n_coordinates,); for the door alone.

        Privacy
        -------
        Unit : one record, or all records of one person.
        Relation : add or remove one unit; for one replaced, twice the bound.
        Sensitivity : `asked.bound` in L2 norm, marks included (`PrivateLabels`: a replaced label
            moves the sum by twice that at most). A unit's vector follows from its own records and
            from `asked`, through exact integers and operations on single numbers, and its norm is
            checked in integers at the end; the sum is of integers, hence exact in any order.
        The returned values are private: whoever calls this must add noise, and pay for it.

        Raises
        ------
        ParameterError
            If the model or the marks asked for are not those of the records.
        """
        if asked.n_marks != self.__marks.shape[1]:
            raise ParameterError(
                f"The stage asks for {asked.n_marks} marks, and the records have"
                f" {self.__marks.shape[1]}."
            )
        # found out here, as a class that the model does not know would raise for its records alone
        shape = self.__coordinates.shape[1], self.n_columns
        if asked.model.weights.shape != shape or not isinstance(asked.model, self._model):
            raise ParameterError(
                f"The stage's model has weights of shape {asked.model.weights.shape}; the records"
                f" need {shape[0]} by {shape[1]}, of the kind {self._model.__name__}."
            )
        if self.__persons is None:
            return self._sum_over_records(asked)
        return self._sum_over_persons(asked)

    def _sum_over_records(self, asked: Residuals) -> IntArray:
        # the marks are orthogonal to the rest, which gets what they leave of the bound
        rest = asked.bound**2 - asked.n_marks * asked.mark_weight**2
        total = np.zeros(asked.model.weights.shape, dtype=np.int64)
        marked = np.zeros(asked.n_marks, dtype=np.int64)
        size = max(1, _BLOCK_ENTRIES // self.__coordinates.shape[1])
        for start in range(0, len(self.__coordinates), size):
            rows = slice(start, start + size)
            coordinates, residuals = self._parts_of(rows, asked)
            kept = self._kept_coordinates(coordinates, residuals, asked, rest)
            marked += asked.mark_weight * self.__marks[rows].sum(axis=0, dtype=np.int64)
            # exact: a block's sums stay below 2^53
            total += (kept.T.astype(np.float64) @ residuals.astype(np.float64)).astype(np.int64)
        return np.concatenate([total.ravel(), marked])

    def _sum_over_persons(self, asked: Residuals) -> IntArray:
        assert self.__persons is not None
        order = np.argsort(self.__persons, kind="stable")
        starts = np.flatnonzero(np.diff(self.__persons[order], prepend=-1))
        ends = np.append(starts[1:], len(order))
        total = np.zeros(asked.n_coordinates, dtype=np.int64)
        size = max(1, _BLOCK_ENTRIES // asked.n_coordinates)
        for first in range(0, len(starts), size):
            last = min(first + size, len(ends)) - 1
            rows = order[starts[first] : ends[last]]
            owners = np.repeat(np.arange(last + 1 - first), (ends - starts)[first : last + 1])
            vectors = self._vectors_of_persons(rows, owners, asked)
            total += _shortened_vectors(vectors, asked.bound).sum(axis=0)
        return total

    def _vectors_of_persons(self, rows: IntArray, owners: IntArray, asked: Residuals) -> IntArray:
        """Return the sum over the rows of each owner, before it is shortened.

        Block by block, as a few persons may have any number of rows.
        """
        vectors = np.zeros((owners[-1] + 1, asked.n_coordinates), dtype=np.int64)
        size = max(1, _BLOCK_ENTRIES // asked.n_coordinates)
        for at in range(0, len(rows), size):
            block, own = rows[at : at + size], owners[at : at + size]
            coordinates, residuals = self._parts_of(block, asked)
            kept = self._kept_coordinates(coordinates, residuals, asked, asked.bound**2)
            places = np.flatnonzero(np.diff(own, prepend=-1))
            sums = [
                np.add.reduceat(kept * residuals[:, [column]], places, axis=0)
                for column in range(residuals.shape[1])
            ]
            moments = np.stack(sums, axis=2).reshape(len(places), -1)
            marks = self.__marks[block].astype(np.int64)
            marked = asked.mark_weight * np.add.reduceat(marks, places, axis=0)
            vectors[own[places]] += np.column_stack([moments, marked])
        return vectors

    def _parts_of(self, rows: "slice | IntArray", asked: Residuals) -> tuple[IntArray, IntArray]:
        """Return coordinates and residuals of some records, as integers."""
        coordinates = self.__coordinates[rows].astype(np.int64)
        residuals = self._model_residuals(coordinates, self.__targets[rows], asked)
        if asked.without_marked:
            residuals[self.__marks[rows, -1] > 0] = 0
        return coordinates, residuals


class PrivateRecords(BoundedRecords):
    """Records as coordinates in a public basis, and their classes: private.

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

    Attributes
    ----------
    n_classes : int
    unit : {"record", "user"}

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.

    Examples
    --------
    >>> from secretballot.records import PrivateRecords
    >>> PrivateRecords(np.array([[3, 4]]), np.array([1]), 2)
    PrivateRecords(n_classes=2, unit='record', records=<private>)
    """

    __slots__ = ("n_classes",)
    _model = IntegerModel

    def __init__(
        self,
        coordinates: IntArray | MappedRows,
        classes: IntArray,
        n_classes: int,
        persons: IntArray | None = None,
        marks: IntArray | None = None,
    ) -> None:
        columns = 1 if n_classes == 2 else n_classes
        super().__init__(coordinates, classes, columns, persons, marks)
        self.n_classes = n_classes

    def _model_residuals(
        self, coordinates: IntArray, targets: IntArray, asked: Residuals
    ) -> IntArray:
        assert isinstance(asked.model, IntegerModel)
        shares = asked.model.probabilities(coordinates)
        residuals = -((shares * asked.unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT)
        residuals[np.arange(len(targets)), targets] += asked.unit
        # of two classes one residual is the other's negative
        return residuals[:, 1:] if self.n_classes == 2 else residuals

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n_classes={self.n_classes}, unit={self.unit!r},"
            " records=<private>)"
        )


class PrivateLabels(PrivateRecords):
    """Public features as coordinates in a public basis, and classes, which alone are private.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
        Public. None beyond `LARGEST_COORDINATE`.
    classes : ndarray of int64, shape (n_records,)
        Indices from 0.
    n_classes : int

    Attributes
    ----------
    n_classes : int
    unit : "label"

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.

    Notes
    -----
    How much a vector is shortened follows from its features alone. So what a replaced label moves
    is the shortened features times the difference of two residuals: one entry of the residuals goes
    up by the unit that is asked, another one down (of two classes there is one entry, which moves
    by the unit). That has at most twice the length that is asked as bound.

    Examples
    --------
    >>> from secretballot.records import PrivateLabels
    >>> PrivateLabels(np.array([[3, 4]]), np.array([1]), 2)
    PrivateLabels(n_classes=2, unit='label', records=<private>)
    """

    __slots__ = ()

    def __init__(
        self, coordinates: IntArray | MappedRows, classes: IntArray, n_classes: int
    ) -> None:
        super().__init__(coordinates, classes, n_classes)
        self.unit = "label"

    def _kept_coordinates(
        self, coordinates: IntArray, residuals: IntArray, asked: Residuals, squared_bound: int
    ) -> IntArray:
        moved = asked.unit**2 * (1 if self.n_columns == 1 else 2)
        return _shortened_rows(coordinates, np.full(len(coordinates), moved), 4 * squared_bound)


class PrivateTargets(BoundedRecords):
    """Records as coordinates in a public basis, and numbers to predict: private.

    Parameters
    ----------
    coordinates : ndarray of int, or MappedRows, of shape (n_records, n_coordinates)
        As for `PrivateRecords`.
    targets : ndarray of int64, shape (n_records, n_columns)
        From 0 to `PROBABILITY_UNIT`, and cut to lie there; a negative one is missing, and its
        record adds nothing in that column.
    persons, marks : ndarray, optional
        As for `PrivateRecords`.

    Attributes
    ----------
    n_columns : int
    unit : {"record", "user"}

    Raises
    ------
    DataError
        If the shapes do not fit, or a coordinate is too large; no value is named.

    Examples
    --------
    >>> from secretballot.records import PrivateTargets
    >>> PrivateTargets(np.array([[3, 4]]), np.array([[2**19]]))
    PrivateTargets(n_columns=1, unit='record', records=<private>)
    """

    __slots__ = ()
    _model = TargetModel

    def __init__(
        self,
        coordinates: IntArray | MappedRows,
        targets: IntArray,
        persons: IntArray | None = None,
        marks: IntArray | None = None,
    ) -> None:
        if targets.ndim != 2:
            raise DataError("Targets of records are no table; give one row for each record.")
        cut = np.clip(targets, -1, PROBABILITY_UNIT)
        super().__init__(coordinates, cut, targets.shape[1], persons, marks)

    def _model_residuals(
        self, coordinates: IntArray, targets: IntArray, asked: Residuals
    ) -> IntArray:
        assert isinstance(asked.model, TargetModel)
        missed = targets - asked.model.predictions(coordinates)
        residuals: IntArray = (missed * asked.unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT
        residuals[targets < 0] = 0
        return residuals

    def __repr__(self) -> str:
        return f"PrivateTargets(n_columns={self.n_columns}, unit={self.unit!r}, records=<private>)"


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
    last digit of a root, becomes zero.
    """
    of_coordinates = np.einsum("ij,ij->i", coordinates, coordinates)
    lengths = np.sqrt(of_coordinates.astype(np.float64)) * np.sqrt(of_residuals.astype(np.float64))
    factors = np.minimum(1.0, np.sqrt(float(squared_bound)) / np.maximum(lengths, 1.0))
    kept: IntArray = np.trunc(coordinates * factors[:, None]).astype(np.int64)
    # in integers, and without the product of two squares, which could be too large for them
    most = squared_bound // np.maximum(of_residuals, 1)
    kept[(np.einsum("ij,ij->i", kept, kept) > most) & (of_residuals > 0)] = 0
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
    kept[np.einsum("ij,ij->i", kept, kept) > bound**2] = 0
    return kept
