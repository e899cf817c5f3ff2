"""The labeler: fitted once to private records, then asked for labels, one public point at a time;
its algorithms, the sizes that follow from public numbers, and the secret sample that two relabel.

If every one of K teachers errs on at most B of the queries, then on all but 3 B of them fewer than
a third of the teachers err (Bassily, Thakurta, Thakkar 2018, Lemma 3.3): the vote leads by K / 3,
and is answered if the threshold is below. The numbers T and K follow from what is believed
beforehand of a teacher's error; they decide how much is answered, never how private it is.

A universal labeler asks its first part until its end, then one hypothesis, drawn once by all
private records. Until the draw these are held in memory; then they are forgotten.
"""

import contextlib
import functools
import json
import math
import sys
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, ValidationError
from scipy.stats import binom
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import FloatArray, IntArray, Json, Values
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_name,
    check_positive,
    check_probability,
    named,
    refusal,
)
from secretballot.accounting import PrivacyBudget, Sampled, calibrate_stream, needed_distance
from secretballot.accounting.calibration import largest_sample, sample_grid, stream_budget
from secretballot.accounting.recipes import bassily_noise, check_answerable, stream_mechanism
from secretballot.core.events import Stream
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import RelabelledSample
from secretballot.core.noise import entropy_bytes
from secretballot.core.releasing import noise_source
from secretballot.core.types import Count, Model, fault_of
from secretballot.exceptions import DataError, LedgerError, ParameterError
from secretballot.hypotheses import (
    EMPTY,
    Hypothesis,
    HypothesisClass,
    IntervalDichotomies,
    check_answers,
    check_hypotheses,
    check_points,
    hypotheses_by_name,
)
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
from secretballot.learners.learner import Given, PayingLearner, Task, refuse_beyond, rest_of
from secretballot.learners.selection import chosen_release, private_scores
from secretballot.learners.session import (
    LabelingSession,
    SessionAnswers,
    reservation_folder,
    teachers_of_table,
)
from secretballot.learners.table import Table, assign_shards
from secretballot.released import ReleasedLabels
from secretballot.releasing import reserve_choice
from secretballot.students import HypothesisStudent
from secretballot.teachers.ensemble import Shards, learner_identity
from secretballot.teachers.executors import check_engine
from secretballot.vault import make_vault


class _SecretSample(Table):
    """Private records of which a secret random sample, relabelled by one hypothesis, is dealt out
    to teachers; it is drawn as they are trained, and forgotten then.

    Parameters
    ----------
    X : ndarray of float64, shape (n, n_features)
    targets : ndarray of 0 and 1, shape (n,)
    event : Sampled
        How it is drawn and relabelled.
    hypotheses : HypothesisClass
    n_queries, request
        Of the one reservation that it is drawn for.
    """

    def __init__(
        self,
        X: FloatArray,
        targets: IntArray,
        event: Sampled,
        hypotheses: HypothesisClass,
        n_queries: int,
        request: str,
    ) -> None:
        super().__init__(X, targets, None, None)
        self._event, self._hypotheses = event, hypotheses
        # what cannot be pickled is never known again
        known = learner_identity(hypotheses) or uuid.uuid4().hex
        self._terms = known, json.dumps([event.model_dump(mode="json"), n_queries, request])

    @property
    def identity(self) -> Values:
        """All that teachers of the sample depend on besides settings; private."""
        return (*super().identity, *self._terms)

    def shards(
        self, n_teachers: int, relation: str, vault: Path | None
    ) -> AbstractContextManager[tuple[Shards, Any]]:
        """Give the shards of the sample, drawn and relabelled now; no teacher of it is kept before
        all are."""
        # Under replace-one the place in the random order of the sample decides on the shard; under
        # add-remove a random number of the record itself does, drawn whether or not it is sampled,
        # so that no other record has a say in either.
        event = self._event
        if relation == "replace-one":
            rows = _sample_in_random_order(event.out_of, event.sampled)
            shards = assign_shards(len(rows), n_teachers, relation, None, None)
        else:
            rows = _sample_independently(self.n_records, event.sampled, event.out_of)
            shards = assign_shards(self.n_records, n_teachers, relation, None, None)[rows]
        sample, labels = self._records[rows], self._targets[rows]
        if len(rows):  # under add-remove a sample may be empty, and an error would tell
            epsilon = event.relabel_epsilon
            labels = relabel(sample, labels, self._hypotheses, relabel_epsilon=epsilon)
        return nullcontext((Shards(sample, labels, shards, n_teachers), None))


