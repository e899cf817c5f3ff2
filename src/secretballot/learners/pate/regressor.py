"""PATE for a number: teachers vote for numbers, and a student learns from noisy means or
quantiles."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from secretballot._seeded import own_global_states, with_own_seeds
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import STATISTICS, check_choice, check_count, shown
from secretballot.accounting import (
    PrivacyBudget,
    noisy_means,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.recipes import Terms, unanimous_chance
from secretballot.core.mechanisms import VoteQuantiles
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.tables import TableLearner, most_sure_points
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import refuse_unfit
from secretballot.learners.training.student_predictions import checked_points
from secretballot.learners.training.target_cells import cells_of, number_of
from secretballot.report.certificate.methods import NUMBER_VOTES
from secretballot.students import fit_table_student
from secretballot.students.table_students import default_regressor
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.tables import number_ballots
from secretballot.teachers.votes import checked_positions, checked_range, guarantee_of, number_votes

MOST_MEANS = 1000  # points that are asked by default: more do not help a student of a few columns
TRIAL_ROWS = 60
_SURE = 0.95  # how often a quantile that all teachers agree on is drawn, by default


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class PATERegressor(RegressorMixin, TableLearner):  # type: ignore[misc]
    """Learn to predict a number from private records, with any regressor, by votes of teachers.

    The private records are cut into disjoint shards, one teacher per shard; the teachers vote for
    numbers at public points; a noisy mean or quantile of each point's votes is released; a
    student learns from it.

    Parameters
    ----------
    bounds : tuple of two floats
        Public bounds of the target, in its own unit; required, and never inferred from private
        targets. Votes beyond are cut. Noise grows with the width.
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
    student_ : the fitted student
    released_table_ : ReleasedTable
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
    >>> model = sb.PATERegressor((-8.0, 8.0), budget=sb.PrivacyBudget(2.0, 1e-6), n_teachers=400)
    >>> model = model.fit(X, 3 * X[:, 0], X_public=X_public)
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 2.0)
    """

    bounds: tuple[float, float] | None = None
    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    statistic: str = "mean"
    rank: int | None = None
    n_positions: int = 200

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Learn from private records and public points.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_records, n_features)
            Private.
        y : sequence of shape (n_records,)
            Private targets. What is beyond `bounds`, or infinite, is cut; a text counts as
            the number that it says. A target that is nan, or no number, leaves its record out.
        X_public : like X, of shape (n_public, n_features)
            Public points, without targets.
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
        X_public = self._released_points(X, y, X_public, units, unit_name)
        fitted = fit_table_student(
            self.student, X_public, self.released_table_, random_state=self.random_state or 0
        )
        self.student_ = fitted.regressor
        return self

    def fit_table(
        self,
        X: Any,
        y: ArrayLike,
        *,
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Release the table alone, and fit no student; parameters, with their shapes, and errors
        are those of `fit`."""
        self._released_points(X, y, X_public, units, unit_name)
        return self

    def _released_points(
        self, X: Any, y: Any, X_public: Any, units: Any, unit_name: str | None
    ) -> Any:
        """Release the table, and return the public points."""
        bounds = checked_range(self.bounds)
        check_choice("statistic", self.statistic, STATISTICS)
        return self._release_table(
            X, X_public, lambda n: _read_numbers(y, bounds, n), units, unit_name
        )

    def planned_terms(self, n_public: int) -> Terms:
        """Return mechanism and shape of a fit with so many public points; nothing is spent.

        Raises
        ------
        ParameterError
            If a setting cannot be.
        """
        check_choice("statistic", self.statistic, STATISTICS)
        guarantee = guarantee_of("record", self.relation)
        return self._calibrated_terms(required_budget(self.budget), n_public, guarantee)

    def predict(self, X: Any) -> FloatArray:
        """Return the student's number for every row of `X`, within `bounds`, shape
        (n_rows,)."""
        points = checked_points(self, X)
        low, high = checked_range(self.bounds)
        numbers = np.asarray(self.student_.predict(points), dtype=np.float64)
        return np.clip(numbers, low, high)

    @property
    def _student_to_fit(self) -> Any:
        return default_regressor() if self.student is None else self.student

    def _calibrated_terms(
        self, budget: PrivacyBudget, n_public: int, guarantee: Guarantee
    ) -> Terms:
        positions, mean = checked_positions(self.n_positions), self.statistic == "mean"
        if mean and self.rank is not None:
            raise ParameterError(
                Parameter("rank"), f" is {shown(self.rank)} of a mean; only a quantile has one."
            )

        def terms(n_points: int) -> Terms:
            shape = teacher_shape(n_points, positions, self.n_teachers, guarantee)
            mechanism = (
                noisy_means(budget, shape)
                if mean
                else vote_quantiles(budget, shape, rank=self.rank)
            )
            bounds = list(checked_range(self.bounds))
            return Terms(mechanism, shape, budget, {"method": NUMBER_VOTES, "bounds": bounds})

        def sure(n_points: int) -> bool:
            found = terms(n_points)
            assert isinstance(found.mechanism, VoteQuantiles)
            return unanimous_chance(found.mechanism, found.shape) >= _SURE

        wanted = self.n_queries
        if wanted is None:
            wanted = MOST_MEANS if mean else most_sure_points(sure, n_public)
        return terms(min(check_count("n_queries", wanted), n_public))

    def _checked_teacher(self, X: Any, X_public: Any) -> Any:
        teacher = make_pipeline(StandardScaler(), Ridge()) if self.teacher is None else self.teacher
        points = take_rows(X_public, np.resize(np.arange(min(TRIAL_ROWS, n_rows(X_public))), 60))
        problem = _problem_of(teacher, points)
        if problem is not None:
            raise ParameterError(
                Parameter("teacher"),
                f" cannot be trained on the public points with dummy numbers ({problem}); it would"
                " fail on every shard. Give a regressor that takes these columns. Nothing was"
                " spent.",
            )
        # before it is known whether any are missing
        refuse_unfit("X", X, takes_missing=_problem_of(teacher, _with_holes(points)) is None)
        return teacher

    def _try_student(self, points: Any) -> None:
        problem = _problem_of(self._student_to_fit, points)
        if problem is not None:
            raise ParameterError(
                Parameter("student"),
                f" cannot be trained on the public points with dummy numbers ({problem}). Nothing"
                " was spent; fix the student, or take another one.",
            )

    def _teacher_votes(
        self, teacher: Any, X: Any, targets: Any, shards: IntArray, points: Any, unit: str
    ) -> Votes:
        ballots = number_ballots(
            teacher,
            X,
            targets,
            shards,
            points,
            n_teachers=self.n_teachers,
            random_state=self.random_state or 0,
            progress=self.progress,
        )
        return number_votes(
            np.column_stack(list(ballots)),
            checked_range(self.bounds),
            n_positions=self.n_positions,
            unit=unit,
            relation=self.relation,
        )


