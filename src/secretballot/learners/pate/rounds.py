"""Select, release, learn, in rounds: a strategy asks for public points; a stream of this process,
or a session, here or behind a service, answers."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from secretballot._typing import IntArray, ObjectArray
from secretballot._validation import check_count, check_instance
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, teachers_of
from secretballot.core.private import Votes
from secretballot.core.releasing import Released
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
    LabelStream,
    SessionAnswers,
    certified_labels,
    plan_of,
)
from secretballot.queries import (
    CheckedSelector,
    InRounds,
    PassiveSampling,
    PublicPool,
    QueryStrategy,
    default_round_size,
    rounds_of,
)
from secretballot.released import ReleasedLabels
from secretballot.releasing import check_paid_by
from secretballot.students import fit_student
from secretballot.students.confirmed import StudentInRounds
from secretballot.teachers.rows import n_rows, take_rows

_MARGIN, _AT_RANDOM = InRounds(), InRounds(PassiveSampling())


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
    """

    X: Any
    rows: IntArray
    questions: list[bytes]

    @classmethod
    def of(cls, X_public: Any, askable: IntArray | None = None) -> "AskableRows":
        """Return the distinct points among the rows `askable`, all rows by default.

        Parameters
        ----------
        X_public : array, sparse matrix or frame of shape (n, n_features)
        askable : ndarray of int64, optional
            Rows that may be asked.
        """
        rows = np.arange(n_rows(X_public)) if askable is None else askable
        digests = question_digests(take_rows(X_public, rows))
        # Reversed, so that of equal points the first place stays.
        first = {digest: place for place, digest in reversed(list(enumerate(digests)))}
        places = np.sort(np.fromiter(first.values(), dtype=np.int64, count=len(first)))
        return cls(X_public, rows[places], [digests[place] for place in places])

    @property
    def row_of(self) -> dict[bytes, int]:
        """The row of each question."""
        return dict(zip(self.questions, self.rows.tolist(), strict=True))

    def points(self, places: IntArray) -> Any:
        """Return the points at some places, of shape (k, n_features)."""
        return take_rows(self.X, self.rows[places])