def relabel(
    X: ArrayLike, y: ArrayLike, hypotheses: HypothesisClass, *, relabel_epsilon: float = 1.0
) -> IntArray:
    """Return new labels for private points, all given by one hypothesis; PRIVATE, as `y` is.

    Among the labellings that the class gives to the points, one is drawn with probability
    proportional to exp(-relabel_epsilon * mistakes / 2), exactly. A learner that meets its records
    relabelled meets them without noise; that is what makes teachers agree.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Private points; equal ones get equal labels.
    y : array of 0 and 1, shape (n,)
        Private labels.
    hypotheses : HypothesisClass
    relabel_epsilon : float
        The epsilon of the exponential mechanism, in nats: the smaller, the more mistakes, about
        (2 / relabel_epsilon) times the logarithm of the number of labellings.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 and 1.

    Raises
    ------
    DataError
        If points or labels do not fit the class.
    ParameterError
        If `hypotheses` is no class of hypotheses, or `relabel_epsilon` is out of its range.

    Privacy
    -------
    None by itself: the candidates depend on private points, so that the labels of all points may
    tell of one. Paid for together with a private algorithm that runs on the relabelled records
    (`Sampled`).

    Notes
    -----
    Cost: O(d n log n) for thresholds, stumps and intervals; else that of the errors of all
    labellings.
    Source: Nandi and Bassily 2020, Algorithm 2; Beimel, Nissim, Stemmer 2015.

    Examples
    --------
    >>> thresholds = sb.hypotheses.Thresholds()
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> labels = sb.relabel(X, y, thresholds, relabel_epsilon=100.0)
    >>> labels.tolist() in ([0, 0, 0, 1], [0, 1, 1, 1])
    True
    """
    check_hypotheses(hypotheses)
    # a replaced record moves mistakes both ways
    scale = least_quotient(2, check_positive("relabel_epsilon", relabel_epsilon))
    # Intervals have as many labellings as pairs of points: they are drawn by their two ends, which
    # needs no list of them.
    labellings = hypotheses.dichotomies(X)
    if isinstance(labellings, IntervalDichotomies):
        ends = noise_source().exponential_range(*labellings.prefix_mistakes_on(X, y), scale)
        chosen: Hypothesis = EMPTY if ends is None else labellings.between(*ends)
    else:
        index = noise_source().exponential_index(-labellings.errors(y), scale)
        chosen = labellings.hypothesis(index)
    return chosen.predict(X)


def _sample_in_random_order(n_records: int, n_sampled: int) -> IntArray:
    """Return rows drawn uniformly without replacement, in uniformly random order, shape
    (n_sampled,).

    The order matters: rows are dealt to teachers by their place in it. A sample in the order of the
    table would move many records to other teachers when one of them is exchanged for one further
    up, and nothing would be amplified.
    """
    while True:
        keys = _random_words(n_records)
        order = np.argsort(keys)
        # distinct keys are in every order with the same probability; equal ones, once in 2^64 / n^2
        # draws, are redrawn
        if (np.diff(keys[order]) > 0).all():
            return order[:n_sampled].astype(np.int64)


