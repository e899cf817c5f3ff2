"""PATE with active student queries: the student asks only for labels that may change its mind."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from secretballot._validation import check_instance
from secretballot.accounting import PrivacyBudget, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, teachers_of
from secretballot.core.noise import entropy_bytes
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.learners.pate.defaults import choose_terms
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.pate.rounds import (
    AskableRows,
    BegunQueryRun,
    QueryRun,
    ask_in_rounds,
    begin_query_run,
)
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.column_template import template_of
from secretballot.learners.training.inputs import as_matrix
from secretballot.learners.training.label_stream import LabelStream, certified_labels
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.shards import learner_identity
from secretballot.learners.training.table import Table
from secretballot.learners.training.trained import TrainedTeachers, keep_teachers
from secretballot.learners.training.trial_fit import reads_sparse
from secretballot.queries import MarginSampling, QueryStrategy
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_paid_by
from secretballot.report.certificate.plan_checks import total_price
from secretballot.students import fit_student
from secretballot.students.confirmed import StudentInRounds
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import make_vault


@dataclass(eq=False, repr=False)
class ActivePATEClassifier(PATEClassifier):
    """Learn a publishable classifier, asking in rounds for the labels that teach most.

    A number `n_queries` of labels at a fixed noise is reserved first. A strategy then chooses
    public points round by round, in the light of the labels released so far; it stops when it has
    nothing more to ask, the points are used up, or the reservation is spent.

    What is left of a reservation costs as much as what was used (stopping early does not make
    epsilon smaller). In a ledger that composes by a Renyi filter it goes back into the budget. In
    any other ledger the reservation stays open, if there is a vault and a ledger on disk, and a
    later fit under the same request, with another strategy say, spends the rest.

    Parameters
    ----------
    teacher, student, n_teachers, budget, mechanism, n_queries, release, max_abstentions, threshold,
    max_answers, estimate_epsilon, relation, abstentions, ledger, vault, request, purpose, n_jobs,
    engine, send_shards, random_state, progress
        As for `PATEClassifier`. But by default `n_queries` is what leaves a vote of margin 0.6 K
        right 19 times in 20, for counts as for labels, and progress is also told (queries answered,
        queries reserved).
    confidence : float, optional
        Of interactive voting: probability from which on a prediction of the student that was not
        corrected counts as confirmed; 0.9 by default. Given with `ConfidentLabels` of your own, it
        makes them interactive.
    strategy : QueryStrategy, optional
        How to choose: see `secretballot.queries`. `MarginSampling` by default.
    round_size : int, optional
        Queries per round; a twentieth of all by default.

    Attributes
    ----------
    rounds_ : list of int
        Queries of each round.
    explanation_ : dict
        What the strategy tells of its choices: a version space, say.
    classes_, student_, released_labels_, certificate_, n_features_in_
        As for `PATEClassifier`; the certificate says what was reserved and what was used.

    Privacy
    -------
    Unit, relation, sensitivity : as for `PATEClassifier`.
    Price : `budget`, for all queries, whatever is asked and whenever it stops.
    Source : Liu et al. 2021, Algorithm 4, with one labelling service (differences 5) over Algorithm
        1 or 2.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(2000, 2)), rng.normal(size=(200, 2))
    >>> model = sb.ActivePATEClassifier(
    ...     strategy=sb.queries.MarginSampling(), n_queries=20, round_size=10, n_teachers=50,
    ...     budget=sb.PrivacyBudget(epsilon=2.0, delta=1e-5))
    >>> model = model.fit(X, (X[:, 0] > 0).astype(int), X_public=X_public, classes=[0, 1])
    >>> model.rounds_, model.certificate_["plan"]["used"]
    ([10, 10], 20)
    """

    in_rounds = True

    confidence: float | None = field(default=None, kw_only=True)
    strategy: QueryStrategy | None = field(default=None, kw_only=True)
    round_size: int | None = field(default=None, kw_only=True)

    @property
    def _chosen_strategy(self) -> QueryStrategy:
        return MarginSampling() if self.strategy is None else self.strategy

    def _stored_labels(self) -> ReleasedLabels | None:
        assert self.ledger is not None
        assert self.request is not None
        done = releasing.stored(self.ledger, self.request)
        if done is None:
            return None
        plan, rows = done.about.get("plan"), done.about.get("rows")
        if plan is None or rows is None:
            raise ParameterError(
                f"The request {self.request!r} was answered before, not in rounds; use a new"
                " request. Nothing was spent."
            )
        return certified_labels(done, dict(zip(done.questions, rows, strict=True)), plan)

    def _stored_release(self, names: list[Any], by_unit: bool) -> ReleasedLabels | None:
        """Return what was released under the same request before, if anything."""
        if self.ledger is None or self.request is None:
            return None
        released = self._stored_labels()
        if released is None:
            return None
        # A stored release is handed out only if it keeps the promise that is asked for now, for the
        # same classes: its certificate is compared, not the settings of a fit long gone.
        budget = required_budget(self.budget)
        paid = [choice["epsilon"] for choice in released.certificate.get("choices", ())]
        promise = [paid, *(released.certificate[field] for field in ("unit", "relation"))]
        estimate = [] if self.estimate_epsilon is None else [self.estimate_epsilon]
        asked = [estimate, self._protected_unit(by_unit), self.relation]
        # what is left beside an estimate is rounded down, so the sum may be less than the budget by
        # a hair
        same_price = np.allclose(
            total_price(released.certificate), (budget.epsilon, budget.delta), 1e-9, 0
        )
        found = promise, released.n_teachers, list(released.classes)
        if not same_price or found != (asked, self.n_teachers, names):
            raise ParameterError(
                f"The request {self.request!r} was answered before, with another promise, other"
                " classes or number of teachers; ask the same again, or use a new request."
            )
        if released.certificate.get("plan", {}).get("strategy") != json.loads(
            json.dumps(self._chosen_strategy.describe())
        ):
            raise ParameterError(
                f"The request {self.request!r} was answered before, by another strategy; ask the"
                " same again, or use a new request."
            )
        return released

    def _check_points(self, released: ReleasedLabels, X_public: Any) -> None:
        """Refuse other public points than those that a stored release is about."""
        # Labels are kept as rows of the pool, so in another pool they would stand beside wrong
        # points. A release without a digest can only be compared by its range.
        known = released.certificate["released"].get("points_sha256")
        inside = not len(released.queries) or released.queries.max() < n_rows(X_public)
        if not inside or known not in (None, points_digest(take_rows(X_public, released.queries))):
            raise ParameterError(
                f"The request {self.request!r} was answered before, about other public points; give"
                " the X_public of that time, or use a new request."
            )

    def _release_votes(self, private: Table, X_public: Any, names: list[Any]) -> ReleasedLabels:
        self.explanation_: dict[str, Any] = {}  # a stored release comes without one
        released = self._asked_in_rounds(private, X_public, names)
        self.rounds_ = list(released.certificate["plan"]["rounds"])
        return released

    def _asked_in_rounds(self, private: Table, X_public: Any, names: list[Any]) -> ReleasedLabels:
        # what was paid for under this request is answered again, and trains nothing
        known = self._stored_release(names, private.unit == "user")
        if known is not None:
            self._check_points(known, X_public)
            return known
        # A first proposal is made by the smallest mechanism that may come of it before anything is
        # trained or paid: a strategy that cannot work says so for nothing.
        account = self._open_account(private)
        private.refuse_points(X_public)
        learner = private.checked_teacher(self.teacher, X_public, len(names))
        askable = AskableRows.of(X_public, self._askable_rows(n_rows(X_public)))
        declaration = self._public_declaration(private)
        made_for = guarantee_of(declaration["unit"], declaration["relation"])
        pool = teacher_shape(len(askable.rows), len(names), self.n_teachers, made_for)
        estimated = None
        if self.estimate_epsilon is None:
            terms = self.planned_terms(pool)
        else:
            estimated = EstimatedSize.of_fit(self, pool, account)
            terms = estimated.smallest()
        self._try_student(X_public, names, terms.shape.n_queries)
        begun = self._begin_run(askable, X_public, names, terms)
        teachers = self._kept_teachers(learner, private, X_public, names, declaration)
        choices = []
        if estimated is not None:
            counts = teachers.vote(take_rows(X_public, askable.rows))
            choices = [estimated.pay(counts, account, self.request)]
            terms = estimated.terms_by(choices[0])
            begun = self._begin_run(askable, X_public, names, terms)
        stream = LabelStream(
            terms.mechanism,
            terms.shape,
            account,
            terms.budget,
            classes=names,
            request=entropy_bytes(16).hex() if self.request is None else self.request,
            teachers=teachers.serial,
            vault=teachers.vault if account.durable else None,
            purpose=self.purpose,
            declaration=declaration,
            choices=choices,
            confidence=terms.confidence,
            plan=begun.plan_of(terms.shape.n_queries),
        )
        asked = ask_in_rounds(
            stream,
            lambda rows: teachers.vote(take_rows(X_public, rows)),
            askable,
            begun,
            self.progress,
            student_in_rounds(
                terms.confidence,
                LogisticRegression(max_iter=1000) if self.student is None else self.student,
                X_public,
                names,
                self.n_teachers,
                self.random_state,
            ),
        )
        self.explanation_ = asked.explanation
        return asked.released

    def _begin_run(
        self, askable: AskableRows, X_public: Any, names: list[Any], terms: Terms
    ) -> BegunQueryRun:
        """Return the run with its first proposal; a strategy that cannot work says so here."""
        pool = askable.pool(X_public, names, terms.shape.n_queries, self.random_state or 0)
        return begin_query_run(self._chosen_strategy, pool, self.round_size)

    def _kept_teachers(
        self,
        learner: Any,
        private: Table,
        X_public: Any,
        names: list[Any],
        declaration: Any,
    ) -> TrainedTeachers:
        """Return the teachers, kept in the vault where there is one."""
        # A reservation goes on with the same teachers or not at all: the identity is all that they
        # depend on, so that other data or settings are refused.
        vault = None if self.vault is None else make_vault(self.vault)
        seed = self.random_state or 0
        sparse = reads_sparse(learner, X_public, len(names))
        trained = keep_teachers(
            vault,
            lambda: self._train_teachers(learner, private, len(names), sparse),
            (
                learner_identity(learner),
                *private.identity,
                self.n_teachers,
                names,
                self.relation,
                seed,
            ),
            tuple(names),
            declaration,
            template_of(X_public),
            seed,
        )
        trained.ensemble.sparse = sparse  # those that were found in the vault, too
        return trained


def student_in_rounds(
    confidence: float | None,
    student: Any,
    X_public: Any,
    classes: Sequence[Any],
    n_teachers: int,
    random_state: int | None,
) -> StudentInRounds | None:
    """Return the student that interactive voting contradicts, at public points of shape (n_public,
    n_features); None without a confidence."""
    if confidence is None:
        return None
    return StudentInRounds(
        lambda so_far: fit_student(student, X_public, so_far, random_state=random_state),
        X_public,
        classes,
        n_teachers,
        confidence,
    )


def label_actively(
    counts: Votes,
    X_public: Any,
    mechanism: Mechanism,
    ledger: Ledger,
    budget: PrivacyBudget,
    strategy: QueryStrategy,
    *,
    n_queries: int | None = None,
    confidence: float | None = None,
    round_size: int | None = None,
    request: str | None = None,
    vault: str | Path | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    random_state: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    student: Any = None,
) -> QueryRun:
    """Ask in rounds about public points on which the teachers have voted already, elsewhere.

    Parameters
    ----------
    counts : Votes
        Votes on every row of `X_public`; secret.
    X_public : array, sparse matrix or frame of shape (counts.shape.n_queries, n_features)
        Public points.
    mechanism : Mechanism
    ledger : Ledger
        Account of the private dataset.
    budget : PrivacyBudget
        What all queries cost.
    strategy : QueryStrategy
    n_queries : int, optional
        Most queries that are asked; all rows by default.
    confidence : float, optional
        Of `ConfidentLabels` that contradict a student, as for `ActivePATEClassifier`.
    round_size, progress
        As for `ActivePATEClassifier`; progress is told (queries answered, queries reserved).
    request, vault : optional
        With both an interrupted run goes on where it was; the votes must then be the same.
    purpose, declaration
        As for `secretballot.release`.
    random_state : int, optional
        Public seed of the strategy; None is 0.
    student : scikit-learn classifier, default a LogisticRegression
        What interactive voting contradicts; fitted to the answers before each round.

    Returns
    -------
    QueryRun
        With the released labels, ready for `fit_student`.

    Raises
    ------
    ParameterError, DataError
        If something does not fit; nothing was spent unless the strategy breaks its promise on the
        way.
    BudgetError
        If the ledger does not admit the price; nothing was spent.

    Privacy
    -------
    As for `secretballot.release`: all queries are priced, whatever is asked.
    """
    # The strategy makes its first proposal before the stream reserves anything.
    check_paid_by(mechanism, ledger, budget)
    check_instance("counts", counts, Votes, hint="give Votes, as votes_of_counts makes them")
    n_teachers, made = teachers_of(counts.shape), counts.shape.guarantee
    if declaration is None and made != Guarantee(unit="record", relation="add-remove"):
        declaration = {"unit": made.unit, "relation": made.relation}
    X_public = as_matrix("X_public", X_public)
    if n_rows(X_public) != counts.shape.n_queries:
        raise DataError(
            Parameter("X_public"),
            f" has {n_rows(X_public)} rows and there are votes on {counts.shape.n_queries}; give"
            " the points that the teachers voted on.",
        )
    askable = AskableRows.of(X_public, by_value=False)
    terms = choose_terms(
        mechanism,
        budget,
        counts.shape,
        n_queries=n_queries,
        confidence=confidence,
        in_rounds=True,
    )
    pool = askable.pool(X_public, counts.classes, terms.shape.n_queries, random_state or 0)
    begun = begin_query_run(strategy, pool, round_size)
    stream = LabelStream(
        mechanism,
        terms.shape,
        ledger,
        budget,
        classes=counts.classes,
        request=entropy_bytes(16).hex() if request is None else request,
        vault=None if vault is None else Path(vault),
        purpose=purpose,
        declaration=declaration,
        confidence=confidence,
        plan=begun.plan_of(terms.shape.n_queries),
    )
    learner = LogisticRegression(max_iter=1000) if student is None else student
    interactive = student_in_rounds(
        confidence, learner, X_public, counts.classes, n_teachers, random_state
    )
    return ask_in_rounds(stream, counts.take, askable, begun, progress, interactive)
