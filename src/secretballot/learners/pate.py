"""PATE: teachers of disjoint shards vote on public points; a student learns what is released.
Points are asked at once, or in rounds by a strategy: a stream of this process, or a session, here
or behind a service, answers."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, get_tags

from secretballot._typing import IntArray, Json, JsonView, ObjectArray, Progress
from secretballot._validation import check_count, check_finite, check_positive, named, refusal
from secretballot.accounting import check_useful, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, teachers_of
from secretballot.core.private import Votes
from secretballot.core.releasing import Released
from secretballot.core.types import Guarantee
from secretballot.exceptions import BudgetError, DataError, Parameter, ParameterError, ServiceError
from secretballot.learners.inputs import (
    Target,
    as_matrix,
    distinct_points,
    points_digest,
    random_rows,
)
from secretballot.learners.learner import ClassLearner, Given, Learner, Task, refuse_beside
from secretballot.learners.pate_mechanisms import (
    EstimatedSize,
    choose_terms,
    label_terms,
    number_terms,
)
from secretballot.learners.session import (
    LabelStream,
    SessionAnswers,
    TrainedTeachers,
    certified_labels,
    check_teacher,
    check_trainable,
    named_teacher,
    plan_of,
    teachers_of_table,
)
from secretballot.learners.table import forget_records
from secretballot.queries import (
    CheckedSelector,
    InRounds,
    PassiveSampling,
    PublicPool,
    QueryStrategy,
    default_round_size,
    rounds_of,
)
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.releasing import ASKED, release_labels, release_table
from secretballot.report.certificate import choice_fields
from secretballot.students import (
    default_student,
    fit_student,
    fit_table_student,
    learns_from_counts,
)
from secretballot.students.fitting import StudentInRounds, Teaching, try_student
from secretballot.students.table_students import default_regressor
from secretballot.teachers.ensemble import ballots, labels_of_shard, numbers_of_shard
from secretballot.teachers.executors import check_engine
from secretballot.teachers.rows import take_rows
from secretballot.teachers.votes import counted_labels, number_votes


class _QueryRounds:
    """Rounds of queries with their first proposal, and nothing paid yet: a strategy that cannot
    work on the pool says so here.

    Parameters
    ----------
    rounds : InRounds
    X_public : array, sparse matrix or frame of shape (n, n_features)
        The public pool.
    row_of : dict of bytes to int
        Rows of it that may be asked, by their questions, as `distinct_points` returns them.
    classes : sequence
    n_queries : int
        Answers wanted.
    seed : int or None
        Public, of the strategy; None is 0.
    progress : callable, optional
        Called with (rows answered, rows wanted).

    Attributes
    ----------
    rows : ndarray of int64
        Those that may be asked; a strategy proposes places among them.
    questions : list of bytes
    points : array, sparse matrix or frame
        The points at these rows.

    Raises
    ------
    ParameterError, DataError
        If it cannot; also if more queries are asked than the pool has points.
    """

    def __init__(
        self,
        rounds: InRounds,
        X_public: Any,
        row_of: Mapping[bytes, int],
        classes: Sequence[Any],
        n_queries: int,
        seed: int | None,
        progress: Progress | None = None,
    ) -> None:
        self.X_public, self.row_of, self.questions = X_public, row_of, list(row_of)
        self.rows = np.fromiter(row_of.values(), dtype=np.int64)
        self.points = take_rows(X_public, self.rows)
        self._n_queries, self._progress, self._strategy = n_queries, progress, rounds.strategy
        pool = PublicPool(self.points, tuple(classes), n_queries, seed or 0)
        self._classes, self._selector = pool.classes, CheckedSelector(rounds.strategy, pool)
        self._places: dict[Any, int] = {name: place for place, name in enumerate(pool.classes)}
        self._places[None] = -1
        size = default_round_size(n_queries) if rounds.round_size is None else rounds.round_size
        self._round_size = check_count("round_size", size)
        # asked for now: later, an empty one would end a run that was paid for
        self._first = self._selector.propose(min(self._round_size, n_queries))
        if not len(self._first):
            raise ParameterError(
                f"The strategy {type(rounds.strategy).__name__} has nothing to ask of these"
                f" {len(self.rows)} points; give other points or another strategy. Nothing was"
                " spent."
            )

    def plan(self, rounds: Sequence[int] | None = None, left: str = "none") -> Json:
        """Return what the certificate says of these rounds, by default of a run that asks all that
        it may; `left` is what becomes of unused queries."""
        if rounds is None:
            full, rest = divmod(self._n_queries, self._round_size)
            rounds = [self._round_size] * full + [rest] * (rest > 0)
        return plan_of(self._n_queries, rounds, self._strategy.describe(), left)

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
        return certified_labels(done, self.row_of, plan)

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
            parts.append((proposed[answers.given], answers.where(answers.given)))
            queries, found = zip(*parts, strict=True)
            labels = np.concatenate([self.places(one.labels) for one in found])
            counts = None
            if sigma is not None:
                counts = np.concatenate([one.noisy_counts for one in found])
            asked = np.concatenate(queries)
            so_far = ReleasedLabels(asked, labels, self._classes, n_teachers, sigma, counts)
            left = self._n_queries - len(asked)
            if self._progress is not None:
                self._progress(len(asked), self._n_queries)
            # fewer answers than questions: nothing is left
            if not answers.given.all() or left <= 0:
                break
            self._selector.receive(so_far)
            proposed = self._selector.propose(min(self._round_size, left))
        return so_far, [len(rows) for rows, _ in parts]

    def places(self, labels: ObjectArray) -> IntArray:
        """Return class values, of shape (n,), as places among the classes, -1 for None."""
        return np.array([self._places[label] for label in labels], dtype=np.int64)


def _ask_in_rounds(
    begun: _QueryRounds,
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
    begun : _QueryRounds
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
    stream = LabelStream(terms, votes, ledger, plan=begun.plan(), **about)
    if stream.closed:
        return begun.stored(stream._stream.released())
    contradicted = None
    if terms.confidence is not None:
        learner = LogisticRegression(max_iter=1000) if student is None else student
        contradicted = StudentInRounds(
            lambda so_far: fit_student(learner, begun.X_public, so_far, random_state=random_state),
            begun.X_public,
            stream.classes,
            teachers_of(terms.shape),
            terms.confidence,
        )
    before, drawn = stream.used, list[int]()

    def ask(proposed: IntArray) -> SessionAnswers:
        used, rows = stream.used, begun.rows[proposed]
        predictions = None if contradicted is None else contradicted.predictions(rows)
        found = stream.answer(rows, [begun.questions[place] for place in proposed], predictions)
        if contradicted is not None and predictions is not None:
            given = found.given
            contradicted.tell(rows[given], begun.places(found.labels[given]), predictions[given])
        drawn.append(stream.used - used)
        return found

    run, rounds = begun.run(ask, n_teachers=terms.shape.n_teachers or 0, sigma=stream.sigma)
    done = stream._stream.released()
    if done.questions != tuple(begun.questions[place] for place in run.queries):
        # what an earlier run of another strategy asked counts as one round before
        rounds = [before, *drawn]
    plan = begun.plan([size for size in rounds if size], stream.left_over(ends=True))
    # what has another point among it is refused before it is too late
    released = certified_labels(done, begun.row_of, plan)
    if plan["left"] != "kept" and not stream.closed:
        # who asks again finds all of it in the ledger
        stream._stream.close(len(done.values), {"plan": plan})
    return released


def ask_actively(
    session: Any,
    X_public: Any,
    strategy: str | QueryStrategy | InRounds = "margin",
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
    points = as_matrix("X_public", X_public)
    row_of = distinct_points(points)
    if n_queries is None:
        # at least one: a session with nothing left refuses it, and says why
        n_queries = max(1, min(session.left, len(row_of)))
    wanted = check_count("n_queries", n_queries)
    rounds = rounds_of(strategy) or InRounds(PassiveSampling())
    begun = _QueryRounds(rounds, points, row_of, session.classes, wanted, random_state)
    run, _ = begun.run(
        lambda proposed: session.ask_many(take_rows(begun.points, proposed)),
        n_teachers=session.n_teachers,
        sigma=session.sigma,
    )
    # others have asked other points, or the pool is larger than a service takes at once
    with suppress(DataError, ServiceError):
        whole: ReleasedLabels = session.released(points)
        return whole
    return replace(run, queries=begun.rows[run.queries])


_BY_RECORD = Guarantee(unit="record", relation="add-remove")


def estimate_in(n_queries: int | str | None) -> float | None:
    """Return the epsilon of ``estimate:epsilon=0.1``; None of a number.

    Raises
    ------
    ParameterError
        If a text is written otherwise.
    """
    if not isinstance(n_queries, str):
        return None
    _, own = named("n_queries", n_queries, {"estimate": ("epsilon",)})
    return check_positive("epsilon", own.get("epsilon"))


@dataclass(eq=False, repr=False)
class _PATELearner(Learner):
    """Teachers of shards, and what they are asked.

    Parameters
    ----------
    teacher : scikit-learn learner or name
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn learner or name, default "auto"
        Learns what is released; by default the one that measured best for it.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the private data.
    mechanism : str, default "auto"
        What answers are drawn by.
    n_queries : int, optional
        How many public points are asked, chosen at random with `random_state`.
    """

    teacher: Any = "logistic"
    student: Any = "auto"
    _: KW_ONLY
    n_teachers: int = 250
    mechanism: str | Mechanism = "auto"
    n_queries: int | str | None = None

    _counted = ("n_teachers",)
    #: How many classes a teacher distinguishes that nobody has declared yet; 0 of numbers.
    _n_classes: ClassVar[int] = 2

    def planned_terms(
        self, target: Target, n_points: int, guarantee: Guarantee = _BY_RECORD
    ) -> Terms:
        """Return mechanism and number of queries of a fit, from public numbers alone; nothing is
        spent. Where an estimate is to set the queries, they are those of one that shows nothing.

        Parameters
        ----------
        target : Target
        n_points : int
            Public points that may be asked.
        guarantee : Guarantee

        Raises
        ------
        ParameterError
            If a setting is out of its range, or nothing would be answered.
        """
        budget, sizes = self._budget, (n_points, self.n_teachers, guarantee)
        asked: Json = {"n_queries": self.n_queries}
        if target.bounds is not None:
            return number_terms(self.mechanism, budget, target.bounds, *sizes, **asked)
        asked["counts"] = self._counts
        if target.labels:
            return label_terms(self.mechanism, budget, target.labels, *sizes, **asked)
        pool = teacher_shape(n_points, len(target.classes), self.n_teachers, guarantee)
        if self.estimate_epsilon is not None:
            estimated = EstimatedSize.of_settings(self, pool)
            return estimated.terms(estimated.size_by(None))
        terms = choose_terms(self.mechanism, budget, pool, rounds=self._rounds, **asked)
        # warns while it still costs nothing
        check_useful(terms.mechanism, terms.shape)
        return terms

    @property
    def estimate_epsilon(self) -> float | None:
        """The part of epsilon that pays for a private estimate of how much is asked."""
        return estimate_in(self.n_queries)

    @property
    def _rounds(self) -> InRounds | None:
        """How queries are asked in rounds; None where they are asked at once."""
        return rounds_of(getattr(self, "strategy", "passive"))

    @property
    def _counts(self) -> bool:
        """Whether the student learns from noisy counts."""
        student = self._student
        return student is None or learns_from_counts(student)

    def _release(self, task: Task) -> Any:
        terms = self.planned_terms(task.target, len(task.askable), task.guarantee)
        return self._release_at_once(task, terms)

    def _release_at_once(
        self,
        task: Task,
        terms: Terms,
        cast: Callable[[IntArray], Votes] | None = None,
        choices: Sequence[JsonView] = (),
    ) -> Any:
        """Return the answers to votes of teachers who are asked once.

        Teachers are trained once the account would pay; a request that was answered trains none.

        Parameters
        ----------
        cast : callable, optional
            The votes on some rows of the public points, where teachers have voted already.
        choices : sequence of mapping
            What set the terms, as a certificate lists it.
        """
        rows = task.askable[random_rows(len(task.askable), terms.n_points, self.random_state)]
        points = take_rows(task.points, rows)
        about: Json = {"rows": rows, "points_sha256": points_digest(points), **task.named}

        def votes() -> Votes:
            return self._votes_on(task, rows, terms) if cast is None else cast(rows)

        if not task.target.classes:
            return release_table(terms, votes, task.account, **about)
        about |= {"classes": task.target.learnt, "choices": choices}
        return release_labels(terms, votes, task.account, **about)

    def _votes_on(self, task: Task, rows: IntArray, terms: Terms) -> Votes:
        """Return what teachers of all shards, trained now, vote for at some public points; secret.

        Both learners are tried on public points before.
        """
        task.refuse_points()
        points = take_rows(task.points, rows)
        self._try_student(task, task.points if task.target.classes else points, terms, len(rows))
        return self._cast_votes(task, points, terms)

    def _try_student(self, task: Task, points: Any, terms: Terms, n_asked: int) -> None:
        """Refuse a student that cannot learn from what will be released about so many points."""
        student = self._student
        if task.target.bounds is not None:
            learner = default_regressor() if student is None else student
            check_trainable("student", learner, points, 0)
        elif student is not None:  # the default is known to learn
            counts = getattr(terms.mechanism, "release", "labels") == "counts"
            votes = self.n_teachers if counts else None
            try_student(student, points, Teaching(task.target.learnt, n_asked, votes))

    def _cast_votes(self, task: Task, points: Any, terms: Terms) -> Votes:
        """Return what the teachers of all shards vote for at the asked points; secret."""
        made, of_numbers = task.guarantee, task.target.bounds is not None
        n_classes = len(task.target.learnt)
        teacher, _ = check_teacher(self.teacher, task.table.like, task.points, n_classes)
        ask: Any = numbers_of_shard if of_numbers else labels_of_shard
        how: Json = {"random_state": self.random_state or 0}
        how["progress"] = task.given.progress
        with task.table.shards(self.n_teachers, made.relation, None) as (source, _):
            cast = ballots(ask, teacher, source, points, **how)
            if not of_numbers:
                own = {name: terms.public[name] for name in ("ballot", "most_named")}
                return counted_labels(cast, task.target.labels, made, **own)
            assert task.target.bounds is not None
            return number_votes(
                np.column_stack(list(cast)),
                task.target.bounds,
                n_positions=terms.shape.n_classes,
                unit=made.unit,
                relation=made.relation,
            )

    def _taught(self, points: Any) -> Any:
        seed = self.random_state or 0
        return fit_table_student(self._student, points, self.released_, random_state=seed)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        teacher = get_tags(named_teacher(self.teacher, self._n_classes))
        tags.input_tags.sparse = teacher.input_tags.sparse
        tags.input_tags.allow_nan = teacher.input_tags.allow_nan
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class PATEClassifier(ClassLearner, _PATELearner):
    """Learn a publishable classifier from private labels and public unlabelled points.

    The private records are cut into disjoint shards, one teacher per shard; the teachers vote on
    public points; the votes are released with noise; a student learns from them.

    With a `strategy` the student asks in rounds for the labels that teach most. A number
    `n_queries` of labels at a fixed noise is reserved first. The strategy then chooses public
    points, in the light of the labels released so far; it stops when it has nothing more to ask,
    the points are used up, or the reservation is spent. What is left of a reservation costs as much
    as what was used (stopping early does not make epsilon smaller). In a ledger that composes by a
    Renyi filter it goes back into the budget. In any other ledger the reservation stays open, if
    there is a vault and a ledger on disk, and a later fit under the same request, with another
    strategy say, spends the rest.

    With ``public_features`` the records without their labels are the public points. They are split
    by a public seed: one part loses its labels, never to be looked at, and becomes the pool;
    teachers learn from the other part and vote on the pool. Choose this only where all features of
    all records may be known to everybody: what they tell of a label is not protected.

    With ``labels`` in the place of classes it learns several labels, each there or not: on each
    shard one copy of `teacher` learns each label, and together they vote for a set of labels at
    every public point; a student for each label learns from the counts. These teachers are asked
    once, and kept nowhere.

    Parameters
    ----------
    teacher : scikit-learn classifier or name, default "logistic"
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline. The
        default is hardly regularised.
    student : scikit-learn classifier or name, default "auto"
        Learns from the released labels. By default the student that measured best for what is
        released.
    epsilon, delta : float
        Price of a fit.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the private data.
    mechanism : str or Mechanism, default "auto"
        What answers are drawn by, calibrated to the price: "labels", "counts" (noisy counts of the
        votes), "vote-table" (two classes), "laplace", "sparse-vector", "abstention-table" or
        "confident"; "interactive" where queries are asked in rounds. "auto" releases counts for the
        default student, and labels for one that learns from labels. Settings follow the name:
        ``release`` of "laplace" (labels or counts); ``max_abstentions`` of "sparse-vector" and
        "abstention-table", after which they stop (by default the largest number at which a vote of
        margin 0.6 K is answered); of "confident" and "interactive" ``threshold``, the votes that a
        query needs, or votes against the student (by default four fifths and half of the teachers),
        and ``max_answers``, after which they stop (by default about as many as leave a vote of
        margin 0.6 K right 19 times in 20; three times as many queries may be asked):
        "confident:threshold=200,max_answers=50"; of "interactive" ``confidence``, the probability
        from which on a prediction of the student that was not corrected counts as confirmed (0.9 by
        default). Of several labels "auto", "labels" or "counts",
        with ``most_named``, a public cap on the labels that one teacher names at a point, its
        surest ones: less noise below half the number of labels, and wrong where points have more;
        or "sets", which counts each set of labels as a class of its own: better for at most 8
        labels of which no more than a handful of sets occur. A mechanism, as
        `secretballot.accounting` makes them, is priced against the budget.
    n_queries : int or str, optional
        How many public points are labelled, chosen at random with `random_state`. By default all of
        them where noisy counts are released at once; else as many as leave a vote of margin 0.6 K,
        or a label that eight teachers in ten name, right 19 times in 20. "estimate:epsilon=0.1"
        pays so much of epsilon for one private estimate of how stable the votes on the public pool
        are (`estimate_stability`). It sets, instead of the assumed margin of 0.6 K, the number of
        queries of labels, or the abstentions of the sparse vector; the rest pays for the answers.
    strategy : str, QueryStrategy or InRounds, default "passive"
        How to choose what is asked, in rounds: "margin", "entropy", "committee", "disagreement"
        or "cluster", also as "margin:round_size=20"; see `secretballot.queries`. By
        default points are chosen at random and asked at once.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about. "replace-one" makes the number of records public. With
        ``public_features`` labels are replaced.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory.
    n_jobs : int, optional
        Workers for the teachers, as in joblib.
    random_state : int, optional
        Public seed of the fits, of the split and of the choice of public points; None is 0. Never
        of the noise.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), or a list of n_labels ndarrays of 0 and 1
    labels_ : ndarray of shape (n_labels,)
        Names of several labels.
    student_ : the fitted student
    released_ : ReleasedLabels, or ReleasedTable of several labels
        Everything that was released; its ``queries`` are rows of the public points. Of rounds the
        certificate says what was reserved and what was used.
    certificate_ : dict
        What may be shown to a stranger.
    rounds_ : list of int
        Queries of each round.
    unlabelled_ : ndarray of int64, ascending
        With ``public_features``: rows of `X` that may be asked; the labels of those that were
        dropped had no influence on anything.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record with all its labels, or all records of one id where ``units`` is given; with
        ``public_features`` one label.
    Relation : add or remove one unit; or replace one record, or label, in place.
    Sensitivity : one unit touches one shard, hence one teacher, hence one vote per query; of
        several labels one set of labels at each point, which moves as many counts as there are
        labels, or twice ``most_named``, or 2 of sets. A label reaches the one teacher that its
        position and the public seed fix, or nobody.
    Price : (`epsilon`, `delta`), composed in `ledger` with everything else released from the same
        data; in rounds for all queries, whatever is asked and whenever it stops.
    Source : Liu et al. 2021, Algorithm 3 over Algorithms 1 and 2; in rounds Algorithm 4, with one
        labelling service (differences 5); Bassily et al. 2018, Algorithm 3 and section 5; Dziedzic
        et al. 2022, arXiv:2211.15410, for the ballots of several labels.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(2000, 2)), rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = sb.PATEClassifier(n_teachers=50, epsilon=2.0, delta=1e-5)
    >>> model = model.fit(X, y, X_public=X_public, classes=[0, 1])
    >>> model.predict(X_public).shape, model.certificate_["epsilon"]
    ((200,), 2.0)

    In rounds:

    >>> model = model.set_params(strategy="margin:round_size=10", n_queries=20)
    >>> model = model.fit(X, y, X_public=X_public, classes=[0, 1])
    >>> model.rounds_, model.certificate_["plan"]["used"]
    ([10, 10], 20)

    Public features:

    >>> model = model.set_params(strategy="passive")
    >>> model = model.fit(X, y, classes=[0, 1], public_features=True)
    >>> len(model.unlabelled_), model.certificate_["unit"]
    (1000, 'label')

    Several labels:

    >>> X = rng.normal(size=(4000, 2))
    >>> model = sb.PATEClassifier(n_teachers=100, epsilon=2.0, delta=1e-5)
    >>> model = model.fit(X, (X > 0).astype(int), X_public=X_public, labels=["tall", "old"])
    >>> model.predict([[-2.0, 2.0], [2.0, 2.0]]).tolist()
    [[0, 1], [1, 1]]
    """

    takes = frozenset(
        {"classes", "labels", "public_features", "dropped"}
        | {"vault", "executor", "send_shards", "progress"}
    )

    strategy: str | QueryStrategy | InRounds = "passive"
    n_jobs: int | None = None

    def _declared(self, given: Given) -> Target:
        if given.labels is not None:
            refuse_beside("labels", given, "classes", "vault", "executor")
        once = "labels" if given.labels is not None else "public_features"
        in_turn = self._rounds is not None or self.estimate_epsilon is not None
        if in_turn and (given.labels is not None or given.public_features):
            raise ParameterError(
                "A strategy, or an estimate, does not go with ", Parameter(once), "; leave one out."
            )
        check_engine(given.executor, self.n_jobs)
        return super()._declared(given)

    def _split_rows(self, n_records: int, given: Given) -> tuple[IntArray, IntArray, str]:
        share, seed = check_finite("dropped", given.dropped), self.random_state or 0
        if not (share == 0 or 1 <= share * n_records < n_records):
            raise refusal(
                "dropped",
                f" is {share:g} of {n_records} sample(s); drop at least one label, and not all, or"
                " none.",
            )
        # positions and the public seed alone: no label, and no feature either, has a say in where a
        # label goes
        order = np.random.default_rng(seed).permutation(n_records)
        n_dropped = int(share * n_records)
        taught, asked = order[n_dropped:], np.sort(order[:n_dropped] if share > 0 else order)
        fate = "each label goes to one teacher"
        if share > 0:
            fate = (
                f"a share of {share:g} of the labels were dropped unread, each of the others"
                " goes to one teacher"
            )
        self.unlabelled_ = asked
        rule = f"by position and a public seed (the permutation of numpy's default_rng({seed}))"
        return taught, asked, f"; {fate}, {rule}"

    def _release(self, task: Task) -> Any:
        if self._rounds is not None:
            return self._asked_in_rounds(task, self._rounds)
        if self.estimate_epsilon is not None:
            return self._asked_by_estimate(task)
        return super()._release(task)

    def _asked_by_estimate(self, task: Task) -> Any:
        """Return what was released, of a size that is paid for and drawn before."""
        asked = task.askable
        sizes = len(asked), len(task.target.classes), self.n_teachers
        estimated = EstimatedSize.of_settings(self, teacher_shape(*sizes, task.guarantee))
        # not cast where both numbers and labels are stored
        votes = cache(lambda: self._votes_on(task, asked, estimated.terms(1)))
        choice = estimated.pay(votes, task.account, task.given.request)
        return self._release_at_once(
            task,
            estimated.terms(estimated.size_by(choice.values.item())),
            lambda rows: votes().take(np.searchsorted(asked, rows)),
            [choice_fields(choice)],
        )

    def _cast_votes(self, task: Task, points: Any, terms: Terms) -> Votes:
        if task.target.labels:
            return super()._cast_votes(task, points, terms)
        votes = self._teachers(task, keep=False).vote(points)
        if task.given.vault is not None:
            forget_records(Path(task.given.vault))
        return votes

    def _teachers(self, task: Task, *, keep: bool) -> TrainedTeachers:
        given = task.given
        return teachers_of_table(
            task.table,
            self.teacher,
            task.points,
            task.target,
            n_teachers=self.n_teachers,
            relation=task.guarantee.relation,
            vault=given.vault,
            random_state=self.random_state or 0,
            declaration=task.declaration,
            keep=keep,
            n_jobs=self.n_jobs,
            engine=given.executor,
            send_shards=given.send_shards,
            progress=given.progress,
        )

    def _taught(self, points: Any) -> Any:
        if isinstance(self.released_, ReleasedTable):
            return super()._taught(points)
        student = self._student
        learner = default_student(self.released_) if student is None else clone(student)
        return fit_student(learner, points, self.released_, random_state=self.random_state)

    # --- in rounds ---

    def _asked_in_rounds(self, task: Task, rounds: InRounds) -> ReleasedLabels:
        given, classes = task.given, task.target.classes
        row_of = distinct_points(task.points, task.askable)
        terms = self.planned_terms(task.target, len(row_of), task.guarantee)
        n_queries = terms.shape.n_queries
        # A first proposal is made before anything is trained or paid: a strategy that cannot work
        # says so for nothing.
        public = task.points, row_of, classes, n_queries, self.random_state
        begun = _QueryRounds(rounds, *public, given.progress)
        # what was paid for under this request is answered again, and trains nothing
        done = None if given.request is None else releasing.stored(task.account, given.request)
        if done is None:
            task.refuse_points()
            self._try_student(task, task.points, terms, n_queries)
            # a reservation goes on with the same teachers or not at all
            teachers = self._teachers(task, keep=True)
            serial, vault = teachers.serial, teachers.vault if task.account.durable else None
        else:
            serial, vault = done.public.get(ASKED, {}).get("teachers", ""), None
        released = _ask_in_rounds(
            begun,
            terms,
            lambda rows: teachers.vote(take_rows(task.points, rows)),
            task.account,
            classes=classes,
            student=self._student,
            random_state=self.random_state,
            teachers=serial,
            vault=vault,
            **task.named | {"request": given.request or uuid.uuid4().hex},
        )
        self.rounds_ = list(released.certificate["plan"]["rounds"])
        return released


# scikit-learn ships no types
@dataclass(eq=False, repr=False)
class PATERegressor(RegressorMixin, _PATELearner):  # type: ignore[misc]
    """Learn to predict a number from private records, with any regressor, by votes of teachers.

    The private records are cut into disjoint shards, one teacher per shard; the teachers vote for
    numbers at public points; a noisy mean or quantile of each point's votes is released; a
    student learns from it.

    Parameters
    ----------
    teacher : scikit-learn regressor or name, default "ridge"
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn regressor or name, default "auto"
        Learns from the released numbers, whose noise has the same size at every point; by default a
        RidgeCV after a StandardScaler.
    epsilon, delta : float
        Price of a fit; of quantiles delta may be 0.
    n_teachers : int, default 250
        Number of shards; public, chosen without looking at the private data.
    mechanism : str, default "auto"
        "mean", the default, or "quantile": a noisy mean of the votes, or a quantile drawn from the
        grid. The mean's noise is that of the whole range, which a student of many points averages
        out; a quantile is near the truth or far off, and takes many teachers and few points. Both
        have the setting ``n_positions``, the numbers of the public grid, evenly spaced over the
        range, to which votes are rounded (200 by default); a quantile has ``rank``, which vote it
        is, from 1, the smallest, to `n_teachers`; by default the median: "quantile:rank=125".
    n_queries : int, optional
        How many public points are asked, chosen at random with `random_state`. By default all up to
        1,000 for means; for quantiles as many as leave a unanimous vote right 19 times in 20.
    relation, ledger, random_state
        As for `PATEClassifier`.

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
    Unit : one record, or all records of one id where ``units`` is given.
    Relation : add or remove one unit; or replace one record in place.
    Sensitivity : one unit touches one shard, hence one teacher, which moves its vote at every
        point.
    Price : (`epsilon`, `delta`), composed in `ledger` with everything else released from the same
        data: a vector sum for means, draws of bounded range for quantiles.
    Source : Dong, Durfee, Rogers 2020, arXiv:1909.13830, for quantiles; prices proved in
        docs/explanation/prices.md, section 16.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(8000, 2)), rng.normal(size=(300, 2))
    >>> model = sb.PATERegressor(epsilon=2.0, delta=1e-6, n_teachers=400)
    >>> model = model.fit(X, 3 * X[:, 0], X_public=X_public, bounds=(-8.0, 8.0))
    >>> below, above = model.predict([[-1.0, 0.0], [1.0, 0.0]])
    >>> bool(below < -1 and above > 1), model.certificate_["epsilon"]
    (True, 2.0)
    """

    takes = frozenset({"bounds", "progress"})
    _n_classes = 0

    teacher: Any = "ridge"
