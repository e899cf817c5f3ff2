"""Select, release, learn, in rounds: a strategy asks for public points, a stream answers."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from secretballot._typing import IntArray
from secretballot._validation import check_count, check_instance
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, teachers_of
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.mechanisms import choose_terms
from secretballot.learners.training.inputs import as_matrix
from secretballot.learners.training.label_stream import LabelStream, certified_labels
from secretballot.learners.training.point_digests import question_digests
from secretballot.queries import (
    CheckedSelector,
    PublicPool,
    QueryStrategy,
    default_round_size,
)
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_paid_by
from secretballot.students import fit_student
from secretballot.students.confirmed import StudentInRounds
from secretballot.teachers.rows import n_rows, take_rows


@dataclass(frozen=True, eq=False)
class AskableRows:
    """The distinct points of a public pool: what a strategy may choose from.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
        Rows of the public pool; of points that are there twice, the first.
    questions : list of bytes
        By which the ledger knows each of them.
    by_value : bool
        Whether that follows from the point's values.
    """

    rows: IntArray
    questions: list[bytes]
    by_value: bool = True

    @classmethod
    def of(
        cls, X_public: Any, askable: IntArray | None = None, *, by_value: bool = True
    ) -> "AskableRows":
        """Return the distinct points among the rows `askable`, all rows by default.

        Parameters
        ----------
        X_public : array, sparse matrix or frame of shape (n, n_features)
        askable : ndarray of int64, optional
            Rows that may be asked.
        by_value : bool
            Whether equal points are one question; False takes every row for a question of its own,
            as for votes that were counted elsewhere.
        """
        rows = np.arange(n_rows(X_public)) if askable is None else askable
        if not by_value:
            return cls(rows, [b"row %d" % row for row in rows], by_value=False)
        digests = question_digests(take_rows(X_public, rows))
        # Reversed, so that of equal points the first place stays.
        first = {digest: place for place, digest in reversed(list(enumerate(digests)))}
        places = np.sort(np.fromiter(first.values(), dtype=np.int64, count=len(first)))
        return cls(rows[places], [digests[place] for place in places])

    def pool(
        self, X_public: Any, classes: Sequence[Any], n_queries: int, random_state: int
    ) -> PublicPool:
        """Return what a strategy sees of these points, of shape (m, n_features)."""
        return PublicPool(take_rows(X_public, self.rows), tuple(classes), n_queries, random_state)

    @property
    def row_of(self) -> dict[bytes, int]:
        """The row of the public pool behind every question."""
        return dict(zip(self.questions, self.rows.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class QueryRun:
    """What came of asking in rounds; public.

    Attributes
    ----------
    released : ReleasedLabels
        All answers of the reservation, with the certificate.
    rounds : list of int
        Queries of each round, in the order in which they were asked.
    explanation : dict
        What the strategy reports of its choices.
    """

    released: ReleasedLabels
    rounds: list[int]
    explanation: dict[str, Any]


@dataclass(frozen=True, eq=False)
class BegunQueryRun:
    """A run of queries with its first proposal, and nothing paid yet.

    Attributes
    ----------
    strategy : QueryStrategy
    selector : CheckedSelector
    first : ndarray of int64
        The first proposal, as rows of the pool.
    round_size : int
        Queries per round.
    """

    strategy: QueryStrategy
    selector: CheckedSelector
    first: IntArray
    round_size: int

    def plan_of(self, n_queries: int) -> dict[str, object]:
        """Return what the certificate says of a run that asks so many queries, all it may, in
        rounds of this size."""
        full, rest = divmod(n_queries, self.round_size)
        rounds = [self.round_size] * full + [rest] * (rest > 0)
        return _plan(n_queries, rounds, self.strategy, "none")

    def run(
        self,
        planned: int,
        ask: Callable[[IntArray], IntArray],
        so_far: Callable[[list[int]], ReleasedLabels],
        progress: Callable[[int, int], None] | None = None,
    ) -> list[int]:
        """Ask what the strategy proposes until it, the points or the answers come to an end, and
        return the rows of the pool that have an answer, in their order.

        Parameters
        ----------
        planned : int
            Answers wanted.
        ask : callable
            Proposed rows of the pool, shape (k,), to those that have an answer now.
        so_far : callable
            Rows that have an answer to what the strategy learns from.
        progress : callable, optional
            Called with (rows answered, planned).
        """
        order, proposed = list[int](), self.first
        while len(proposed):
            given = ask(proposed)
            order += given.tolist()
            if progress is not None:
                progress(len(order), planned)
            # fewer answers than questions: nothing is left
            if len(given) < len(proposed) or len(order) >= planned:
                break
            self.selector.receive(so_far(order))
            proposed = self.selector.propose(min(self.round_size, planned - len(order)))
        return order


def begin_query_run(
    strategy: QueryStrategy, pool: PublicPool, round_size: int | None
) -> BegunQueryRun:
    """Begin a run; a strategy that cannot work on the pool says so here, before anything is spent.

    Parameters
    ----------
    strategy : QueryStrategy
    pool : PublicPool
    round_size : int or None
        Queries per round; None takes a twentieth of all. The strategy learns from the answers
        between rounds.

    Raises
    ------
    ParameterError, DataError
        If it cannot; also if more queries are asked than the pool has points.
    """
    # Asked for its first proposal now: later, an empty one would end a run that was paid for.
    if pool.n_queries > pool.n_points:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {pool.n_queries}, more than the {pool.n_points} distinct public points; ask for"
            " fewer, or give more public points.",
        )
    selector = CheckedSelector(strategy, pool)
    try:
        named = isinstance(json.loads(json.dumps(strategy.describe()))["name"], str)
    except (TypeError, ValueError, KeyError):
        named = False
    if not named:
        raise ParameterError(
            f"{type(strategy).__name__}.describe must return a dict of JSON values with a name, for"
            " the certificate. Nothing was spent."
        )
    size = round_size
    if size is None:
        size = default_round_size(pool.n_queries)
    check_count("round_size", size)
    first = selector.propose(min(size, pool.n_queries))
    if not len(first):
        raise ParameterError(
            f"The strategy {type(strategy).__name__} has nothing to ask of these {pool.n_points}"
            " points; give other points or another strategy. Nothing was spent."
        )
    return BegunQueryRun(strategy, selector, first, size)


def ask_in_rounds(
    terms: Terms,
    votes: Callable[[IntArray], Votes],
    ledger: Ledger,
    X_public: Any,
    askable: AskableRows,
    begun: BegunQueryRun,
    *,
    classes: Sequence[Any],
    student: Any = None,
    random_state: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    **about: Any,
) -> QueryRun:
    """Reserve all queries, and ask what the strategy proposes until it, the points or the
    reservation come to an end.

    An interrupted run is taken again from its start: what was answered is found in the ledger and
    costs nothing.

    Parameters
    ----------
    terms : Terms
    votes : callable
        Rows of the public pool, shape (k,), to the votes on them; secret, asked for what is new
        alone.
    ledger : Ledger
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        The public pool.
    askable : AskableRows
    begun : BegunQueryRun
        From `begin_query_run`, on the pool of `askable`.
    classes : sequence
    student : classifier, optional
        What interactive voting contradicts; a LogisticRegression by default. It learns from the
        answers of each round and predicts the points of the next.
    random_state : int, optional
        Of the student.
    progress : callable, optional
        Called with (queries answered, queries reserved).
    **about
        As for `LabelStream`.

    Privacy
    -------
    The strategy and the student see public points and released labels, so what they choose and
    predict is post-processing of what was paid for.
    Source : Liu et al. 2021, Algorithm 4, with one labelling service (differences 5).
    """
    planned, confidence = terms.shape.n_queries, terms.confidence
    stream = LabelStream(
        terms.mechanism,
        terms.shape,
        ledger,
        terms.budget,
        classes=classes,
        confidence=confidence,
        plan=begun.plan_of(planned),
        **about,
    )
    contradicted = None
    if confidence is not None:
        learner = LogisticRegression(max_iter=1000) if student is None else student
        contradicted = StudentInRounds(
            lambda so_far: fit_student(learner, X_public, so_far, random_state=random_state),
            X_public,
            classes,
            teachers_of(terms.shape),
            confidence,
        )
    asked, before, drawn, sizes = stream.stream, stream.stream.used, list[int](), list[int]()

    def ask(proposed: IntArray) -> IntArray:
        used = asked.used
        given = _answered_points(stream, votes, askable, proposed, contradicted)
        sizes.append(len(given))
        drawn.append(asked.used - used)
        return given

    order = begun.run(planned, ask, lambda rows: _so_far(stream, askable, rows), progress)
    done = asked.released()
    if done.questions != tuple(askable.questions[place] for place in order):
        # what an earlier run of another strategy asked counts as one round before
        sizes = [before, *drawn]
    left = _state_of_unused(stream)
    plan = _plan(planned, [size for size in sizes if size], begun.strategy, left)
    released = certified_labels(done, askable.row_of, plan, by_value=askable.by_value)
    if left != "kept" and not asked.closed:
        # who asks again finds all of it in the ledger
        asked.close(len(done.values), {"plan": plan, "rows": released.queries.tolist()})
    return QueryRun(released, plan["rounds"], begun.selector.explain())


def _answered_points(
    stream: LabelStream,
    votes: Callable[[IntArray], Votes],
    askable: AskableRows,
    proposed: IntArray,
    student: StudentInRounds | None,
) -> IntArray:
    """Return the proposed points that have an answer now, in their order; tell the student."""
    rows = askable.rows[proposed]
    predictions = None if student is None else student.predictions(rows)
    questions = [askable.questions[place] for place in proposed]
    found = stream.ask(questions, lambda new: votes(rows[new]), predictions)
    if student is not None and predictions is not None:
        student.tell(rows[found.given], found.labels[found.given], predictions[found.given])
    return proposed[found.given]


def _so_far(stream: LabelStream, askable: AskableRows, order: list[int]) -> ReleasedLabels:
    """Return the answers of this run, as rows of the strategy's pool, without a certificate."""
    answers = stream.find([askable.questions[place] for place in order])
    return ReleasedLabels(
        queries=np.array(order, dtype=np.int64),
        labels=answers.labels,
        classes=stream.classes,
        n_teachers=stream.shape.n_teachers or 0,
        sigma=stream.sigma,
        noisy_counts=answers.noisy_counts,
    )


def _state_of_unused(stream: LabelStream) -> str:
    """Return what becomes of unused questions: a reservation stays open unless it is spent, returns
    its rest or cannot be resumed."""
    asked = stream.stream
    if asked.used == stream.shape.n_queries:
        return "none"
    if asked.returns:
        return "returned"
    return "kept" if stream.resumable and asked.left else "forfeited"


def _plan(planned: int, rounds: list[int], strategy: QueryStrategy, left: str) -> dict[str, Any]:
    return {
        "planned": planned,
        "used": sum(rounds),
        "rounds": rounds,
        "strategy": strategy.describe(),
        "left": left,
    }


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
        Of `ConfidentLabels` that contradict a student, as `InRounds` has it.
    round_size, progress
        As for `InRounds` and `PATEClassifier`; progress gets (queries answered, queries
        reserved).
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
    made = counts.shape.guarantee
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
    return ask_in_rounds(
        terms,
        counts.take,
        ledger,
        X_public,
        askable,
        begun,
        classes=counts.classes,
        student=student,
        random_state=random_state,
        progress=progress,
        request=uuid.uuid4().hex if request is None else request,
        vault=None if vault is None else Path(vault),
        purpose=purpose,
        declaration=declaration,
    )