def _problem_of(learner: Any, points: Any) -> str | None:
    """Return what goes wrong with dummy numbers at public points, None if nothing does."""
    if isinstance(learner, type) or not all(
        hasattr(learner, name) for name in ("fit", "predict", "get_params")
    ):
        return f"{shown(learner)} is no instance with fit, predict and get_params"
    numbers = np.arange(n_rows(points)) % 7 / 7.0
    try:
        with own_global_states(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = with_own_seeds(clone(learner), 0).fit(points, numbers)
            predicted = np.asarray(fitted.predict(points), dtype=np.float64)
    except Exception as error:  # any learner may raise anything; the points are public
        first_line = next(iter(str(error).splitlines()), "").rstrip(".:;")
        return f"{type(error).__name__}: {first_line}"
    if predicted.reshape(-1).shape != numbers.shape or not np.isfinite(predicted).all():
        return "it predicts something else than one number for each point"
    return None


def _with_holes(points: Any) -> Any:
    """Return public points with every seventh row's numbers missing, where they can be."""
    holes = np.zeros(points.shape, dtype=bool)
    holes[::7] = True
    if hasattr(points, "iloc"):
        return points.mask(holes)
    if hasattr(points, "toarray"):
        return np.full(points.shape, np.nan)
    numbers = points.astype(float) if points.dtype.kind in "biuf" else points.astype(object)
    return np.where(holes, np.nan, numbers)


def _read_numbers(y: Any, bounds: tuple[float, float], n_records: int) -> FloatArray:
    """Return private targets, cut to the bounds, nan for what is no number; each from itself alone.

    Raises
    ------
    DataError
        If there is not one for each record.
    """
    if y is None:
        raise DataError("y is missing; give the private targets, one number for each record.")
    cells = cells_of(y)
    if len(cells) != n_records:
        raise DataError(
            Parameter("y"),
            f" has {len(cells)} targets; it must have one for each of the {n_records} rows of X.",
        )
    return np.clip(np.array([number_of(cell) for cell in cells], dtype=np.float64), *bounds)
