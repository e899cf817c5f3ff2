"""The algorithms of a labeler: their settings, the sizes that follow from public numbers, and the
secret sample that two of them relabel.

If every one of K teachers errs on at most B of the queries, then on all but 3 B of them fewer than
a third of the teachers err (Bassily, Thakurta, Thakkar 2018, Lemma 3.3): the vote leads by K / 3,
and is answered if the threshold is below. The numbers T and K follow from what is believed
beforehand of a teacher's error; they decide how much is answered, never how private it is."""

import functools
import json
import math
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, ValidationError
from scipy.stats import binom

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_positive,
    check_probability,
    named,
)
from secretballot.accounting import (
    PrivacyBudget,
    Sampled,
    calibrate_stream,
    delta_upper,
    needed_distance,
)
from secretballot.accounting.calibration import largest_sample, sample_grid, stream_budget
from secretballot.accounting.recipes import bassily_noise
from secretballot.core.events import Stream
from secretballot.core.exponential import least_quotient
from secretballot.core.noise import entropy_bytes
from secretballot.core.releasing import noise_source
from secretballot.core.types import Count, Model, fault_of
from secretballot.exceptions import Parameter, ParameterError
from secretballot.hypotheses import Hypothesis, HypothesisClass
from secretballot.hypotheses.base import check_hypotheses
from secretballot.hypotheses.ranges import EMPTY, IntervalDichotomies
from secretballot.learners.learner import rest_of
from secretballot.learners.table import Table, assign_shards
from secretballot.teachers.ensemble import TeacherEnsemble, learner_identity
from secretballot.teachers.training import Shards


class SecretSample(Table):
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
    def identity(self) -> tuple[Any, ...]:
        """All that teachers of the sample depend on besides settings; private."""
        return (*super().identity, *self._terms)

    def teachers(
        self,
        teacher: Any,
        n_teachers: int,
        relation: str,
        vault: Path | None,
        random_state: int | None,
        **training: Any,
    ) -> TeacherEnsemble:
        """Return one teacher for every shard of the sample."""
        # Under replace-one the place in the random order of the sample decides on the shard; under
        # add-remove a random number of the record itself does, drawn whether or not it is sampled,
        # so that no other record has a say in either.
        event = self._event
        if relation == "replace-one":
            rows = sample_in_random_order(event.out_of, event.sampled)
            shards = assign_shards(len(rows), n_teachers, relation, None, None)
        else:
            rows = sample_independently(self.n_records, event.sampled, event.out_of)
            shards = assign_shards(self.n_records, n_teachers, relation, None, None)[rows]
        sample, labels = self._records[rows], self._targets[rows]
        if len(rows):  # under add-remove a sample may be empty, and an error would tell
            epsilon = event.relabel_epsilon
            labels = relabel(sample, labels, self._hypotheses, relabel_epsilon=epsilon)
        source = Shards(sample, labels, shards, n_teachers)
        return TeacherEnsemble.fit(teacher, source, random_state=random_state or 0, **training)


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


def sample_in_random_order(n_records: int, n_sampled: int) -> IntArray:
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


def sample_independently(n_records: int, sampled: int, out_of: int) -> IntArray:
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


_FIRST_TEACHERS = 1000
# the threshold depends on the logarithm of the number of teachers, so two or three suffice
_ROUNDS = 6
_PRINTED_DIVISOR = 56  # Nandi and Bassily 2020, Algorithm 3, line 1: n' = epsilon n / 56
_TEACHER_SHARE = 12  # a teacher errs on alpha / 12 of the relabelled points (proof of Lemma 3.5)

Chance = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


