"""Mechanisms by name, and what is left open of them: noise, queries, abstentions, teachers; from
public numbers alone, or from one paid number about the votes."""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy.optimize import brentq

from secretballot._typing import Json, Names, Pair
from secretballot._validation import (
    RELEASES,
    check_choice,
    check_count,
    check_probability,
    named,
    refusal,
)
from secretballot.accounting import (
    PrivacyBudget,
    WeakSignalWarning,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    confident_labels,
    delta_upper,
    needed_distance,
    noisy_means,
    noisy_votes,
    sparse_vector,
    table_labels,
    teacher_shape,
    vote_quantiles,
)
from secretballot.accounting.calibration import STABLE_MARGIN, quantile_slack
from secretballot.accounting.recipes import (
    CONFIDENCE,
    THRESHOLD_SHARE,
    Terms,
    check_useful,
    deviation,
    largest_distance,
    right_chance,
    stream_mechanism,
    unanimous_chance,
)
from secretballot.core.events import Stream
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, NoisyVotes, VoteQuantiles, teachers_of
from secretballot.core.private import Votes
from secretballot.core.releasing import Released
from secretballot.core.types import Guarantee, VoteShape
from secretballot.exceptions import Argument, ParameterError
from secretballot.learners.learner import refuse_beyond, rest_of
from secretballot.queries import InRounds
from secretballot.releasing import estimate_stability
from secretballot.report.certificate_models import LABEL_VOTES, NUMBER_VOTES
from secretballot.teachers.votes import checked_positions, label_shape

