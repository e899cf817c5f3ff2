"""What moments are taken of: classes, labels, or a number within public bounds; how a target is
read."""

import contextlib
import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_finite, shown
from secretballot.bases.integer_model import PROBABILITY_UNIT
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import class_indices, declared_classes
from secretballot.records import PrivateRecords, PrivateTargets
from secretballot.records.mapped_rows import MappedRows
from secretballot.records.vector_sums import BoundedRecords
from secretballot.report.certificate.moments import LABELS_MOMENTS, MOMENTS, TARGET_MOMENTS
from secretballot.students.moment_links import ClassesLink, LabelsLink, LineLink, Link

__all__ = ["ClassTarget", "LabelsTarget", "NumberTarget", "Target"]

#: A target that a record lacks: it adds nothing but its marks.
_ABSENT = -1
#: What a truth value becomes beside a text.
_TRUTH_VALUES = {"True": True, "False": False}


class Target(ABC):
    """A kind of target: public terms of it, and how private ones are read.

    Attributes
    ----------
    name : str
        Of the mechanism, on the certificate.
    about : mapping
        What the certificate says of the target.
    classes : tuple
        What the public points are labelled with; none where they are not.
    link : Link
    longest : float
        Bound of a residual of the first stage, over which vectors are cut.
    later : float
        Bound of later stages over that of the first, where residuals become much smaller.
    """

    name: str
    classes: tuple[Any, ...] = ()
    later: float

    @property
    @abstractmethod
    def about(self) -> Mapping[str, Any]: ...

    @property
    @abstractmethod
    def link(self) -> Link: ...

    @property
    @abstractmethod
    def longest(self) -> float: ...

    @abstractmethod
    def read(self, y: Any, n_records: int) -> IntArray:
        """Return private targets as integers, one row for each record.

        Raises
        ------
        DataError
            If they are not one for each record; no value is named.
        """

    def records(
        self,
        coordinates: IntArray | MappedRows,
        targets: IntArray,
        persons: IntArray | None,
        marks: IntArray,
    ) -> BoundedRecords:
        """Return records, sealed, with the targets that `read` gave."""
        return PrivateTargets(coordinates, targets, persons, marks)


@dataclass(frozen=True)
class ClassTarget(Target):
    """One of two or more declared classes."""

    classes: tuple[Any, ...]
    name = MOMENTS
    later = 1.0

    @classmethod
    def declared(cls, classes: Sequence[Any] | None) -> "ClassTarget":
        """Return the target of declared classes.

        Raises
        ------
        ParameterError
            If they are not given, fewer than two, or repeated.
        """
        return cls(tuple(declared_classes(classes)))

    @property
    def about(self) -> Mapping[str, Any]:
        return {"n_classes": len(self.classes)}

    @property
    def link(self) -> ClassesLink:
        return ClassesLink(len(self.classes))

    @property
    def longest(self) -> float:
        # the first stage predicts all classes alike, so every residual has this length
        n_classes = len(self.classes)
        return 0.5 if n_classes == 2 else math.sqrt(1 - 1 / n_classes)

    def read(self, y: Any, n_records: int) -> IntArray:
        return class_indices(y, self.classes, n_records)

    def records(
        self,
        coordinates: IntArray | MappedRows,
        targets: IntArray,
        persons: IntArray | None,
        marks: IntArray,
    ) -> PrivateRecords:
        return PrivateRecords(coordinates, targets, len(self.classes), persons, marks)


@dataclass(frozen=True)
class NumberTarget(Target):
    """A number, cut to lie within public bounds."""

    low: float
    high: float
    name = TARGET_MOMENTS
    link = LineLink()
    longest = 0.5
    # of numbers the middle of the range misses much, and a model little
    later = 0.3

    @classmethod
    def within(cls, target_range: Any) -> "NumberTarget":
        """Return the target of these bounds.

        Raises
        ------
        ParameterError
            If they are no two finite numbers, the smaller one first.
        """
        if target_range is None:
            raise ParameterError(
                Parameter("target_range"),
                " is missing; give public bounds of the target, such as target_range=(0, 100): they"
                " are never inferred from private targets.",
            )
        if not isinstance(target_range, Sequence | np.ndarray) or len(target_range) != 2:
            raise ParameterError(
                Parameter("target_range"),
                f" is {shown(target_range)}; give two numbers, such as (0, 100).",
            )
        low, high = (check_finite("target_range", bound) for bound in target_range)
        if not low < high or not math.isfinite(high - low):
            raise ParameterError(
                Parameter("target_range"),
                f" is {shown(target_range)}; its first number must be below its second.",
            )
        return cls(float(low), float(high))

    @property
    def about(self) -> Mapping[str, Any]:
        return {"target_range": [self.low, self.high]}

    def read(self, y: Any, n_records: int) -> IntArray:
        if y is None:
            raise DataError(
                "The learner requires y to be passed, but the target y is None; give the private"
                " targets."
            )
        cells = _cells_of(y)
        if len(cells) != n_records:
            raise DataError(
                Parameter("y"),
                f" has {len(cells)} targets; it must have one for each of the {n_records} rows"
                " of X.",
            )
        targets = [self._integer(cell) for cell in cells]
        return np.array(targets, dtype=np.int64).reshape(-1, 1)

    def _integer(self, cell: Any) -> int:
        """Return a private target in units of 1 / `PROBABILITY_UNIT` of the range, from itself
        alone; what is no number is absent."""
        value = _number_of(cell)
        if math.isnan(value):
            return _ABSENT
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(share * PROBABILITY_UNIT)


