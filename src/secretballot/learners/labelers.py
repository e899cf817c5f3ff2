"""The labeler: fitted once to private records, then asked for labels, one public point at a time.

A universal labeler asks its first part until its end, then one hypothesis, drawn once by all
private records. Until the draw these are held in memory; then they are forgotten.
"""

import contextlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from secretballot._files import LARGEST_JSON
from secretballot._typing import FloatArray
from secretballot._validation import check_name, check_probability
from secretballot.accounting import Sampled
from secretballot.accounting.recipes import check_answerable, stream_mechanism
from secretballot.core.mechanisms import RelabelledSample
from secretballot.exceptions import DataError, LedgerError, Parameter, ParameterError
from secretballot.hypotheses import HypothesisClass, hypotheses_by_name
from secretballot.hypotheses.base import Hypothesis, check_answers, check_points
from secretballot.learners.inputs import (
    Target,
    as_matrix,
    doubles_digest,
    dummy_rows,
    object_array,
    random_rows,
    refuse_more_classes,
    single_point,
)
from secretballot.learners.labeler_algorithms import (
    Agnostic,
    BudgetSplit,
    PublicNumbers,
    SecretSample,
    Stability,
    Universal,
    algorithm_of,
)
from secretballot.learners.learner import Given, PayingLearner, Task, refuse_beyond
from secretballot.learners.selection import chosen_release, private_scores
from secretballot.learners.session import LabelingSession, SessionAnswers
from secretballot.learners.table import Table
from secretballot.learners.trained import reservation_folder, teachers_of_table
from secretballot.released import ReleasedLabels
from secretballot.releasing import reserve_choice
from secretballot.students import HypothesisStudent
from secretballot.teachers.executors import check_engine
from secretballot.vault import make_vault, read_secret, write_secret

_QUERIED = "queried.doubles"  # the points as rows of numbers


class Endless(NamedTuple):
    """A hypothesis that was released, with the public points that made its class finite; all of it
    public.

    Attributes
    ----------
    hypothesis : Hypothesis
    n_candidates : int
    points : ndarray of float64, shape (n, n_features)
        The public points that were known when it was drawn.
    cover : ndarray of float64, shape (n_cover, n_features)
        Those of them that made the class finite.
    """

    hypothesis: Hypothesis
    n_candidates: int
    points: FloatArray
    cover: FloatArray


