"""Record votes: each private record gives its label to the public points nearest to it."""

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import sklearn
from sklearn.base import clone

from secretballot._points import NearestPoints
from secretballot._typing import BoolArray, IntArray
from secretballot.accounting import PrivacyBudget, noisy_votes
from secretballot.accounting.recipes import Terms
from secretballot.bases import Basis, check_basis
from secretballot.core.private import Votes
from secretballot.foreign_code import isolated, mapped_rows
from secretballot.learners.inputs import points_digest, random_rows
from secretballot.learners.learner import ClassLearner, Task
from secretballot.learners.table import Table
from secretballot.released import ReleasedLabels
from secretballot.releasing import release_labels
from secretballot.report.certificate_models import (
    EXPECTED_UNCOVERED,
    MOST_EXPECTED,
    RECORD_VOTES,
    coverage_by_votes,
    stated,
)
from secretballot.students import RecordVotesStudent, fit_student, learns_from_counts
from secretballot.students.fitting import Teaching, try_student
from secretballot.students.record_votes import fitted_basis
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import record_votes_shape, votes_of_records

# one in so many public points gets a vote of a record, and five points where that many are near
_ONE_IN, _FEW_VOTES, _FEW_IN = 100, 5, 10


def default_votes(n_points: int) -> int:
    """Return for how many of `n_points` public points a record votes unless set otherwise.

    More votes of a record are more noise and still more knowledge, as long as their points are near
    to it: one in a hundred points measured best on a table.
    """
    return max(1, min(_FEW_VOTES, n_points // _FEW_IN), n_points // _ONE_IN)


@dataclass(eq=False, repr=False)
class RecordVotesClassifier(ClassLearner):
    """Learn a publishable classifier from votes that private records cast for themselves.

    Every record gives its label to the public points nearest to it. How many votes each point got
    for each class is released with noise, as one table, and a student learns from it. One
    record moves a few counts by one, however many records, points and classes there are, so no
    record's influence is lost to shards, and no teacher is trained. A record with a value that the
    public points do not show votes at none of them; how many there are is counted with them. Use it
    where you hold the records, and a pool of public points that covers them. Black-box learners,
    data in silos and files of votes need `PATEClassifier`.

    Parameters
    ----------
    student : scikit-learn classifier or name, default "auto"
        By default a `RecordVotesStudent`. A `GraphCountsClassifier` or `NoisyCountsClassifier`
        learns from the noisy counts too; any other classifier learns from what the default student
        says of the whole pool.
    epsilon, delta : float
        Price of a fit; delta above 0.
    votes_per_record : int, optional
        Number k of nearest public points that a record votes for. By default one in a hundred, and
        at least five where there are fifty points.
    basis : basis of `secretballot.bases`, or a name of one, optional
        Coordinates, as integers, by which distances are taken; a copy is fitted to the public
        points. By default a `TableBasis` that rotates and does not whiten.
    n_queries : int, optional
        Number of public points that take votes, drawn by the public seed; all by default.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. "replace-one" costs twice as many counts, as a record that is
        replaced takes votes away and gives others.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    random_state : int, optional
        Public seed of the choice of points and of the student. Never of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the fitted student
    released_ : ReleasedLabels
        Everything that was released: noisy counts, one column for each class. ``n_teachers`` is 0,
        since the number of records is private.
    certificate_ : dict
        What may be shown to a stranger.
    votes_per_record_ : int
    coverage_ : Coverage or None
        How many records have values that the public points do not show; released. None where it
        was not looked at: where chance alone leaves more than a quarter uncovered.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record; with ``units`` all records of one id, of which one votes, chosen by a keyed
        hash with a fresh secret key.
    Relation : as `relation`; with ``units`` "add-remove".
    Sensitivity : a record votes at `votes_per_record` different points, once at each, by itself and
        public values alone: coordinates are integers, so that distances are exact and no other
        record has a say, and of points equally far the first ones get the votes. So that many
        counts move by one, and under "replace-one" at most twice as many.
    Price : (`epsilon`, `delta`), by discrete Gaussian noise on every count, composed in `ledger`
        with everything else released from the same data. The price knows neither the number of
        records nor that of points and classes.
    Source : Zhu et al. 2022, arXiv:2207.13253, for votes of records.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> model = sb.RecordVotesClassifier(epsilon=1.0, delta=1e-6, votes_per_record=5)
    >>> model = model.fit(
    ...     X, (X[:, 0] > 0).astype(int), X_public=X[:200] + 0.01, classes=[0, 1])
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]]).tolist(), model.certificate_["epsilon"]
    ([0, 1], 1.0)
    """

    _counted = ("votes_per_record", "n_queries")

    student: Any = "auto"
    _: KW_ONLY
    votes_per_record: int | None = None
    basis: Basis | str | None = None
    n_queries: int | None = None

    def _check_settings(self, budget: PrivacyBudget) -> None:
        super()._check_settings(budget)
        if self.basis is not None:
            check_basis(self.basis)

    def _release(self, task: Task) -> ReleasedLabels:
        n_public, names = n_rows(task.points), task.target.learnt
        asked = random_rows(n_public, self.n_queries, self.random_state)
        basis: Basis = fitted_basis(self.basis, task.points)
        given = self.votes_per_record
        votes_per_record = default_votes(len(asked)) if given is None else given
        uncovered = basis.uncovered_share_
        # where chance alone leaves so many uncovered, they cannot be left out
        apart = not uncovered > MOST_EXPECTED
        shape = record_votes_shape(
            len(asked), len(names), votes_per_record, task.guarantee, counts_uncovered=apart
        )
        share = {EXPECTED_UNCOVERED: float(uncovered)} if apart else {}
        mechanism = noisy_votes(task.budget, shape, release="counts")

        def cast() -> Votes:
            task.refuse_points()
            self._try_student(task.points, names, len(asked))
            points = basis.rows(take_rows(task.points, asked))[:, : basis.n_directions_]
            # what a private cell could make a library say stays unsaid
            with isolated(0, sklearn.get_config()):
                return votes_of_records(
                    _voting_records(basis, task.table, told_apart=apart),
                    NearestPoints(points, votes_per_record),
                    names,
                    task.guarantee,
                    counts_uncovered=apart,
                )

        found = release_labels(
            Terms(mechanism, shape, task.budget, {"method": RECORD_VOTES, **share}),
            cast,
            task.account,
            classes=names,
            rows=asked,
            points_sha256=points_digest(take_rows(task.points, asked)),
            **task.named,
        )
        self.votes_per_record_ = votes_per_record
        assert found.noisy_counts is not None
        counted = coverage_by_votes(stated(found.certificate), found.noisy_counts)
        self.coverage_ = None if counted is None else counted[0]
        if self.coverage_ is not None and self.coverage_.is_poor:
            warnings.warn(self.coverage_.warning, UserWarning, stacklevel=4)
        return found

    def _taught(self, points: Any) -> Any:
        student = self._student
        return fit_student(
            RecordVotesStudent(self.basis) if student is None else clone(student),
            points,
            self.released_,
            random_state=self.random_state or 0,
            basis=self.basis,
        )

    def _try_student(self, X_public: Any, names: list[Any], n_asked: int) -> None:
        """Refuse a student that cannot learn from counts of votes, or from labels of the pool."""
        student = self._student
        if student is None:
            return
        if learns_from_counts(student):
            # a hundred votes at each point: how many there will be is private
            teaching = Teaching(names, n_asked, 100, by_record=True)
        else:
            teaching = Teaching(names, n_rows(X_public))
        try_student(student, X_public, teaching, basis=self.basis)


def _voting_records(
    basis: Basis, table: Table, *, told_apart: bool
) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yield coordinates, class indices of the records that vote, one of every unit, and whether the
    public points cover them, block by block; where that is not asked, all count as covered.

    A record that the basis cannot map is left out, without a word: it votes for nothing.
    """
    width = basis.n_directions_
    for block in table.one_of_each_unit(8192):
        rows, known, covered = mapped_rows(basis, block.rows, width + 1 + len(basis.levels_))
        coordinates, shown = rows[known, :width], covered if told_apart else known
        yield coordinates, block.targets[known], shown[known]
