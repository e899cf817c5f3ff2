"""Active queries to a session, here or behind a service: choose, ask, learn, in rounds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.exceptions import BudgetError, DataError, ServiceError
from secretballot.learners.pate.rounds import AskableRows, QueryRun, begin_query_run
from secretballot.learners.training.inputs import as_matrix
from secretballot.queries import MarginSampling, QueryStrategy
from secretballot.released import ReleasedLabels
from secretballot.teachers.rows import take_rows


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
    X_public = as_matrix("X_public", X_public)
    askable = AskableRows.of(X_public)
    wanted = (
        # at least one: a session with nothing left refuses it, and says why
        max(1, min(session.left, len(askable.rows)))
        if n_queries is None
        else check_count("n_queries", n_queries)
    )
    pool = askable.pool(X_public, session.classes, wanted, random_state or 0)
    begun = begin_query_run(MarginSampling() if strategy is None else strategy, pool, round_size)
    answers, rounds = _Answers(session), list[int]()

    def ask(proposed: IntArray) -> IntArray:
        given = answers.ask(take_rows(X_public, askable.rows[proposed]), proposed)
        rounds.append(len(given))
        return given

    order = begun.run(wanted, ask, answers.released, progress)
    released = answers.released(askable.rows[order].tolist())
    return QueryRun(
        _with_session_certificate(session, released, X_public),
        [size for size in rounds if size],
        begun.selector.explain(),
    )


class _Answers:
    """What a session has said in this run."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._index = {name: place for place, name in enumerate(session.classes)}
        self._labels: list[int] = []
        self._counts: list[Any] = []

    def ask(self, points: Any, places: IntArray) -> IntArray:
        """Ask points, of shape (k, n_features), and return the places, of shape (k,), of those that
        have an answer.

        Raises
        ------
        BudgetError
            If the session has nothing left, and no point has an answer yet.
        """
        try:
            answers = self._session.ask_many(points)
        except BudgetError:
            # a session that has answers already has come to its end, which is no error
            if not self._labels:
                raise
            return places[:0]
        rows = np.flatnonzero(answers.given)
        self._labels += [
            -1 if answers.labels[row] is None else self._index[answers.labels[row]] for row in rows
        ]
        if answers.noisy_counts is not None:
            self._counts += answers.noisy_counts[rows].tolist()
        return places[rows]

    def released(self, queries: list[int]) -> ReleasedLabels:
        """Return all of it, without a certificate."""
        return ReleasedLabels(
            queries=np.array(queries, dtype=np.int64),
            labels=np.array(self._labels, dtype=np.int64),
            classes=self._session.classes,
            n_teachers=self._session.n_teachers,
            sigma=self._session.sigma,
            noisy_counts=(
                None if self._session.sigma is None else np.array(self._counts, dtype=np.int64)
            ),
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
