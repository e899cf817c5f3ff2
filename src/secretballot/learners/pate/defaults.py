"""What the user left open, from public numbers alone: release, queries, abstentions, teachers."""

import math
from collections.abc import Callable
from typing import Any, Literal

from scipy.optimize import brentq

from secretballot._validation import AGGREGATORS, RELEASES, check_choice, check_count
from secretballot.accounting import (
    PrivacyBudget,
    Pure,
    Stream,
    calibrate_abstention_table,
    calibrate_sparse_vector,
    delta_upper,
    needed_distance,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.recipes import deviation, right_chance
from secretballot.accounting.stream_recipes import THRESHOLD_SHARE
from secretballot.aggregation import (
    AbstentionTableAggregator,
    Aggregator,
    ConfidentAggregator,
    InteractiveAggregator,
    NoisyVoting,
    SparseVectorAggregator,
)
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.types import VoteShape
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.students import learns_from_counts

# A stable query is taken to have a margin of this share of the teachers (Liu et al. 2021 measure a
# mean of .5 to .6 on Adult); its label should come out right this often.
STABLE_MARGIN = 0.6
RIGHT = 0.95
TRIAL_QUERIES = 100
MAX_UNSTABLE = 1000
#: Aggregators that have labels to give and no counts, and what a message calls them.
WITHOUT_COUNTS = {
    "sparse-vector": "the sparse vector",
    "abstention-table": "the table of abstentions",
    "confident": "confident voting",
    "interactive": "interactive voting",
    "vote-table": "a table of chances",
}
#: Aggregators with a threshold and a number of answers, and the share of the teachers that the
#: threshold is by default: a stable query of two classes has four fifths of the votes, and one that
#: contradicts a student hardly has half of them more than the student expects.
THRESHOLDS = {"confident": 0.8, "interactive": 0.5}
ASKED_PER_ANSWER = 3  # queries that may be asked for each that is answered
#: Aggregators that stop at the T-th abstention, and what finds their noise.
STREAMS: dict[str, Callable[[PrivacyBudget, int], Stream]] = {
    "sparse-vector": calibrate_sparse_vector,
    "abstention-table": calibrate_abstention_table,
}
#: The aggregator whose promise needs no delta.
PURE: Literal["laplace"] = "laplace"
#: The aggregator that draws labels of two classes from a table of chances.
TABLE = "vote-table"


def choose_release(asked: str, student: Any, aggregator: str | Aggregator) -> str:
    """Return "labels" or "counts": counts where the student can learn from them, labels otherwise.

    Raises
    ------
    ParameterError
        If counts are asked of an aggregator that has none to give, or the student needs counts and
        gets none.
    """
    kind = _release_kind(check_choice("release", asked, ("auto", *RELEASES)), student, aggregator)
    if kind == "labels" and student is not None and learns_from_counts(student):
        raise ParameterError(
            f"{type(student).__name__} learns from noisy counts, but labels alone would be"
            " released; use ",
            Argument("release", "counts"),
            " with the Gaussian or the Laplace aggregator, or another student.",
        )
    return kind


def _release_kind(asked: str, student: Any, aggregator: str | Aggregator) -> str:
    if isinstance(aggregator, Aggregator):
        if asked not in ("auto", aggregator.release):
            raise ParameterError(
                Parameter("release"),
                f" is {asked!r}, but the given aggregator releases {aggregator.release}.",
            )
        return aggregator.release
    if aggregator in WITHOUT_COUNTS:
        if asked == "counts":
            raise ParameterError(
                Argument("release", "counts"),
                " needs the Gaussian or the Laplace aggregator;"
                f" {WITHOUT_COUNTS[aggregator]} gives labels only.",
            )
        return "labels"
    if asked != "auto":
        return asked
    return "counts" if student is None or learns_from_counts(student) else "labels"


def choose_aggregator(
    asked: str | Aggregator,
    budget: PrivacyBudget,
    *,
    n_teachers: int,
    n_classes: int,
    n_public: int,
    n_queries: int | None,
    max_unstable: int | None,
    release: str,
    threshold: int | None = None,
    max_answers: int | None = None,
) -> Aggregator:
    """Return the aggregator, calibrated to the budget unless given.

    Raises
    ------
    ParameterError
        If more queries are asked than there are public points, or a setting is out of its range.
    """
    # An aggregator that is given has its own noise and number of queries: nothing is calibrated.
    if isinstance(asked, Aggregator):
        _check_queries(asked.n_queries, n_public)
        return asked
    name = check_choice("aggregator", asked, AGGREGATORS)
    _check_delta(budget, name)
    if max_unstable is not None and name not in STREAMS:
        raise ParameterError(
            Parameter("max_unstable"),
            f" is {max_unstable}, and the {name} aggregator answers every query; leave it out, or"
            " use ",
            Argument("aggregator", "sparse-vector"),
            " or ",
            Argument("aggregator", "abstention-table"),
            ".",
        )
    if n_queries is not None:
        _check_queries(check_count("n_queries", n_queries), n_public)
    if name in THRESHOLDS:
        return _confident_aggregator(
            name, budget, n_teachers, n_classes, n_public, n_queries, threshold, max_answers
        )
    for parameter, value in (("threshold", threshold), ("max_answers", max_answers)):
        if value is not None:
            raise ParameterError(
                Parameter(parameter),
                f" is {value}, and the {name} aggregator has none; leave it out, or use ",
                Argument("aggregator", "confident"),
                ".",
            )
    if name in STREAMS:
        unstable = (
            choose_max_unstable(budget, n_teachers, name) if max_unstable is None else max_unstable
        )
        stream = SparseVectorAggregator if name == "sparse-vector" else AbstentionTableAggregator
        return stream.calibrate(
            budget, n_queries or n_public, max_unstable=unstable, n_classes=n_classes
        )
    if n_queries is None and release == "counts" and name != PURE:
        n_queries = n_public  # a student averages the noise of counts, so all may be asked
    elif n_queries is None:
        n_queries = choose_label_queries(budget, n_teachers, n_classes, n_public, aggregator=name)
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    return noisy_voting(name, budget, shape, release)


def noisy_voting(name: str, budget: PrivacyBudget, shape: VoteShape, release: str) -> NoisyVoting:
    """Return noisy votes or a table of chances by its name, calibrated to the budget.

    Raises
    ------
    ParameterError
        If nothing keeps the budget.
    """
    if name == TABLE:
        return NoisyVoting.of(table_labels(budget, shape), shape, budget)
    mechanism = noisy_votes(budget, shape, release=release, noise=name)
    return NoisyVoting.of(mechanism, shape, budget)


def _confident_aggregator(
    name: str,
    budget: PrivacyBudget,
    n_teachers: int,
    n_classes: int,
    n_public: int,
    n_queries: int | None,
    threshold: int | None,
    max_answers: int | None,
) -> ConfidentAggregator:
    """Return confident or interactive voting, calibrated to the budget.

    By default as many answers as leave a vote of margin `STABLE_MARGIN` K right with probability
    `RIGHT`, and three queries for each.
    """
    answers = max_answers
    if answers is None:
        # labels grow with the squared signal-to-noise ratio, of which the threshold takes a share
        labels = choose_label_queries(budget, n_teachers, n_classes, n_public)
        answers = max(1, math.floor((1 - THRESHOLD_SHARE) * labels))
        answers = answers if n_queries is None else min(answers, n_queries)
    if n_queries is None:
        n_queries = min(n_public, max(check_count("max_answers", answers), 1) * ASKED_PER_ANSWER)
    kind = InteractiveAggregator if name == "interactive" else ConfidentAggregator
    share = round(THRESHOLDS[name] * n_teachers)
    return kind.calibrate(
        budget,
        n_queries,
        threshold=max(1, share) if threshold is None else threshold,
        max_answers=answers,
        n_classes=n_classes,
    )


def _check_delta(budget: PrivacyBudget, aggregator: str) -> None:
    """Refuse a delta of 0 where the noise has none to give, and name the noise that has."""
    if aggregator != PURE and not budget.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            f" is 0, and the {aggregator} aggregator needs a delta above 0, such as 1e-6; for a"
            " promise without one use ",
            Argument("aggregator", PURE),
            ".",
        )


