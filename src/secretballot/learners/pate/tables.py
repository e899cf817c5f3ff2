"""What learners of several labels, and of a number, by votes of teachers have in common."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from secretballot._typing import IntArray
from secretballot._validation import RELATIONS, check_choice, check_count
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger import Ledger
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.data.stored import StoredTable
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.training.account import account_of_fit, check_keeping, required_budget
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
from secretballot.releasing import release_table
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of


# scikit-learn ships no types
@dataclass(eq=False, repr=False, kw_only=True)
class TableLearner(LearnerState, BaseEstimator):  # type: ignore[misc]
    """Settings that both learners have, and the way from private records to a released table."""

    n_teachers: int = 250
    budget: PrivacyBudget | None = None
    n_queries: int | None = None
    relation: str = "add-remove"
    ledger: Ledger | None = None
    request: str | None = None
    purpose: str = ""
    random_state: int | None = None
    progress: Callable[[int, int], None] | None = None

    @abstractmethod
    def _checked_teacher(self, X: Any, X_public: Any) -> Any:
        """Return the learner to clone for every shard, after a trial on public points."""

    @abstractmethod
    def _try_student(self, points: Any) -> None:
        """Refuse a student that cannot learn the public points that will be asked."""

    @abstractmethod
    def _calibrated_terms(
        self, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        """Return mechanism and shape, from public numbers alone."""

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
        check_choice("relation", self.relation, RELATIONS)
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
            "relation": self.relation,
        }
        account = account_of_fit(self.ledger, budget, unit=unit, relation=self.relation)
        terms = self._calibrated_terms(budget, n_rows(X_public), guarantee_of(unit, self.relation))
        rows = random_rows(n_rows(X_public), terms.n_points, self.random_state)
        points = take_rows(X_public, rows)

        def cast() -> Votes:
            refuse_private_points(records, X_public, units=units)
            teacher = self._checked_teacher(records, X_public)
            self._try_student(points)
            shards = assign_shards(
                n_rows(records), self.n_teachers, self.relation, units, vault=None
            )
            return self._teacher_votes(teacher, records, targets, shards, points, unit)

        released = release_table(
            terms,
            cast,
            account,
            rows=rows,
            request=self.request,
            purpose=self.purpose,
            declaration=declaration,
            points_sha256=points_digest(points),
        )
        self.released_table_, self.certificate_ = released, released.certificate
        self.n_features_in_ = n_columns(records)
        if hasattr(records, "columns") and all(isinstance(name, str) for name in records.columns):
            self.feature_names_in_ = np.asarray(records.columns, dtype=object)
        return X_public


def most_sure_points(sure: Callable[[int], bool], most: int) -> int:
    """Return about the most public points, at most `most`, that may be asked while answers are
    `sure`; at least 1."""
    low, high = 1, 2
    while high <= most and sure(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, low // 50):  # a few queries do not matter
        middle = (low + high) // 2
        low, high = (middle, high) if sure(middle) else (low, middle)
    return min(low, most)
