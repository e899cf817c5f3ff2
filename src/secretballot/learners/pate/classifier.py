"""PATE: teachers of disjoint shards vote on public points; a student learns what is released."""

import json
import uuid
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, get_tags

from secretballot._typing import IntArray
from secretballot._validation import (
    ABSTENTIONS,
    check_choice,
    check_count,
    check_finite,
    check_instance,
    shown,
)
from secretballot.accounting import PrivacyBudget, check_useful, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.ledger import LedgerEntry
from secretballot.core.mechanisms import Mechanism, mechanism_in
from secretballot.core.private import Votes
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.defaults import choose_release, choose_terms
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.learners.pate.rounds import (
    AskableRows,
    BegunQueryRun,
    ask_in_rounds,
    begin_query_run,
    student_in_rounds,
)
from secretballot.learners.training.account import required_budget
from secretballot.learners.training.inputs import random_rows
from secretballot.learners.training.label_stream import LabelStream, certified_labels
from secretballot.learners.training.learner import ClassLearner, Learner, Task, refuse_beside
from secretballot.learners.training.point_digests import points_digest
from secretballot.learners.training.shards import forget_records, learner_identity
from secretballot.learners.training.trained import keep_teachers, template_of
from secretballot.learners.training.trial_fit import named_teacher, reads_sparse
from secretballot.queries import InRounds, QueryStrategy
from secretballot.released import ReleasedLabels
from secretballot.releasing import ASKED, release_labels
from secretballot.report.certificate.build import choice_fields
from secretballot.report.certificate.plan_checks import total_price
from secretballot.students import default_student, fit_student
from secretballot.students.trial import Teaching, try_student
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.vault import make_vault


