"""The private labelled records of a fit by voting: a table in memory, or one on disk."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.learners.training.inputs import (
    as_matrix,
    check_same_columns,
    class_indices,
    n_columns,
    with_public_types,
)
from secretballot.learners.training.private_points import refuse_private_points
from secretballot.learners.training.shards import (
    assign_shards,
    assign_stored_shards,
    fingerprint,
    stored_fingerprint,
)
from secretballot.learners.training.stored_input import check_stored_table
from secretballot.learners.training.trained import check_teacher
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.rows import is_sparse, n_rows
from secretballot.teachers.stored_table import SHARDS, StoredTable


class LabelledInput(ABC):
    """Private records with their classes.

    Attributes
    ----------
    unit : {"record", "user"}
    unit_name : str or None
    n_records : int
        Private, but under replace-one.
    """

    unit: str
    unit_name: str | None
    n_records: int

    @property
    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """All that teachers of these records depend on besides settings; private."""

    @abstractmethod
    def refuse_points(self, X_public: Any) -> None:
        """Refuse public points, of shape (n_public, n_features), that are the records."""

    @abstractmethod
    def checked_teacher(self, teacher: Any, X_public: Any, n_classes: int) -> Any:
        """Return the learner to clone for every shard, after a trial with dummy labels at public
        points, of shape (n_public, n_features)."""

    @abstractmethod
    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        neighbours: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        """Return one teacher for every shard; `training` as for `TeacherEnsemble.fit`."""

    @abstractmethod
    def note_columns(self, learner: Any) -> None:
        """Note at a learner how many columns there are, and their names if they have any."""


def labelled_input(
    X: Any, y: Any, X_public: Any, classes: Sequence[Any], units: Any, unit_name: str | None
) -> tuple[LabelledInput, Any]:
    """Return the private records of a fit, and the public points with their types.

    Parameters
    ----------
    X, X_public, units
        As for `PATEClassifier.fit`: tables of shape (n_records, n_features) and (n_public,
        n_features), and ids of shape (n_records,).
    y, classes, unit_name
        As for `PATEClassifier.fit`.

    Raises
    ------
    ParameterError, DataError
        If they do not fit together, or a label is none of the classes; no value is named.
    """
    # Private columns take the types of public ones before anything else is done with them: a type
    # that all private rows chose together would reach every shard.
    if isinstance(X, StoredTable):
        points = as_matrix("X_public", X_public)
        check_stored_table(X, y, units, points, classes)
        return _StoredInput(X, is_sparse(points)), with_public_types(points, points)
    X, X_public = as_matrix("X", X), as_matrix("X_public", X_public)
    check_same_columns(X, X_public)
    X, X_public = with_public_types(X, X_public), with_public_types(X_public, X_public)
    index = class_indices(y, classes, n_rows(X))
    return _TableInput(X, index, units, unit_name), X_public


class _TableInput(LabelledInput):
    """A table in memory."""

    def __init__(self, X: Any, index: IntArray, units: Any, unit_name: str | None) -> None:
        self._X, self._index, self._units = X, index, units
        self.unit = "record" if units is None else "user"
        self.unit_name = None if units is None else unit_name
        self.n_records = n_rows(X)

    @property
    def identity(self) -> tuple[Any, ...]:
        return self._X, self._index, self._units

    def refuse_points(self, X_public: Any) -> None:
        refuse_private_points(self._X, X_public, units=self._units)

    def checked_teacher(self, teacher: Any, X_public: Any, n_classes: int) -> Any:
        return check_teacher(teacher, self._X, X_public, n_classes)

    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        neighbours: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        # The fingerprint ties kept teachers to these very shards: a fit that is taken up again with
        # other data or settings finds none of them.
        training.pop("send_shards")  # what is in memory is sent in any case
        shards = assign_shards(self.n_records, n_teachers, neighbours, self._units, vault)
        return TeacherEnsemble.fit(
            teacher,
            self._X,
            self._index,
            shards,
            n_teachers=n_teachers,
            vault=vault,
            fingerprint=(
                None
                if vault is None
                else fingerprint(teacher, self._X, self._index, shards, random_state)
            ),
            random_state=random_state or 0,
            **training,
        )

    def note_columns(self, learner: Any) -> None:
        learner.n_features_in_ = n_columns(self._X)
        if hasattr(self._X, "columns"):
            learner.feature_names_in_ = np.asarray(self._X.columns, dtype=object)


class _StoredInput(LabelledInput):
    """A table on disk, which is dealt out to one file for each shard."""

    def __init__(self, table: StoredTable, sparse_points: bool) -> None:
        self._table, self._sparse_points = table, sparse_points
        self.unit, self.unit_name = table.unit, table.unit_name
        self.n_records = table.count_rows()

    @property
    def identity(self) -> tuple[Any, ...]:
        return (self._table.identity,)

    def refuse_points(self, X_public: Any) -> None:
        refuse_private_points(self._table, X_public)

    def checked_teacher(self, teacher: Any, X_public: Any, n_classes: int) -> Any:
        # rows encoded by a schema have no missing values, so those of the points speak for them
        return check_teacher(teacher, X_public, X_public, n_classes)

    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        neighbours: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        public = teacher, n_teachers, neighbours
        if vault is not None:
            return self._teachers_of_dealt_shards(*public, vault, vault, random_state, training)
        # shards hold private records: where no vault keeps them they go after the training
        with TemporaryDirectory(dir=self._table.vault, prefix=SHARDS) as folder:
            return self._teachers_of_dealt_shards(
                *public, Path(folder), None, random_state, training
            )

    def note_columns(self, learner: Any) -> None:
        learner.n_features_in_ = self._table.n_columns

    def _teachers_of_dealt_shards(
        self,
        teacher: Any,
        n_teachers: int,
        neighbours: str,
        folder: Path,
        kept: Path | None,
        random_state: int | None,
        training: Mapping[str, Any],
    ) -> TeacherEnsemble:
        """Return teachers of shards that are dealt out in a folder; `kept` is the vault that keeps
        them, if there is one."""
        shards = assign_stored_shards(self._table, n_teachers, neighbours, folder)
        # shards have the form of the points: both are asked of the same teachers
        shards = replace(shards, sparse=self._sparse_points or training["sparse"])
        return TeacherEnsemble.of_shards(
            teacher,
            shards,
            vault=kept,
            fingerprint=(
                None if kept is None else stored_fingerprint(teacher, shards, random_state)
            ),
            random_state=random_state or 0,
            **training,
        )
