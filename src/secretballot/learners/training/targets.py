"""What is learnt: one of several classes, several labels, or a number; what is declared of it, and
how private targets are read, each from itself alone."""

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Self

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import result_of
from secretballot.learners.training.inputs import (
    as_matrix,
    class_indices,
    declared_classes,
    n_columns,
    private_cells,
)
from secretballot.teachers.votes import checked_labels, checked_range

#: What a truth value becomes beside a text.
_TRUTH_VALUES = {"True": True, "False": False}


@dataclass(frozen=True)
class Target:
    """A kind of target, by what is declared of it; all public.

    Make it with `of_classes`, `of_labels` or `of_number`.

    Attributes
    ----------
    classes : tuple
        What the public points are labelled with; none where they are not.
    labels : tuple of str
        Names of several labels, each of which a record has or not.
    bounds : tuple of two floats, or None
        A number is cut to lie within.
    """

    classes: tuple[Any, ...] = ()
    labels: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None

    @classmethod
    def of_classes(cls, declared: Any) -> Self:
        """Return the target of two or more declared classes.

        Raises
        ------
        ParameterError
            If they are not given, fewer than two, or repeated.
        """
        return cls(classes=tuple(declared_classes(declared)))

    @classmethod
    def of_labels(cls, declared: Any) -> Self:
        """Return the target of several named labels.

        Raises
        ------
        ParameterError
            If they are no list of distinct names.
        """
        return cls(labels=checked_labels(declared))

    @classmethod
    def of_number(cls, bounds: Any) -> Self:
        """Return the target of a number within bounds.

        Raises
        ------
        ParameterError
            If they are no two finite numbers, the smaller one first.
        """
        return cls(bounds=checked_range(bounds))

    @property
    def learnt(self) -> list[Any]:
        """Classes that one learner distinguishes: those declared, or whether a label is there; none
        of a number."""
        return list(self.classes) or [0, 1] * bool(self.labels)

    def read(self, y: Any, n_records: int) -> IntArray | FloatArray:
        """Return private targets: of classes their places, int64 of shape (n_records,); of labels
        0 and 1, int64 of shape (n_records, n_labels); numbers cut to the bounds, nan for what is
        none, float64 of shape (n_records,).

        Raises
        ------
        DataError
            If they are not one for each record, a class is none of those declared, or labels are no
            table of 0 and 1; no value is named.
        """
        if self.classes:
            return class_indices(y, self.classes, n_records)
        if self.labels and y is not None:
            if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*self.labels]:
                raise DataError("The columns of y are not the labels; give them in the same order.")
            table = as_matrix("y", y)
            if n_columns(table) != len(self.labels):
                raise DataError(
                    Parameter("y"),
                    f" has {n_columns(table)} columns; give one for each of the"
                    f" {len(self.labels)} labels.",
                )
            table = table.toarray() if hasattr(table, "toarray") else table
            cells = table.iloc if hasattr(table, "iloc") else table
            columns = [cells[:, place] for place in range(len(self.labels))]
            return np.column_stack([class_indices(one, [0, 1], n_records) for one in columns])
        targets, places = private_cells(y, n_records)
        assert self.bounds is not None
        numbers = np.array(list(map(number_of, targets)), dtype=np.float64)
        return np.clip(numbers[places], *self.bounds)


def number_of(cell: Any) -> float:
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
        number = result_of(partial(_float_or_infinite, cell))  # None of a text that is no number
        return math.nan if number is None else number
    return math.nan


def _float_or_infinite(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer too large
        return math.inf if cell > 0 else -math.inf


def labels_at(y: Any, rows: IntArray, n_records: int) -> Any:
    """Return the labels at some rows, without a glance at the others: not their values, not even
    their type.

    Raises
    ------
    DataError
        If there is not one label for each record.
    """
    if y is None:
        return None  # for the sentence that every learner has for it
    if not hasattr(y, "__len__") or len(y) != n_records:
        found = f"has {len(y)} labels" if hasattr(y, "__len__") else f"is a {type(y).__name__}"
        raise DataError(f"y {found}; it must have one label for each of the {n_records} rows of X.")
    if hasattr(y, "iloc"):
        return y.iloc[rows]
    if isinstance(y, np.ndarray):
        return y[rows]
    return [y[row] for row in rows.tolist()]
