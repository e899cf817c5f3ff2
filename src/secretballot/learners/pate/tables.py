"""What learners of several labels, and of a number, by votes of teachers have in common."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from secretballot._typing import IntArray
from secretballot._validation import NEIGHBOURS, check_choice, check_count
from secretballot.aggregation import TableVoting
from secretballot.core.ledger import Ledger
from secretballot.core.private import Votes
from secretballot.door.purchase import check_keeping
from secretballot.door.vote_tables import known_table, release_table
from secretballot.ensemble.rows import n_rows, take_rows
from secretballot.ensemble.stored_table import StoredTable
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.training.account import account_of_fit, refuse_beyond, required_budget
from secretballot.learners.training.inputs import (
    as_matrix,
    check_same_columns,
    n_columns,
    random_rows,
    with_public_types,
)
from secretballot.learners.training.learner_state import LearnerState
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.private_points import private_points, refuse_private_points
from secretballot.learners.training.shards import assign_shards
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.released import ReleasedTable
from secretballot.report.certificate.build import check_declaration


# scikit-learn ships no types
class TableLearner(LearnerState, BaseEstimator):  # type: ignore[misc]
    """Settings that both learners have, and the way from private records to a released table."""

    teacher: Any
    student: Any
    n_teachers: int
    budget: PrivacyBudget | None
    n_queries: int | None
    neighbours: str
    ledger: Ledger | None
    request: str | None
    purpose: str
    random_state: int | None
    progress: Callable[[int, int], None] | None
    certificate_: dict[str, Any]
    released_table_: ReleasedTable

    @abstractmethod
    def _checked_teacher(self, X: Any, X_public: Any) -> Any:
        """Return the learner to clone for every shard, after a trial on public points."""

    @abstractmethod
    def _try_student(self, points: Any) -> None:
        """Refuse a student that cannot learn the public points that will be asked."""

    @abstractmethod
    def _calibrated_voting(self, budget: PrivacyBudget, n_public: int) -> TableVoting:
        """Return recipe and noise, from public numbers alone."""

    @abstractmethod
    def _teacher_votes(
        self, teacher: Any, X: Any, targets: Any, shards: IntArray, points: Any, unit: str
    ) -> Votes:
        """Return what the teachers of all shards vote for at the asked points; secret."""

    def _release_table(
        self,
        X: Any,
        X_public: Any,
        read: Callable[[int], Any],
        units: Any,
        unit_name: str | None,
    ) -> Any:
        """Release the table, note it with its certificate, and return the public points.

        `read` returns the private targets of so many records.
        """
        # settings and public points first, then the account, private records last; what can be
        # refused is refused before hours go into teachers
        warn_inside_sklearn(alone=self.ledger is None)
        budget = required_budget(self.budget)
        check_keeping(self.ledger, None, self.request)
        check_count("n_teachers", self.n_teachers)
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        if isinstance(X, StoredTable):
            raise ParameterError(
                Parameter("X"),
                " is a stored table, and teachers of several labels or of a number learn from"
                " tables in memory; give an array or a frame. Nothing was spent.",
            )
        if X_public is X:
            raise private_points()
        records, X_public = as_matrix("X", X), as_matrix("X_public", X_public)
        check_same_columns(records, X_public)
        records, X_public = (
            with_public_types(records, X_public),
            with_public_types(X_public, X_public),
        )
        targets = read(n_rows(records))
        unit = "record" if units is None else "user"
        declaration = {
            "unit": unit,
            "unit_column": None if units is None else unit_name,
            "neighbours": self.neighbours,
        }
        account = account_of_fit(self.ledger, budget, unit=unit, neighbours=self.neighbours)
        voting = self._calibrated_voting(budget, n_rows(X_public))
        rows = random_rows(n_rows(X_public), voting.n_queries, self.random_state)
        points = take_rows(X_public, rows)
        digest, request = points_digest(points), self.request
        released = None
        if request is not None:
            declared = check_declaration(declaration)
            released = known_table(account, request, voting, rows, declared, digest)
        if released is None:
            refuse_private_points(records, X_public, units=units)
            if request is not None:
                refuse_beyond(account, budget, request)
            teacher = self._checked_teacher(records, X_public)
            self._try_student(points)
            shards = assign_shards(
                n_rows(records), self.n_teachers, self.neighbours, units, vault=None
            )
            released = release_table(
                self._teacher_votes(teacher, records, targets, shards, points, unit),
                voting,
                account,
                rows=rows,
                request=request,
                purpose=self.purpose,
                declaration=declaration,
                points_sha256=digest,
            )
        self.released_table_, self.certificate_ = released, released.certificate
        self.n_features_in_ = n_columns(records)
        if hasattr(records, "columns") and all(isinstance(name, str) for name in records.columns):
            self.feature_names_in_ = np.asarray(records.columns, dtype=object)
        return X_public
