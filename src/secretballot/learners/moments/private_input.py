"""The private records of a fit: a table in memory, or one that lies on disk."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases import Basis
from secretballot.foreign_code import one_thread
from secretballot.learners.moments.targets import Target
from secretballot.learners.training.inputs import (
    as_matrix,
    check_same_columns,
    n_columns,
    with_public_types,
)
from secretballot.learners.training.private_points import refuse_private_points
from secretballot.learners.training.stored_input import (
    blocks_by_unit,
    check_stored_table,
    numbers_of_units,
)
from secretballot.records.mapped_rows import mapped_rows
from secretballot.records.vector_sums import Records, parted_records, private_records
from secretballot.teachers.records import unit_numbers
from secretballot.teachers.rows import n_rows
from secretballot.teachers.stored_table import StoredTable
from secretballot.teachers.votes import guarantee_of


class PrivateInput(ABC):
    """Private records, before and after they are looked at.

    Attributes
    ----------
    unit : {"record", "user"}
    unit_name : str or None
    """

    unit: str
    unit_name: str | None

    @abstractmethod
    def read(self, target: Target) -> None:
        """Read the targets; `DataError` where they are none."""

    @abstractmethod
    def refuse_points(self, X_public: Any) -> None:
        """Refuse public points, of shape (n_public, n_features), that are the records."""

    @property
    @abstractmethod
    def n_records(self) -> int:
        """Number of records; private, but under replace-one."""

    @abstractmethod
    def records(self, basis: Basis, target: Target, relation: str, *, counted: bool) -> Records:
        """Return the records in a fitted basis, bounded for a relation; `counted` says whether
        their number is a mark."""

    @abstractmethod
    def note_columns(self, learner: Any) -> None:
        """Note at a learner how many columns there are, and their names if they have any."""


def private_input(
    X: Any, y: Any, X_public: Any, units: Any, unit_name: str | None, classes: tuple[Any, ...]
) -> tuple[PrivateInput, Any]:
    """Return the private records of a fit, not read yet, and the public points with their types.

    Parameters
    ----------
    X : array, sparse matrix, list of rows or frame of shape (n_records, n_features), or StoredTable
        Private.
    y : array of shape (n_records,), or of shape (n_records, n_labels), or None
        Private; None beside a stored table.
    X_public : like X, of shape (n_public, n_features)
    units : array of shape (n_records,), or None
    unit_name : str or None
    classes : tuple
        Declared for the fit, or empty where the learner predicts no class.

    Raises
    ------
    ParameterError, DataError
        If the two do not fit together.
    """
    points = as_matrix("X_public", X_public)
    if isinstance(X, StoredTable):
        check_stored_table(X, y, units, points, classes)
        return _StoredInput(X), with_public_types(points, points)
    records, same = as_matrix("X", X), X_public is X
    check_same_columns(records, points)
    typed = with_public_types(records, points)
    unit_name = None if units is None else unit_name
    return _TableInput(typed, y, units, unit_name, same), with_public_types(points, points)


class _TableInput(PrivateInput):
    """A table in memory."""

    def __init__(self, X: Any, y: Any, units: Any, unit_name: str | None, same: bool) -> None:
        self._X, self._y, self._units, self._same = X, y, units, same
        self.unit, self.unit_name = "record" if units is None else "user", unit_name

    def read(self, target: Target) -> None:
        self._targets = target.read(self._y, self.n_records)
        self._persons = None if self._units is None else unit_numbers(self._units, self.n_records)

    def refuse_points(self, X_public: Any) -> None:
        refuse_private_points(self._X, X_public, same=self._same, units=self._units)

    @property
    def n_records(self) -> int:
        return n_rows(self._X)

    def records(self, basis: Basis, target: Target, relation: str, *, counted: bool) -> Records:
        parts = self._X, self._targets, self._persons
        return _bounded_records(basis, target, *parts, counted, relation)

    def note_columns(self, learner: Any) -> None:
        note_columns(learner, self._X)


class _StoredInput(PrivateInput):
    """A table on disk, of which a bounded part is held at a time."""

    def __init__(self, table: StoredTable) -> None:
        self._table = table
        self.unit, self.unit_name = table.unit, table.unit_name

    def read(self, target: Target) -> None:
        """Do nothing: the classes were read when the table was stored."""

    def refuse_points(self, X_public: Any) -> None:
        refuse_private_points(self._table, X_public)

    @property
    def n_records(self) -> int:
        return self._table.count_rows()

    def records(self, basis: Basis, target: Target, relation: str, *, counted: bool) -> Records:
        def parts() -> Iterator[Records]:
            for block in blocks_by_unit(self._table):
                with one_thread():
                    persons = None if block.units is None else numbers_of_units(block.units)
                    given = block.X, block.classes, persons
                    yield _bounded_records(basis, target, *given, counted, relation)

        return parted_records(parts, guarantee_of(self.unit, relation))

    def note_columns(self, learner: Any) -> None:
        learner.n_features_in_ = self._table.n_columns


def note_columns(learner: Any, X: Any) -> None:
    """Note at a learner how many columns records of shape (n_records, n_features) have, and their
    names if they have any."""
    learner.n_features_in_ = n_columns(X)
    if hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns):
        learner.feature_names_in_ = np.asarray(X.columns, dtype=object)


def _bounded_records(
    basis: Basis,
    target: Target,
    X: Any,
    targets: IntArray,
    persons: IntArray | None,
    counted: bool,
    relation: str,
) -> Records:
    """Return records with their marks: that they are there, where that is counted, and whether
    the public points do not cover them."""
    coordinates, covered = mapped_rows(basis, X)
    beyond = (~covered).astype(np.int64)
    marks = np.column_stack([*([np.ones_like(beyond)] if counted else []), beyond])
    return private_records(coordinates, targets, len(target.classes), persons, marks, relation)