def _sample_independently(n_records: int, sampled: int, out_of: int) -> IntArray:
    """Return the rows taken, each by itself with probability sampled / out_of (less 2^-64 at most),
    in their order.
    """
    if sampled == out_of:
        return np.arange(n_records, dtype=np.int64)
    # a lower rate costs less, so rounding down keeps the price
    return np.flatnonzero(_random_words(n_records) < np.uint64(sampled * 2**64 // out_of)).astype(
        np.int64
    )


def _random_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(entropy_bytes(8 * n), dtype=np.uint64)


_PRINTED_DIVISOR = 56  # Nandi and Bassily 2020, Algorithm 3, line 1: n' = epsilon n / 56

_Chance = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class _PublicNumbers:
    """Public numbers of a fit.

    Attributes
    ----------
    budget : PrivacyBudget
    n_queries : int
    alpha : float
        Error of `Labeler`.
    relation : {"add-remove", "replace-one"}
    n_records : int or None
        None where it is private.
    n_teachers : int or None
        None where the algorithm sets it.
    """

    budget: PrivacyBudget
    n_queries: int
    alpha: float
    relation: str
    n_records: int | None = None
    n_teachers: int | None = None


class Stability(Model):
    """Teachers of all records, asked by the sparse vector: the exact vote where it is stable.

    A_binClas of Bassily, Thakurta, Thakkar 2018 (Algorithm 2), which Nandi and Bassily 2020 call
    A_SubSamp (Algorithm 5), with the margin halved and the stop at the T-th abstention.

    Attributes
    ----------
    beta : float, default 0.05
        Probability with which more queries than allowed for may be unstable.
    max_abstentions : int, optional
        Number T of abstentions at which the stream stops; by default from `alpha`.
    calibration : {"tight", "paper"}, default "tight"
        Noise, T and K: the least that keep the budget, by the sparse vector or by a table of
        abstentions, whichever answers the less stable queries; or as printed.
    """

    name: ClassVar[str] = "stability"

    beta: _Chance = 0.05
    max_abstentions: Count | None = None
    calibration: Literal["tight", "paper"] = "tight"

    def terms(self, numbers: _PublicNumbers) -> tuple[Stream | Sampled, int]:
        """Return the event of all answers, and the number of teachers.

        Raises
        ------
        ParameterError
            If no noise keeps the budget.
        """
        # a printed formula is trusted no more than any other noise: the ledger prices it
        if self.calibration == "paper":
            return self._printed_terms(numbers)
        return self._tight_terms(numbers)

    def _tight_terms(self, numbers: _PublicNumbers) -> tuple[Stream | Sampled, int]:
        return self._tight_stream(numbers.budget, numbers, numbers.alpha)

    def _tight_stream(
        self, budget: PrivacyBudget, numbers: _PublicNumbers, error: float
    ) -> tuple[Stream, int]:
        """Return the stream with the fewest abstentions for teachers of that error, the least noise
        that keeps the budget, and the number of teachers."""
        # More teachers err more often somewhere, so more abstentions are needed, hence more noise,
        # hence more teachers: repeated until nothing grows.
        m, given = numbers.n_queries, numbers.n_teachers
        teachers, unstable = given or 1000, 0
        # the threshold depends on the logarithm of the number of teachers, so two or three
        # suffice
        for _ in range(6):
            needed = self.max_abstentions or _abstentions_for(m, error, self.beta, teachers)
            if needed <= unstable:
                break
            stream, unstable = _stream_for(budget, needed), needed
            teachers = given or _teachers_for(stream, m, self.beta)
        return stream, teachers

    def _printed_terms(self, numbers: _PublicNumbers) -> tuple[Stream | Sampled, int]:
        budget, m = numbers.budget, numbers.n_queries
        unstable = self.max_abstentions or _printed_abstentions(m, numbers.alpha, self.beta)
        needed = numbers.n_teachers or _printed_teachers(budget, m, unstable, self.beta)
        return bassily_noise(budget, m, unstable), needed


class Agnostic(Stability):
    """Teachers of a secret random sample of the records, relabelled by a hypothesis that fits it.

    The teachers agree on nearly every point, and answer by the sparse vector: Nandi and Bassily
    2020, Algorithm 3, without the resampling of line 4, which would only put a record before
    several teachers. `beta` and `max_abstentions` are as for `Stability`.

    Attributes
    ----------
    relabel_epsilon : float, default 1.0
        Parameter of the relabelling, in nats; its price is part of the whole.
    calibration : {"tight", "paper"}, default "tight"
        "tight": the largest sample that the budget allows, and the least noise. "paper": the
        printed constants, for comparison, under "replace-one"; refused where their price is more
        than the budget.
    """

    name = "agnostic"

    relabel_epsilon: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 1.0

    def _tight_terms(self, numbers: _PublicNumbers) -> tuple[Sampled, int]:
        # The stream's noise decides how many teachers are needed, and how much of the records may
        # be sampled for the rest of the price: abstentions, stream, sample, teachers, in this order
        relation = check_choice("relation", numbers.relation, RELATIONS)
        inner = stream_budget(numbers.budget, relation, self.relabel_epsilon)
        # a teacher errs on alpha / 12 of the relabelled points (proof of Lemma 3.5)
        stream, n_teachers = self._tight_stream(inner, numbers, numbers.alpha / 12)
        out_of = sample_grid(relation, numbers.n_records)
        sample = largest_sample(numbers.budget, stream, out_of, relation, self.relabel_epsilon)
        return sample, n_teachers

    def _printed_terms(self, numbers: _PublicNumbers) -> tuple[Sampled, int]:
        # ours is the split without resampling, the halved margin and the earlier stop; the noise is
        # that of the printed one
        budget, m, n = numbers.budget, numbers.n_queries, numbers.n_records
        if n is None or self.relabel_epsilon != 1 or not budget.epsilon <= _PRINTED_DIVISOR:
            raise ParameterError(
                "calibration 'paper' is printed for replace-one, a relabel_epsilon of 1 and an"
                f" epsilon of at most {_PRINTED_DIVISOR} alone; use 'tight'."
            )
        # line 1 of the algorithm, rounded up, and n' down
        expected, log = m * numbers.alpha, math.log(2 / budget.delta)
        unstable = expected / 8 + math.sqrt(3 * expected * math.log(m / self.beta)) / 4
        inside = min(1.0, numbers.alpha * max(1.0, math.sqrt(expected)))
        inner = PrivacyBudget(inside / log, budget.delta / (2 * math.exp(inside) * log))
        abstentions = self.max_abstentions or max(1, math.ceil(unstable))
        event = Sampled(
            stream=bassily_noise(inner, m, abstentions),
            sampled=math.floor(budget.epsilon * n / _PRINTED_DIVISOR),
            out_of=n,
            relation="replace-one",
            relabel_epsilon=1.0,
        )
        return event, numbers.n_teachers or _printed_teachers(inner, m, abstentions, self.beta)


class Universal(Agnostic):
    """The agnostic labeler for the first queries, then one hypothesis for all others.

    The points of the first queries, which are public, make the class finite; one of its labellings
    is chosen by all private records, and answers everything else at no cost: Nandi and Bassily
    2020, Algorithm 4, with epsilon split between both parts. Other settings are as for `Agnostic`.

    Attributes
    ----------
    n_first : int, optional
        Number of queries, each counted once, after which the second part answers; by default 32
        (d log(1 / alpha) + log(1 / beta)) / alpha (`public_points_needed`). It comes sooner if the
        first part stops at its last abstention.
    n_cover : int, optional
        How many of their points make the class finite, at random; by default all. Fewer for classes
        that label many points in too many ways.
    epsilon_share : float, default 0.5
        Share of epsilon for the second part. A tenth serves where hardly more than `n_first`
        queries come.
    """

    name = "universal"

    n_first: Count | None = None
    n_cover: Count | None = None
    epsilon_share: _Chance = 0.5


_BY_NAME: dict[str, type[Stability]] = {
    kind.name: kind for kind in (Stability, Agnostic, Universal)
}


def _algorithm_of(given: Any) -> Stability:
    """Return the settings that ``NAME`` or ``NAME:key=value,...`` stands for, or those given.

    Raises
    ------
    ParameterError
        If there are none of that name, or a setting is unknown or out of its range.
    """
    if isinstance(given, Stability):
        return given
    known = {name: tuple(kind.model_fields) for name, kind in _BY_NAME.items()}
    name, settings = named("algorithm", given, known)
    try:
        return _BY_NAME[name].model_validate(settings)
    except ValidationError as error:
        raise fault_of(error) from None


@dataclass(frozen=True)
class _BudgetSplit:
    """What each part of a universal labeler may cost, so that both together cost the budget.

    Attributes
    ----------
    epsilon, delta : float
        Of both.
    first_epsilon : float
        Of the first part, which has all of delta.
    endless_epsilon : float
        Of the choice of a hypothesis, pure.
    first_questions : int
        Queries after which the second part answers.
    """

    epsilon: float
    delta: float
    first_epsilon: float
    endless_epsilon: float
    first_questions: int

    @classmethod
    def of(cls, total: PrivacyBudget, share: float, n_first: int) -> "_BudgetSplit":
        """Return the split that gives a share of epsilon to the second part, to three digits.

        Raises
        ------
        ParameterError
            If the share leaves one part nothing.
        """
        endless = float(f"{share * total.epsilon:.3g}")
        first = rest_of(total.epsilon, endless)
        if not (endless > 0 and first > 0):
            raise refusal(
                "epsilon_share",
                f" is {share}, which leaves one part no epsilon; give one nearer to 0.5.",
            )
        return cls(total.epsilon, total.delta, first, endless, n_first)

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:g} = {self.first_epsilon:g} for the first"
            f" {self.first_questions} questions + {self.endless_epsilon:g} for all others"
        )


