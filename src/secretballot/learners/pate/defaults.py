"""What the user left open, from public numbers alone: release, queries, abstentions, teachers."""

import math
from collections.abc import Callable
from typing import Any, Literal

from scipy.optimize import brentq

from secretballot._validation import (
    MECHANISMS,
    RELEASES,
    check_choice,
    check_count,
    check_probability,
)
from secretballot.accounting import (
    PrivacyBudget,
    Stream,
    calibrate_abstention_table,
    calibrate_sparse_vector,
    confident_labels,
    delta_upper,
    needed_distance,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.recipes import Terms, deviation, right_chance
from secretballot.accounting.stream_recipes import CONFIDENCE, THRESHOLD_SHARE, stream_mechanism
from secretballot.core.mechanisms import ConfidentLabels, Mechanism, NoisyVotes, teachers_of
from secretballot.core.types import VoteShape
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.students import learns_from_counts

# A stable query is taken to have a margin of this share of the teachers (Liu et al. 2021 measure a
# mean of .5 to .6 on Adult); its label should come out right this often.
STABLE_MARGIN = 0.6
RIGHT = 0.95
TRIAL_QUERIES = 100
MAX_UNSTABLE = 1000
#: Mechanisms that have labels to give and no counts.
WITHOUT_COUNTS = ("sparse-vector", "abstention-table", "confident", "interactive", "vote-table")
#: Mechanisms with a threshold and a number of answers, and the share of the teachers that the
#: threshold is by default: a stable query of two classes has four fifths of the votes, and one that
#: contradicts a student hardly has half of them more than the student expects.
THRESHOLDS = {"confident": 0.8, "interactive": 0.5}
ASKED_PER_ANSWER = 3  # queries that may be asked for each that is answered
#: Mechanisms that stop at the T-th abstention, and what finds their noise.
STREAMS: dict[str, Callable[[PrivacyBudget, int], Stream]] = {
    "sparse-vector": calibrate_sparse_vector,
    "abstention-table": calibrate_abstention_table,
}
#: Settings, and the mechanisms that have them.
OWN_SETTINGS = {
    "max_abstentions": tuple(STREAMS),
    "threshold": tuple(THRESHOLDS),
    "max_answers": tuple(THRESHOLDS),
    "confidence": ("interactive",),
}
#: The mechanism whose promise needs no delta.
PURE: Literal["laplace"] = "laplace"
#: The mechanism that draws labels of two classes from a table of chances.
TABLE = "vote-table"


def choose_release(asked: str, student: Any, mechanism: str | Mechanism) -> str:
    """Return "labels" or "counts": counts where the student can learn from them, labels otherwise.

    Raises
    ------
    ParameterError
        If counts are asked of a mechanism that has none to give, or the student needs counts and
        gets none.
    """
    check_choice("release", asked, ("auto", *RELEASES))
    counting = student is None or learns_from_counts(student)
    if isinstance(mechanism, Mechanism):
        possible = [str(getattr(mechanism, "release", "labels"))]
    else:
        possible = ["labels"] if mechanism in WITHOUT_COUNTS else ["counts", "labels"]
    kind = asked if asked != "auto" else possible[0] if counting else possible[-1]
    if kind not in possible:
        raise ParameterError(
            Argument("release", asked),
            f" is asked, and this mechanism gives {possible[0]} only; counts come of the gaussian"
            " and the laplace mechanism.",
        )
    if kind == "labels" and student is not None and counting:
        raise ParameterError(
            f"{type(student).__name__} learns from noisy counts, but labels alone would be"
            " released; use ",
            Argument("release", "counts"),
            " with the Gaussian or the Laplace mechanism, or another student.",
        )
    return kind


def choose_terms(
    asked: str | Mechanism,
    budget: PrivacyBudget,
    pool: VoteShape,
    *,
    n_queries: int | None = None,
    max_abstentions: int | None = None,
    release: str = "labels",
    threshold: int | None = None,
    max_answers: int | None = None,
    confidence: float | None = None,
    in_rounds: bool = False,
) -> Terms:
    """Return mechanism and number of queries, calibrated to the budget unless given.

    Parameters
    ----------
    pool : VoteShape
        Of votes on all public points that may be asked.
    confidence : float, optional
        Of interactive voting.
    in_rounds : bool
        Whether a strategy chooses what is asked: it is of use only where it has to choose, so the
        number of queries is limited for counts, too.

    Raises
    ------
    ParameterError
        If more queries are asked than there are public points, or a setting is out of its range.
    """
    if n_queries is not None and check_count("n_queries", n_queries) > pool.n_queries:
        raise ParameterError(
            f"{n_queries} queries are asked of {pool.n_queries} distinct public points; ask at most"
            " as many as there are, or give more public points."
        )
    interactive = asked == "interactive" or confidence is not None
    if interactive and not in_rounds:
        raise ParameterError(
            Parameter("mechanism"),
            " is interactive, and contradicts a student that learns between rounds; ask in"
            " rounds, with a strategy (on the command line --strategy margin).",
        )
    public: dict[str, Any] = {"method": "votes"}
    if interactive:
        share = CONFIDENCE if confidence is None else confidence
        public["confidence"] = check_probability("confidence", share)
    if isinstance(asked, Mechanism):
        if interactive and not isinstance(asked, ConfidentLabels):
            raise ParameterError(
                Parameter("confidence"), " belongs to confident labels; leave it out."
            )
        return Terms(asked, pool.first(n_queries or pool.n_queries), budget, public)
    name = check_choice("mechanism", asked, MECHANISMS)
    _check_delta(budget, name)
    _refuse_settings_of_others(
        name,
        max_abstentions=max_abstentions,
        threshold=threshold,
        max_answers=max_answers,
        confidence=confidence,
    )
    noise = name if name in (PURE, TABLE) else "gaussian"
    if n_queries is None and in_rounds and name not in THRESHOLDS:
        n_queries = choose_label_queries(budget, pool, noise=noise)
    if name in THRESHOLDS:
        mechanism, n_queries = _confident(name, budget, pool, n_queries, threshold, max_answers)
        return Terms(mechanism, pool.first(n_queries), budget, public)
    if name in STREAMS:
        teachers, stop = teachers_of(pool), max_abstentions
        if stop is None:
            stop = choose_max_abstentions(budget, teachers, name)
        event = STREAMS[name](budget, check_count("max_abstentions", stop))
        stream = stream_mechanism(event, teachers)
        return Terms(stream, pool.first(n_queries or pool.n_queries), budget)
    if n_queries is None:  # a student averages the noise of counts, so all may be asked
        averaged = release == "counts" and name != PURE
        n_queries = pool.n_queries if averaged else choose_label_queries(budget, pool, noise=noise)
    return noisy_terms(name, budget, pool.first(n_queries), release)


def noisy_terms(name: str, budget: PrivacyBudget, shape: VoteShape, release: str) -> Terms:
    """Return noisy votes or a table of chances by its name, calibrated to the budget.

    Raises
    ------
    ParameterError
        If nothing keeps the budget.
    """
    if name == TABLE:
        return Terms(table_labels(budget, shape), shape, budget)
    return Terms(noisy_votes(budget, shape, release=release, noise=name), shape, budget)


def _refuse_settings_of_others(name: str, **given: Any) -> None:
    """Refuse settings that another mechanism has."""
    for setting, value in given.items():
        has = OWN_SETTINGS[setting]
        if value is not None and name not in has:
            raise ParameterError(
                Parameter(setting),
                f" is {value}, and the {name} mechanism has none; leave it out, or use ",
                Argument("mechanism", has[0]),
                ".",
            )


def _confident(
    name: str,
    budget: PrivacyBudget,
    pool: VoteShape,
    n_queries: int | None,
    threshold: int | None,
    max_answers: int | None,
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


def _check_delta(budget: PrivacyBudget, mechanism: str) -> None:
    """Refuse a delta of 0 where the noise has none to give, and name the noise that has."""
    if mechanism != PURE and not budget.delta > 0:
        noise = "Gaussian noise" if mechanism == "gaussian" else f"{mechanism} voting"
        raise ParameterError(
            Parameter("delta"),
            f" is 0, and {noise} needs more, such as 1e-6; for a delta of 0 use ",
            Argument("mechanism", PURE),
            ".",
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
    _check_delta(budget, noise)
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
