"""From a budget and the shape of votes to a mechanism of the core, what its noise leaves of them,
and which questions it withholds. Every mechanism is priced again before it draws."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from scipy.special import ndtr

from secretballot._typing import Json, JsonView
from secretballot._validation import RELEASES, check_choice, check_count
from secretballot.accounting.abstention_table import answer_weights
from secretballot.accounting.calibration import (
    calibrate_abstention_table,
    calibrate_bounded_range,
    calibrate_pure,
    calibrate_sparse_vector,
    calibrate_vote_table,
    check_has_delta,
    first_integer,
    least_scale,
    needed_distance,
    vector_of,
)
from secretballot.core import mechanisms
from secretballot.core.events import SparseStream, Stream, TableStream
from secretballot.core.exponential import least_quotient
from secretballot.core.label_games import CHANCE_BITS
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    Mechanism,
    NoisyMeans,
    NoisyVotes,
    RelabelledSample,
    SparseVector,
    StableValue,
    TableLabels,
    VoteQuantiles,
    teachers_of,
    weights_of,
    weights_text,
)
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.streams import BITS, false_answer
from secretballot.core.types import FloatArray, Guarantee, VoteShape
from secretballot.exceptions import Argument, Parameter, ParameterError

THRESHOLD_SHARE = 0.25  # of the squared signal-to-noise ratio
CONFIDENCE = 0.9  # of interactive voting, by default
_USUALLY = math.log(10)  # scales above a threshold at which hardly one answer in ten is withheld
_HARDLY_EVER = 0.01  # a unanimous vote answered less often than this makes a release useless


def confident_labels(
    budget: PrivacyBudget, shape: VoteShape, *, threshold: int, max_answers: int | None = None
) -> ConfidentLabels:
    """Return confident or interactive voting with the least noise that keeps a budget.

    Parameters
    ----------
    budget : PrivacyBudget
        For the whole release; delta above 0.
    shape : VoteShape
    threshold : int
        For the highest count, in votes; at most the number of teachers.
    max_answers : int, optional
        Most queries that are answered; all by default.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or no noise keeps the budget.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(2.0, 1e-6)
    >>> shape = sb.votes_of_counts([[3, 97]] * 20).shape
    >>> found = sb.accounting.confident_labels(budget, shape, threshold=70, max_answers=8)
    >>> found.sigma < found.threshold_sigma
    True
    """
    teachers = teachers_of(shape)
    if not check_count("threshold", threshold) <= teachers:
        raise ParameterError(
            Parameter("threshold"),
            f" is {threshold}, more votes than {teachers} teachers have; use at most as many.",
        )
    answers = shape.n_queries if max_answers is None else check_count("max_answers", max_answers)
    shifts = (1 if shape.n_classes == 2 else 2) * answers
    ratio = math.sqrt(shape.n_queries / THRESHOLD_SHARE / (shifts / (1 - THRESHOLD_SHARE)))
    one = ConfidentLabels(
        threshold=threshold, threshold_sigma=ratio, sigma=1.0, max_answers=answers
    )
    # each threshold has the noise of the worst
    like = one.event(shape).changed(threshold=None, n_teachers=None)
    scale = least_scale(budget, like)
    return one.changed(threshold_sigma=scale * ratio, sigma=scale)


def sparse_vector(
    budget: PrivacyBudget, n_queries: int, *, max_abstentions: int, calibration: str = "tight"
) -> SparseVector:
    """Return sparse-vector voting with noise that keeps a budget.

    Parameters
    ----------
    budget : PrivacyBudget
        For the whole stream; delta above 0.
    n_queries : int
        Enters the printed thresholds alone, and never the price.
    max_abstentions : int
        Number T of abstentions at which the stream stops.
    calibration : {"tight", "liu2021", "btt2018"}
        "tight": the least noise among several designs, priced exactly. The others: the papers'
        closed forms, for comparison, with our halved margin and our stop; they are priced too.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or no noise keeps the budget.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> sb.accounting.sparse_vector(budget, 1000, max_abstentions=5).max_abstentions
    5
    """
    check_choice("calibration", calibration, ("tight", "liu2021", "btt2018"))
    queries = check_count("n_queries", n_queries)
    unstable = check_count("max_abstentions", max_abstentions)
    if calibration == "tight":
        event = calibrate_sparse_vector(budget, unstable)
    else:
        printed = _liu_noise if calibration == "liu2021" else bassily_noise
        event = printed(budget, queries, unstable)
        # a printed formula is trusted no more than any other noise
        if not delta_upper([event], budget.epsilon) <= budget.delta:
            raise ParameterError(
                f"calibration {calibration!r} does not keep epsilon {budget.epsilon}, delta"
                f" {budget.delta} at ",
                Parameter("max_abstentions"),
                f" {unstable}; use 'tight'.",
            )
    return SparseVector(**_shared_terms(event))


def table_of_abstentions(
    budget: PrivacyBudget, n_teachers: int, *, max_abstentions: int, order: float | None = None
) -> AbstentionTable:
    """Return the table that answers the least stable queries within a budget.

    Parameters
    ----------
    budget : PrivacyBudget
        For the whole stream; delta above 0.
    n_teachers : int
        The table ends with the distance of their unanimous vote.
    max_abstentions : int
        Number T of abstentions at which the stream stops.
    order : float, optional
        Order of the inequalities; the best one by default. A ledger with Renyi composition admits
        it only where this is at least the ledger's order.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or no table keeps the budget.
    """
    return _table(calibrate_abstention_table(budget, max_abstentions, order=order), n_teachers)


def stable_value(budget: PrivacyBudget, shape: VoteShape) -> StableValue:
    """Return tests of the distance to instability that answer the least stable queries within a
    budget.

    Every query is tested and paid for; where many are, a stream costs less.

    Parameters
    ----------
    budget : PrivacyBudget
        For all queries together; delta above 0.
    shape : VoteShape

    Raises
    ------
    ParameterError
        If delta is 0, or records vote for themselves.

    Examples
    --------
    >>> shape = sb.accounting.teacher_shape(3, 2, n_teachers=250)
    >>> found = sb.accounting.stable_value(sb.PrivacyBudget(1.0, 1e-6), shape)
    >>> found.threshold < 60
    True
    """
    check_has_delta(budget, "an exact plurality")

    def of_share(share: float) -> StableValue:
        """Return the tests whose noise on the distance takes a share of delta."""
        part = PrivacyBudget(budget.epsilon, share * budget.delta)
        scale = 1 / calibrate_pure(part, shape.moved)

        def keeps(threshold: int) -> bool:
            event = StableValue(scale=scale, threshold=threshold).event(shape)
            return delta_upper([event], budget.epsilon) <= budget.delta

        return StableValue(scale=scale, threshold=first_integer(keeps))

    found = [of_share(share) for share in (0.0, 0.5, 0.9)]
    return min(found, key=lambda one: one.threshold + _USUALLY * one.scale)


def stream_mechanism(event: Stream, n_teachers: int) -> SparseVector | AbstentionTable:
    """Return what draws a stream: a sparse vector, or the table with the highest chances that its
    inequalities admit."""
    if isinstance(event, TableStream):
        return _table(event, n_teachers)
    return SparseVector(**_shared_terms(event))


def _table(event: TableStream, n_teachers: int) -> AbstentionTable:
    weights = answer_weights(event, largest_distance(n_teachers))
    return AbstentionTable(**_shared_terms(event), weights=weights_text(weights))


def _shared_terms(event: Stream) -> Json:
    """Return what a stream and the mechanism that draws it have in common."""
    return event.model_dump(exclude={"kind", "abstentions"}) | {
        "max_abstentions": event.abstentions
    }


def _liu_noise(budget: PrivacyBudget, n_queries: int, max_abstentions: int) -> SparseStream:
    """Return the noise that Liu et al. 2021 print in Algorithm 2, the threshold rounded up to a
    whole vote.

    `n_queries` and `max_abstentions` are the paper's l and T; delta is above 0, else
    `ParameterError`.

    Notes
    -----
    lambda = (sqrt(2 T (epsilon + log(2 / delta))) + sqrt(2 T log(2 / delta))) / epsilon on the
    threshold, 2 lambda on every query, w = 3 lambda log(2 (l + T) / delta).
    """
    log = _log_of_delta(budget)
    scale = (
        math.sqrt(2 * max_abstentions)
        * (math.sqrt(budget.epsilon + log) + math.sqrt(log))
        / budget.epsilon
    )
    last = math.log(2 * (n_queries + max_abstentions) / budget.delta)
    return vector_of(scale, 2.0, max_abstentions, math.ceil(3 * scale * last))


def bassily_noise(budget: PrivacyBudget, n_queries: int, max_abstentions: int) -> SparseStream:
    """Return the noise that Bassily, Thakurta, Thakkar 2018 print in Algorithm 2, the threshold
    rounded up.

    `n_queries` and `max_abstentions` are the paper's m and T; delta is above 0, else
    `ParameterError`.

    Notes
    -----
    lambda = sqrt(32 T log(2 / delta)) / epsilon on the threshold, 2 lambda on every query, w = 2
    lambda log(2 m / delta). Their stability is the un-halved margin, of sensitivity 2; ours is
    halved.
    """
    scale = math.sqrt(32 * max_abstentions * _log_of_delta(budget)) / budget.epsilon
    last = math.log(2 * n_queries / budget.delta)
    return vector_of(scale, 2.0, max_abstentions, math.ceil(2 * scale * last))


def _log_of_delta(budget: PrivacyBudget) -> float:
    check_has_delta(budget, "the sparse vector")
    return math.log(2 / budget.delta)


def largest_distance(n_teachers: int) -> int:
    """Return the distance to instability of a unanimous vote, in votes."""
    return max(0, (check_count("n_teachers", n_teachers) + 1) // 2 - 1)


def answer_chance(mechanism: SparseVector | AbstentionTable, distance: int) -> float:
    """Return the probability that the first query is answered if its distance to instability is
    `distance`."""
    if isinstance(mechanism, SparseVector):
        return false_answer(mechanism.stream_event(), distance)
    weights = weights_of(mechanism.weights)
    return float(weights[min(max(distance, 0), len(weights) - 1)]) / 2.0**BITS


def check_answerable(mechanism: Mechanism, n_teachers: int) -> None:
    """Refuse, from public numbers alone, a stream that hardly ever answers even a unanimous vote,
    in less than 1 % of all cases.

    Raises
    ------
    ParameterError
        If it is one.
    """
    stream = mechanism.stream if isinstance(mechanism, RelabelledSample) else mechanism
    if not isinstance(stream, SparseVector | AbstentionTable):
        return
    largest = largest_distance(n_teachers)
    if answer_chance(stream, largest) >= _HARDLY_EVER:
        return
    needed = needed_distance(stream.stream_event(), 0.5)
    enough = f", or at least {2 * (int(needed) + 2)} teachers" if math.isfinite(needed) else ""
    fewer: tuple[str | Parameter, ...] = ()
    if stream.max_abstentions > 1:
        fewer = ("a smaller ", Parameter("max_abstentions"), f" (now {stream.max_abstentions}), ")
    raise ParameterError(
        f"{n_teachers} teachers reach a distance of {largest}, at which even a unanimous vote is"
        f" answered with probability below {_HARDLY_EVER:.0%}; use ",
        *fewer,
        f"a larger epsilon{enough}.",
    )


_NODES = 4000  # quantiles of Laplace noise at which chances of more than two classes are averaged
#: A unanimous vote that is right less often than this share of the way from guessing to certainty
#: is drowned in noise.
_WORTHWHILE = 0.2


class WeakSignalWarning(UserWarning):
    """The noise exceeds the votes: the release is private, but hardly better than guessing.

    Examples
    --------
    >>> import warnings
    >>> from secretballot.core.mechanisms import NoisyVotes
    >>> shape = sb.accounting.teacher_shape(10, 2, n_teachers=20)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     sb.accounting.check_useful(NoisyVotes(scale=200.0), shape)
    >>> caught[0].category.__name__
    'WeakSignalWarning'
    """


@dataclass(frozen=True)
class Terms(mechanisms.Terms):
    """What is drawn, from which votes, and what it is paid with; public.

    Attributes
    ----------
    mechanism : Mechanism
    shape : VoteShape
    budget : PrivacyBudget
    public : mapping
        ``method`` and its settings, as JSON values, as a certificate has them.
    purpose : str
        Why, in a few words.
    """

    shape: VoteShape
    public: JsonView = field(default_factory=lambda: {"method": "votes"})

    @property
    def confidence(self) -> float | None:
        """Of interactive voting: from which probability on a prediction that was not corrected
        counts as confirmed."""
        return self.public.get("confidence")

    @property
    def n_points(self) -> int:
        """Public points that are asked: of several labels each has a row of the votes."""
        rows = len(self.public["labels"]) if self.public.get("ballot") == "labels" else 1
        return self.shape.n_queries // rows


def teacher_shape(
    n_queries: int, n_classes: int, n_teachers: int, guarantee: Guarantee | None = None
) -> VoteShape:
    """Return the shape of one vote from each teacher at each query; by default by record, added or
    removed. Prices are the same for all guarantees.

    Raises
    ------
    ParameterError
        If a number is out of its range.
    """
    return VoteShape(
        guarantee=guarantee or Guarantee(unit="record", relation="add-remove"),
        n_queries=n_queries,
        n_classes=n_classes,
        n_teachers=n_teachers,
        moved=n_queries,
    )


def noisy_votes(
    budget: PrivacyBudget, shape: VoteShape, *, release: str = "labels", noise: str = "gaussian"
) -> NoisyVotes:
    """Return labels by noisy counts, or the counts themselves, with the least noise that keeps a
    budget.

    Parameters
    ----------
    budget : PrivacyBudget
        For all queries together. Delta may be 0 with Laplace noise.
    shape : VoteShape
    release : {"labels", "counts"}
        Labels of two classes alone cost less than the counts they are read off.
    noise : {"gaussian", "laplace"}

    Raises
    ------
    ParameterError
        If no noise keeps the budget, or records vote for themselves and labels are asked for.

    Examples
    --------
    >>> shape = sb.accounting.teacher_shape(100, 2, n_teachers=250)
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> found = sb.accounting.noisy_votes(budget, shape, release="counts")
    >>> print(f"{found.scale:.0f} votes, {found.release}")
    42 votes, counts
    """
    kind = check_choice("release", release, RELEASES)
    if check_choice("noise", noise, ("gaussian", "laplace")) == "laplace":
        # a part's loss, the least float at this scale, is at most the one that was priced
        scale = least_quotient(1, calibrate_pure(budget, shape.shifts))
        return NoisyVotes(noise="laplace", scale=scale, release=kind)
    one = NoisyVotes(scale=1.0, release=kind)
    return one.changed(scale=least_scale(budget, one.event(shape)))


def table_labels(budget: PrivacyBudget, shape: VoteShape, *, exact: bool = True) -> TableLabels:
    """Return labels of two classes by the sharpest table of chances that a budget allows.

    It answers some per cent more queries than Gaussian noise that errs as often.

    Parameters
    ----------
    budget : PrivacyBudget
        Delta above 0.
    shape : VoteShape
    exact : bool
        False for a forecast: about as sharp, found without its price, so that a release may refuse
        it.

    Raises
    ------
    ParameterError
        If there are more classes than two, or no table keeps the budget.
    """
    if shape.n_classes != 2:
        raise ParameterError(
            Parameter("n_classes"),
            f" is {shape.n_classes}, and a table of chances is for two; use ",
            Argument("mechanism", "gaussian"),
            ".",
        )
    chances = calibrate_vote_table(budget, shape.moved, teachers_of(shape), exact=exact)
    return TableLabels(weights=chances.weights)


def noisy_means(budget: PrivacyBudget, shape: VoteShape) -> NoisyMeans:
    """Return noisy sums of positions with the least noise that keeps a budget.

    Raises
    ------
    ParameterError
        If no noise does.
    """
    return NoisyMeans(sigma=least_scale(budget, NoisyMeans(sigma=1.0).event(shape)))


def vote_quantiles(
    budget: PrivacyBudget, shape: VoteShape, *, rank: int | None = None
) -> VoteQuantiles:
    """Return drawn quantiles of positions, as sharp as a budget allows.

    Parameters
    ----------
    budget : PrivacyBudget
    shape : VoteShape
    rank : int, optional
        Which vote, from 1 to the number of teachers; by default the middle one, the median.

    Raises
    ------
    ParameterError
        If the rank is out of its range, or nothing keeps the budget.
    """
    middle = (teachers_of(shape) + 1) // 2
    found = VoteQuantiles(
        epsilon=calibrate_bounded_range(budget, shape.moved), rank=middle if rank is None else rank
    )
    found.event(shape)  # refuses a rank beyond the teachers
    return found


#: Mechanisms that a budget and the shape of votes fix, by their names.
NAMED: dict[str, Callable[[PrivacyBudget, VoteShape], Mechanism]] = {
    "labels": noisy_votes,
    "counts": partial(noisy_votes, release="counts"),
    "laplace": partial(noisy_votes, noise="laplace"),
    "vote-table": table_labels,
    "stable": stable_value,
}


# --- what the noise leaves of votes ---


def deviation(mechanism: Mechanism, n_teachers: int = 0) -> float:
    """Return the standard deviation of the noise, in votes or in positions; of a table of chances
    that of the Gaussian noise which reveals as much of an even vote, infinite for none."""
    if isinstance(mechanism, NoisyMeans | ConfidentLabels):
        return mechanism.sigma
    if isinstance(mechanism, TableLabels):
        even, weights = n_teachers % 2 == 0, mechanism.weights
        # how far one vote moves the chance there: to the next margin, or to the mirror image
        above = weights[1] if even else 2**CHANCE_BITS - weights[0]
        moved = abs(0.5 - above / 2.0**CHANCE_BITS) * (1 if even else 2)
        return 1 / (math.sqrt(2 * math.pi) * moved) if moved else math.inf
    assert isinstance(mechanism, NoisyVotes)
    if mechanism.noise == "laplace":
        rate = -1 / mechanism.scale
        return math.sqrt(2 * math.exp(rate)) / -math.expm1(rate)
    return mechanism.scale


def deviation_of_counts(mechanism: Mechanism) -> float | None:
    """Return the standard deviation of the noise on released counts, in votes; None of labels."""
    counts = isinstance(mechanism, NoisyVotes) and mechanism.release == "counts"
    return deviation(mechanism) if counts else None


def right_chance(mechanism: Mechanism, margin: float, shape: VoteShape) -> float:
    """Return the probability that a query of this margin keeps its label, once it is answered.

    For planning, not for privacy: continuous noise approximates discrete noise, and a table is
    read off a line between two margins that votes can have.

    Parameters
    ----------
    mechanism : NoisyVotes, TableLabels or ConfidentLabels
    margin : float
        Most votes minus second most, in votes; the other classes are taken to tie for second.
    shape : VoteShape
    """
    if isinstance(mechanism, TableLabels):
        odd = teachers_of(shape) % 2
        chances = np.array(mechanism.weights) / 2**CHANCE_BITS
        # an odd number of teachers has no even vote, where a line to the mirror image is at a half
        margins = np.append(np.zeros(odd), odd + 2.0 * np.arange(len(chances)))
        wrong = np.interp([margin], margins, np.append(np.full(odd, 0.5), chances))
        return 1 - float(wrong[0])
    if isinstance(mechanism, ConfidentLabels):
        return _gaussian_right(margin / mechanism.sigma, shape.n_classes)
    assert isinstance(mechanism, NoisyVotes)
    chance = _laplace_right if mechanism.noise == "laplace" else _gaussian_right
    return chance(margin / mechanism.scale, shape.n_classes)


def _gaussian_right(margin: float, n_classes: int) -> float:
    """Return what `right_chance` does, under Gaussian noise; `margin` in units of sigma."""
    if n_classes == 2:
        return float(ndtr(margin / 2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    others = ndtr(nodes + margin) ** (n_classes - 1)
    return float(weights @ others / math.sqrt(2 * math.pi))


def _laplace_right(margin: float, n_classes: int) -> float:
    if n_classes == 2:
        return float(_laplace_cdf(np.array([margin / 2]))[0])
    # the noise of the leading class at equally likely quantiles
    level = (np.arange(_NODES) + 0.5) / _NODES
    noise = np.where(level < 0.5, np.log(2 * level), -np.log(2 * (1 - level)))
    return float((_laplace_cdf(noise + margin) ** (n_classes - 1)).mean())


def _laplace_cdf(value: FloatArray) -> FloatArray:
    """Return the chance that continuous Laplace noise of scale 1 is at most these values, of any
    shape."""
    tail = np.exp(-np.abs(value)) / 2
    return np.where(value < 0, tail, 1 - tail)


def unanimous_chance(mechanism: VoteQuantiles, shape: VoteShape) -> float:
    """Return the least probability with which a quantile that all teachers agree on is drawn."""
    nearest = min(mechanism.rank, teachers_of(shape) - mechanism.rank + 1)
    scale = least_quotient(2, mechanism.epsilon)
    return 1 / (1 + (shape.n_classes - 1) * math.exp(-nearest / scale))


def check_useful(mechanism: Mechanism, shape: VoteShape) -> None:
    """Warn, from public numbers alone, where the noise exceeds even unanimous votes; refuse a
    stream that hardly ever answers one.

    Labels: a unanimous vote is right hardly more often than a guess (of two classes less than 60
    %). Counts: even the mean of all counts, asked about one and the same point, is known no better
    than to all the teachers. Means: the mean of all of them is off by more than a tenth of the
    range. Quantiles: a unanimous vote is drawn less often than not.

    Warns
    -----
    WeakSignalWarning

    Raises
    ------
    ParameterError
        As `check_answerable` does.
    """
    k = shape.n_teachers
    if k is None:
        return
    check_answerable(mechanism, k)
    drowned = False
    if isinstance(mechanism, NoisyMeans) or deviation_of_counts(mechanism) is not None:
        # a mean of so many independent draws
        error = deviation(mechanism) / math.sqrt(shape.n_queries)
        most = 0.1 * k * (shape.n_classes - 1) if isinstance(mechanism, NoisyMeans) else k
        drowned = not error < most
    elif isinstance(mechanism, NoisyVotes | TableLabels | ConfidentLabels):
        guess = 1 / shape.n_classes
        drowned = right_chance(mechanism, k, shape) < guess + _WORTHWHILE * (1 - guess)
    elif isinstance(mechanism, VoteQuantiles):
        drowned = not unanimous_chance(mechanism, shape) >= 0.5
    if drowned:
        warnings.warn(
            f"The noise drowns the votes of {k} teachers, even where all of them agree; use more"
            " teachers, fewer queries or a larger epsilon.",
            WeakSignalWarning,
            stacklevel=2,
        )
