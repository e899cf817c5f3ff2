"""From a budget to the mechanisms that answer some questions and withhold others. Every mechanism
is priced again before it draws."""

import math
from typing import Any

from secretballot._validation import check_choice, check_count
from secretballot.accounting.abstention_table import answer_weights
from secretballot.accounting.calibration import (
    calibrate_pure,
    calibrate_sparse_vector,
    least_scale,
    needed_distance,
    vector_of,
)
from secretballot.accounting.rounding import check_has_delta, first_integer
from secretballot.accounting.table_calibration import calibrate_abstention_table
from secretballot.core.events import SparseStream, Stream, TableStream
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    Mechanism,
    RelabelledSample,
    SparseVector,
    StableValue,
    teachers_of,
    weights_of,
    weights_text,
)
from secretballot.core.price import PrivacyBudget, delta_upper
from secretballot.core.streams import BITS, false_answer
from secretballot.core.types import VoteShape
from secretballot.exceptions import Parameter, ParameterError

THRESHOLD_SHARE = 0.25  # of the squared signal-to-noise ratio
CONFIDENCE = 0.9  # of interactive voting, by default
_USUALLY = math.log(10)  # scales above a threshold at which hardly one answer in ten is withheld
_HARDLY_EVER = 0.01  # a unanimous vote answered less often than this makes a release useless


def confident_labels(
    budget: PrivacyBudget,
    shape: VoteShape,
    *,
    threshold: int,
    max_answers: int | None = None,
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
        printed = liu_noise if calibration == "liu2021" else bassily_noise
        event = printed(budget, queries, unstable)
        # a printed formula is trusted no more than any other noise
        if not delta_upper([event], budget.epsilon) <= budget.delta:
            raise ParameterError(
                f"calibration {calibration!r} does not keep epsilon {budget.epsilon}, delta"
                f" {budget.delta} at ",
                Parameter("max_abstentions"),
                f" {unstable}; use 'tight'.",
            )
    return SparseVector(**_told(event))


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
    return SparseVector(**_told(event))


def _table(event: TableStream, n_teachers: int) -> AbstentionTable:
    weights = answer_weights(event, largest_distance(n_teachers))
    return AbstentionTable(**_told(event), weights=weights_text(weights))


def _told(event: Stream) -> dict[str, Any]:
    """Return what a stream and the mechanism that draws it have in common."""
    return event.model_dump(exclude={"kind", "abstentions"}) | {
        "max_abstentions": event.abstentions
    }


def liu_noise(budget: PrivacyBudget, n_queries: int, max_abstentions: int) -> SparseStream:
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
