"""Votes of black-box teachers by the sparse vector, one question at a time: Algorithm 2 of
Bassily et al. 2018."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from secretballot._validation import RELATIONS, check_choice, check_count, check_probability
from secretballot.accounting import PrivacyBudget, sparse_vector
from secretballot.accounting.stream_recipes import check_answerable, stream_mechanism
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import AbstentionTable, SparseVector
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.labelers.base import Labeler
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.labelers.stream_sizes import (
    printed_abstentions,
    printed_teachers,
    stream_for,
    teachers_for,
    tight_stream,
)
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import as_matrix, declared_classes
from secretballot.learners.training.private_rows import refuse_private_points
from secretballot.learners.training.surroundings import warn_inside_sklearn
from secretballot.learners.training.trained import train_teachers
from secretballot.teachers.executors import LOCAL
from secretballot.teachers.rows import n_rows


class StabilityLabeler(Labeler):
    """Answer questions with the exact vote of many teachers where it is stable; abstain, and pay,
    where it is not.

    A_binClas of Bassily, Thakurta, Thakkar 2018 (Algorithm 2), which Nandi and Bassily 2020 call
    A_SubSamp (Algorithm 5), with the margin halved and the stop at the T-th abstention. Their
    private learner A_priv (Algorithm 3) is ``PATEClassifier(mechanism="sparse-vector")``: the same
    answers, to public points, and a student of them.

    Parameters
    ----------
    teacher : classifier or str, optional
        Cloned for every shard; by default a hardly regularised logistic regression.
    budget : PrivacyBudget
        For all questions together, with delta above 0.
    n_queries : int
        Number m of questions.
    alpha : float, default 0.05
        Error expected of one teacher, known or guessed beforehand: it sets the number of
        abstentions.
    beta : float, default 0.05
        Probability with which more questions than allowed for may be unstable.
    max_abstentions : int, optional
        Number T of abstentions at which the stream stops; by default from `alpha`.
    n_teachers : int, optional
        Number K of shards; by default so many that a lead of K / 3 is answered.
    calibration : {"tight", "btt2018"}, default "tight"
        Noise, T and K: the least that keep the budget, by the sparse vector or by a table of
        abstentions, whichever answers the less stable questions; or the sparse vector as printed.
    relation, ledger, vault, request, purpose, n_jobs, engine, random_state, progress
        As for `train_teachers` and `LabelingSession`.

    Attributes
    ----------
    n_teachers_, max_abstentions_ : int
        Numbers that were settled.
    session_ : LabelingSession

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given.
    Relation : `relation`.
    Sensitivity : one unit touches one teacher, hence one vote for every question.
    Price : that of all questions, reserved by `fit`.
    Source : Bassily, Thakurta, Thakkar 2018, Algorithm 2 and Theorem 3.2; Nandi and Bassily 2020,
        Algorithm 5.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> labeler = sb.StabilityLabeler(
    ...     budget=sb.PrivacyBudget(4.0, 1e-5), n_queries=20, max_abstentions=2, n_teachers=100)
    >>> labeler = labeler.fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1])
    >>> answer = labeler.ask([3.0, 0.0])
    >>> answer.label in (0, 1, None), labeler.planned, labeler.used
    (True, 20, 1)
    """

    def __init__(
        self,
        teacher: Any = None,
        *,
        budget: PrivacyBudget | None = None,
        n_queries: int = 1000,
        alpha: float = 0.05,
        beta: float = 0.05,
        max_abstentions: int | None = None,
        n_teachers: int | None = None,
        calibration: str = "tight",
        relation: str = "add-remove",
        ledger: Ledger | None = None,
        vault: str | Path | None = None,
        request: str = "stability",
        purpose: str = "",
        n_jobs: int | None = None,
        engine: Any = LOCAL,
        random_state: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.teacher = teacher
        self.budget = budget
        self.n_queries = n_queries
        self.alpha = alpha
        self.beta = beta
        self.max_abstentions = max_abstentions
        self.n_teachers = n_teachers
        self.calibration = calibration
        self.relation = relation
        self.ledger = ledger
        self.vault = vault
        self.request = request
        self.purpose = purpose
        self.n_jobs = n_jobs
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        classes: Sequence[Any],
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
    ) -> Self:
        """Train the teachers and reserve the questions.

        Parameters
        ----------
        X, y, classes, X_public, units, unit_name
            As for `train_teachers`: X of shape (n_records, n_features), y of shape (n_records,).

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        # What follows from public numbers is settled, and the account asked, before hours go into
        # teachers; the session, which pays, comes last.
        warn_inside_sklearn(alone=self.ledger is None)
        same = X_public is X
        X = as_matrix("X", X)
        check_choice("relation", self.relation, RELATIONS)
        declared_classes(classes)
        mechanism, n_teachers = self._calibrated_terms()
        if self.relation == "replace-one" and n_teachers > n_rows(X):
            raise ParameterError(
                Parameter("n_records"),
                f" is {n_rows(X)}, and the budget needs {n_teachers} teachers with one record"
                " each; give more records, a smaller alpha or ",
                Parameter("max_abstentions"),
                ", or ",
                Parameter("n_teachers"),
                ". Nothing was spent.",
            )
        ledger = self._open_account("record" if units is None else "user", self.relation)
        refuse_private_points(X, X_public, same=same, units=units)
        teachers = train_teachers(
            self.teacher,
            X,
            y,
            classes=classes,
            X_public=X_public,
            n_teachers=n_teachers,
            relation=self.relation,
            units=units,
            unit_name=unit_name,
            vault=self._own_vault(),
            n_jobs=self.n_jobs,
            engine=self.engine,
            random_state=self.random_state,
            progress=self.progress,
        )
        self.session_ = LabelingSession(
            teachers,
            mechanism,
            ledger,
            required_budget(self.budget),
            n_queries=self.n_queries,
            request=self.request,
            purpose=self.purpose,
        )
        self.n_teachers_, self.max_abstentions_ = n_teachers, mechanism.max_abstentions
        return self

    def _calibrated_terms(self) -> tuple[SparseVector | AbstentionTable, int]:
        """Return the mechanism and the number of teachers, from public numbers alone."""
        budget, m = required_budget(self.budget), check_count("n_queries", self.n_queries)
        alpha, beta = check_probability("alpha", self.alpha), check_probability("beta", self.beta)
        given = None if self.n_teachers is None else check_count("n_teachers", self.n_teachers)
        check_choice("calibration", self.calibration, ("tight", "btt2018"))
        if self.max_abstentions is not None:
            unstable = check_count("max_abstentions", self.max_abstentions)
        elif self.calibration == "tight":
            unstable = tight_stream(budget, m, alpha, beta, given).abstentions
        else:
            unstable = printed_abstentions(m, alpha, beta)
        # The number of teachers follows from the noise, hence after it.
        if self.calibration == "tight":
            stream = stream_for(budget, unstable)
            given = teachers_for(stream, m, beta) if given is None else given
            mechanism = stream_mechanism(stream, given)
        else:
            given = printed_teachers(budget, m, unstable, beta) if given is None else given
            mechanism = sparse_vector(
                budget, m, max_abstentions=unstable, calibration=self.calibration
            )
        check_answerable(mechanism, given)
        return mechanism, given
