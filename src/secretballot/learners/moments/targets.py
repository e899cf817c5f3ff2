"""What moments are taken of: classes, labels, or a number within public bounds; how a target is
read."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases.integer_model import PROBABILITY_UNIT
from secretballot.ensemble.vote_tables import checked_labels, checked_range
from secretballot.exceptions import DataError, Parameter
from secretballot.learners.training.inputs import class_indices, declared_classes
from secretballot.learners.training.target_cells import cells_of, columns_of, number_of
from secretballot.report.certificate.methods import LABELS_MOMENTS, MOMENTS, TARGET_MOMENTS
from secretballot.students.moment_links import ClassesLink, LabelsLink, LineLink, Link

#: A target that a record lacks: it adds nothing but its marks.
_ABSENT = -1


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
        """Return private targets as integers, one row for each record; of one of several classes
        int64 of shape (n_records,), of numbers and labels of shape (n_records, n_columns).

        Raises
        ------
        DataError
            If they are not one for each record; no value is named.
        """


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
        return {}

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
        return cls(*checked_range(target_range))

    @property
    def about(self) -> Mapping[str, Any]:
        return {"target_range": [self.low, self.high]}

    def read(self, y: Any, n_records: int) -> IntArray:
        """Return private targets in units of the range, int64 of shape (n_records, 1).

        Raises
        ------
        DataError
            If they are not given, or not one for each record; no value is named.
        """
        if y is None:
            raise DataError(
                "The learner requires y to be passed, but the target y is None; give the private"
                " targets."
            )
        cells = cells_of(y)
        if len(cells) != n_records:
            raise DataError(
                Parameter("y"),
                f" has {len(cells)} targets; it must have one for each of the {n_records} rows"
                " of X.",
            )
        targets = [self._target_in_units(cell) for cell in cells]
        return np.array(targets, dtype=np.int64).reshape(-1, 1)

    def _target_in_units(self, cell: Any) -> int:
        """Return a private target in units of 1 / `PROBABILITY_UNIT` of the range, from itself
        alone; what is no number is absent."""
        value = number_of(cell)
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
        return cls(checked_labels(labels))

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
        """Return private labels as 0 and `PROBABILITY_UNIT`, int64 of shape (n_records, n_labels).

        Raises
        ------
        DataError
            If they are not given, are no table of 0 and 1 with a row for each record, or a frame
            has other columns; no value is named.
        """
        if y is None:
            raise DataError(
                "The learner requires y to be passed, but the target y is None; give the private"
                " labels."
            )
        if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*self.labels]:
            raise DataError("The columns of y are not the labels; give them in the same order.")
        columns = columns_of(y, len(self.labels))
        indices = [class_indices(column, [0, 1], n_records) for column in columns]
        return np.column_stack(indices) * PROBABILITY_UNIT