# --- tight sizes ---


# a second or two each
_stream_for = functools.lru_cache(maxsize=64)(calibrate_stream)


def _abstentions_for(n_queries: int, error: float, beta: float, n_teachers: int) -> int:
    """Return the number T of abstentions at which to stop.

    It is 3 B + 1, with B the smallest number that binomially many errors exceed with probability at
    most beta / n_teachers; the number of queries if that is less. `error` is the largest expected
    error of a teacher on a query, `beta` the probability with which more of them may be unstable.
    """
    errors = int(binom.isf(beta / n_teachers, n_queries, error))
    return max(1, min(3 * errors + 1, n_queries))


def _teachers_for(stream: Stream, n_queries: int, beta: float) -> int:
    """Return the number K of teachers at which a lead of K / 3 is answered, on all queries with
    probability 1 - beta.

    Raises
    ------
    ParameterError
        If a table of abstentions does not get there at any distance.
    """
    needed = needed_distance(stream, 1 - beta / n_queries)
    if not math.isfinite(needed):
        raise ParameterError(
            f"With {stream.abstentions} abstentions in this budget no number of teachers is"
            " answered surely enough; ask fewer questions, or take a larger epsilon."
        )
    # stability is ceil(lead / 2) - 1
    return 6 * (math.ceil(needed) + 1)


