"""PATE: teachers of disjoint shards vote on public points; a student learns what is released."""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils import Tags, get_tags

from secretballot._naming import named
from secretballot._typing import IntArray
from secretballot._validation import (
    check_finite,
    check_positive,
    shown,
)
from secretballot.accounting import check_useful, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.mechanisms import Mechanism
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.mechanisms import (
    EstimatedSize,
    choose_terms,
    label_terms,
    number_terms,
)
from secretballot.learners.pate.rounds import (
    AskableRows,
    QueryRounds,
    ask_in_rounds,
)
from secretballot.learners.training.inputs import Target, random_rows
from secretballot.learners.training.learner import (
    ClassLearner,
    Given,
    Learner,
    NumberLearner,
    Task,
    refuse_beside,
)
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.shards import forget_records
from secretballot.learners.training.trained import teachers_of_table
from secretballot.learners.training.trial_fit import named_teacher, problem_of_fit
from secretballot.queries import InRounds, QueryStrategy, rounds_of
from secretballot.released import ReleasedLabels, ReleasedTable
from secretballot.releasing import ASKED, release_labels, release_table
from secretballot.report.certificate.build import choice_fields
from secretballot.students import (
    default_student,
    fit_student,
    fit_table_student,
    learns_from_counts,
)
from secretballot.students.table_students import default_regressor
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.executors import check_engine
from secretballot.teachers.rows import take_rows
from secretballot.teachers.training import label_ballots, number_ballots
from secretballot.teachers.votes import counted_labels, number_votes
from secretballot.vault import make_vault

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
class PATELearner(Learner):
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
        asked: dict[str, Any] = {"n_queries": self.n_queries}
        if target.bounds is not None:
            return number_terms(self.mechanism, budget, target.bounds, *sizes, **asked)
        asked["counts"] = self._counts
        if target.labels:
            return label_terms(self.mechanism, budget, target.labels, *sizes, **asked)
        pool = teacher_shape(n_points, len(target.classes), self.n_teachers, guarantee)
        if self.estimate_epsilon is not None:
            return EstimatedSize.of_settings(self, pool).without_number()
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
        return None

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
        choices: Sequence[Mapping[str, Any]] = (),
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
        about: dict[str, Any] = {"rows": rows, "points_sha256": points_digest(points), **task.named}

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
        teacher = task.table.checked_teacher(self.teacher, task.points, task.target)
        points = take_rows(task.points, rows)
        self._try_student(task, task.points if task.target.classes else points, terms, len(rows))
        return self._cast_votes(task, teacher, points, terms)

    def _try_student(self, task: Task, points: Any, terms: Terms, n_asked: int) -> None:
        """Refuse a student that cannot learn from what will be released about so many points."""
        student = self._student
        if task.target.bounds is not None:
            problem = problem_of_fit(default_regressor() if student is None else student, points, 0)
            if problem is not None:
                raise ParameterError(
                    Parameter("student"),
                    f" cannot be trained on the public points with dummy numbers ({problem})."
                    " Nothing was spent; fix the student, or take another one.",
                )
        elif student is not None:  # the default is known to learn
            counts = getattr(terms.mechanism, "release", "labels") == "counts"
            votes = self.n_teachers if counts else None
            try_student(student, points, Teaching(task.target.learnt, n_asked, votes))

    def _cast_votes(self, task: Task, teacher: Any, points: Any, terms: Terms) -> Votes:
        """Return what the teachers of all shards vote for at the asked points; secret."""
        made, of_numbers = task.guarantee, task.target.bounds is not None
        ask = number_ballots if of_numbers else label_ballots
        how: dict[str, Any] = {"random_state": self.random_state or 0}
        how["progress"] = task.given.progress
        with task.table.shards(self.n_teachers, made.relation, None) as (source, _):
            cast: Iterator[Any] = ask(teacher, source, points, **how)
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
class PATEClassifier(ClassLearner, PATELearner):
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
        "confident:threshold=200,max_answers=50". Of several labels "auto", "labels" or "counts",
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
    explanation_ : dict
        What the strategy reports of its choices, such as a version space.
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

    _takes = frozenset(
        {"classes", "labels", "public_features", "dropped"}
        | {"vault", "executor", "send_shards", "progress"}
    )

    strategy: str | QueryStrategy | InRounds = "passive"
    n_jobs: int | None = None

    @property
    def _rounds(self) -> InRounds | None:
        """How queries are asked in rounds; None where they are asked at once."""
        return rounds_of(self.strategy)

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
        if not 0 <= share < 1:
            raise ParameterError(
                Parameter("dropped"),
                f" is {shown(given.dropped)}; it must be at least 0 and less than 1.",
            )
        # positions and the public seed alone: no label, and no feature either, has a say in where a
        # label goes
        order = np.random.default_rng(seed).permutation(n_records)
        n_dropped = int(share * n_records)
        taught, asked = order[n_dropped:], np.sort(order[:n_dropped] if share > 0 else order)
        if not len(asked):
            raise ParameterError(
                Parameter("dropped"),
                f" is {share:g} of {n_records} sample(s), which leaves no point to ask; drop"
                " more, or none.",
            )
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

    def _cast_votes(self, task: Task, teacher: Any, points: Any, terms: Terms) -> Votes:
        if task.target.labels:
            return super()._cast_votes(task, teacher, points, terms)
        vault, classes = task.given.vault, task.target.learnt
        teachers = task.table.teachers(
            teacher,
            self.n_teachers,
            task.guarantee.relation,
            None if vault is None else make_vault(vault),
            self.random_state,
            n_classes=len(classes),
            **self._training(task),
        )
        counts = teachers.vote_counts(points, classes=classes, guarantee=task.guarantee)
        if vault is not None:
            forget_records(Path(vault))
        return counts

    def _training(self, task: Task) -> dict[str, Any]:
        """Return where and how teachers are trained."""
        given = task.given
        return {
            "n_jobs": self.n_jobs,
            "engine": given.executor,
            "send_shards": given.send_shards,
            "progress": given.progress,
        }

    def _taught(self, points: Any) -> Any:
        if isinstance(self.released_, ReleasedTable):
            return super()._taught(points)
        student = self._student
        learner = default_student(self.released_) if student is None else clone(student)
        return fit_student(learner, points, self.released_, random_state=self.random_state)

    # --- in rounds ---

    def _asked_in_rounds(self, task: Task, rounds: InRounds) -> ReleasedLabels:
        given, seed = task.given, self.random_state or 0
        askable = AskableRows.of(task.points, task.askable)
        terms = self.planned_terms(task.target, len(askable.rows), task.guarantee)
        n_queries = terms.shape.n_queries
        # A first proposal is made before anything is trained or paid: a strategy that cannot work
        # says so for nothing.
        begun = QueryRounds(rounds, askable, task.target.classes, n_queries, seed, given.progress)
        # what was paid for under this request is answered again, and trains nothing
        done = None if given.request is None else releasing.stored(task.account, given.request)
        if done is None:
            task.refuse_points()
            self._try_student(task, task.points, terms, n_queries)
            # a reservation goes on with the same teachers or not at all
            teachers = teachers_of_table(
                task.table,
                self.teacher,
                task.points,
                task.target,
                n_teachers=self.n_teachers,
                relation=task.guarantee.relation,
                vault=given.vault,
                random_state=seed,
                **self._training(task),
            )
            serial, vault = teachers.serial, teachers.vault if task.account.durable else None
        else:
            serial, vault = done.public.get(ASKED, {}).get("teachers", ""), None
        released = ask_in_rounds(
            begun,
            terms,
            lambda rows: teachers.vote(take_rows(task.points, rows)),
            task.account,
            classes=task.target.classes,
            student=self._student,
            random_state=self.random_state,
            teachers=serial,
            vault=vault,
            **task.named | {"request": given.request or uuid.uuid4().hex},
        )
        # a stored release comes without one
        self.explanation_: dict[str, Any] = begun.selector.explain() if done is None else {}
        self.rounds_ = list(released.certificate["plan"]["rounds"])
        return released


@dataclass(eq=False, repr=False)
class PATERegressor(NumberLearner, PATELearner):
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

    _takes = frozenset({"bounds", "progress"})
    _n_classes = 0

    teacher: Any = "ridge"
