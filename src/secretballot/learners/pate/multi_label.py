"""PATE for several labels: teachers vote for sets of labels, and a student learns from them."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_choice, check_count, shown
from secretballot.accounting import PrivacyBudget, calibrate_gaussian, noisy_votes
from secretballot.accounting.recipes import Terms
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.tables import TableLearner, most_sure_points
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import class_indices
from secretballot.learners.training.student_predictions import checked_points
from secretballot.learners.training.target_cells import columns_of
from secretballot.learners.training.trained import check_teacher
from secretballot.report.certificate.methods import LABEL_VOTES
from secretballot.students import fit_table_student, learns_from_counts
from secretballot.students.table_students import shares_of_label
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.rows import n_rows
from secretballot.teachers.tables import label_ballots
from secretballot.teachers.votes import (
    check_ballot,
    checked_labels,
    counted_labels,
    guarantee_of,
    label_shape,
)

RELEASES = ("auto", "labels", "counts")
#: Of the noise on counts, what labels alone need where they are many; good enough for a default.
_LABEL_SHARE = 0.81


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class PATEMultiLabelClassifier(ClassifierMixin, TableLearner):  # type: ignore[misc]
    """Learn several labels, each there or not, from private records by votes of teachers.

    The private records are cut into disjoint shards. On each shard one copy of `teacher` learns
    each label, and together they vote for a set of labels at every public point; the counts are
    released with noise as one table; a student for each label learns from it.

    Parameters
    ----------
    teacher : scikit-learn classifier or name, default a hardly regularised LogisticRegression
        Of 0 and 1; cloned for every shard and label.
    student : scikit-learn classifier, optional
        Cloned for every label. By default the one that measured best for what is released.
    n_teachers : int, default 250
        Number of shards; public, chosen without looking at the private data.
    budget : PrivacyBudget
        (epsilon, delta) of this fit, all labels together.
    ballot : {"labels", "sets"}, default "labels"
        Labels are counted one by one, or each set of labels as a class of its own: better for few
        labels of which no more than a handful of sets occur; at most 8 labels.
    most_named : int, optional
        Public cap on the labels that one teacher names at a point; it names the surest. Less noise
        where it is below half the number of labels, and wrong where points have more.
    release : {"auto", "labels", "counts"}, default "auto"
        Labels alone, or noisy counts. "auto" releases counts for the default student, labels for
        any other.
    n_queries : int, optional
        How many public points are asked, chosen at random with `random_state`. By default all of
        them where noisy counts are released; where labels alone are, about as many as leave a label
        that eight teachers in ten name right 19 times in 20.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about. "replace-one" makes the number of records public.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    request : str, optional
        Key of this fit in the ledger: a fit with the same key and settings reuses the stored
        answers and spends nothing.
    purpose : str, default ""
        Written on the certificate.
    random_state : int, optional
        Public seed of the fits and of the choice of public points; None is 0. Never of the noise.
    progress : callable, optional
        Called with (done, total) teachers.

    Attributes
    ----------
    labels_ : ndarray of shape (n_labels,)
        Their names.
    classes_ : list of n_labels ndarrays
        0 and 1, for each label, as scikit-learn has it.
    student_ : list of fitted students, one for each label
    released_table_ : ReleasedTable
        Everything that was released; `write_release` makes a folder of it.
    certificate_ : dict
        What may be shown to a stranger; it holds the answers.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record with all its labels, or all records of one id where `units` is given.
    Relation : add or remove one unit; or replace one record in place.
    Sensitivity : one unit touches one shard, hence one teacher, hence one set of labels at each
        point, which moves as many counts as there are labels, or twice `most_named`, or 2 of sets.
    Price : `budget`, composed in `ledger` with everything else released from the same data.
    Source : Dziedzic et al. 2022, arXiv:2211.15410, for the ballots; prices proved in
        docs/explanation/prices.md, section 16.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(4000, 2)), rng.normal(size=(100, 2))
    >>> model = sb.PATEMultiLabelClassifier(n_teachers=100, budget=sb.PrivacyBudget(2.0, 1e-5))
    >>> model = model.fit(X, (X > 0).astype(int), X_public=X_public, labels=["tall", "old"])
    >>> model.predict([[-2.0, 2.0], [2.0, 2.0]]).tolist(), model.certificate_["epsilon"]
    ([[0, 1], [1, 1]], 2.0)
    """

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    ballot: str = "labels"
    most_named: int | None = None
    release: str = "auto"

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        labels: Sequence[str] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records and public points.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_records, n_features)
            Private.
        y : array, sparse matrix, list of rows or frame of shape (n_records, n_labels)
            Private; 1 where a record has the label, else 0. A frame has the labels as its columns.
        X_public : like X, of shape (n_public, n_features)
            Public, unlabelled.
        labels : sequence of distinct str
            Public names of the labels.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together.
        unit_name : str, optional
            What the ids are, for the certificate.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent. A student that cannot learn from what was
            released is refused after it, and the release stands in the ledger.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        X_public = self._released_points(X, y, X_public, labels, units, unit_name)
        fitted = fit_table_student(
            self.student, X_public, self.released_table_, random_state=self.random_state or 0
        )
        self.student_ = list(fitted.students)
        return self

    def fit_table(
        self,
        X: Any,
        y: Any,
        *,
        X_public: Any = None,
        labels: Sequence[str] | None = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Release the table alone, and fit no student; parameters, with their shapes, and errors
        are those of `fit`."""
        self._released_points(X, y, X_public, labels, units, unit_name)
        return self

    def _released_points(
        self, X: Any, y: Any, X_public: Any, labels: Any, units: Any, unit_name: str | None
    ) -> Any:
        """Release the table, and return the public points."""
        names = checked_labels(labels)
        check_ballot(self.ballot, self.most_named, len(names))
        check_choice("release", self.release, RELEASES)
        self._names = names
        X_public = self._release_table(
            X, X_public, lambda n: _read_labels(y, names, n), units, unit_name
        )
        self.labels_ = np.array(names)
        return X_public

    def planned_terms(self, n_public: int, labels: Sequence[str]) -> Terms:
        """Return mechanism and shape of a fit with these labels and so many public points;
        nothing is spent.

        Raises
        ------
        ParameterError
            If a setting cannot be.
        """
        self._names = checked_labels(labels)
        check_ballot(self.ballot, self.most_named, len(self._names))
        check_choice("release", self.release, RELEASES)
        guarantee = guarantee_of("record", self.relation)
        return self._calibrated_terms(required_budget(self.budget), n_public, guarantee)

    @property
    def classes_(self) -> list[NDArray[Any]]:
        """0 and 1, for each label."""
        return [np.array([0, 1]) for _ in self.student_]

    def predict(self, X: Any) -> IntArray:
        """Return which labels the students give, 0 and 1 of shape (n_rows, n_labels)."""
        points = checked_points(self, X)
        return np.column_stack([np.asarray(one.predict(points)) for one in self.student_])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every label, shape (n_rows, n_labels).

        Raises
        ------
        ParameterError
            If the students give no probabilities.
        """
        points = checked_points(self, X)
        if not all(hasattr(one, "predict_proba") for one in self.student_):
            raise ParameterError(
                Parameter("student"),
                f" is {shown(self.student)}, which gives no probabilities; use predict, or a"
                " student with predict_proba.",
            )
        return np.column_stack([shares_of_label(one, points) for one in self.student_])

    @property
    def _release_kind(self) -> str:
        if self.release != "auto":
            return self.release
        return "counts" if self.student is None or learns_from_counts(self.student) else "labels"

    def _calibrated_terms(
        self, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        def shape(n_points: int) -> VoteShape:
            return label_shape(
                n_points,
                len(self._names),
                self.n_teachers,
                guarantee,
                ballot=self.ballot,
                most_named=self.most_named,
            )

        def sure(n_points: int) -> bool:
            # right 19 times in 20 where eight teachers in ten name a label, or do not
            counted = shape(n_points)
            sigma = calibrate_gaussian(budget, counted.shifts)
            return 0.3 * self.n_teachers >= 1.645 * sigma * (_LABEL_SHARE if one_by_one else 1)

        one_by_one, wanted = self.ballot == "labels", self.n_queries
        if wanted is None:
            labels = self._release_kind == "labels"
            wanted = most_sure_points(sure, n_public) if labels else n_public
        own = shape(min(check_count("n_queries", wanted), n_public))
        return Terms(
            noisy_votes(budget, own, release=self._release_kind),
            own,
            budget,
            {
                "method": LABEL_VOTES,
                "labels": list(self._names),
                "ballot": self.ballot,
                "most_named": self.most_named,
            },
        )

    def _checked_teacher(self, X: Any, X_public: Any) -> Any:
        return check_teacher(self.teacher, X, X_public, 2)

    def _try_student(self, points: Any) -> None:
        if self.student is not None:
            votes = self.n_teachers if self._release_kind == "counts" else None
            try_student(self.student, points, Teaching([0, 1], n_rows(points), votes))

    def _teacher_votes(
        self, teacher: Any, X: Any, targets: Any, shards: IntArray, points: Any, unit: str
    ) -> Votes:
        ballots = label_ballots(
            teacher,
            X,
            targets,
            shards,
            points,
            n_teachers=self.n_teachers,
            random_state=self.random_state or 0,
            progress=self.progress,
        )
        made_for = guarantee_of(unit, self.relation)
        return counted_labels(
            ballots, self._names, made_for, ballot=self.ballot, most_named=self.most_named
        )


def _read_labels(y: Any, labels: Sequence[str], n_records: int) -> IntArray:
    """Return private labels as 0 and 1, shape (n_records, n_labels).

    Raises
    ------
    DataError
        If they are none; no value is named.
    """
    if y is None:
        raise DataError("y is missing; give the private labels, a table with a column for each.")
    if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*labels]:
        raise DataError("The columns of y are not the labels; give them in the same order.")
    columns = columns_of(y, len(labels))
    return np.column_stack([class_indices(column, [0, 1], n_records) for column in columns])