# --- printed sizes, for comparison ---


def _printed_abstentions(n_queries: int, error: float, beta: float) -> int:
    """Return T as Bassily, Thakurta, Thakkar 2018 print it in Theorem 3.2, for teachers of that
    error."""
    mean = n_queries * error
    return max(1, math.ceil(3 * (mean + math.sqrt(mean * math.log(n_queries / beta) / 2))))


def _printed_teachers(
    budget: PrivacyBudget, n_queries: int, max_abstentions: int, beta: float
) -> int:
    """Return K as Bassily, Thakurta, Thakkar 2018 print it in Algorithm 2: 34 sqrt(2) lambda
    log(4 m T / ...)."""
    scale = math.sqrt(32 * max_abstentions * math.log(2 / budget.delta)) / budget.epsilon
    last = math.log(4 * n_queries * max_abstentions / min(budget.delta, beta / 2))
    return math.ceil(34 * math.sqrt(2) * scale * last)


def public_points_needed(vc_dimension: int, alpha: float, beta: float) -> int:
    """Return how many public points make the labelled hypotheses a cover of the class, by the
    theorem's constants: 32 (d log(1 / alpha) + log(1 / beta)) / alpha, rounded up.

    Parameters
    ----------
    vc_dimension : int
        d, at least 1.
    alpha : float
        How far, at most, some representative is from each hypothesis: share of the points they
        label differently.
    beta : float
        Failure probability, over the public points.

    Notes
    -----
    Points that are too few cost accuracy, never privacy.
    Source : Alon, Bassily, Moran 2019, arXiv:1910.11519, as used in Nandi and Bassily 2020,
        Algorithm 4.
    """
    share, failure = check_probability("alpha", alpha), check_probability("beta", beta)
    return math.ceil(32 * (vc_dimension * math.log(1 / share) + math.log(1 / failure)) / share)