@dataclass(eq=False, repr=False)
class PATELearner(Learner):
    """Teachers of shards, and what they are asked.

    Parameters
    ----------
    teacher : scikit-learn learner or name, optional
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn learner, optional
        Learns what is released; by default the one that measured best for it.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the private data.
    n_queries : int, optional
        How many public points are asked, chosen at random with `random_state`.
    progress : callable, optional
        Called with (done, total) teachers.
    """

    teacher: Any = None
    student: Any = None
    _: KW_ONLY
    n_teachers: int = 250
    n_queries: int | None = None
    progress: Callable[[int, int], None] | None = None

    #: How many classes a teacher distinguishes that nobody has declared yet; 0 of numbers.
    _n_classes: ClassVar[int] = 2

    def _check_settings(self, budget: PrivacyBudget) -> None:
        check_count("n_teachers", self.n_teachers)
        self._check_student()

    def _rows_to_ask(self, task: Task, n_points: int) -> IntArray:
        """Return the rows of the public points to ask, chosen at random by the public seed."""
        return task.askable[random_rows(len(task.askable), n_points, self.random_state)]

    def _release_terms(self, task: Task, rows: IntArray) -> dict[str, Any]:
        """Return what a release is named by and says of itself."""
        return {
            "rows": rows,
            "request": self.request,
            "purpose": self.purpose,
            "declaration": task.declaration,
            "points_sha256": points_digest(take_rows(task.points, rows)),
        }

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

    With `public_features` the records without their labels are the public points. They are split by
    a public seed: one part loses its labels, never to be looked at, and becomes the pool; teachers
    learn from the other part and vote on the pool. Choose this only where all features of all
    records may be known to everybody: what they tell of a label is not protected.

    Parameters
    ----------
    teacher : scikit-learn classifier or name, default a hardly regularised LogisticRegression
        Cloned for every shard. Preprocessing that is fitted belongs inside it, as a pipeline.
    student : scikit-learn classifier, optional
        Learns from the released labels. By default the student that measured best for what is
        released.
    n_teachers : int, default 250
        Number of shards K; public, chosen without looking at the private data.
    budget : PrivacyBudget
        (epsilon, delta) of this fit.
    mechanism : str or Mechanism, default "gaussian"
        What answers are drawn by: "gaussian", "vote-table" (two classes), "laplace",
        "sparse-vector", "abstention-table" or "confident"; "interactive" where queries are asked in
        rounds. A name is calibrated to `budget`; a mechanism, as `secretballot.accounting` makes
        them, is priced against it.
    n_queries : int, optional
        How many public points are labelled, chosen at random with `random_state`. By default all of
        them where noisy counts are released at once; else as many as leave a vote of margin 0.6 K
        right 19 times in 20.
    release : {"auto", "labels", "counts"}, default "auto"
        Labels alone, or noisy counts. "auto" releases counts for the default student, labels for
        any other.
    max_abstentions : int, optional
        Abstentions T after which the sparse vector stops. By default the largest T at which a vote
        of margin 0.6 K is answered.
    threshold : int, optional
        Votes that a query needs under the confident mechanism, or votes against the student under
        the interactive one. By default four fifths and half of the teachers.
    max_answers : int, optional
        Answers after which these two stop. By default about as many as leave a vote of margin
        0.6 K right 19 times in 20; three times as many queries may be asked.
    estimate_epsilon : float, optional
        Part of the budget's epsilon that pays for one private estimate of how stable the votes on
        the public pool are (`estimate_stability`). It sets, instead of the assumed margin of 0.6 K,
        the number of queries of labels, or `max_abstentions` of the sparse vector; the rest pays
        for the answers.
    strategy : QueryStrategy or InRounds, optional
        How to choose what is asked, in rounds: see `secretballot.queries`. By default points are
        chosen at random and asked at once.
    dropped : float, default 0.5
        With `public_features`: share of the records whose labels are dropped, at least 0 and below
        1; only these points may be asked. With 0 no label is dropped, every record teaches one
        teacher, and every point may be asked.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation that the promise is about. "replace-one" makes the number of records public. With
        `public_features` labels are replaced.
    abstentions : {"drop", "random", "majority"}, default "drop"
        What the student makes of unanswered points.
    ledger : Ledger, optional
        Account of the private dataset. Without one the fit keeps an account of its own, in memory:
        then adding up several fits on the same data is up to you. With `public_features` it is made
        with ``unit="label"`` and ``relation="replace-one"``.
    vault : path, optional
        Secret folder where finished teachers are kept, so that an interrupted fit resumes.
    request : str, optional
        Key of this fit in the ledger: a fit with the same key reuses the stored release and spends
        nothing. Drawn where none is given.
    purpose : str, default ""
        Written on the certificate.
    n_jobs : int, optional
        Workers for the teachers, as in joblib.
    engine : str or distributed.Client, default "local"
        Where teachers are trained and vote: on this machine, or on a cluster that runs already and
        belongs to the trusted side. "dask://HOST:PORT", a client of Dask, or "dask" for this
        process's client; "ray" for the Ray that runs, or "ray://HOST:PORT". The release is the
        same. A model that is to be cloned takes a word, since clients cannot be copied.
    send_shards : bool, default False
        Whether the shards of a stored table are sent to the workers of a cluster, over its network.
        By default workers read them from storage that all share, and a run whose workers do not see
        it ends before anything is paid. A table in memory is sent in any case.
    random_state : int, optional
        Public seed of the fits, of the split and of the choice of public points; None is 0. Never
        of the noise.
    progress : callable, optional
        Called with (done, total) teachers, and in rounds with (answered, reserved) queries.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    student_ : the fitted student
    released_ : ReleasedLabels
        Everything that was released; its ``queries`` are rows of the public points. Of rounds the
        certificate says what was reserved and what was used.
    certificate_ : dict
        What may be shown to a stranger.
    rounds_ : list of int
        Queries of each round.
    explanation_ : dict
        What the strategy reports of its choices, such as a version space.
    unlabelled_ : ndarray of int64, ascending
        With `public_features`: rows of `X` that may be asked; the labels of those that were dropped
        had no influence on anything.
    n_features_in_ : int

    Privacy
    -------
    Unit : one record, or all records of one id where `units` is given; with `public_features` one
        label.
    Relation : add or remove one unit; or replace one record, or label, in place.
    Sensitivity : one unit touches one shard, hence one teacher, hence one vote per query. A label
        reaches the one teacher that its position and the public seed fix, or nobody.
    Price : `budget`, composed in `ledger` with everything else released from the same data; in
        rounds for all queries, whatever is asked and whenever it stops.
    Source : Liu et al. 2021, Algorithm 3 over Algorithms 1 and 2; in rounds Algorithm 4, with one
        labelling service (differences 5); Bassily et al. 2018, Algorithm 3 and section 5.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, X_public = rng.normal(size=(2000, 2)), rng.normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = sb.PATEClassifier(n_teachers=50, budget=sb.PrivacyBudget(epsilon=2.0, delta=1e-5))
    >>> model = model.fit(X, y, X_public=X_public, classes=[0, 1])
    >>> model.predict(X_public).shape, model.certificate_["epsilon"]
    ((200,), 2.0)

    In rounds:

    >>> margin = sb.queries.InRounds(sb.queries.MarginSampling(), round_size=10)
    >>> model = model.set_params(strategy=margin, n_queries=20)
    >>> model = model.fit(X, y, X_public=X_public, classes=[0, 1])
    >>> model.rounds_, model.certificate_["plan"]["used"]
    ([10, 10], 20)

    Public features:

    >>> model = model.set_params(strategy=None).fit(X, y, classes=[0, 1], public_features=True)
    >>> len(model.unlabelled_), model.certificate_["unit"]
    (1000, 'label')
    """

    _takes = frozenset({"classes", "public_features"})

    mechanism: str | Mechanism = "gaussian"
    release: str = "auto"
    max_abstentions: int | None = None
    threshold: int | None = None
    max_answers: int | None = None
    estimate_epsilon: float | None = None
    strategy: QueryStrategy | InRounds | None = None
    dropped: float = 0.5
    abstentions: str = "drop"
    vault: str | Path | None = None
    n_jobs: int | None = None
    engine: Any = LOCAL
    send_shards: bool = False

    @property
    def in_rounds(self) -> bool:
        """Whether a strategy chooses what is asked."""
        return self.strategy is not None

    @property
    def _rounds(self) -> InRounds:
        return self.strategy if isinstance(self.strategy, InRounds) else InRounds(self.strategy)

    def _check_settings(self, budget: PrivacyBudget) -> None:
        super()._check_settings(budget)
        check_instance("mechanism", self.mechanism, (str, Mechanism))
        check_engine(self.engine, self.n_jobs, send_shards=self.send_shards)
        check_choice("abstentions", self.abstentions, ABSTENTIONS)

    def _split_rows(self, n_records: int) -> tuple[IntArray, IntArray, str]:
        refuse_beside("public_features", self, "estimate_epsilon", "strategy")
        share, seed = check_finite("dropped", self.dropped), self.random_state or 0
        if not 0 <= share < 1:
            raise ParameterError(
                Parameter("dropped"),
                f" is {shown(self.dropped)}; it must be at least 0 and less than 1.",
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
        if self.n_teachers > len(taught):
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {self.n_teachers}, and {len(taught)} of {n_records} sample(s) keep their"
                " labels; every teacher needs one, so ask for fewer teachers or drop fewer"
                " labels.",
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

    def _release(self, task: Task) -> ReleasedLabels:
        return self._asked_in_rounds(task) if self.in_rounds else self._asked_at_once(task)

    def _asked_at_once(self, task: Task) -> ReleasedLabels:
        """Return what was released: pay, train, let the teachers vote, draw.

        Teachers are trained once the account would pay; a request that was answered trains none.
        """
        pool, choices = self._pool(task, len(task.askable)), list[dict[str, Any]]()

        def cast(rows: IntArray) -> Votes:
            task.refuse_points()
            teacher = task.table.checked_teacher(self.teacher, task.points, task.target)
            self._try_student(task, len(rows))
            counts = self._train_teachers(task, teacher).vote_counts(
                take_rows(task.points, rows),
                classes=task.target.learnt,
                guarantee=task.guarantee,
            )
            if self.vault is not None:
                forget_records(Path(self.vault))
            return counts

        def released(terms: Terms, source: Callable[[IntArray], Votes]) -> ReleasedLabels:
            rows = self._rows_to_ask(task, terms.shape.n_queries)
            return release_labels(
                terms,
                lambda: source(rows),
                task.account,
                classes=task.target.learnt,
                choices=choices,
                **self._release_terms(task, rows),
            )

        if self.estimate_epsilon is None:
            return released(self.planned_terms(pool), cast)
        known = None if self.request is None else task.account.entry(self.request)
        if known is not None and known.state == "committed":
            # what the estimate set stands in the ledger, and trains nothing
            terms, choices = self._terms_by_estimate(known, pool)
            return released(terms, cast)
        # an estimate is paid and drawn before the answers, since it sets their number and noise
        estimated = EstimatedSize.of_fit(self, pool, task.account)
        counts = cast(task.askable)
        choice = estimated.pay(counts, task.account, self.request)
        choices = [choice_fields(choice)]
        return released(
            estimated.terms_by(choice),
            lambda rows: counts.take(np.searchsorted(task.askable, rows)),
        )

    def _terms_by_estimate(
        self, known: LedgerEntry, pool: VoteShape
    ) -> tuple[Terms, list[dict[str, Any]]]:
        """Return the terms of a release whose size an estimate has set, and what its certificate
        says of that.

        Raises
        ------
        ParameterError
            If it had none, or another price.
        """
        mechanism = mechanism_in(known.terms["mechanism"]) if known.terms else None
        public = dict(known.terms.get("public", {}))
        choices = public.pop(ASKED, {}).get("choices", [])
        budget, price = required_budget(self.budget), PrivacyBudget(known.epsilon, known.delta)
        paid = sum([choice["epsilon"] for choice in choices], start=known.epsilon)
        if (
            mechanism is None
            or [choice["epsilon"] for choice in choices] != [self.estimate_epsilon]
            # what is left beside an estimate is rounded down
            or not np.allclose((paid, known.delta), (budget.epsilon, budget.delta), 1e-9, 0)
        ):
            raise ParameterError(
                f"Request {self.request!r} was begun with other terms (estimate_epsilon or budget);"
                " go on with the same, or ask under another key. Nothing was spent."
            )
        shape = pool.first(known.terms["shape"]["n_queries"])
        return Terms(mechanism, shape, price, public), choices

    def planned_terms(self, pool: VoteShape) -> Terms:
        """Return mechanism and number of queries of a fit, from public numbers alone; nothing is
        paid.

        Parameters
        ----------
        pool : VoteShape
            Of the votes on all public points that may be asked.

        Raises
        ------
        ParameterError
            If a setting is out of its range, or nothing would be answered.
        """
        terms = choose_terms(
            self.mechanism,
            required_budget(self.budget),
            pool,
            n_queries=self.n_queries,
            max_abstentions=self.max_abstentions,
            threshold=self.threshold,
            max_answers=self.max_answers,
            confidence=self._rounds.confidence,
            release=choose_release(self.release, self.student, self.mechanism),
            in_rounds=self.in_rounds,
        )
        # warns while it still costs nothing
        check_useful(terms.mechanism, terms.shape)
        return terms

    def _pool(self, task: Task, n_points: int) -> VoteShape:
        """Return the shape of the votes on so many points that may be asked."""
        return teacher_shape(n_points, len(task.target.classes), self.n_teachers, task.guarantee)

    def _try_student(self, task: Task, n_points: int) -> None:
        """Refuse a student that cannot learn from what will be released about so many points."""
        if self.student is None:  # what it will be is known to learn
            return
        counts = choose_release(self.release, self.student, self.mechanism) == "counts"
        votes = self.n_teachers if counts else None
        try_student(self.student, task.points, Teaching(task.target.learnt, n_points, votes))

    def _train_teachers(self, task: Task, teacher: Any) -> TeacherEnsemble:
        n_classes = len(task.target.classes)
        return task.table.teachers(
            teacher,
            self.n_teachers,
            task.guarantee.relation,
            None if self.vault is None else make_vault(self.vault),
            self.random_state,
            n_classes=n_classes,
            n_jobs=self.n_jobs,
            engine=self.engine,
            send_shards=self.send_shards,
            progress=self.progress,
            sparse=reads_sparse(teacher, task.points, n_classes),
        )

    def _taught(self, points: Any) -> Any:
        student = default_student(self.released_) if self.student is None else clone(self.student)
        return fit_student(
            student,
            points,
            self.released_,
            abstentions=self.abstentions,
            random_state=self.random_state,
        )

    # --- in rounds ---

    def _asked_in_rounds(self, task: Task) -> ReleasedLabels:
        self.explanation_: dict[str, Any] = {}  # a stored release comes without one
        # what was paid for under this request is answered again, and trains nothing
        released = self._stored_rounds(task)
        if released is None:
            released = self._new_rounds(task)
        self.rounds_ = list(released.certificate["plan"]["rounds"])
        return released

    def _stored_rounds(self, task: Task) -> ReleasedLabels | None:
        """Return what was released under the same request before, if anything."""
        stored = self.ledger is not None and self.request is not None
        done = releasing.stored(task.account, str(self.request)) if stored else None
        if done is None:
            return None
        plan, rows = done.about.get("plan"), list(done.about.get("rows") or ())
        if plan is not None and max(rows, default=0) < n_rows(task.points):
            released = certified_labels(done, dict(zip(done.questions, rows, strict=True)), plan)
            # A stored release is handed out only if it keeps the promise that is asked for now, for
            # the same classes and points: its certificate is compared, not the settings of a fit
            # long gone.
            given = released.certificate
            found = {
                "paid": [choice["epsilon"] for choice in given.get("choices", ())],
                "promise": (given["unit"], given["relation"]),
                "votes": (released.n_teachers, list(released.classes)),
                "strategy": plan["strategy"],
                "points": given["released"]["points_sha256"],
            }
            asked = {
                "paid": [] if self.estimate_epsilon is None else [self.estimate_epsilon],
                "promise": (task.guarantee.unit, task.guarantee.relation),
                "votes": (self.n_teachers, task.target.learnt),
                "strategy": json.loads(json.dumps(self._rounds.chosen.describe())),
                "points": points_digest(take_rows(task.points, released.queries)),
            }
            # what is left beside an estimate is rounded down, so the sum may be less than the
            # budget by a hair
            price = task.budget.epsilon, task.budget.delta
            if found == asked and np.allclose(total_price(given), price, 1e-9, 0):
                return released
        raise ParameterError(
            f"The request {self.request!r} was answered before, with another promise, strategy,"
            " classes or number of teachers, or about other public points; ask the same again, or"
            " use a new request. Nothing was spent."
        )

    def _new_rounds(self, task: Task) -> ReleasedLabels:
        # A first proposal is made by the smallest mechanism that may come of it before anything is
        # trained or paid: a strategy that cannot work says so for nothing.
        task.refuse_points()
        learner = task.table.checked_teacher(self.teacher, task.points, task.target)
        askable = AskableRows.of(task.points, task.askable)
        pool, choices = self._pool(task, len(askable.rows)), []
        estimated = None
        if self.estimate_epsilon is None:
            terms = self.planned_terms(pool)
        else:
            estimated = EstimatedSize.of_fit(self, pool, task.account)
            terms = estimated.smallest()
        self._try_student(task, terms.shape.n_queries)
        begun = self._begin_run(askable, task, terms)
        seed, sparse = self.random_state or 0, reads_sparse(learner, task.points, pool.n_classes)
        # A reservation goes on with the same teachers or not at all: the identity is all that they
        # depend on, so that other data or settings are refused.
        teachers = keep_teachers(
            None if self.vault is None else make_vault(self.vault),
            lambda: self._train_teachers(task, learner),
            (
                learner_identity(learner),
                *task.table.identity,
                self.n_teachers,
                task.target.learnt,
                task.guarantee.relation,
                seed,
            ),
            task.target.classes,
            task.declaration,
            template_of(task.points),
            seed,
        )
        teachers.ensemble.sparse = sparse  # those that were found in the vault, too
        if estimated is not None:
            counts = teachers.vote(take_rows(task.points, askable.rows))
            choices = [estimated.pay(counts, task.account, self.request)]
            terms = estimated.terms_by(choices[0])
            begun = self._begin_run(askable, task, terms)
        stream = LabelStream(
            terms.mechanism,
            terms.shape,
            task.account,
            terms.budget,
            classes=task.target.learnt,
            request=uuid.uuid4().hex if self.request is None else self.request,
            teachers=teachers.serial,
            vault=teachers.vault if task.account.durable else None,
            purpose=self.purpose,
            declaration=task.declaration,
            choices=choices,
            confidence=terms.confidence,
            plan=begun.plan_of(terms.shape.n_queries),
        )
        asked = ask_in_rounds(
            stream,
            lambda rows: teachers.vote(take_rows(task.points, rows)),
            askable,
            begun,
            self.progress,
            student_in_rounds(
                terms.confidence,
                LogisticRegression(max_iter=1000) if self.student is None else self.student,
                task.points,
                task.target.learnt,
                self.n_teachers,
                self.random_state,
            ),
        )
        self.explanation_ = asked.explanation
        return asked.released

    def _begin_run(self, askable: AskableRows, task: Task, terms: Terms) -> BegunQueryRun:
        """Return the run with its first proposal; a strategy that cannot work says so here."""
        n_queries, seed = terms.shape.n_queries, self.random_state or 0
        pool = askable.pool(task.points, task.target.classes, n_queries, seed)
        return begin_query_run(self._rounds.chosen, pool, self._rounds.round_size)