_RIGHT = 0.95  # of labels of stable queries
_MAX_UNSTABLE = 1000
#: Share of the teachers that a threshold is by default: a stable query of two classes has four
#: fifths of the votes, and one that contradicts a student hardly has half of them more than the
#: student expects.
_THRESHOLDS = {"confident": 0.8, "interactive": 0.5}
#: Mechanisms that stop at the T-th abstention, and what finds their noise.
_STREAMS: dict[str, Callable[[PrivacyBudget, int], Stream]] = {
    "sparse-vector": calibrate_sparse_vector,
    "abstention-table": calibrate_abstention_table,
}
#: The mechanism whose promise needs no delta.
_PURE: Literal["laplace"] = "laplace"
#: The mechanism that draws labels of two classes from a table of chances.
_TABLE = "vote-table"
#: Mechanisms of votes on classes, and the settings that each of them has.
_OF_CLASSES: dict[str, Names] = {
    "auto": (),
    "labels": (),
    "counts": (),
    _TABLE: (),
    _PURE: ("release",),
    **dict.fromkeys(_STREAMS, ("max_abstentions",)),
    "confident": ("threshold", "max_answers"),
    "interactive": ("threshold", "max_answers", "confidence"),
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
        One of `_OF_CLASSES`, with settings or without, such as "sparse-vector:max_abstentions=3".
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
        raise refusal(
            "n_queries",
            f" is {n_queries}, and there are {pool.n_queries} points, equal ones counted once; ask"
            " at most as many as there are, or give more points.",
        )
    if isinstance(asked, Mechanism):
        return Terms(asked, pool.first(n_queries or pool.n_queries), budget)
    name, own = named("mechanism", asked, _OF_CLASSES)
    if name == "interactive" and rounds is None:
        raise refusal(
            "mechanism",
            " is interactive, and contradicts a student that learns between rounds; use confident,"
            " or ask in rounds, as with ",
            Argument("strategy", "margin"),
            ".",
        )
    if name in _THRESHOLDS:
        return _confident_terms(name, budget, pool, n_queries, **own)
    noise = _noise_of(name)
    if n_queries is None and rounds is not None:
        n_queries = _choose_label_queries(budget, pool, noise=noise)
    if name in _STREAMS:
        stop = own.get("max_abstentions")
        if stop is None:
            stop = _choose_max_abstentions(budget, teachers_of(pool), name)
        event = _STREAMS[name](budget, check_count("max_abstentions", stop))
        stream = stream_mechanism(event, teachers_of(pool))
        return Terms(stream, pool.first(n_queries or pool.n_queries), budget)
    of_use = counts and name in ("auto", _PURE)
    usual = "counts" if of_use or name == "counts" else "labels"
    release = check_choice("release", own.get("release", usual), RELEASES)
    if n_queries is None:  # a student averages the noise of counts, so all may be asked
        averaged = release == "counts" and name != _PURE
        n_queries = pool.n_queries if averaged else _choose_label_queries(budget, pool, noise=noise)
    return _noisy_terms(noise, budget, pool.first(n_queries), release)


def _noise_of(name: str) -> str:
    """Return "gaussian", "laplace", or what draws labels from a table of chances."""
    return name if name in (_PURE, _TABLE) else "gaussian"


def _noisy_terms(noise: str, budget: PrivacyBudget, shape: VoteShape, release: str) -> Terms:
    """Return noisy votes, or a table of chances in the place of noise, calibrated to the budget.

    Raises
    ------
    ParameterError
        If nothing keeps the budget.
    """
    if noise == _TABLE:
        return Terms(table_labels(budget, shape), shape, budget)
    return Terms(noisy_votes(budget, shape, release=release, noise=noise), shape, budget)


def _confident_terms(
    name: str,
    budget: PrivacyBudget,
    pool: VoteShape,
    n_queries: int | None,
    *,
    threshold: Any = None,
    max_answers: Any = None,
    confidence: Any = CONFIDENCE,
) -> Terms:
    """Return confident or interactive voting, calibrated to the budget, and its number of queries.

    By default as many answers as leave a vote of margin `STABLE_MARGIN` K right with probability
    `_RIGHT`, and three queries for each.
    """
    answers = max_answers
    public: Json = {"method": "votes"}
    if name == "interactive":
        public["confidence"] = check_probability("confidence", confidence)
    if answers is None:
        # labels grow with the squared signal-to-noise ratio, of which the threshold takes a share
        labels = _choose_label_queries(budget, pool)
        answers = max(1, math.floor((1 - THRESHOLD_SHARE) * labels))
        answers = answers if n_queries is None else min(answers, n_queries)
    if n_queries is None:
        # three queries may be asked for each that is answered
        n_queries = min(pool.n_queries, check_count("max_answers", answers) * 3)
    if threshold is None:
        threshold = max(1, round(_THRESHOLDS[name] * teachers_of(pool)))
    shape = pool.first(n_queries)
    drawn = confident_labels(budget, shape, threshold=threshold, max_answers=answers)
    return Terms(drawn, shape, budget, public)


def choose_teachers(budget: PrivacyBudget, n_records: int, n_features: int) -> int:
    """Return a number of teachers K from the budget, the stated number of records, the columns.

    Noisy counts of a pool of any size leave a linear student of d columns with an error of about
    sqrt(d) times the noise that a single query would need. K makes that a tenth of the teachers, as
    far as every teacher still has ten records on average.
    """
    kind = "gaussian" if budget.delta > 0 else _PURE
    one = teacher_shape(1, 2, n_teachers=1)
    noise = deviation(noisy_votes(budget, one, release="counts", noise=kind))
    return max(10, min(round(10 * math.sqrt(n_features) * noise), n_records // 10))


def _choose_label_queries(
    budget: PrivacyBudget, pool: VoteShape, margin: float | None = None, *, noise: str = "gaussian"
) -> int:
    """Return how many labels leave a vote of this margin right with probability `_RIGHT`.

    At least one, and at most `pool.n_queries`. Counts under Laplace noise are as many: more of them
    would be known worse, all taken together.

    Gaussian noise grows with the square root of the number of queries, so one calibration says
    where to stop. Without `margin`, in votes, it is assumed to be `STABLE_MARGIN` K. `noise` is
    "gaussian", "laplace" or "vote-table".
    """
    assumed = STABLE_MARGIN * teachers_of(pool) if margin is None else margin
    if noise == "gaussian":
        trial = min(100, pool.n_queries)
        sigma = noisy_votes(budget, pool.first(trial)).scale
        wanted = _scale_that_is_right(assumed, pool.n_classes, "gaussian")
        # sigma grows with the square root of the number, so the trial says all others
        return max(1, min(pool.n_queries, math.floor(trial * (wanted / sigma) ** 2)))
    if noise == _PURE:
        scale = _scale_that_is_right(assumed, pool.n_classes, _PURE)
        drawn = NoisyVotes(noise="laplace", scale=scale)

    def right(queries: int) -> bool:
        shape = pool.first(queries)
        if noise == _PURE:
            return delta_upper([drawn.event(shape)], budget.epsilon) <= budget.delta
        return right_chance(table_labels(budget, shape, exact=False), assumed, shape) >= _RIGHT

    return max(1, _last_that_holds(right, pool.n_queries))


def _scale_that_is_right(
    margin: float, n_classes: int, noise: Literal["gaussian", "laplace"]
) -> float:
    """Return the noise, in votes, at which this margin is right with probability `_RIGHT`."""
    shape = teacher_shape(1, n_classes, n_teachers=1)

    def excess(scale: float) -> float:
        return right_chance(NoisyVotes(noise=noise, scale=scale), margin, shape) - _RIGHT

    return float(brentq(excess, margin / 40, 20 * margin))


def _choose_max_abstentions(
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
    calibrate = _STREAMS[mechanism]
    distance = math.ceil(STABLE_MARGIN * n_teachers / 2) - 1
    holds = _last_that_holds(
        lambda t: needed_distance(calibrate(budget, t)) <= distance, _MAX_UNSTABLE
    )
    return max(1, holds)


def _last_that_holds(holds: Callable[[int], bool], most: int, *, loosely: bool = False) -> int:
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

#: Mechanisms of votes for several labels, and of votes for a number, as `_OF_CLASSES`.
_OF_LABELS: dict[str, Names] = {
    "auto": ("most_named",),
    "labels": ("most_named",),
    "counts": ("most_named",),
    "sets": ("release",),
}
_OF_NUMBERS: dict[str, Names] = {
    "auto": ("n_positions",),
    "mean": ("n_positions",),
    "quantile": ("rank", "n_positions"),
}


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
        One of `_OF_LABELS`.
    counts : bool
        Whether noisy counts are of use, where the mechanism leaves it open.

    Raises
    ------
    ParameterError
        If a setting is out of its range, or no noise keeps the budget.
    """
    name, own = named("mechanism", asked, _OF_LABELS)
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
        # Of the noise on counts, what labels alone need where they are many; good enough for a
        # default.
        return 0.3 * n_teachers >= 1.645 * sigma * (0.81 if ballot == "labels" else 1)

    if n_queries is None and kind == "counts":
        n_queries = n_public
    own_shape = shape(_queries_or_sure(n_queries, sure, n_public))
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
    bounds: Pair,
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
        One of `_OF_NUMBERS`.

    Raises
    ------
    ParameterError
        If a setting is out of its range, or no noise keeps the budget.
    """
    name, own = named("mechanism", asked, _OF_NUMBERS)
    # the grid has 200 numbers by default
    positions, mean = checked_positions(own.get("n_positions", 200)), name != "quantile"
    public = {"method": NUMBER_VOTES, "bounds": list(bounds)}
    rank: Any = own.get("rank")

    def terms(n_points: int) -> Terms:
        shape = teacher_shape(n_points, positions, n_teachers, guarantee)
        drawn = noisy_means(budget, shape) if mean else vote_quantiles(budget, shape, rank=rank)
        return Terms(drawn, shape, budget, public)

    def sure(n_points: int) -> bool:
        found = terms(n_points)
        assert isinstance(found.mechanism, VoteQuantiles)
        return unanimous_chance(found.mechanism, found.shape) >= _RIGHT

    if n_queries is None and mean:
        # points that are asked by default: more do not help a student of a few columns
        n_queries = 1000
    return terms(_queries_or_sure(n_queries, sure, n_public))


def _queries_or_sure(n_queries: Any, sure: Callable[[int], bool], n_public: int) -> int:
    """Return how many of the public points are asked: as many as wanted, or else about as many as
    leave sure answers."""
    if n_queries is None:
        return max(1, _last_that_holds(sure, n_public, loosely=True))
    return min(check_count("n_queries", n_queries), n_public)


# Share of the pool that may be less stable than the released number says. Gaussian voting is
# planned for the typical point. The sparse vector pays only where nearly all points are stable, so
# that is what is asked about.
_SPARSE = "sparse-vector"
_FRACTIONS = {"auto": 0.5, "labels": 0.5, _SPARSE: 0.1}
_BETA = 0.05  # failure probability of what is read off the number


@dataclass(frozen=True)
class EstimatedSize:
    """What a fit does with an estimate: pay, read it, set up the mechanism with what is left.

    Attributes
    ----------
    epsilon : float
        Price of the estimate.
    budget : PrivacyBudget
        For the estimate and the answers together.
    mechanism : str
        One of `_FRACTIONS`; of labels.
    pool : VoteShape
        Of the votes on all public points that may be asked.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : 1 vote for the estimate (`StabilityQuantile`); everything read off it is
        post-processing.
    Price : (epsilon, 0) for the estimate and (budget.epsilon - epsilon, budget.delta) for the
        answers; the noise of the answers is chosen in the light of the estimate, and the sum holds
        for such a choice too.
    Source : Bassily, Thakurta, Thakkar 2018, Remark 1, as differences 10 puts it right.
    Rounding : what is left for the answers is rounded down.
    """

    epsilon: float
    budget: PrivacyBudget
    mechanism: str
    pool: VoteShape

    @classmethod
    def of_settings(cls, model: Any, pool: VoteShape) -> "EstimatedSize":
        """Return what a `PATEClassifier` does with an estimate, by its settings alone.

        Parameters
        ----------
        model : PATEClassifier
            For its settings.
        pool : VoteShape

        Raises
        ------
        ParameterError
            If the estimate would leave nothing, or sets nothing that is open, or even the smallest
            mechanism that may come of it answers nothing.
        """
        asked, price, budget = model.mechanism, model.estimate_epsilon, model._budget
        name, own = named("mechanism", asked, _OF_CLASSES) if isinstance(asked, str) else ("", {})
        counted = name == "auto" and model._counts
        if name not in _FRACTIONS or own or counted or model.strategy != "passive":
            raise refusal(
                "n_queries",
                " pays for an estimate of how many labels are asked, or how many abstentions are"
                " reserved; use ",
                Argument("mechanism", "labels"),
                " or 'sparse-vector', with nothing else that sets it and no strategy; or leave the"
                " estimate out.",
            )
        if not price < budget.epsilon:
            raise refusal(
                "n_queries",
                f" pays {price:g} of epsilon {budget.epsilon:g} for an estimate; leave something"
                " for answers.",
            )
        estimated = cls(price, budget, name, pool)
        smallest = estimated.terms(1)
        check_useful(smallest.mechanism, smallest.shape)
        estimated.check_reach()
        return estimated

    def check_reach(self) -> None:
        """Refuse an estimate that could not show anything, were all teachers of one mind.

        Raises
        ------
        ParameterError
            If its own noise is larger than any stability.
        """
        most = largest_distance(teachers_of(self.pool))  # of a unanimous vote
        if self._size_shown_by(most) < 1:
            raise ParameterError(
                f"An estimate at epsilon {self.epsilon:g} may be off by {self._noise_slack} votes,"
                f" and {teachers_of(self.pool)} teachers are stable by {most} at most, so it could"
                " show nothing; give it more of epsilon, or use more teachers."
            )

    @property
    def rest(self) -> PrivacyBudget:
        """What is left for the answers."""
        return PrivacyBudget(rest_of(self.budget.epsilon, self.epsilon), self.budget.delta)

    @staticmethod
    def request_of(request: str) -> str:
        """Return the key of the estimate in the ledger, under which it is not paid for twice."""
        return f"{request}/estimate"

    def pay(self, votes: Callable[[], Votes], ledger: Ledger, request: str | None) -> Released:
        """Release the estimate, or return what was released.

        Parameters
        ----------
        votes : callable
            Makes the votes on the whole pool, where nothing was released before.
        ledger : Ledger
        request : str or None
            Key of the fit.

        Raises
        ------
        ParameterError, BudgetError, LedgerError
            As for `secretballot.estimate_stability`; also if the ledger would pay for the estimate
            and not for the answers: an estimate without answers is money thrown away.
        """
        key = None if request is None else self.request_of(request)
        begun = key is not None and ledger.entry(key) is not None
        refuse_beyond(ledger, self.rest if begun else self.budget, request)
        return estimate_stability(
            votes,
            ledger,
            shape=self.pool,
            fraction=_FRACTIONS[self.mechanism],
            epsilon=self.epsilon,
            request=key,
            purpose="how stable the votes on the public pool are, to set how much is asked",
        )

    def size_by(self, released: int | None) -> int:
        """Return the number of queries, or of abstentions, that a released number leads to; None
        stands for one that shows nothing.

        Gaussian voting: as many as leave a vote of the margin that half of the points have, as far
        as the number shows, right 19 times in 20. Sparse vector: the largest T whose threshold,
        which grows with T, nine points in ten are shown to pass, and no larger than the whole pool
        can need. Both statements fail with probability `_BETA` at most. A number that shows
        nothing, and was paid for, leads to what is done without one, with a warning: a margin of
        0.6 K is assumed, or T is 1.
        """
        n_teachers, stops = teachers_of(self.pool), self.mechanism == _SPARSE
        if released is not None:
            # beyond a unanimous vote there is only noise
            size = self._size_shown_by(min(released, largest_distance(n_teachers)))
            if size >= 1:
                return size
            instead = "one abstention is reserved" if stops else "a margin of 0.6 K is assumed"
            warnings.warn(
                f"The estimate of the stability is {released} votes of {n_teachers} teachers, too"
                f" little to go by, so {instead}; use more teachers, a larger epsilon, or the noisy"
                " counts.",
                WeakSignalWarning,
                stacklevel=2,
            )
        return 1 if stops else _choose_label_queries(self.rest, self.pool)

    def _size_shown_by(self, seen: int) -> int:
        if self.mechanism == _SPARSE:
            return self._abstentions_shown_by(seen)
        distance = seen - self._noise_slack
        if distance < 1:
            return 0
        # ceil(margin / 2) - 1 >= d means margin >= 2 d + 1
        return _choose_label_queries(self.rest, self.pool, 2 * distance + 1)

    @property
    def _noise_slack(self) -> int:
        """Votes that the estimate's own noise exceeds with probability `_BETA` at most."""
        scale = least_quotient(1, self.epsilon)
        return max(0, math.ceil(-scale * math.log(_BETA * (1 + math.exp(-1 / scale)))) - 1)

    def _abstentions_shown_by(self, seen: int) -> int:
        enough = math.floor(_FRACTIONS[self.mechanism] * self.pool.n_queries) + 1

        def holds(unstable: int) -> bool:
            try:
                event = calibrate_sparse_vector(self.rest, unstable)
            except ParameterError:  # so many abstentions cannot be had for this budget
                return False
            slack = quantile_slack(self.epsilon, event, self.pool.n_queries, _BETA)
            return seen > event.threshold + sum(slack)

        return _last_that_holds(holds, min(_MAX_UNSTABLE, enough))

    def terms(self, size: int) -> Terms:
        """Return the terms of so many queries or, of a sparse vector, of so many abstentions, for
        the rest of the budget."""
        if self.mechanism == _SPARSE:
            stream = sparse_vector(self.rest, self.pool.n_queries, max_abstentions=size)
            return Terms(stream, self.pool, self.rest)
        return _noisy_terms("gaussian", self.rest, self.pool.first(size), "labels")
