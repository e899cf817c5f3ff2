"""PATE for several labels, or a number: teachers vote, a table of answers is released, and a
student learns from it."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._validation import RELEASES, STATISTICS, check_choice, check_count, shown
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_gaussian,
    noisy_means,
    noisy_votes,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.recipes import Terms, unanimous_chance
from secretballot.core.mechanisms import VoteQuantiles
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.classifier import PATELearner
from secretballot.learners.pate.defaults import last_that_holds
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.learner import ClassLearner, NumberLearner, Task
from secretballot.learners.training.targets import Target
from secretballot.learners.training.trial_fit import problem_of_fit
from secretballot.released import ReleasedTable
from secretballot.releasing import release_table
from secretballot.report.certificate.methods import LABEL_VOTES, NUMBER_VOTES
from secretballot.students import fit_table_student, learns_from_counts
from secretballot.students.table_students import default_regressor
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.tables import label_ballots, number_ballots
from secretballot.teachers.votes import (
    check_ballot,
    checked_positions,
    counted_labels,
    guarantee_of,
    label_shape,
    number_votes,
)

MOST_MEANS = 1000  # points that are asked by default: more do not help a student of a few columns
_SURE = 0.95  # how often a quantile that all teachers agree on is drawn, by default
#: Of the noise on counts, what labels alone need where they are many; good enough for a default.
_LABEL_SHARE = 0.81


@dataclass(eq=False, repr=False)
class TableLearner(PATELearner):
    """A learner from a table of answers to votes of teachers who are asked once."""

    @abstractmethod
    def _terms(
        self, target: Target, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        """Return mechanism and shape, from public numbers alone."""

    @abstractmethod
    def _votes(self, task: Task, teacher: Any, points: Any) -> Votes:
        """Return what the teachers of all shards vote for at the asked points; secret."""

    @abstractmethod
    def _try_student(self, points: Any) -> None:
        """Refuse a student that cannot learn the public points that will be asked."""

    def _release(self, task: Task) -> ReleasedTable:
        terms = self._terms(task.target, task.budget, len(task.askable), task.guarantee)
        rows = self._rows_to_ask(task, terms.n_points)
        points = take_rows(task.points, rows)

        def cast() -> Votes:
            task.refuse_points()
            teacher = task.table.checked_teacher(self.teacher, task.points, task.target)
            self._try_student(points)
            return self._votes(task, teacher, points)

        return release_table(terms, cast, task.account, **self._release_terms(task, rows))

    def _ballots(self, cast: Any, task: Task, teacher: Any, points: Any) -> Any:
        return task.table.ballots(
            cast,
            teacher,
            points,
            self.n_teachers,
            task.guarantee.relation,
            random_state=self.random_state or 0,
            progress=self.progress,
        )

    def _planned(self, target: Target, n_public: int) -> Terms:
        budget = required_budget(self.budget)
        self._check_settings(budget)
        return self._terms(target, budget, n_public, guarantee_of("record", self.relation))

    def _taught(self, points: Any) -> Any:
        seed = self.random_state or 0
        return fit_table_student(self.student, points, self.released_, random_state=seed)


@dataclass(eq=False, repr=False, kw_only=True)
class PATEMultiLabelClassifier(ClassLearner, TableLearner):
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
    student_ : LabelsStudent
        Of a fitted student for each label.
    released_ : ReleasedTable
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

    _takes = frozenset({"labels"})

    ballot: str = "labels"
    most_named: int | None = None
    release: str = "auto"

    def planned_terms(self, n_public: int, labels: Sequence[str]) -> Terms:
        """Return mechanism and shape of a fit with these labels and so many public points;
        nothing is spent.

        Raises
        ------
        ParameterError
            If a setting cannot be.
        """
        return self._planned(Target.of_labels(labels), n_public)

    def _check_settings(self, budget: PrivacyBudget) -> None:
        super()._check_settings(budget)
        check_choice("release", self.release, ("auto", *RELEASES))

    @property
    def _release_kind(self) -> str:
        if self.release != "auto":
            return self.release
        return "counts" if self.student is None or learns_from_counts(self.student) else "labels"

    def _terms(
        self, target: Target, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        n_labels, one_by_one = len(target.labels), self.ballot == "labels"
        check_ballot(self.ballot, self.most_named, n_labels)

        def shape(n_points: int) -> VoteShape:
            numbers, most = (n_points, n_labels, self.n_teachers), self.most_named
            return label_shape(*numbers, guarantee, ballot=self.ballot, most_named=most)

        def sure(n_points: int) -> bool:
            # right 19 times in 20 where eight teachers in ten name a label, or do not
            sigma = calibrate_gaussian(budget, shape(n_points).shifts)
            return 0.3 * self.n_teachers >= 1.645 * sigma * (_LABEL_SHARE if one_by_one else 1)

        wanted = self.n_queries
        if wanted is None:
            labels = self._release_kind == "labels"
            wanted = _most_sure(sure, n_public) if labels else n_public
        own = shape(min(check_count("n_queries", wanted), n_public))
        public = {
            "method": LABEL_VOTES,
            "labels": list(target.labels),
            "ballot": self.ballot,
            "most_named": self.most_named,
        }
        return Terms(noisy_votes(budget, own, release=self._release_kind), own, budget, public)

    def _try_student(self, points: Any) -> None:
        if self.student is not None:
            votes = self.n_teachers if self._release_kind == "counts" else None
            try_student(self.student, points, Teaching([0, 1], n_rows(points), votes))

    def _votes(self, task: Task, teacher: Any, points: Any) -> Votes:
        return counted_labels(
            self._ballots(label_ballots, task, teacher, points),
            task.target.labels,
            task.guarantee,
            ballot=self.ballot,
            most_named=self.most_named,
        )


@dataclass(eq=False, repr=False, kw_only=True)
class PATERegressor(NumberLearner, TableLearner):
    """Learn to predict a number from private records, with any regressor, by votes of teachers.

    The private records are cut into disjoint shards, one teacher per shard; the teachers vote for
    numbers at public points; a noisy mean or quantile of each point's votes is released; a
    student learns from it.

    Parameters
    ----------
    teacher : scikit-learn regressor, default a Ridge after a StandardScaler
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn regressor, default a RidgeCV after a StandardScaler
        Learns from the released numbers, whose noise has the same size at every point.
    n_teachers : int, default 250
        Number of shards; public, chosen without looking at the private data.
    budget : PrivacyBudget
        (epsilon, delta) of this fit; of quantiles delta may be 0.
    statistic : {"mean", "quantile"}, default "mean"
        A noisy mean of the votes, or a quantile drawn from the grid. The mean's noise is that of
        the whole range, which a student of many points averages out; a quantile is near the truth
        or far off, and takes many teachers and few points.
    rank : int, optional
        Of a quantile: which vote, from 1, the smallest, to `n_teachers`; by default the median.
    n_positions : int, default 200
        Numbers of the public grid, evenly spaced over the range; votes are rounded to it.
    n_queries : int, optional
        How many public points are asked, chosen at random with `random_state`. By default all up to
        1,000 for means; for quantiles as many as leave a unanimous vote right 19 times in 20.
    relation, ledger, request, purpose, random_state, progress
        As for `PATEMultiLabelClassifier`.

    Attributes
    ----------
    student_ : NumberStudent
        Of the fitted student.
    released_ : ReleasedTable
        Everything that was released; `write_release` makes a folder of it.
    certificate_ : dict
        What may be shown to a stranger; it holds the answers.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : add or remove one unit; or replace one record in place.
    Sensitivity : one unit touches one shard, hence one teacher, which moves its vote at every
        point.
    Price : `budget`, composed in `ledger` with everything else released from the same data: a
        vector sum for means, draws of bounded range for quantiles.
    Source : Dong, Durfee, Rogers 2020, arXiv:1909.13830, for quantiles; prices proved in
        docs/explanation/prices.md, section 16.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(8000, 2)), rng.normal(size=(300, 2))
    >>> model = sb.PATERegressor(budget=sb.PrivacyBudget(2.0, 1e-6), n_teachers=400)
    >>> model = model.fit(X, 3 * X[:, 0], X_public=X_public, bounds=(-8.0, 8.0))
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 2.0)
    """

    _n_classes = 0

    statistic: str = "mean"
    rank: int | None = None
    n_positions: int = 200

    def planned_terms(self, n_public: int, bounds: tuple[float, float]) -> Terms:
        """Return mechanism and shape of a fit with these bounds and so many public points; nothing
        is spent.

        Raises
        ------
        ParameterError
            If a setting cannot be.
        """
        return self._planned(Target.of_number(bounds), n_public)

    def _check_settings(self, budget: PrivacyBudget) -> None:
        super()._check_settings(budget)
        if (
            check_choice("statistic", self.statistic, STATISTICS) == "mean"
            and self.rank is not None
        ):
            raise ParameterError(
                Parameter("rank"), f" is {shown(self.rank)} of a mean; only a quantile has one."
            )

    @property
    def _student_to_fit(self) -> Any:
        return default_regressor() if self.student is None else self.student

    def _terms(
        self, target: Target, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        positions, mean = checked_positions(self.n_positions), self.statistic == "mean"
        assert target.bounds is not None
        public = {"method": NUMBER_VOTES, "bounds": list(target.bounds)}

        def terms(n_points: int) -> Terms:
            shape = teacher_shape(n_points, positions, self.n_teachers, guarantee)
            mechanism = (
                noisy_means(budget, shape)
                if mean
                else vote_quantiles(budget, shape, rank=self.rank)
            )
            return Terms(mechanism, shape, budget, public)

        def sure(n_points: int) -> bool:
            found = terms(n_points)
            assert isinstance(found.mechanism, VoteQuantiles)
            return unanimous_chance(found.mechanism, found.shape) >= _SURE

        wanted = self.n_queries
        if wanted is None:
            wanted = MOST_MEANS if mean else _most_sure(sure, n_public)
        return terms(min(check_count("n_queries", wanted), n_public))

    def _try_student(self, points: Any) -> None:
        problem = problem_of_fit(self._student_to_fit, points, 0)
        if problem is not None:
            raise ParameterError(
                Parameter("student"),
                f" cannot be trained on the public points with dummy numbers ({problem}). Nothing"
                " was spent; fix the student, or take another one.",
            )

    def _votes(self, task: Task, teacher: Any, points: Any) -> Votes:
        assert task.target.bounds is not None
        return number_votes(
            np.column_stack(list(self._ballots(number_ballots, task, teacher, points))),
            task.target.bounds,
            n_positions=self.n_positions,
            unit=task.guarantee.unit,
            relation=task.guarantee.relation,
        )


def _most_sure(sure: Callable[[int], bool], most: int) -> int:
    """Return about the most public points, at most `most`, that may be asked while answers are
    `sure`; at least 1."""
    return max(1, last_that_holds(sure, most, loosely=True))  # a few queries do not matter
