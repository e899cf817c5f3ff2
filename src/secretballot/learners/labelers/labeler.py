"""The labeler: fitted once to private records, then asked for labels, one public point at a
time."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_name, check_path
from secretballot.accounting import Sampled, Stream
from secretballot.accounting.stream_recipes import check_answerable, stream_mechanism
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, RelabelledSample
from secretballot.exceptions import BudgetError, DataError, Parameter, ParameterError
from secretballot.hypotheses import FiniteClass, HypothesisClass, hypotheses_by_name
from secretballot.hypotheses.finite import check_answers
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.algorithms import (
    Agnostic,
    BudgetSplit,
    PublicNumbers,
    Stability,
    Universal,
    algorithm_of,
)
from secretballot.learners.labelers.relabel import (
    check_class,
    relabel,
    sample_in_random_order,
    sample_independently,
)
from secretballot.learners.labelers.universal import (
    PrivateRecords,
    UniversalRelease,
    UniversalSession,
    UniversalTerms,
    check_class_size,
    endless_request,
    first_request,
)
from secretballot.learners.training.account import refuse_beyond
from secretballot.learners.training.inputs import (
    as_matrix,
    dummy_rows,
    refuse_more_classes,
)
from secretballot.learners.training.learner import Given, PayingLearner, Task
from secretballot.learners.training.session import LabelingSession, SessionAnswer, SessionAnswers
from secretballot.learners.training.shards import assign_shards
from secretballot.learners.training.targets import Target
from secretballot.learners.training.trained import (
    TrainedTeachers,
    keep_teachers,
    reservation_folder,
    teachers_of_table,
    template_of,
)
from secretballot.learners.training.trial_fit import check_teacher
from secretballot.released import ReleasedLabels
from secretballot.students import HypothesisStudent
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.executors import LOCAL, check_engine
from secretballot.vault import make_vault

Session = LabelingSession | UniversalSession

_DUMMY_ROWS = 60
_LONGEST_REQUEST = 180  # characters; both parts of a universal labeler have longer keys made of it
_DEFAULT_QUERIES = 1000


@dataclass(eq=False, repr=False)
class Labeler(PayingLearner):
    """Answer queries about public points as they come: private classification-query release.

    Three algorithms, from the fewest assumptions to the most. "stability": teachers of all records
    vote, and their exact vote is the answer where it is stable; the stream stops at the T-th query
    without an answer. "agnostic": the same, with teachers of a secret sample of the records that a
    hypothesis relabelled, so that they agree where labels are noisy. "universal": "agnostic" for
    the first queries, then one hypothesis of the class, chosen by all records, for all others.

    Parameters
    ----------
    algorithm : str or settings, default "universal"
        A name, or a name with settings, such as "stability:max_abstentions=2". The settings are
        those of `Stability`, `Agnostic` and `Universal` in
        `secretballot.learners.labelers.algorithms`.
    hypotheses : str or HypothesisClass, optional
        "stumps", "thresholds", "intervals", or one of `secretballot.hypotheses`; public, for
        "agnostic" and "universal"; labels 0 and 1 stand for ``classes[0]`` and
        ``classes[1]``.
    teacher : classifier or str, optional
        Cloned for every shard. By default a hardly regularised logistic regression; of a class of
        hypotheses the search for the one with the fewest mistakes, which finds one without any on a
        relabelled shard.
    n_queries : int, optional
        Number m of queries, 1000 by default. Of "universal" all that are expected, which sets the
        split of the budget alone; by default many more than it answers by votes.
    alpha : float, default 0.1
        Of "stability" the error expected of one teacher, of the others the error wanted beyond that
        of the best hypothesis. It sets the number of abstentions.
    n_teachers : int, optional
        Number K of shards; by default so many that a lead of K / 3 is answered.
    epsilon, delta : float
        Price of all queries together; delta above 0, unless all of "universal" is one draw.
    relation : {"add-remove", "replace-one"}, default "add-remove"
        Relation of the guarantee. "replace-one" makes the number of records public; under
        "add-remove", a weaker guarantee, a sample more than three times as large costs the same.
    ledger : Ledger, optional
        Account of the private records; of "universal" of the basic composition. Without one the fit
        keeps an account of its own, in memory.
    random_state : int, optional
        Public seed of the teachers and of `n_cover`, never of sample, labels or noise.
    n_jobs : int, optional
        As for `PATEClassifier`.

    Attributes
    ----------
    session_ : LabelingSession or UniversalSession
        The reservation; there after `fit` or `reopen`.

    Privacy
    -------
    Unit : one record; of "stability" all records of one id where `units` is given.
    Relation : `relation`.
    Sensitivity : one unit reaches one teacher, hence one vote for every query. The relabelling
        changes with all records and is paid for by what follows it. One record makes one mistake of
        each hypothesis.
    Price : that of all queries, reserved by `fit`: the sparse vector's; of a sample relabelled and
        amplified by sampling, which needs it to stay secret and to serve this one reservation; and
        that of both parts of "universal", which add up to the budget. As printed, Algorithm 4 gives
        all of epsilon to each part, which costs 2 epsilon.
    Source : Bassily, Thakurta, Thakkar 2018, Algorithm 2 and Theorem 3.2; Nandi and Bassily 2020,
        Algorithms 1 to 5 and Lemma 3.4; differences 7. Proofs in docs/explanation/prices.md.
    Rounding : upward.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> labeler = sb.Labeler(
    ...     "stability:max_abstentions=2", epsilon=4.0, delta=1e-5, n_queries=20, n_teachers=100)
    >>> labeler = labeler.fit(X, (X[:, 0] > 0).astype(int), classes=[0, 1])
    >>> labeler.ask([3.0, 0.0]).label in (0, 1, None), labeler.left < 20
    (True, True)

    Where the points to come are known, all of epsilon goes into one draw:

    >>> X = rng.uniform(size=(2000, 1))
    >>> labeler = sb.Labeler(hypotheses="thresholds", epsilon=1.0, delta=0.0)
    >>> labeler = labeler.fit(
    ...     X, np.where(X[:, 0] > 0.5, "yes", "no"), classes=["no", "yes"],
    ...     X_public=np.linspace(0, 1, 101)[:, None])
    >>> labeler.ask([0.99]).label, labeler.left
    ('yes', inf)
    """

    _takes = frozenset({"classes", "vault", "executor", "progress"})

    algorithm: Any = "universal"
    hypotheses: str | HypothesisClass | None = None
    teacher: Any = None
    _: KW_ONLY
    n_queries: int | None = None
    alpha: float = 0.1
    n_teachers: int | None = None
    n_jobs: int | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        classes: Sequence[Any],
        X_public: Any = None,
        units: Any = None,
        unit_name: str | None = None,
        request: str | None = None,
        purpose: str = "",
        vault: str | Path | None = None,
        executor: Any = LOCAL,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Train the teachers and reserve all queries.

        Parameters
        ----------
        X : array of shape (n_records, n_features)
            Private; of "stability" also a sparse matrix or frame.
        y : array of shape (n_records,)
            Private labels, each one of `classes`.
        classes : sequence of two values, of "stability" also of more
            Public; never inferred from the private labels.
        X_public : like X, of shape (n_points, n_features), optional
            Public points. A few of them fix the types of the columns of frames. Of "universal" all
            that will be queried, or many like them: then there is no first part, the second one has
            all of epsilon, is drawn at once, and delta is not spent. The most accurate by far.
        units : array of shape (n_records,), optional
            Ids, such as patient numbers: all records of one id are protected together. Of
            "stability" alone.
        unit_name : str, optional
            What the ids are, for the certificate.
        request : str, optional
            Key of the reservation in ledger and vault, by default the algorithm's name; another key
            is another sample and another charge.
        purpose : str
            Why, in a few words; public.
        vault : path, optional
            Secret folder. With one, and a ledger that is a file, the reservation outlives the
            process: the same `fit`, or `reopen`, goes on with it. Until the switch of "universal"
            it holds a copy of the private records, since the second part counts mistakes on them.
        executor, progress
            As for `PATEClassifier`.

        Raises
        ------
        ParameterError, DataError
            If something does not fit; nothing was spent.
        BudgetError
            If the ledger does not admit the price; nothing was spent.
        """
        # All that can be refused is refused before a sample is drawn: an error after it could tell
        # of the sample. The session pays, and comes last.
        algorithm = algorithm_of(self.algorithm)
        given = Given(
            X,
            y,
            X_public,
            classes,
            units=units,
            unit_name=unit_name,
            request=_checked_request(algorithm, request),
            purpose=purpose,
            vault=vault,
            executor=executor,
            progress=progress,
        )
        task = self._prepared(given)
        if X_public is not None:
            task.refuse_points()
        self.session_: Session
        if isinstance(algorithm, Universal):
            self.session_ = self._universal_session(algorithm, task)
            return self
        plan, request = _plan(algorithm, self._numbers(task)), str(given.request)
        refuse_beyond(task.account, task.budget, request)
        if isinstance(algorithm, Agnostic):
            self.session_ = self._sampled_session(plan, task, request)
            return self
        teachers = teachers_of_table(
            task.table,
            "logistic" if self.teacher is None else self.teacher,
            task.points[:_DUMMY_ROWS],
            task.target,
            n_teachers=plan.n_teachers,
            relation=self.relation,
            vault=_made_folder(given.vault, request),
            random_state=self.random_state or 0,
            n_jobs=self.n_jobs,
            engine=executor,
            progress=progress,
        )
        self.session_ = plan.session(teachers, task, request)
        return self

    def _declared(self, given: Given) -> Target:
        check_engine(given.executor, self.n_jobs)
        target, algorithm = super()._declared(given), algorithm_of(self.algorithm)
        if isinstance(algorithm, Agnostic):
            if given.units is not None:
                raise ParameterError(
                    Parameter("units"),
                    f" are given, and {algorithm.name!r} protects single records; use 'stability'.",
                )
            refuse_more_classes(target.classes)
        return target

    def _public_points(self, given: Given) -> Any:
        rows = as_matrix("X", given.X)  # which is no table on disk
        return dummy_rows(rows, _DUMMY_ROWS) if given.X_public is None else given.X_public

    def reopen(self, vault: str | Path, *, request: str | None = None) -> Self:
        """Go on after a restart with what a `fit` with this vault and this request reserved,
        without the data.

        Raises
        ------
        ParameterError
            If "universal" has other settings than that fit.
        DataError
            If the vault holds no such reservation.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        algorithm = algorithm_of(self.algorithm)
        request = _checked_request(algorithm, request)
        check_path("vault", vault)
        folder = reservation_folder(vault, request)
        if not isinstance(algorithm, Universal):
            self.session_ = LabelingSession.reopen(folder, request=request)
            return self
        kept = UniversalTerms.read(folder)
        if kept is None:
            raise DataError(f"The vault {vault} holds no universal labeler {request!r}; call fit.")
        hypotheses = hypotheses_by_name(self.hypotheses, kept.n_features)
        fixed = self._fixed(algorithm, hypotheses)
        # Other hypotheses or another seed would find another function under the number that was
        # drawn, so settings are compared before the ledger is opened.
        if kept != kept.changed(**fixed):
            given = ", ".join(f"{key}={value}" for key, value in fixed.items())
            raise ParameterError(
                f"{request!r} was begun with other settings; give the same: {given}."
            )
        ledger, first = Ledger.open_existing(kept.ledger), None
        if kept.split.first is not None:
            own = first_request(request)
            first = LabelingSession.reopen(reservation_folder(vault, own), request=own)
        self.session_ = UniversalSession(
            kept, hypotheses, first, ledger, None, folder, request=request
        )
        return self

    @property
    def used(self) -> int:
        """Queries answered so far, abstentions included; of "universal" by its first part. Repeated
        ones count once."""
        return self._started.used

    @property
    def left(self) -> float:
        """Queries still to be had, 0 once the last abstention has happened; of "universal"
        infinity, from the start."""
        return self._started.left

    @property
    def student_(self) -> HypothesisStudent:
        """Of "universal" the hypothesis that answers from now on, as a fitted classifier, to be
        published.

        Raises
        ------
        AttributeError
            If there is none yet.
        """
        if isinstance(self._started, LabelingSession):
            raise AttributeError("Answers by votes have no student; fit one to what was released.")
        return self._started.student

    def ask(self, x: Any) -> SessionAnswer:
        """Return the answer to one public point, of shape (n_features,); a repeated point gets its
        stored answer.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the reservation is spent.
        """
        return self._started.ask(x)

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), while queries are left.

        Raises
        ------
        DataError
            If the points do not fit the teachers; nothing was answered then.
        BudgetError
            If none of them was asked before and the reservation is spent.
        """
        return self._started.ask_many(X)

    def released(self, X: Any) -> ReleasedLabels | UniversalRelease:
        """Return all answers so far, with the certificate of the reservation, as rows of `X`; of
        "universal" a release of each part.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._started.released(X)

    @property
    def _started(self) -> Session:
        check_is_fitted(self, "session_")
        return self.session_

    def _numbers(self, task: Task) -> PublicNumbers:
        """Return the public numbers of the fit."""
        return PublicNumbers(
            task.budget,
            _DEFAULT_QUERIES if self.n_queries is None else self.n_queries,
            self.alpha,
            self.relation,
            task.table.n_records if self.relation == "replace-one" else None,
            self.n_teachers,
        )

    # --- a relabelled sample ---

    def _sampled_session(
        self, plan: "_Plan", task: Task, request: str, more: Sequence[str] = ()
    ) -> LabelingSession:
        """Return the session of teachers of a relabelled sample, drawn now or kept from the same
        reservation; `more` is on its certificate."""
        event, n_teachers, names = plan.event, plan.n_teachers, task.target.learnt
        assert isinstance(event, Sampled)
        points, labels = _numeric_records(task)
        hypotheses = check_class(hypotheses_by_name(self.hypotheses, points.shape[1]))
        teacher = self._checked_teacher(hypotheses, points)
        # without a ledger that lasts a later reservation could not know of this one, and must not
        # meet the same sample
        place = _made_folder(task.given.vault, request) if task.account.durable else None
        identity: tuple[str, ...] = ()
        if place is not None:
            settings = event.model_dump(mode="json"), plan.numbers.n_queries
            numbers = json.dumps([*settings, n_teachers, self.random_state or 0, request])
            identity = (*_part_digests(teacher, hypotheses, points, labels, names), numbers)
        teachers = keep_teachers(
            place,
            lambda: self._train_on_sample(teacher, hypotheses, plan, task),
            identity,
            task.target.classes,
            _declaration(event, request, more),
            template_of(points),
        )
        return plan.session(teachers, task, request)

    def _checked_teacher(self, hypotheses: HypothesisClass, points: FloatArray) -> Any:
        """Return the learner to clone, after class and learner were tried on dummy points."""
        dummies = dummy_rows(points, _DUMMY_ROWS)
        check_answers(hypotheses, dummies)
        hypotheses.erm(dummies, np.arange(_DUMMY_ROWS) % 2)
        learner = HypothesisStudent(hypotheses) if self.teacher is None else self.teacher
        return check_teacher(learner, points, dummies, 2)

    def _train_on_sample(
        self, teacher: Any, hypotheses: HypothesisClass, plan: "_Plan", task: Task
    ) -> TeacherEnsemble:
        """Sample, relabel, deal out, train; what was sampled is forgotten on return."""
        event, n_teachers = plan.event, plan.n_teachers
        assert isinstance(event, Sampled)
        # Under replace-one the place in the random order of the sample decides on the shard; under
        # add-remove a random number of the record itself does, drawn whether or not it is sampled,
        # so that no other record has a say in either.
        points, truth = _numeric_records(task)
        n = len(points)
        if self.relation == "replace-one":
            rows = sample_in_random_order(event.out_of, event.sampled)
            shards = assign_shards(len(rows), n_teachers, self.relation, None, None)
        else:
            rows = sample_independently(n, event.sampled, event.out_of)
            shards = assign_shards(n, n_teachers, self.relation, None, None)[rows]
        sample, labels = points[rows], truth[rows]
        if len(rows):  # under add-remove a sample may be empty, and an error would tell
            labels = relabel(sample, labels, hypotheses, relabel_epsilon=event.relabel_epsilon)
        return TeacherEnsemble.fit(
            teacher,
            sample,
            labels,
            shards,
            n_teachers=n_teachers,
            n_classes=2,
            n_jobs=self.n_jobs,
            engine=task.given.executor,
            random_state=self.random_state or 0,
            progress=task.given.progress,
        )

    # --- a hypothesis for ever ---

    def _universal_session(self, algorithm: Universal, task: Task) -> UniversalSession:
        """Reserve both parts, and begin the first."""
        # Checks by public numbers come first, then the account, then what an earlier fit
        # kept is compared; only then the first part trains and reserves.
        points, labels = _numeric_records(task)
        width = points.shape[1]
        known = None if task.given.X_public is None else check_points(task.points, width)
        hypotheses, numbers = hypotheses_by_name(self.hypotheses, width), self._numbers(task)
        if known is None:
            n_queries = self.n_queries
            split, numbers = algorithm.split(numbers, hypotheses.vc_dimension, n_queries)
        else:
            split = BudgetSplit.of(task.budget, 1, 0, "all public points are known beforehand")
        n_cover = split.first_questions if known is None else len(known)
        check_class_size(
            hypotheses, min(n_cover, algorithm.n_cover or n_cover), width, self.relation
        )
        if isinstance(hypotheses, FiniteClass):
            # foreign members meet all records once: a machine that fails at one does so unpaid
            hypotheses.dichotomies(points)
        ledger, request = task.account, str(task.given.request)
        _refuse_room_for_one(ledger, split, request)
        folder = None
        if task.given.vault is not None and ledger.durable:
            folder = reservation_folder(task.given.vault, request)
        terms = UniversalTerms(
            **self._fixed(algorithm, hypotheses),
            classes=task.target.classes,
            n_features=width,
            split=split,
            ledger=str(ledger.place),
        )
        if folder is not None:
            terms.check_same(folder)
        first = None
        if known is None:
            beside = (
                "This is the first part of a universal labeler, reserved together with a second"
                f" one: {split}."
            )
            own, plan = first_request(request), _plan(algorithm, numbers)
            first = self._sampled_session(plan, task, own, [beside])
        private: PrivateRecords | None = PrivateRecords(points, labels, None, None)
        if folder is not None and private is not None:
            # The records before the file that names the reservation: who finds it can go on.
            drawn = ledger.entry(endless_request(request))
            _made_folder(task.given.vault, request)
            if drawn is None or not drawn.parts:
                private.keep(folder)
            terms.keep(folder)
            private = None
        session = UniversalSession(
            terms,
            hypotheses,
            first,
            ledger,
            private,
            folder,
            request=request,
            purpose=task.given.purpose,
        )
        if known is not None:
            session.draw_at_once(known)
        return session

    def _fixed(self, algorithm: Universal, hypotheses: HypothesisClass) -> dict[str, Any]:
        """Return what must be the same whenever the reservation is taken up."""
        return {
            "hypotheses": f"{hypotheses.name} {joblib.hash(hypotheses)}",
            "relation": self.relation,
            "n_cover": algorithm.n_cover,
            "random_state": self.random_state or 0,
        }


class _Plan(NamedTuple):
    """What a session asks teachers, from public numbers alone."""

    numbers: PublicNumbers
    event: Stream | Sampled
    mechanism: Mechanism
    n_teachers: int

    def session(self, teachers: TrainedTeachers, task: Task, request: str) -> LabelingSession:
        """Pay, so that nothing is spent where training failed."""
        return LabelingSession(
            teachers,
            self.mechanism,
            task.account,
            self.numbers.budget,
            n_queries=self.numbers.n_queries,
            request=request,
            purpose=task.given.purpose,
        )


def _numeric_records(task: Task) -> tuple[FloatArray, IntArray]:
    """Return the private records as points that hypotheses take, shape (n, n_features), and their
    labels, 0 and 1."""
    [block] = task.table.one_of_each_unit(sys.maxsize)
    return check_points(block.rows, None), block.targets


def _made_folder(vault: str | Path | None, request: str) -> Path | None:
    """Return the folder of a reservation alone, made and closed to others, or None: another one
    never meets its teachers."""
    if vault is None:
        return None
    place = reservation_folder(vault, request)
    # From the top down, so that no folder is ever open to others while its content is written.
    for folder in (Path(vault), place.parent):
        make_vault(folder)
    return make_vault(place)


def _checked_request(algorithm: Stability, request: str | None) -> str:
    found = algorithm.name if request is None else request
    check_name("request", found, longest=_LONGEST_REQUEST)
    return found


def _plan(algorithm: Stability, numbers: PublicNumbers) -> _Plan:
    event, n_teachers = algorithm.terms(numbers)
    mechanism: Mechanism
    if isinstance(event, Sampled):
        mechanism = RelabelledSample(stream=stream_mechanism(event.stream, n_teachers))
    else:
        mechanism = stream_mechanism(event, n_teachers)
    check_answerable(mechanism, n_teachers)
    return _Plan(numbers, event, mechanism, n_teachers)


def _refuse_room_for_one(ledger: Ledger, split: BudgetSplit, request: str) -> None:
    """Refuse two parts of which the ledger would take only the first, or whose prices it does not
    add up."""
    if ledger.composition != "basic":
        raise ParameterError(
            f"The ledger composes by {ledger.composition!r}, which does not add two prices up; give"
            " one with the composition 'basic'. Nothing was spent."
        )
    # What was reserved before needs no space any more.
    if any(ledger.entry(key(request)) is not None for key in (first_request, endless_request)):
        return
    remaining, delta = ledger.remaining(), split.delta if split.first_epsilon else 0.0
    if not (remaining.epsilon >= split.epsilon and remaining.delta >= delta):
        raise BudgetError(
            f"Both parts cost epsilon {split.epsilon:g}, delta {delta:g}, and the ledger of"
            f" {ledger.dataset!r} has ({remaining.epsilon:g}, {remaining.delta:g}) left; ask for"
            " less. Nothing was spent."
        )


def _declaration(event: Sampled, request: str, more: Sequence[str]) -> dict[str, object]:
    # All of this is on the certificate. Under add-remove neither the number of records nor that
    # of the sample may be released: both are private.
    if event.relation == "replace-one":
        drawn = (
            f"{event.sampled} of the {event.out_of} records, drawn without replacement in"
            " random order"
        )
        revealed = "The number of records, and how many of them were sampled; not which."
    else:
        drawn = f"each record by itself with probability {event.sampled} / {event.out_of}"
        revealed = (
            "The rate of sampling; neither how many records there are nor how many were sampled."
        )
    sample = event.model_dump(include={"sampled", "out_of", "relabel_epsilon"})
    return {
        "unit": "record",
        "unit_column": None,
        "relation": event.relation,
        "sample": {**sample, "request": request},
        "assumptions": [
            f"The teachers learned from a random sample, {drawn}, for this reservation alone; the"
            " sample is secret and was not kept.",
            "The sample was relabelled by one labelling of a public class of hypotheses, drawn by"
            f" the exponential mechanism with the parameter {event.relabel_epsilon:g}, before it"
            " was dealt out to the teachers.",
            *more,
        ],
        "not_protected": [revealed],
    }


def _part_digests(*parts: Any) -> list[str]:
    """Return a digest of each part; apart, since joblib's of several depends on which of them share
    objects.

    Raises
    ------
    DataError
        If one cannot be pickled, so that a vault would not know it again.
    """
    try:
        return [str(joblib.hash(part)) for part in parts]
    except Exception:  # pickling runs code of the learner, which may raise anything
        raise DataError(
            "The teacher or the hypotheses cannot be pickled, so they cannot be kept in a vault;"
            " leave the vault out, or use others. Nothing was spent."
        ) from None