class QueryRounds:
    """Rounds of queries with their first proposal, and nothing paid yet: a strategy that cannot
    work on the pool says so here.

    Parameters
    ----------
    rounds : InRounds
    askable : AskableRows
    classes : sequence
    n_queries : int
        Answers wanted.
    seed : int or None
        Public, of the strategy; None is 0.
    progress : callable, optional
        Called with (rows answered, rows wanted).

    Attributes
    ----------
    askable : AskableRows
    n_queries : int
    selector : CheckedSelector

    Raises
    ------
    ParameterError, DataError
        If it cannot; also if more queries are asked than the pool has points.
    """

    def __init__(
        self,
        rounds: InRounds,
        askable: AskableRows,
        classes: Sequence[Any],
        n_queries: int,
        seed: int | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        strategy, n_points = rounds.chosen, len(askable.rows)
        if n_queries > n_points:
            raise ParameterError(
                Parameter("n_queries"),
                f" is {n_queries}, more than the {n_points} distinct public points; ask for"
                " fewer, or give more public points.",
            )
        points = askable.points(np.arange(n_points))
        pool = PublicPool(points, tuple(classes), n_queries, seed or 0)
        self.askable, self.n_queries, self._classes = askable, n_queries, pool.classes
        self._places: dict[Any, int] = {name: place for place, name in enumerate(pool.classes)}
        self._places[None] = -1
        self.selector, self._strategy = CheckedSelector(strategy, pool), strategy
        size = default_round_size(n_queries) if rounds.round_size is None else rounds.round_size
        self._round_size = check_count("round_size", size)
        # asked for now: later, an empty one would end a run that was paid for
        self._first = self.selector.propose(min(self._round_size, n_queries))
        if not len(self._first):
            raise ParameterError(
                f"The strategy {type(strategy).__name__} has nothing to ask of these {n_points}"
                " points; give other points or another strategy. Nothing was spent."
            )
        self._progress = progress

    def plan(self, rounds: Sequence[int] | None = None, left: str = "none") -> dict[str, Any]:
        """Return what the certificate says of these rounds, by default of a run that asks all that
        it may; `left` is what becomes of unused queries."""
        if rounds is None:
            full, rest = divmod(self.n_queries, self._round_size)
            rounds = [self._round_size] * full + [rest] * (rest > 0)
        return plan_of(self.n_queries, rounds, self._strategy.describe(), left)

    def stored(self, done: Released) -> ReleasedLabels:
        """Return a release that has come to its end.

        Raises
        ------
        ParameterError
            If another strategy asked for it.
        DataError
            If it is about other points.
        """
        plan = done.about.get("plan", {})
        if plan.get("strategy") != json.loads(json.dumps(self._strategy.describe())):
            raise ParameterError(
                f"The request {done.request!r} was answered before, by another strategy; ask the"
                " same again, or use a new request. Nothing was spent."
            )
        return certified_labels(done, self.askable.row_of, plan)

    def run(
        self, ask: Callable[[IntArray], SessionAnswers], *, n_teachers: int, sigma: float | None
    ) -> tuple[ReleasedLabels, list[int]]:
        """Ask what the strategy proposes until it, the points or the answers come to an end.

        Parameters
        ----------
        ask : callable
            Proposed places among the askable rows, shape (k,), to their answers.
        n_teachers, sigma
            As for `ReleasedLabels`.

        Returns
        -------
        tuple of ReleasedLabels and list of int
            All answers by their places, without a certificate, and how many each round got.
        """
        parts, proposed = list[tuple[IntArray, SessionAnswers]](), self._first
        while len(proposed):
            try:
                answers = ask(proposed)
            except BudgetError:
                # what has answers already has come to its end, which is no error
                if not parts:
                    raise
                break
            parts.append((proposed, answers))
            so_far = self._released(parts, n_teachers, sigma)
            left = self.n_queries - len(so_far.queries)
            if self._progress is not None:
                self._progress(len(so_far.queries), self.n_queries)
            # fewer answers than questions: nothing is left
            if not answers.given.all() or left <= 0:
                break
            self.selector.receive(so_far)
            proposed = self.selector.propose(min(self._round_size, left))
        return so_far, [int(answers.given.sum()) for _, answers in parts]

    def places(self, labels: ObjectArray) -> IntArray:
        """Return class values, of shape (n,), as places among the classes, -1 for None."""
        return np.array([self._places[label] for label in labels], dtype=np.int64)

    def _released(
        self, parts: Sequence[tuple[IntArray, SessionAnswers]], n_teachers: int, sigma: float | None
    ) -> ReleasedLabels:
        queries = np.concatenate([places[found.given] for places, found in parts])
        labels = self.places(np.concatenate([found.labels[found.given] for _, found in parts]))
        counts = None
        if sigma is not None:
            given = [found.noisy_counts[found.given] for _, found in parts]  # type: ignore[index]
            counts = np.concatenate(given)
        return ReleasedLabels(queries, labels, self._classes, n_teachers, sigma, counts)


def ask_in_rounds(
    begun: QueryRounds,
    terms: Terms,
    votes: Callable[[IntArray], Votes],
    ledger: Ledger,
    *,
    student: Any = None,
    random_state: int | None = None,
    **about: Any,
) -> ReleasedLabels:
    """Reserve all queries, and ask what the strategy proposes until it, the points or the
    reservation come to an end.

    An interrupted run is taken again from its start: what was answered is found in the ledger and
    costs nothing.

    Parameters
    ----------
    begun : QueryRounds
    terms : Terms
    votes : callable
        Rows of the public pool, shape (k,), to the votes on them; secret, asked for what is new
        alone.
    ledger : Ledger
    student : classifier, optional
        What interactive voting contradicts; a LogisticRegression by default. It learns from the
        answers of each round and predicts the points of the next.
    random_state : int, optional
        Of the student.
    **about
        As for `LabelStream`.

    Privacy
    -------
    The strategy and the student see public points and released labels, so what they choose and
    predict is post-processing of what was paid for.
    Source : Liu et al. 2021, Algorithm 4, with one labelling service (differences 5).
    """
    stream, askable = LabelStream(terms, votes, ledger, plan=begun.plan(), **about), begun.askable
    if stream.closed:
        return begun.stored(stream._stream.released())
    contradicted = None
    if terms.confidence is not None:
        learner = LogisticRegression(max_iter=1000) if student is None else student
        contradicted = StudentInRounds(
            lambda so_far: fit_student(learner, askable.X, so_far, random_state=random_state),
            askable.X,
            stream.classes,
            teachers_of(terms.shape),
            terms.confidence,
        )
    before, drawn = stream.used, list[int]()

    def ask(proposed: IntArray) -> SessionAnswers:
        used, rows = stream.used, askable.rows[proposed]
        predictions = None if contradicted is None else contradicted.predictions(rows)
        questions = [askable.questions[place] for place in proposed]
        found = stream.answer(rows, questions, predictions)
        if contradicted is not None and predictions is not None:
            given = found.given
            contradicted.tell(rows[given], begun.places(found.labels[given]), predictions[given])
        drawn.append(stream.used - used)
        return found

    run, rounds = begun.run(ask, n_teachers=terms.shape.n_teachers or 0, sigma=stream.sigma)
    done = stream._stream.released()
    if done.questions != tuple(askable.questions[place] for place in run.queries):
        # what an earlier run of another strategy asked counts as one round before
        rounds = [before, *drawn]
    plan = begun.plan([size for size in rounds if size], stream.left_over(ends=True))
    # what has another point among it is refused before it is too late
    released = certified_labels(done, askable.row_of, plan)
    if plan["left"] != "kept" and not stream.closed:
        # who asks again finds all of it in the ledger
        stream._stream.close(len(done.values), {"plan": plan})
    return released


def ask_actively(
    session: Any,
    X_public: Any,
    strategy: str | QueryStrategy | InRounds = _MARGIN,
    *,
    n_queries: int | None = None,
    random_state: int | None = None,
) -> ReleasedLabels:
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
    strategy : str, QueryStrategy or InRounds
        How to choose, as for `PATEClassifier`, such as "entropy:round_size=20"; by margin by
        default.
    n_queries : int, optional
        Points to ask, those that were asked before among them; by default as many as the session
        has left, or all.
    random_state : int, optional
        Public seed of the strategy; None is 0.

    Returns
    -------
    ReleasedLabels
        The answers as rows of `X_public`: all answers of the session, with its certificate,
        where it was asked about these points alone; else those of this run, without one.

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
    >>> released = sb.ask_actively(session, X_public, "margin:round_size=10")
    >>> len(released.queries), session.left
    (20, 0)
    >>> from sklearn.linear_model import LogisticRegression
    >>> student = sb.fit_student(LogisticRegression(), X_public, released)
    """
    askable = AskableRows.of(as_matrix("X_public", X_public))
    if n_queries is None:
        # at least one: a session with nothing left refuses it, and says why
        n_queries = max(1, min(session.left, len(askable.rows)))
    wanted = check_count("n_queries", n_queries)
    rounds = rounds_of(strategy) or _AT_RANDOM
    begun = QueryRounds(rounds, askable, session.classes, wanted, random_state)

    def ask(proposed: IntArray) -> SessionAnswers:
        found: SessionAnswers = session.ask_many(askable.points(proposed))
        return found

    run, _ = begun.run(ask, n_teachers=session.n_teachers, sigma=session.sigma)
    # others have asked other points, or the pool is larger than a service takes at once
    with suppress(DataError, ServiceError):
        whole: ReleasedLabels = session.released(askable.X)
        return whole
    return replace(run, queries=askable.rows[run.queries])


def label_actively(
    counts: Votes,
    X_public: Any,
    mechanism: Mechanism,
    ledger: Ledger,
    budget: PrivacyBudget,
    strategy: str | QueryStrategy | InRounds,
    *,
    n_queries: int | None = None,
    request: str | None = None,
    vault: str | Path | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
    random_state: int | None = None,
    student: Any = None,
) -> ReleasedLabels:
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
    strategy : str, QueryStrategy or InRounds
        How to choose, as for `PATEClassifier`. With `ConfidentLabels` a confidence of `InRounds`
        makes them contradict a student.
    n_queries : int, optional
        Most queries that are asked; all distinct rows by default.
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
    ReleasedLabels
        Ready for `fit_student`; the certificate's plan has the rounds.

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
    made, rounds = counts.shape.guarantee, rounds_of(strategy) or _AT_RANDOM
    if declaration is None and made != Guarantee(unit="record", relation="add-remove"):
        declaration = {"unit": made.unit, "relation": made.relation}
    X_public = as_matrix("X_public", X_public)
    if n_rows(X_public) != counts.shape.n_queries:
        raise DataError(
            Parameter("X_public"),
            f" has {n_rows(X_public)} rows and there are votes on {counts.shape.n_queries}; give"
            " the points that the teachers voted on.",
        )
    askable = AskableRows.of(X_public)
    pool = counts.shape.first(len(askable.rows))
    terms = choose_terms(mechanism, budget, pool, n_queries=n_queries, rounds=rounds)
    n_asked = terms.shape.n_queries
    return ask_in_rounds(
        QueryRounds(rounds, askable, counts.classes, n_asked, random_state),
        terms,
        counts.take,
        ledger,
        classes=counts.classes,
        student=student,
        random_state=random_state,
        request=uuid.uuid4().hex if request is None else request,
        vault=None if vault is None else Path(vault),
        purpose=purpose,
        declaration=declaration,
    )
