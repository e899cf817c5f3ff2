"""What moments are taken of: classes, labels, or a number within public bounds; what is declared of
a target, and how private ones are read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases.integer_model import PROBABILITY_UNIT
from secretballot.exceptions import DataError, Parameter
from secretballot.learners.training.inputs import class_indices, declared_classes
from secretballot.learners.training.target_cells import cells_of, columns_of, number_of
from secretballot.report.certificate.methods import LABELS_MOMENTS, MOMENTS, TARGET_MOMENTS
from secretballot.students.moment_links import (
    Link,
    classes_link,
    labels_link,
    number_link,
)
from secretballot.teachers.votes import checked_labels, checked_range

#: A target that a record lacks: it adds nothing but its marks.
_ABSENT = -1


@dataclass(frozen=True)
class Target:
    """A kind of target, by what is declared of it; all public.

    Make it with `of_classes`, `of_labels` or `of_number`.

    Attributes
    ----------
    name : str
        Of the method, on the certificate.
    link : Link
    longest : float
        Bound of a residual of the first stage, over which vectors are cut.
    later : float
        Bound of later stages over that of the first, where residuals become much smaller.
    classes : tuple
        What the public points are labelled with; none where they are not.
    labels : tuple of str
        Names of several labels, each of which a record has or not.
    bounds : tuple of two floats, or None
        A number is cut to lie within.
    """

    name: str
    link: Link
    longest: float
    later: float = 1.0
    classes: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None

    @classmethod
    def of_classes(cls, declared: Any) -> "Target":
        """Return the target of two or more declared classes.

        Raises
        ------
        ParameterError
            If they are not given, fewer than two, or repeated.
        """
        classes = tuple(declared_classes(declared))
        n = len(classes)
        # the first stage predicts all classes alike, so every residual has this length
        longest = 0.5 if n == 2 else math.sqrt(1 - 1 / n)
        return cls(MOMENTS, classes_link(n), longest, classes=classes)

    @classmethod
    def of_labels(cls, declared: Any) -> "Target":
        """Return the target of several named labels.

        Raises
        ------
        ParameterError
            If they are no list of distinct names.
        """
        labels = checked_labels(declared)
        # the first stage predicts one half for each, so every residual has this length
        longest = 0.5 * math.sqrt(len(labels))
        return cls(LABELS_MOMENTS, labels_link(len(labels)), longest, labels=labels)

    @classmethod
    def of_number(cls, bounds: Any) -> "Target":
        """Return the target of a number within bounds.

        Raises
        ------
        ParameterError
            If they are no two finite numbers, the smaller one first.
        """
        bounds = checked_range(bounds)
        # the middle of the range misses much, and a model little
        return cls(TARGET_MOMENTS, number_link(), 0.5, 0.3, bounds=bounds)

    @property
    def about(self) -> Mapping[str, Any]:
        """What the certificate says of the target, beside the classes."""
        if self.labels:
            return {"labels": list(self.labels)}
        return {"bounds": list(self.bounds)} if self.bounds is not None else {}

    def read(self, y: Any, n_records: int) -> IntArray:
        """Return private targets as integers, each read from itself alone: of one of several
        classes its place, int64 of shape (n_records,); of labels and numbers in units of 1 /
        `PROBABILITY_UNIT`, of the range, int64 of shape (n_records, n_columns).

        Raises
        ------
        DataError
            If they are not one for each record, a class is none of those declared, or labels are no
            table of 0 and 1; no value is named.
        """
        if self.classes:
            return class_indices(y, self.classes, n_records)
        if y is None:
            raise DataError(
                "The learner requires y to be passed, but the target y is None; give the private"
                " targets."
            )
        if self.labels:
            if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*self.labels]:
                raise DataError("The columns of y are not the labels; give them in the same order.")
            columns = columns_of(y, len(self.labels))
            indices = [class_indices(column, [0, 1], n_records) for column in columns]
            return np.column_stack(indices) * PROBABILITY_UNIT
        cells = cells_of(y)
        if len(cells) != n_records:
            raise DataError(
                Parameter("y"),
                f" has {len(cells)} targets; it must have one for each of the {n_records} rows"
                " of X.",
            )
        targets = [self._number_in_units(cell) for cell in cells]
        return np.array(targets, dtype=np.int64).reshape(-1, 1)

    def _number_in_units(self, cell: Any) -> int:
        """Return a private number in units of the range; what is no number is absent."""
        assert self.bounds is not None
        (low, high), value = self.bounds, number_of(cell)
        if math.isnan(value):
            return _ABSENT
        share = (min(max(value, low), high) - low) / (high - low)
        return round(share * PROBABILITY_UNIT)
