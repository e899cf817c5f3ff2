"""Select, release, learn, in rounds: a strategy asks for public points; a stream of this process,
or a session, here or behind a service, answers."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from secretballot.exceptions import (
    BudgetError,
    DataError,
    Parameter,
    ParameterError,
    ServiceError,
)
from secretballot.learners.pate.mechanisms import choose_terms
from secretballot.learners.training.inputs import as_matrix
from secretballot.learners.training.point_digests import question_digests
from secretballot.learners.training.session import (
    LabelAnswers,
    LabelStream,
    certified_labels,
    plan_of,
)
from secretballot.queries import (
    CheckedSelector,
    InRounds,
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
    X : array, sparse matrix or frame of shape (n, n_features)
        The public pool.
    rows : ndarray of int64, shape (m,)
        Rows of it; of points that are there twice, the first.
    questions : list of bytes
        By which the ledger knows each of them.
    by_value : bool
        Whether that follows from the point's values.
    """

    X: Any
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
            return cls(X_public, rows, [b"row %d" % row for row in rows], by_value=False)
        digests = question_digests(take_rows(X_public, rows))
        # Reversed, so that of equal points the first place stays.
        first = {digest: place for place, digest in reversed(list(enumerate(digests)))}
        places = np.sort(np.fromiter(first.values(), dtype=np.int64, count=len(first)))
        return cls(X_public, rows[places], [digests[place] for place in places])

    def points(self, places: IntArray) -> Any:
        """Return the points at some places, of shape (k, n_features)."""
        return take_rows(self.X, self.rows[places])


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
    pool : PublicPool
    selector : CheckedSelector
    first : ndarray of int64
        The first proposal, as rows of the pool.
    round_size : int
        Queries per round.
    """

    strategy: QueryStrategy
    pool: PublicPool
    selector: CheckedSelector
    first: IntArray
    round_size: int

    def plan_of(self, n_queries: int) -> dict[str, Any]:
        """Return what the certificate says of a run that asks so many queries, all it may, in
        rounds of this size."""
        full, rest = divmod(n_queries, self.round_size)
        rounds = [self.round_size] * full + [rest] * (rest > 0)
        return plan_of(n_queries, rounds, self.strategy.describe(), "none")

    def run(
        self,
        ask: Callable[[IntArray], LabelAnswers],
        *,
        n_teachers: int,
        sigma: float | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[ReleasedLabels, list[int]]:
        """Ask what the strategy proposes until it, the points or the answers come to an end.

        Parameters
        ----------
        ask : callable
            Proposed rows of the pool, shape (k,), to their answers.
        n_teachers, sigma
            As for `ReleasedLabels`.
        progress : callable, optional
            Called with (rows answered, rows wanted).

        Returns
        -------
        tuple of ReleasedLabels and list of int
            All answers as rows of the pool, without a certificate, and how many each round got.
        """
        order, labels, counts, rounds = list[int](), list[int](), list[Any](), list[int]()
        planned, proposed = self.pool.n_queries, self.first
        while True:
            try:
                answers = ask(proposed)
            except BudgetError:
                # what has answers already has come to its end, which is no error
                if not order:
                    raise
                break
            given = answers.given
            rounds.append(int(given.sum()))
            order += proposed[given].tolist()
            labels += answers.labels[given].tolist()
            if answers.noisy_counts is not None:
                counts += answers.noisy_counts[given].tolist()
            if progress is not None:
                progress(len(order), planned)
            # fewer answers than questions: nothing is left
            if not given.all() or len(order) >= planned:
                break
            self.selector.receive(self._so_far(order, labels, counts, n_teachers, sigma))
            proposed = self.selector.propose(min(self.round_size, planned - len(order)))
            if not len(proposed):
                break
        return self._so_far(order, labels, counts, n_teachers, sigma), rounds

    def _so_far(
        self,
        order: list[int],
        labels: list[int],
        counts: list[Any],
        n_teachers: int,
        sigma: float | None,
    ) -> ReleasedLabels:
        noisy_counts = None if sigma is None else np.array(counts, dtype=np.int64)
        queries, found = np.array(order, dtype=np.int64), np.array(labels, dtype=np.int64)
        return ReleasedLabels(queries, found, self.pool.classes, n_teachers, sigma, noisy_counts)


def begin_query_run(
    rounds: InRounds, askable: AskableRows, classes: Sequence[Any], n_queries: int, seed: int | None
) -> BegunQueryRun:
    """Begin a run; a strategy that cannot work on the pool says so here, before anything is spent.

    Parameters
    ----------
    rounds : InRounds
    askable : AskableRows
    classes : sequence
    n_queries : int
        Answers wanted.
    seed : int or None
        Public, of the strategy; None is 0.

    Raises
    ------
    ParameterError, DataError
        If it cannot; also if more queries are asked than the pool has points.
    """
    # Asked for its first proposal now: later, an empty one would end a run that was paid for.
    strategy, n_points = rounds.chosen, len(askable.rows)
    pool = PublicPool(askable.points(np.arange(n_points)), tuple(classes), n_queries, seed or 0)
    if n_queries > n_points:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {n_queries}, more than the {n_points} distinct public points; ask for"
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
    size = rounds.round_size
    size = check_count("round_size", default_round_size(n_queries) if size is None else size)
    first = selector.propose(min(size, n_queries))
    if not len(first):
        raise ParameterError(
            f"The strategy {type(strategy).__name__} has nothing to ask of these {n_points}"
            " points; give other points or another strategy. Nothing was spent."
        )
    return BegunQueryRun(strategy, pool, selector, first, size)


def ask_in_rounds(
    terms: Terms,
    votes: Callable[[IntArray], Votes],
    ledger: Ledger,
    askable: AskableRows,
    begun: BegunQueryRun,
    *,
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
    askable : AskableRows
    begun : BegunQueryRun
        From `begin_query_run`, on the pool of `askable`.
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
    planned, confidence, classes = terms.shape.n_queries, terms.confidence, begun.pool.classes
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
            lambda so_far: fit_student(learner, askable.X, so_far, random_state=random_state),
            askable.X,
            classes,
            teachers_of(terms.shape),
            confidence,
        )
    before, drawn = stream.used, list[int]()

    def ask(proposed: IntArray) -> LabelAnswers:
        used, rows = stream.used, askable.rows[proposed]
        predictions = None if contradicted is None else contradicted.predictions(rows)
        questions = [askable.questions[place] for place in proposed]
        found = stream.answer(lambda new: votes(rows[new]), questions, predictions)
        if contradicted is not None and predictions is not None:
            given = found.given
            contradicted.tell(rows[given], found.labels[given], predictions[given])
        drawn.append(stream.used - used)
        return found

    teachers = terms.shape.n_teachers or 0
    run, rounds = begun.run(ask, n_teachers=teachers, sigma=stream.sigma, progress=progress)
    done = stream.stream.released()
    if done.questions != tuple(askable.questions[place] for place in run.queries):
        # what an earlier run of another strategy asked counts as one round before
        rounds = [before, *drawn]
    left = _state_of_unused(stream)
    plan = plan_of(planned, [size for size in rounds if size], begun.strategy.describe(), left)
    row_of = dict(zip(askable.questions, askable.rows.tolist(), strict=True))
    released = certified_labels(done, row_of, plan, by_value=askable.by_value)
    if left != "kept" and not stream.closed:
        # who asks again finds all of it in the ledger
        about_end = {"plan": plan, "rows": released.queries.tolist()}
        stream.stream.close(len(done.values), about_end)
    return QueryRun(released, plan["rounds"], begun.selector.explain())


def _state_of_unused(stream: LabelStream) -> str:
    """Return what becomes of unused questions: a reservation stays open unless it is spent, returns
    its rest or cannot be resumed."""
    if stream.used == stream.planned:
        return "none"
    if stream.stream.returns:
        return "returned"
    return "kept" if stream.resumable and stream.left else "forfeited"


def ask_actively(
    session: Any,
    X_public: Any,
    strategy: QueryStrategy | None = None,
    *,
    n_queries: int | None = None,
    round_size: int | None = None,
    random_state: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> QueryRun:
    """Ask a session in rounds for the labels that teach most, as a `PATEClassifier` with a strategy
    does.

    The session has its teachers and its price already: one of this process, or one behind a
    service, which `secretballot.connect` gives. A student is fitted to what comes of it with
    `fit_student`.

    Parameters
    ----------
    session : LabelingSession or RemoteSession
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        Public points.
    strategy : QueryStrategy, optional
        How to choose: see `secretballot.queries`. `MarginSampling` by default.
    n_queries : int, optional
        Points to ask, those that were asked before among them; by default as many as the session
        has left, or all.
    round_size : int, optional
        Queries per round; a twentieth of all by default.
    random_state : int, optional
        Public seed of the strategy; None is 0.
    progress : callable, optional
        Called with (points answered, points to ask).

    Returns
    -------
    QueryRun
        With the answers as rows of `X_public`. They carry the certificate of the session where
        these are all of its answers; else it is the session's alone.

    Raises
    ------
    ParameterError, DataError
        If something does not fit; nothing was asked, unless it is a strategy of your own that
        breaks its promise on the way.
    BudgetError
        If the session has nothing left, and the first points were never asked.

    Privacy
    -------
    The strategy sees public points and released labels; the price is that of the session.
    Source : Liu et al. 2021, Algorithm 4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(2000, 2)), rng.normal(size=(200, 2))
    >>> teachers = sb.train_teachers(
    ...     "tree", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=50)
    >>> budget = sb.PrivacyBudget(epsilon=2.0, delta=1e-5)
    >>> ledger = sb.Ledger.in_memory(dataset="example", budget=budget)
    >>> labels = sb.accounting.noisy_votes(budget, teachers.shape(20))
    >>> session = sb.LabelingSession(teachers, labels, ledger, budget, n_queries=20)
    >>> run = sb.ask_actively(session, X_public, round_size=10)
    >>> run.rounds, session.left
    ([10, 10], 0)
    >>> from sklearn.linear_model import LogisticRegression
    >>> student = sb.fit_student(LogisticRegression(), X_public, run.released)
    """
    askable = AskableRows.of(as_matrix("X_public", X_public))
    wanted = (
        # at least one: a session with nothing left refuses it, and says why
        max(1, min(session.left, len(askable.rows)))
        if n_queries is None
        else check_count("n_queries", n_queries)
    )
    asking = InRounds(strategy, round_size)
    begun = begin_query_run(asking, askable, session.classes, wanted, random_state)
    index: dict[Any, int] = {name: place for place, name in enumerate(session.classes)}
    index[None] = -1

    def ask(proposed: IntArray) -> LabelAnswers:
        found = session.ask_many(askable.points(proposed))
        labels = np.array([index[label] for label in found.labels], dtype=np.int64)
        return LabelAnswers(labels, found.noisy_counts, found.given, found.left)

    teachers, sigma = session.n_teachers, session.sigma
    run, rounds = begun.run(ask, n_teachers=teachers, sigma=sigma, progress=progress)
    released = replace(run, queries=askable.rows[run.queries])
    return QueryRun(
        _with_session_certificate(session, released, askable.X),
        [size for size in rounds if size],
        begun.selector.explain(),
    )


def _with_session_certificate(
    session: Any, released: ReleasedLabels, X_public: Any
) -> ReleasedLabels:
    """Return the same answers with the certificate of the session, where these are all of them."""
    try:
        whole = session.released(X_public)
    # others have asked other points, or the pool is larger than a service takes at once
    except (DataError, ServiceError):
        return released
    same = np.array_equal(whole.queries, released.queries) and np.array_equal(
        whole.labels, released.labels
    )
    return whole if same else released


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
    asking = InRounds(strategy, round_size)
    terms = choose_terms(
        mechanism,
        budget,
        counts.shape,
        n_queries=n_queries,
        confidence=confidence,
        in_rounds=True,
    )
    n_asked = terms.shape.n_queries
    begun = begin_query_run(asking, askable, counts.classes, n_asked, random_state)
    return ask_in_rounds(
        terms,
        counts.take,
        ledger,
        askable,
        begun,
        student=student,
        random_state=random_state,
        progress=progress,
        request=uuid.uuid4().hex if request is None else request,
        vault=None if vault is None else Path(vault),
        purpose=purpose,
        declaration=declaration,
    )