class UniversalSession:
    """Answer queries by a session as long as it lasts, then by one hypothesis, drawn once.

    Parameters
    ----------
    split : BudgetSplit
        What each part costs; printed.
    hypotheses : HypothesisClass
    first : LabelingSession
        The first part, paid for.
    task : Task
        The fit. Its account reserves the second part, unless it did before; its records are held
        until the switch.
    n_cover : int or None
        How many of the asked points make the class finite; None for all.
    random_state : int or None
        Draws them.
    folder : Path or None
        Of the vault; None where nothing outlives the process.

    Attributes
    ----------
    endless : Endless or None
        None before the switch.

    Raises
    ------
    BudgetError
        If it was not reserved before, and the ledger does not admit it.
    LedgerError
        If the ledger cannot be used.

    Privacy
    -------
    Unit, relation, price : those of the two parts, each reserved before the first query.
    Sensitivity : one record makes at most one mistake under each candidate. The candidates follow
        from public points, which may themselves follow from earlier answers: these are paid for.
    Order : a point is kept before it is answered. The switch draws and commits to the ledger, then
        forgets the records; whatever a crash interrupts, the next fit finds either no draw, and
        draws, or the committed one.
    """

    left = math.inf

    def __init__(
        self,
        split: BudgetSplit,
        hypotheses: HypothesisClass,
        first: LabelingSession,
        task: Task,
        *,
        n_cover: int | None,
        random_state: int | None,
        folder: Path | None,
    ) -> None:
        self.split, self.first, self.classes = split, first, task.target.classes
        self.hypotheses, self._relation = hypotheses, task.guarantee.relation
        self._n_cover, self._random_state = n_cover, random_state
        self.width = task.given.X.shape[1]
        self._table: Table | None = task.table
        self._place = None if folder is None else folder / _QUERIED
        self._points: FloatArray = np.empty((0, self.width))
        self._queried()  # damage is refused before more is reserved
        self._reserved = reserve_choice(
            task.account,
            epsilon=split.endless_epsilon,
            request=f"{task.given.request}/endless",
            guarantee=task.guarantee,
            purpose=task.given.purpose or f"which of the {hypotheses.name} answers for ever",
            classes=self.classes,
        )
        self.endless: Endless | None = None
        # what was drawn under this request before is paid for, and is not drawn anew
        if not self._reserved.left:
            self._take_up()

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), every one of them.

        A label that the first part gave stays. What it abstained on is answered when asked after
        the switch.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        points = check_points(X, self.width)
        if self.endless is None:
            # A point is kept before it is asked: after a crash the cover may hold a point without
            # an answer, but never lack one that was answered.
            self._keep(points)
            labels = self.first.ask_admitted(points).labels
            if not self.first.left:
                self.switch(self._queried())
        else:
            labels = self.first.stored(points).labels
        silent = np.array([label is None for label in labels], dtype=np.bool_)
        if self.endless is not None and silent.any():
            drawn = self.endless.hypothesis.predict(points[silent])
            labels[silent] = object_array(self.classes)[drawn]
            silent[:] = False
        given = np.ones(len(labels), dtype=np.bool_)
        return SessionAnswers(labels, ~silent, given, None, self.left)

    def released(self, X: Any) -> tuple[ReleasedLabels, ...]:
        """Return what was released so far, each part with its certificate: all answers of the
        first part and, after the switch, the labels of `X` by the hypothesis.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that the first part was asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        points = check_points(X, self.width)
        first, found = self.first.released(points), self.endless
        if found is None:
            return (first,)  # the second part is paid for, and not drawn
        # The cover's digest: with it, and the points, anybody finds the function of that number.
        endless = chosen_release(
            self._reserved.released(),
            found.hypothesis.predict(points),
            np.arange(len(points)),
            self.classes,
            about={
                "hypotheses": self.hypotheses.name,
                "hypothesis": found.hypothesis.describe(),
                "points_sha256": doubles_digest(found.cover),
                "n_candidates": found.n_candidates,
                "n_public": len(found.cover),
                "universal": {**asdict(self.split), "part": "endless"},
            },
            unit_column=None,
        )
        return first, endless

    def switch(self, points: FloatArray) -> None:
        """Draw the hypothesis by public points, of shape (n, n_features), unless it was drawn.

        The private records are forgotten.
        """
        # the records are opened only where there is something to draw
        if self._reserved.left:
            assert self._table is not None
            rows = random_rows(len(points), self._n_cover, self._random_state)
            dichotomies = self.hypotheses.dichotomies(points[rows])
            [block] = self._table.one_of_each_unit(sys.maxsize)
            scores = private_scores(
                dichotomies, block.rows, block.targets, "record", self._relation
            )
            about = {"points": points.tolist(), "rows": rows.tolist()}
            self._reserved.answer(scores, [json.dumps(about).encode()])
        self._take_up()

    def _take_up(self) -> None:
        """Go on with the hypothesis that was drawn, here or elsewhere."""
        choice = self._reserved.released()
        about = json.loads(choice.questions[0])
        if not self._reserved.closed:
            # the answer is stored: the end notes what drew it, and another process may have done so
            with contextlib.suppress(LedgerError):
                self._reserved.close()
        points = np.array(about["points"], dtype=np.float64)
        cover = points[np.array(about["rows"], dtype=np.int64)]
        # Representatives follow from the public points alone, so the number of one is enough to
        # find it again. Under this request the teachers of the first part are there for the same
        # hypotheses and classes only.
        dichotomies = self.hypotheses.dichotomies(cover)
        chosen = dichotomies.hypothesis(choice.values.item())
        self.endless = Endless(chosen, len(dichotomies), points, cover)
        self._table = None

    def _queried(self) -> FloatArray:
        """Return the distinct points that were asked, in their order, shape (n, n_features), as far
        as the first part answers; of other processes too.

        Raises
        ------
        DataError
            If kept points cannot be read.
        """
        content = None
        if self._place is not None:
            content = read_secret(self._place, largest=LARGEST_JSON)
        if content is not None:
            if len(content) % (8 * self.width) or not np.isfinite(np.frombuffer(content)).all():
                raise DataError(f"{self._place} is damaged; put the vault back as it was.")
            self._points = np.frombuffer(content).reshape(-1, self.width)
        return self._points

    def _keep(self, points: FloatArray) -> None:
        """Keep those of `points`, of shape (n, n_features), that are new, as far as there is space.

        Two processes that ask at the same moment may lose a point of each other: then fewer points
        are known, which costs accuracy and never privacy.

        Raises
        ------
        DataError
            If they cannot be written; no answer may then be asked for.
        """
        known, most = self._queried(), self.split.first_questions
        if len(known) >= most:
            return
        both = np.concatenate([known, points])
        first = np.sort(np.unique(both, axis=0, return_index=True)[1])[:most]
        if len(first) > len(known):
            self._points = both[first]
            if self._place is not None:
                write_secret(self._place, self._points.tobytes())


_DUMMY_ROWS = 60
_LONGEST_REQUEST = 180  # characters; both parts of a universal labeler have longer keys made of it
_DEFAULT_QUERIES = 1000


@dataclass(eq=False, repr=False)
class Labeler(PayingLearner):
    """Answer queries about public points as they come: private classification-query release.

    `fit` trains the teachers and reserves all queries. Three algorithms, from the fewest
    assumptions to the most. "stability": teachers of all records vote, and their exact vote is the
    answer where it is stable; the stream stops at the T-th query without an answer. "agnostic": the
    same, with teachers of a secret sample of the records that a hypothesis relabelled, so that they
    agree where labels are noisy. "universal": "agnostic" for the first queries, then one hypothesis
    of the class, chosen by all records, for all others. The last two take columns of numbers and
    two classes, and protect single records.

    Parameters
    ----------
    algorithm : str or settings, default "universal"
        A name, or a name with settings, such as "stability:max_abstentions=2". The settings are
        those of `Stability`, `Agnostic` and `Universal` in
        `secretballot.learners.labeler_algorithms`.
    hypotheses : str or HypothesisClass, optional
        "stumps", "thresholds", "intervals", or one of `secretballot.hypotheses`; public, for
        "agnostic" and "universal"; labels 0 and 1 stand for ``classes[0]`` and
        ``classes[1]``.
    teacher : classifier or str, optional
        Cloned for every shard. By default a hardly regularised logistic regression; of a class of
        hypotheses the search for the one with the fewest mistakes, which finds one without any on a
        relabelled shard.
    n_queries : int, optional
        Number m of queries, 1000 by default. "universal" answers any number, and has `n_first`.
    alpha : float, default 0.1
        Of "stability" the error expected of one teacher, of the others the error wanted beyond that
        of the best hypothesis. It sets the number of abstentions.
    n_teachers : int, optional
        Number K of shards; by default so many that a lead of K / 3 is answered.
    epsilon, delta : float
        Price of all queries together; delta above 0.
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
        The reservation; there after `fit`.

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
    """

    _takes = frozenset({"classes", "vault", "executor", "progress"})
    _counted = ("n_queries", "n_teachers")

    algorithm: Any = "universal"
    hypotheses: str | HypothesisClass | None = None
    teacher: Any = None
    _: KW_ONLY
    n_queries: int | None = None
    alpha: float = 0.1
    n_teachers: int | None = None
    n_jobs: int | None = None

    def _prepared(self, given: Given) -> Task:
        algorithm = algorithm_of(self.algorithm)
        if isinstance(algorithm, Agnostic):
            X_public = None if given.X_public is None else check_points(given.X_public, None)
            given = replace(given, X=check_points(given.X, None), X_public=X_public)
        request = algorithm.name if given.request is None else given.request
        check_name("request", request, longest=_LONGEST_REQUEST)
        return super()._prepared(replace(given, request=request))

    def _fitted(self, task: Task) -> Self:
        """Train the teachers and reserve all queries."""
        # All that can be refused is refused before a sample is drawn: an error after it could tell
        # of the sample. The session pays, and comes last.
        algorithm, request = algorithm_of(self.algorithm), str(task.given.request)
        if task.given.X_public is not None:
            task.refuse_points()
        numbers = PublicNumbers(
            task.budget,
            _DEFAULT_QUERIES if self.n_queries is None else self.n_queries,
            check_probability("alpha", self.alpha),
            self.relation,
            task.table.n_records if self.relation == "replace-one" else None,
            self.n_teachers,
        )
        self.session_: LabelingSession | UniversalSession = (
            self._universal_session(algorithm, numbers, task, request)
            if isinstance(algorithm, Universal)
            else self._session(algorithm, numbers, task, request)
        )
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
        if isinstance(algorithm, Universal) and self.n_queries is not None:
            raise ParameterError(
                Parameter("n_queries"),
                " is given, and 'universal' answers any number; give n_first with the algorithm.",
            )
        return target

    def _public_points(self, given: Given) -> Any:
        rows = as_matrix("X", given.X)  # which is no table on disk
        return dummy_rows(rows, _DUMMY_ROWS) if given.X_public is None else given.X_public

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
        session = self._started
        if isinstance(session, LabelingSession) or session.endless is None:
            raise AttributeError("Votes answer, so there is no student; fit one to the answers.")
        chosen, hypotheses = session.endless.hypothesis, session.hypotheses
        return HypothesisStudent.of(chosen, hypotheses, session.classes, session.width)

    def ask(self, x: Any) -> SessionAnswers:
        """Return the answer to one public point, of shape (n_features,); a repeated point gets its
        stored answer.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the reservation is spent.
        """
        return self.ask_many(single_point(x))

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), while queries are left.

        Raises
        ------
        DataError
            If the points do not fit the teachers; nothing was answered then.
        BudgetError
            If none of them was asked before and the reservation is spent.
        """
        return self._started.ask_many(self._numeric(X))

    def released(self, X: Any) -> ReleasedLabels | tuple[ReleasedLabels, ...]:
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
        return self._started.released(self._numeric(X))

    def _numeric(self, points: Any) -> Any:
        """Return points as hypotheses take them, numbers alone, where there are any."""
        by_hypotheses = isinstance(algorithm_of(self.algorithm), Agnostic)
        return np.asarray(points) if by_hypotheses else points

    @property
    def _started(self) -> LabelingSession | UniversalSession:
        check_is_fitted(self, "session_")
        return self.session_

    # --- answers by votes ---

    def _session(
        self, algorithm: Stability, numbers: PublicNumbers, task: Task, request: str, *more: str
    ) -> LabelingSession:
        """Return the session of teachers of all records, or of a relabelled sample of them, that
        are trained now or kept from the same reservation; `more` is on its certificate."""
        event, n_teachers = algorithm.terms(numbers)
        stream = event.stream if isinstance(event, Sampled) else event
        mechanism: Any = stream_mechanism(stream, n_teachers)
        table, teacher = task.table, "logistic" if self.teacher is None else self.teacher
        declared: dict[str, Any] = {}
        if isinstance(event, Sampled):
            mechanism = RelabelledSample(stream=mechanism)
            X = task.given.X
            hypotheses = hypotheses_by_name(self.hypotheses, X.shape[1])
            dummies = dummy_rows(X, _DUMMY_ROWS)
            check_answers(hypotheses, dummies)
            hypotheses.erm(dummies, np.arange(_DUMMY_ROWS) % 2)  # what it refuses is refused here
            table = SecretSample(X, table.targets, event, hypotheses, numbers.n_queries, request)
            teacher = HypothesisStudent(hypotheses) if self.teacher is None else self.teacher
            declared = _declaration(event, request, more)
        check_answerable(mechanism, n_teachers)
        refuse_beyond(task.account, numbers.budget, request)
        teachers = teachers_of_table(
            table,
            teacher,
            task.points[:_DUMMY_ROWS],
            task.target,
            n_teachers=n_teachers,
            relation=self.relation,
            # without a ledger that lasts a later reservation could not know of this one, and must
            # not meet the same sample
            vault=_made_folder(task, request),
            random_state=self.random_state or 0,
            declaration=declared,
            n_jobs=self.n_jobs,
            engine=task.given.executor,
            progress=task.given.progress,
        )
        # paid last, so that nothing is spent where training failed
        return LabelingSession(
            teachers,
            mechanism,
            task.account,
            numbers.budget,
            n_queries=numbers.n_queries,
            request=request,
            purpose=task.given.purpose,
        )

    # --- a hypothesis for ever ---

    def _universal_session(
        self, algorithm: Universal, numbers: PublicNumbers, task: Task, request: str
    ) -> UniversalSession:
        """Reserve both parts, and begin the first."""
        # Checks by public numbers come first, then the account; only then the first part trains and
        # reserves.
        hypotheses = hypotheses_by_name(self.hypotheses, task.given.X.shape[1])
        split = algorithm.split(numbers, hypotheses.vc_dimension)
        if task.account.composition != "basic":
            raise ParameterError(
                f"The ledger composes by {task.account.composition!r}, which does not add two"
                " prices up; give one with the composition 'basic'. Nothing was spent."
            )
        own = f"{request}/first"
        refuse_beyond(task.account, numbers.budget, own)
        beside = (
            "This is the first part of a universal labeler, reserved together with a second one:"
            f" {split}."
        )
        numbers = replace(numbers, budget=split.first, n_queries=split.first_questions)
        first = self._session(algorithm, numbers, task, own, beside)
        return UniversalSession(
            split,
            hypotheses,
            first,
            task,
            n_cover=algorithm.n_cover,
            random_state=self.random_state,
            folder=_made_folder(task, request),
        )


def _made_folder(task: Task, request: str) -> Path | None:
    """Return the folder of a reservation alone, made and closed to others, so that another one
    never meets its teachers; None where vault or ledger end with the process."""
    vault = task.given.vault
    if vault is None or not task.account.durable:
        return None
    place = reservation_folder(vault, request)
    # From the top down, so that no folder is ever open to others while its content is written.
    for folder in (Path(vault), place.parent, place):
        make_vault(folder)
    return place


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