class _Endless(NamedTuple):
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


class _UniversalSession:
    """Answer queries by a session as long as it lasts, then by one hypothesis, drawn once.

    Parameters
    ----------
    split : _BudgetSplit
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

    Attributes
    ----------
    endless : _Endless or None
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
    Order : the switch draws and commits to the ledger, then forgets the records; whatever a crash
        interrupts, the next fit finds either no draw, and draws, or the committed one.
    """

    left = math.inf

    def __init__(
        self,
        split: _BudgetSplit,
        hypotheses: HypothesisClass,
        first: LabelingSession,
        task: Task,
        *,
        n_cover: int | None,
        random_state: int | None,
    ) -> None:
        self.split, self.first, self.classes = split, first, task.target.classes
        self.hypotheses, self._declaration = hypotheses, task.declaration
        self._guarantee = task.guarantee
        self._n_cover, self._random_state = n_cover, random_state
        self.width = task.given.X.shape[1]
        self._table: Table | None = task.table
        self._points: FloatArray = np.empty((0, self.width))
        self._reserved = reserve_choice(
            task.account,
            epsilon=split.endless_epsilon,
            request=f"{task.given.request}/endless",
            guarantee=task.guarantee,
            purpose=task.given.purpose or f"which of the {hypotheses.name} answers for ever",
            classes=self.classes,
        )
        self.endless: _Endless | None = None
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
            # those that are new, as far as the first part answers them
            both, most = np.concatenate([self._points, points]), self.split.first_questions
            self._points = both[np.sort(np.unique(both, axis=0, return_index=True)[1])[:most]]
            found = self.first.ask_left(points)
            if not self.first.left:
                # points that another process answered; how many were answered is public
                unknown = self.first.used - len(self._points)
                if unknown > 0:
                    raise DataError(
                        f"{unknown} of {self.first.used} questions were answered before this"
                        " labeler was made again; ask them again, for nothing, so that they count"
                        " in the choice of the hypothesis that answers all further ones."
                    )
                self.switch(self._points)
        else:
            found = self.first.stored(points)
        labels, silent = found.labels, ~found.answered
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
            declaration=self._declaration,
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
            scores = private_scores(dichotomies, block.rows, block.targets, self._guarantee)
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
        cover = points[about["rows"]]
        # Representatives follow from the public points alone, so the number of one is enough to
        # find it again. Under this request the teachers of the first part are there for the same
        # hypotheses and classes only.
        dichotomies = self.hypotheses.dichotomies(cover)
        chosen = dichotomies.hypothesis(choice.values.item())
        self.endless = _Endless(chosen, len(dichotomies), points, cover)
        self._table = None


_DUMMY_ROWS = 60
_LONGEST_REQUEST = 180  # characters; both parts of a universal labeler have longer keys made of it