def _check_queries(n_queries: int, n_public: int) -> None:
    if n_queries > n_public:
        raise ParameterError(
            f"{n_queries} queries are asked of {n_public} public rows; ask at most as many as there"
            " are, or give more public rows."
        )


def choose_teachers(budget: PrivacyBudget, n_records: int, n_features: int) -> int:
    """Return a number of teachers K from the budget, the stated number of records, the columns.

    Noisy counts of a pool of any size leave a linear student of d columns with an error of about
    sqrt(d) times the noise that a single query would need. K makes that a tenth of the teachers, as
    far as every teacher still has ten records on average.
    """
    kind = "gaussian" if budget.delta > 0 else PURE
    one = teacher_shape(1, 2, n_teachers=1)
    noise = deviation(noisy_votes(budget, one, release="counts", noise=kind))
    return max(10, min(round(10 * math.sqrt(n_features) * noise), n_records // 10))


def choose_label_queries(
    budget: PrivacyBudget,
    n_teachers: int,
    n_classes: int,
    n_public: int,
    margin: float | None = None,
    *,
    aggregator: str = "gaussian",
) -> int:
    """Return how many labels leave a vote of this margin right with probability `RIGHT`.

    At least one. Counts under Laplace noise are as many: more of them would be known worse, all
    taken together.

    Gaussian noise grows with the square root of the number of queries, so one calibration says
    where to stop. Without `margin`, in votes, it is assumed to be `STABLE_MARGIN` K.
    """
    assumed = STABLE_MARGIN * n_teachers if margin is None else margin
    _check_delta(budget, aggregator)
    if aggregator == PURE:
        return _laplace_queries(assumed, budget, n_classes, n_public)
    if aggregator == TABLE:
        return _table_queries(assumed, budget, n_teachers, n_classes, n_public)
    trial = min(TRIAL_QUERIES, n_public)
    sigma = noisy_votes(budget, teacher_shape(trial, n_classes, n_teachers)).scale
    wanted = _scale_that_is_right(assumed, n_classes, "gaussian")
    # sigma grows with the square root of the number, so the trial says all others
    return max(1, min(n_public, math.floor(trial * (wanted / sigma) ** 2)))


def _scale_that_is_right(
    margin: float, n_classes: int, noise: Literal["gaussian", "laplace"]
) -> float:
    """Return the noise, in votes, at which this margin is right with probability `RIGHT`."""
    shape = teacher_shape(1, n_classes, n_teachers=1)

    def excess(scale: float) -> float:
        return right_chance(NoisyVotes(noise=noise, scale=scale), margin, shape) - RIGHT

    return float(brentq(excess, margin / 40, 20 * margin))


def _laplace_queries(margin: float, budget: PrivacyBudget, n_classes: int, n_public: int) -> int:
    """Return how many queries keep the budget under Laplace noise that leaves this margin right."""

    scale = _scale_that_is_right(margin, n_classes, PURE)
    parts = 1 if n_classes == 2 else 2

    def fits(queries: int) -> bool:
        return (
            delta_upper(
                [Pure(epsilon=least_quotient(1, scale), count=parts * queries)], budget.epsilon
            )
            <= budget.delta
        )

    return max(1, last_that_holds(fits, n_public))


def _table_queries(
    margin: float, budget: PrivacyBudget, n_teachers: int, n_classes: int, n_public: int
) -> int:
    """Return how many labels a table of chances gives that leaves this margin right."""

    def right(queries: int) -> bool:
        shape = teacher_shape(queries, n_classes, n_teachers)
        return right_chance(table_labels(budget, shape, exact=False), margin, shape) >= RIGHT

    return max(1, last_that_holds(right, n_public))


def choose_max_unstable(
    budget: PrivacyBudget, n_teachers: int, aggregator: str = "sparse-vector"
) -> int:
    """Return the largest T at which a margin of `STABLE_MARGIN` K is answered surely; 1 at least.

    Surely is with probability 0.999.

    Parameters
    ----------
    budget : PrivacyBudget
    n_teachers : int
    aggregator : {"sparse-vector", "abstention-table"}
    """
    calibrate = STREAMS[aggregator]
    distance = math.ceil(STABLE_MARGIN * n_teachers / 2) - 1
    holds = last_that_holds(
        lambda t: needed_distance(calibrate(budget, t)) <= distance, MAX_UNSTABLE
    )
    return max(1, holds)


def last_that_holds(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest integer from 1 to `most` that `holds`, 0 if none does.

    Once false, `holds` stays false.
    """
    # Doubling first: the answer is mostly small, and each question costs a calibration.
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