@dataclass(frozen=True)
class LabelsTarget(Target):
    """Several labels, each of which a record has or not."""

    labels: tuple[str, ...]
    name = LABELS_MOMENTS
    later = 1.0

    @classmethod
    def named(cls, labels: Any) -> "LabelsTarget":
        """Return the target of these labels.

        Raises
        ------
        ParameterError
            If they are no list of distinct names.
        """
        if labels is None:
            raise ParameterError(
                Parameter("labels"),
                " is missing; name the columns of y, such as labels=['ill', 'old']: they are"
                " public.",
            )
        names = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
        texts = all(isinstance(name, str) and name.strip() and name.isprintable() for name in names)
        if not names or not texts or len(set(names)) < len(names):
            raise ParameterError(
                Parameter("labels"),
                f" is {shown(labels)}; give a list of distinct names, such as ['ill', 'old'].",
            )
        return cls(tuple(str(name) for name in names))

    @property
    def about(self) -> Mapping[str, Any]:
        return {"labels": list(self.labels)}

    @property
    def link(self) -> LabelsLink:
        return LabelsLink(len(self.labels))

    @property
    def longest(self) -> float:
        # the first stage predicts one half for each, so every residual has this length
        return 0.5 * math.sqrt(len(self.labels))

    def read(self, y: Any, n_records: int) -> IntArray:
        if y is None:
            raise DataError(
                "The learner requires y to be passed, but the target y is None; give the private"
                " labels."
            )
        if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*self.labels]:
            raise DataError("The columns of y are not the labels; give them in the same order.")
        columns = _columns_of(y, len(self.labels))
        indices = [class_indices(column, [0, 1], n_records) for column in columns]
        return np.column_stack(indices) * PROBABILITY_UNIT


def _number_of(cell: Any) -> float:
    """Return a private target as floating point, from itself alone; nan for what is no number.

    One odd cell makes texts of all others, in an array and where a file is read, or complex
    numbers; so these are what they were before.
    """
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        cell = _TRUTH_VALUES.get(cell.strip(), cell)
    # a length of time passes for an integer in numpy
    known = isinstance(cell, numbers.Real | Decimal | np.bool_ | str)
    if known and not isinstance(cell, np.timedelta64):
        with contextlib.suppress(Exception):  # a text that is no number, say
            try:
                return float(cell)
            except OverflowError:  # an integer too large
                return math.inf if cell > 0 else -math.inf
    return math.nan


def _columns_of(y: Any, n_columns: int) -> list[Any]:
    """Return the columns of a private table of so many.

    Raises
    ------
    DataError
        If it is no such table; no cell is named.
    """
    if isinstance(y, list | tuple):
        rows = all(isinstance(row, list | tuple | np.ndarray) for row in y)
        if rows and all(len(row) == n_columns for row in y):
            return [[row[k] for row in y] for k in range(n_columns)]
    shape = getattr(y, "shape", None)
    if shape is None or len(shape) != 2 or shape[1] != n_columns:
        raise DataError(
            Parameter("y"), f" is no table of {n_columns} columns; give one for each label."
        )
    if hasattr(y, "toarray"):
        y = y.toarray()
    return [y.iloc[:, k] if hasattr(y, "iloc") else y[:, k] for k in range(n_columns)]


def _cells_of(y: Any) -> list[Any]:
    """Return private targets one by one, each as it was given.

    Raises
    ------
    DataError
        If they are no single column.
    """
    if isinstance(y, list | tuple):
        return list(y)
    shape = getattr(y, "shape", None)
    if shape is None or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
        raise DataError(
            Parameter("y"), " is no single column; give one private target for each row of X."
        )
    if hasattr(y, "iloc"):
        column = y.iloc[:, 0] if len(shape) == 2 else y
        return list(column.tolist())
    column = np.asarray(y).ravel()
    if column.dtype.kind in "Mm":
        return [None] * len(column)  # numpy's own would be plain integers
    cells: list[Any] = column.tolist()
    return cells