@dataclass(eq=False, repr=False)
class Labeler(PayingLearner):
    """Answer queries about public points as they come: private classification-query release.

    `fit` trains the teachers and reserves all queries. Three algorithms, from the fewest
    assumptions to the most. "stability": teachers of all records vote, and their exact vote is the
    answer where it is stable; the stream stops at the T-th query without an answer. "agnostic": the
    same, with teachers of a secret sample of the records that a hypothesis relabelled, so that they
    agree where labels are noisy. "universal": "agnostic" for the first queries, then one hypothesis
    of the class, chosen by all records, for all others; points that were asked before a restart are
    asked again, for nothing, to be among those that make the class finite. The last two take
    columns of numbers and two classes, and protect single records.

    Parameters
    ----------
    algorithm : str or settings, default "universal"
        A name, or a name with settings, such as "stability:max_abstentions=2". The settings are
        those of `Stability`, `Agnostic` and `Universal` in
        `secretballot.learners.labelers`.
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
    session_ : LabelingSession or _UniversalSession
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

    takes = frozenset({"classes", "vault", "executor", "progress"})
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
        algorithm = _algorithm_of(self.algorithm)
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
        algorithm, request = _algorithm_of(self.algorithm), str(task.given.request)
        if task.given.X_public is not None:
            task.refuse_points()
        numbers = _PublicNumbers(
            task.budget,
            1000 if self.n_queries is None else self.n_queries,
            check_probability("alpha", self.alpha),
            self.relation,
            task.table.n_records if self.relation == "replace-one" else None,
            self.n_teachers,
        )
        self.session_: LabelingSession | _UniversalSession = (
            self._universal_session(algorithm, numbers, task, request)
            if isinstance(algorithm, Universal)
            else self._session(algorithm, numbers, task, request)
        )
        return self

    def _declared(self, given: Given) -> Target:
        check_engine(given.executor, self.n_jobs)
        target, algorithm = super()._declared(given), _algorithm_of(self.algorithm)
        if isinstance(algorithm, Agnostic):
            if given.units is not None:
                raise refusal(
                    "units",
                    f" are given, and {algorithm.name!r} protects single records; use 'stability'.",
                )
            refuse_more_classes(target.classes)
        if isinstance(algorithm, Universal) and self.n_queries is not None:
            raise refusal(
                "n_queries",
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
        by_hypotheses = isinstance(_algorithm_of(self.algorithm), Agnostic)
        return np.asarray(points) if by_hypotheses else points

    @property
    def _started(self) -> LabelingSession | _UniversalSession:
        check_is_fitted(self, "session_")
        return self.session_

    # --- answers by votes ---

    def _session(
        self, algorithm: Stability, numbers: _PublicNumbers, task: Task, request: str, *more: str
    ) -> LabelingSession:
        """Return the session of teachers of all records, or of a relabelled sample of them, that
        are trained now or kept from the same reservation; `more` is on its certificate."""
        event, n_teachers = algorithm.terms(numbers)
        stream = event.stream if isinstance(event, Sampled) else event
        mechanism: Any = stream_mechanism(stream, n_teachers)
        table, teacher = task.table, "logistic" if self.teacher is None else self.teacher
        declared: Json = {}
        if isinstance(event, Sampled):
            mechanism = RelabelledSample(stream=mechanism)
            X = task.given.X
            hypotheses = hypotheses_by_name(self.hypotheses, X.shape[1])
            dummies = dummy_rows(X, _DUMMY_ROWS)
            check_answers(hypotheses, dummies)
            hypotheses.erm(dummies, np.arange(_DUMMY_ROWS) % 2)  # what it refuses is refused here
            table = _SecretSample(X, table.targets, event, hypotheses, numbers.n_queries, request)
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
        self, algorithm: Universal, numbers: _PublicNumbers, task: Task, request: str
    ) -> _UniversalSession:
        """Reserve both parts, and begin the first."""
        # Checks by public numbers come first, then the account; only then the first part trains and
        # reserves.
        hypotheses = hypotheses_by_name(self.hypotheses, task.given.X.shape[1])
        vc_dimension = max(1, hypotheses.vc_dimension)
        needed = public_points_needed(vc_dimension, numbers.alpha, algorithm.beta)
        n_first = algorithm.n_first or needed
        split = _BudgetSplit.of(numbers.budget, algorithm.epsilon_share, n_first)
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
        price = PrivacyBudget(split.first_epsilon, split.delta)
        numbers = replace(numbers, budget=price, n_queries=split.first_questions)
        first = self._session(algorithm, numbers, task, own, beside)
        return _UniversalSession(
            split,
            hypotheses,
            first,
            task,
            n_cover=algorithm.n_cover,
            random_state=self.random_state,
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


def _declaration(event: Sampled, request: str, more: Sequence[str]) -> Json:
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