@dataclass(frozen=True)
class PublicNumbers:
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

    beta: Chance = 0.05
    max_abstentions: Count | None = None
    calibration: Literal["tight", "paper"] = "tight"

    def terms(self, numbers: PublicNumbers) -> tuple[Stream | Sampled, int]:
        """Return the event of all answers, and the number of teachers.

        Raises
        ------
        ParameterError
            If no noise keeps the budget, or a printed one does not.
        """
        if self.calibration == "tight":
            return self._tight_terms(numbers)
        event, n_teachers = self._printed_terms(numbers)
        # a printed formula is trusted no more than any other noise
        budget = numbers.budget
        if not delta_upper([event], budget.epsilon) <= budget.delta:
            raise ParameterError(
                f"calibration 'paper' is not certified for epsilon {budget.epsilon:g}, delta"
                f" {budget.delta:g} and these abstentions; use 'tight'."
            )
        return event, n_teachers

    def _tight_terms(self, numbers: PublicNumbers) -> tuple[Stream | Sampled, int]:
        return self._tight_stream(numbers.budget, numbers, numbers.alpha)

    def _tight_stream(
        self, budget: PrivacyBudget, numbers: PublicNumbers, error: float
    ) -> tuple[Stream, int]:
        """Return the stream with the fewest abstentions for teachers of that error, the least noise
        that keeps the budget, and the number of teachers."""
        # More teachers err more often somewhere, so more abstentions are needed, hence more noise,
        # hence more teachers: repeated until nothing grows.
        m, given = numbers.n_queries, numbers.n_teachers
        teachers, unstable = given or _FIRST_TEACHERS, 0
        for _ in range(_ROUNDS):
            needed = self.max_abstentions or abstentions_for(m, error, self.beta, teachers)
            if needed <= unstable:
                break
            stream, unstable = stream_for(budget, needed), needed
            teachers = given or teachers_for(stream, m, self.beta)
        return stream, teachers

    def _printed_terms(self, numbers: PublicNumbers) -> tuple[Stream | Sampled, int]:
        budget, m = numbers.budget, numbers.n_queries
        unstable = self.max_abstentions or printed_abstentions(m, numbers.alpha, self.beta)
        needed = numbers.n_teachers or printed_teachers(budget, m, unstable, self.beta)
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

    name: ClassVar[str] = "agnostic"

    relabel_epsilon: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 1.0

    def _tight_terms(self, numbers: PublicNumbers) -> tuple[Sampled, int]:
        # The stream's noise decides how many teachers are needed, and how much of the records may
        # be sampled for the rest of the price: abstentions, stream, sample, teachers, in this order
        relation = check_choice("relation", numbers.relation, RELATIONS)
        inner = stream_budget(numbers.budget, relation, self.relabel_epsilon)
        stream, n_teachers = self._tight_stream(inner, numbers, numbers.alpha / _TEACHER_SHARE)
        out_of = sample_grid(relation, numbers.n_records)
        sample = largest_sample(numbers.budget, stream, out_of, relation, self.relabel_epsilon)
        return sample, n_teachers

    def _printed_terms(self, numbers: PublicNumbers) -> tuple[Sampled, int]:
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
        return event, numbers.n_teachers or printed_teachers(inner, m, abstentions, self.beta)


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

    name: ClassVar[str] = "universal"

    n_first: Count | None = None
    n_cover: Count | None = None
    epsilon_share: Chance = 0.5

    def split(self, numbers: PublicNumbers, vc_dimension: int) -> "BudgetSplit":
        """Return what each part may cost.

        Parameters
        ----------
        numbers : PublicNumbers
            Of the whole.
        vc_dimension : int
            Of the class.

        Raises
        ------
        ParameterError
            If the share leaves one part nothing.
        """
        needed = public_points_needed(max(1, vc_dimension), numbers.alpha, self.beta)
        return BudgetSplit.of(numbers.budget, self.epsilon_share, self.n_first or needed)


_BY_NAME: dict[str, type[Stability]] = {
    kind.name: kind for kind in (Stability, Agnostic, Universal)
}


def algorithm_of(given: Any) -> Stability:
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
class BudgetSplit:
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
    def of(cls, total: PrivacyBudget, share: float, n_first: int) -> "BudgetSplit":
        """Return the split that gives a share of epsilon to the second part, to three digits.

        Raises
        ------
        ParameterError
            If the share leaves one part nothing.
        """
        endless = float(f"{share * total.epsilon:.3g}")
        first = rest_of(total.epsilon, endless)
        if not (endless > 0 and first > 0):
            raise ParameterError(
                Parameter("epsilon_share"),
                f" is {share}, which leaves one part no epsilon; give one nearer to 0.5.",
            )
        return cls(total.epsilon, total.delta, first, endless, n_first)

    @property
    def first(self) -> PrivacyBudget:
        """Price of the first part."""
        return PrivacyBudget(self.first_epsilon, self.delta)

    def __str__(self) -> str:
        return (
            f"epsilon {self.epsilon:g} = {self.first_epsilon:g} for the first"
            f" {self.first_questions} questions + {self.endless_epsilon:g} for all others"
        )


# --- tight sizes ---


# a second or two each
stream_for = functools.lru_cache(maxsize=64)(calibrate_stream)


def abstentions_for(n_queries: int, error: float, beta: float, n_teachers: int) -> int:
    """Return the number T of abstentions at which to stop.

    It is 3 B + 1, with B the smallest number that binomially many errors exceed with probability at
    most beta / n_teachers; the number of queries if that is less. `error` is the largest expected
    error of a teacher on a query, `beta` the probability with which more of them may be unstable.
    """
    errors = int(binom.isf(beta / n_teachers, n_queries, error))
    return max(1, min(3 * errors + 1, n_queries))


def teachers_for(stream: Stream, n_queries: int, beta: float) -> int:
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


def printed_abstentions(n_queries: int, error: float, beta: float) -> int:
    """Return T as Bassily, Thakurta, Thakkar 2018 print it in Theorem 3.2, for teachers of that
    error."""
    mean = n_queries * error
    return max(1, math.ceil(3 * (mean + math.sqrt(mean * math.log(n_queries / beta) / 2))))


def printed_teachers(
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
