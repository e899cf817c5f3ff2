"""Mechanisms by name, and what is left open of them, from public numbers alone: noise, queries,
abstentions, teachers."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from scipy.optimize import brentq

from secretballot._naming import named
from secretballot._validation import RELEASES, check_choice, check_count, check_probability
from secretballot.accounting import (
    PrivacyBudget,
    Stream,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    confident_labels,
    delta_upper,
    needed_distance,
    noisy_means,
    noisy_votes,
    table_labels,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.recipes import Terms, deviation, right_chance, unanimous_chance
from secretballot.accounting.stream_recipes import CONFIDENCE, THRESHOLD_SHARE, stream_mechanism
from secretballot.core.mechanisms import (
    ConfidentLabels,
    Mechanism,
    NoisyVotes,
    VoteQuantiles,
    teachers_of,
)
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.queries import InRounds
from secretballot.report.certificate.models import LABEL_VOTES, NUMBER_VOTES
from secretballot.teachers.votes import checked_positions, label_shape

# A stable query is taken to have a margin of this share of the teachers (Liu et al. 2021 measure a
# mean of .5 to .6 on Adult); its label should come out right this often.
STABLE_MARGIN = 0.6
RIGHT = 0.95
TRIAL_QUERIES = 100
MAX_UNSTABLE = 1000
#: Share of the teachers that a threshold is by default: a stable query of two classes has four
#: fifths of the votes, and one that contradicts a student hardly has half of them more than the
#: student expects.
THRESHOLDS = {"confident": 0.8, "interactive": 0.5}
ASKED_PER_ANSWER = 3  # queries that may be asked for each that is answered
#: Mechanisms that stop at the T-th abstention, and what finds their noise.
STREAMS: dict[str, Callable[[PrivacyBudget, int], Stream]] = {
    "sparse-vector": calibrate_sparse_vector,
    "abstention-table": calibrate_abstention_table,
}
#: The mechanism whose promise needs no delta.
PURE: Literal["laplace"] = "laplace"
#: The mechanism that draws labels of two classes from a table of chances.
TABLE = "vote-table"
#: Mechanisms of votes on classes, and the settings that each of them has.
OF_CLASSES: dict[str, tuple[str, ...]] = {
    "auto": (),
    "labels": (),
    "counts": (),
    TABLE: (),
    PURE: ("release",),
    **dict.fromkeys(STREAMS, ("max_abstentions",)),
    **dict.fromkeys(THRESHOLDS, ("threshold", "max_answers")),
}


def choose_terms(
    asked: str | Mechanism,
    budget: PrivacyBudget,
    pool: VoteShape,
    *,
    n_queries: Any = None,
    counts: bool = False,
    rounds: InRounds | None = None,
) -> Terms:
    """Return mechanism and number of queries, calibrated to the budget unless given.

    Parameters
    ----------
    asked : str or Mechanism
        One of `OF_CLASSES`, with settings or without, such as "sparse-vector:max_abstentions=3".
    pool : VoteShape
        Of votes on all public points that may be asked.
    counts : bool
        Whether noisy counts are of use, where the mechanism leaves it open.
    rounds : InRounds, optional
        How a strategy chooses what is asked: it is of use only where it has to choose, so the
        number of queries is limited for counts, too.

    Raises
    ------
    ParameterError
        If more queries are asked than there are public points, or a setting is out of its range.
    """
    if n_queries is not None and check_count("n_queries", n_queries) > pool.n_queries:
        raise ParameterError(
            Parameter("n_queries"),
            f" is {n_queries}, and there are {pool.n_queries} distinct public points; ask at most"
            " as many as there are, or give more public points.",
        )
    name, own = ("", {}) if isinstance(asked, Mechanism) else named("mechanism", asked, OF_CLASSES)
    confidence = None if rounds is None else rounds.confidence
    interactive = name == "interactive" or confidence is not None
    if interactive and rounds is None:
        raise ParameterError(
            Parameter("mechanism"),
            " is interactive, and contradicts a student that learns between rounds; ask in"
            " rounds, as with ",
            Argument("strategy", "margin"),
            ".",
        )
    public: dict[str, Any] = {"method": "votes"}
    if interactive:
        share = CONFIDENCE if confidence is None else confidence
        public["confidence"] = check_probability("confidence", share)
        if name != "interactive" and not isinstance(asked, ConfidentLabels):
            raise ParameterError(
                Parameter("confidence"), " belongs to confident labels; leave it out."
            )
    if isinstance(asked, Mechanism):
        return Terms(asked, pool.first(n_queries or pool.n_queries), budget, public)
    noise = noise_of(name)
    if n_queries is None and rounds is not None and name not in THRESHOLDS:
        n_queries = choose_label_queries(budget, pool, noise=noise)
    if name in THRESHOLDS:
        mechanism, n_queries = _confident(name, budget, pool, n_queries, **own)
        return Terms(mechanism, pool.first(n_queries), budget, public)
    if name in STREAMS:
        stop = own.get("max_abstentions")
        if stop is None:
            stop = choose_max_abstentions(budget, teachers_of(pool), name)
        event = STREAMS[name](budget, check_count("max_abstentions", stop))
        stream = stream_mechanism(event, teachers_of(pool))
        return Terms(stream, pool.first(n_queries or pool.n_queries), budget)
    release = "counts" if gives_counts(asked, counts=counts) else "labels"
    if n_queries is None:  # a student averages the noise of counts, so all may be asked
        averaged = release == "counts" and name != PURE
        n_queries = pool.n_queries if averaged else choose_label_queries(budget, pool, noise=noise)
    return noisy_terms(noise, budget, pool.first(n_queries), release)


def gives_counts(asked: str | Mechanism, *, counts: bool) -> bool:
    """Return whether noisy counts are released, and not labels alone: where a mechanism leaves it
    open, if `counts` are of use.

    Raises
    ------
    ParameterError
        If the mechanism is none of `OF_CLASSES`, or is asked for something else.
    """
    if isinstance(asked, Mechanism):
        return bool(getattr(asked, "release", "labels") == "counts")
    name, own = named("mechanism", asked, OF_CLASSES)
    wanted = own.get("release", "counts" if counts and name in ("auto", PURE) else "labels")
    return name == "counts" or check_choice("release", wanted, RELEASES) == "counts"


def noise_of(name: str) -> str:
    """Return "gaussian", "laplace", or what draws labels from a table of chances."""
    return name if name in (PURE, TABLE) else "gaussian"


def noisy_terms(noise: str, budget: PrivacyBudget, shape: VoteShape, release: str) -> Terms:
    """Return noisy votes, or a table of chances in the place of noise, calibrated to the budget.

    Raises
    ------
    ParameterError
        If nothing keeps the budget.
    """
    if noise == TABLE:
        return Terms(table_labels(budget, shape), shape, budget)
    return Terms(noisy_votes(budget, shape, release=release, noise=noise), shape, budget)


def _confident(
    name: str,
    budget: PrivacyBudget,
    pool: VoteShape,
    n_queries: int | None,
    threshold: Any = None,
    max_answers: Any = None,
) -> tuple[ConfidentLabels, int]:
    """Return confident or interactive voting, calibrated to the budget, and its number of queries.

    By default as many answers as leave a vote of margin `STABLE_MARGIN` K right with probability
    `RIGHT`, and three queries for each.
    """
    answers = max_answers
    if answers is None:
        # labels grow with the squared signal-to-noise ratio, of which the threshold takes a share
        labels = choose_label_queries(budget, pool)
        answers = max(1, math.floor((1 - THRESHOLD_SHARE) * labels))
        answers = answers if n_queries is None else min(answers, n_queries)
    if n_queries is None:
        n_queries = min(pool.n_queries, check_count("max_answers", answers) * ASKED_PER_ANSWER)
    if threshold is None:
        threshold = max(1, round(THRESHOLDS[name] * teachers_of(pool)))
    shape = pool.first(n_queries)
    return confident_labels(budget, shape, threshold=threshold, max_answers=answers), n_queries


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
    pool: VoteShape,
    margin: float | None = None,
    *,
    noise: str = "gaussian",
) -> int:
    """Return how many labels leave a vote of this margin right with probability `RIGHT`.

    At least one, and at most `pool.n_queries`. Counts under Laplace noise are as many: more of them
    would be known worse, all taken together.

    Gaussian noise grows with the square root of the number of queries, so one calibration says
    where to stop. Without `margin`, in votes, it is assumed to be `STABLE_MARGIN` K. `noise` is
    "gaussian", "laplace" or "vote-table".
    """
    assumed = STABLE_MARGIN * teachers_of(pool) if margin is None else margin
    if noise == "gaussian":
        trial = min(TRIAL_QUERIES, pool.n_queries)
        sigma = noisy_votes(budget, pool.first(trial)).scale
        wanted = _scale_that_is_right(assumed, pool.n_classes, "gaussian")
        # sigma grows with the square root of the number, so the trial says all others
        return max(1, min(pool.n_queries, math.floor(trial * (wanted / sigma) ** 2)))
    if noise == PURE:
        scale = _scale_that_is_right(assumed, pool.n_classes, PURE)
        drawn = NoisyVotes(noise="laplace", scale=scale)

    def right(queries: int) -> bool:
        shape = pool.first(queries)
        if noise == PURE:
            return delta_upper([drawn.event(shape)], budget.epsilon) <= budget.delta
        return right_chance(table_labels(budget, shape, exact=False), assumed, shape) >= RIGHT

    return max(1, last_that_holds(right, pool.n_queries))


def _scale_that_is_right(
    margin: float, n_classes: int, noise: Literal["gaussian", "laplace"]
) -> float:
    """Return the noise, in votes, at which this margin is right with probability `RIGHT`."""
    shape = teacher_shape(1, n_classes, n_teachers=1)

    def excess(scale: float) -> float:
        return right_chance(NoisyVotes(noise=noise, scale=scale), margin, shape) - RIGHT

    return float(brentq(excess, margin / 40, 20 * margin))


def choose_max_abstentions(
    budget: PrivacyBudget, n_teachers: int, mechanism: str = "sparse-vector"
) -> int:
    """Return the largest T at which a margin of `STABLE_MARGIN` K is answered surely; 1 at least.

    Surely is with probability 0.999.

    Parameters
    ----------
    budget : PrivacyBudget
    n_teachers : int
    mechanism : {"sparse-vector", "abstention-table"}
    """
    calibrate = STREAMS[mechanism]
    distance = math.ceil(STABLE_MARGIN * n_teachers / 2) - 1
    holds = last_that_holds(
        lambda t: needed_distance(calibrate(budget, t)) <= distance, MAX_UNSTABLE
    )
    return max(1, holds)


def last_that_holds(holds: Callable[[int], bool], most: int, *, loosely: bool = False) -> int:
    """Return the largest integer from 1 to `most` that `holds`, 0 if none does; `loosely`,
    one that may be too small by one in 50.

    Once false, `holds` stays false.
    """
    # Doubling first: the answer is mostly small, and each question costs a calibration.
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, low // 50 if loosely else 1):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# --- votes for several labels, and for a number ---

#: Mechanisms of votes for several labels, and of votes for a number, as `OF_CLASSES`.
OF_LABELS: dict[str, tuple[str, ...]] = {
    "auto": ("most_named",),
    "labels": ("most_named",),
    "counts": ("most_named",),
    "sets": ("release",),
}
OF_NUMBERS: dict[str, tuple[str, ...]] = {
    "auto": ("n_positions",),
    "mean": ("n_positions",),
    "quantile": ("rank", "n_positions"),
}
MOST_MEANS = 1000  # points that are asked by default: more do not help a student of a few columns
POSITIONS = 200  # of the grid of numbers, by default
#: Of the noise on counts, what labels alone need where they are many; good enough for a default.
_LABEL_SHARE = 0.81


def label_terms(
    asked: object,
    budget: PrivacyBudget,
    labels: Sequence[str],
    n_public: int,
    n_teachers: int,
    guarantee: Guarantee,
    *,
    n_queries: Any = None,
    counts: bool = True,
) -> Terms:
    """Return mechanism and shape of votes for several labels.

    Parameters
    ----------
    asked : str
        One of `OF_LABELS`.
    counts : bool
        Whether noisy counts are of use, where the mechanism leaves it open.

    Raises
    ------
    ParameterError
        If a setting is out of its range, or no noise keeps the budget.
    """
    name, own = named("mechanism", asked, OF_LABELS)
    ballot = "sets" if name == "sets" else "labels"
    most_named: Any = own.get("most_named")
    kind = "counts" if counts else "labels"
    kind = name if name in RELEASES else check_choice("release", own.get("release", kind), RELEASES)

    def shape(n_points: int) -> VoteShape:
        numbers = n_points, len(labels), n_teachers
        return label_shape(*numbers, guarantee, ballot=ballot, most_named=most_named)

    def sure(n_points: int) -> bool:
        # right 19 times in 20 where eight teachers in ten name a label, or do not
        sigma = calibrate_gaussian(budget, shape(n_points).shifts)
        return 0.3 * n_teachers >= 1.645 * sigma * (_LABEL_SHARE if ballot == "labels" else 1)

    wanted = n_queries
    if wanted is None:
        wanted = _most_sure(sure, n_public) if kind == "labels" else n_public
    own_shape = shape(min(check_count("n_queries", wanted), n_public))
    public = {
        "method": LABEL_VOTES,
        "labels": list(labels),
        "ballot": ballot,
        "most_named": most_named,
    }
    return Terms(noisy_votes(budget, own_shape, release=kind), own_shape, budget, public)


def number_terms(
    asked: object,
    budget: PrivacyBudget,
    bounds: tuple[float, float],
    n_public: int,
    n_teachers: int,
    guarantee: Guarantee,
    *,
    n_queries: Any = None,
) -> Terms:
    """Return mechanism and shape of votes for a number within bounds.

    Parameters
    ----------
    asked : str
        One of `OF_NUMBERS`.

    Raises
    ------
    ParameterError
        If a setting is out of its range, or no noise keeps the budget.
    """
    name, own = named("mechanism", asked, OF_NUMBERS)
    positions, mean = checked_positions(own.get("n_positions", POSITIONS)), name != "quantile"
    public = {"method": NUMBER_VOTES, "bounds": list(bounds)}
    rank: Any = own.get("rank")

    def terms(n_points: int) -> Terms:
        shape = teacher_shape(n_points, positions, n_teachers, guarantee)
        drawn = noisy_means(budget, shape) if mean else vote_quantiles(budget, shape, rank=rank)
        return Terms(drawn, shape, budget, public)

    def sure(n_points: int) -> bool:
        found = terms(n_points)
        assert isinstance(found.mechanism, VoteQuantiles)
        return unanimous_chance(found.mechanism, found.shape) >= RIGHT

    wanted = n_queries
    if wanted is None:
        wanted = MOST_MEANS if mean else _most_sure(sure, n_public)
    return terms(min(check_count("n_queries", wanted), n_public))


def _most_sure(sure: Callable[[int], bool], most: int) -> int:
    """Return about the most public points, at most `most`, that may be asked while answers are
    `sure`; at least 1."""
    return max(1, last_that_holds(sure, most, loosely=True))  # a few queries do not matter
