"""The price of a list of events whose parameters were fixed beforehand.

Three sums are upper bounds by themselves, so the least of them is one too: exact pure losses with
what they leave to failures, loss distributions, and Renyi divergences. Queries inside an event may
be chosen adaptively, and events may be interleaved in any order; parameters chosen after seeing
outputs are the filters' business.

The work of one event is bounded before it is begun, by its public numbers alone, so that an event
from a stranger cannot keep the program busy: past each limit a larger price holds.
"""

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from secretballot.core.class_games import likely_renyi, most_order
from secretballot.core.errors import (
    ParameterError,
    check_delta,
    check_finite,
    check_positive,
    check_probability,
)
from secretballot.core.events import (
    BoundedRange,
    ClassLabels,
    Event,
    Sampled,
    SparseStream,
    TableStream,
    cached_losses,
    cached_renyi,
    charged_losses,
)
from secretballot.core.losses import Losses, Profile, fold
from secretballot.core.renyi import ORDERS, delta_of, log_factor, lost_epsilon
from secretballot.core.types import FloatArray

SLACK = 1e-10  # relative; more than the float error of every sum and special function used here
MOST_EPSILON = 1e15  # nats; beyond, no price is looked for
# places in `ORDERS` around the best, at which divergences of labels are searched; fewer where that
# takes long
NEAR, FEWER, LONG_SIGMA = (-4, -2, -1, 0, 1, 2, 4), (-4, 0, 4), 50.0


def round_up(value: float) -> float:
    """Return a number above `value` by more than the float error it may carry.

    Nan and negatives become infinity.
    """
    if not value >= 0:
        return math.inf
    return value * (1 + SLACK) + 1e-300


@dataclass(frozen=True)
class PrivacyBudget:
    """An (epsilon, delta) differential-privacy promise, as a limit.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, in nats; positive and finite.
    delta : float
        Probability mass that may exceed the bound; at least 0 and less than 1.

    Raises
    ------
    ParameterError
        If either is out of range or nan.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> budget.to_json()
    {'epsilon': 1.0, 'delta': 1e-06}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_delta("delta", self.delta))

    def to_json(self) -> dict[str, float]:
        """Return the two numbers under their names."""
        return {"epsilon": self.epsilon, "delta": self.delta}


@dataclass(frozen=True)
class Price:
    """What a list of events costs: (epsilon, delta), and how that was computed.

    Attributes
    ----------
    epsilon, delta : float
        The pair; one was given, the other is rounded up.
    method : str
        The sum that gave the smallest figure: "pure", "losses" or "renyi".
    source : str
        Theorem behind it.

    Examples
    --------
    >>> from secretballot import accounting
    >>> event = accounting.Counts(sigma=40.0, shifts=100)
    >>> paid = accounting.price([event], epsilon=1.0)
    >>> paid.epsilon, paid.delta < 1e-3
    (1.0, True)
    """

    epsilon: float
    delta: float
    method: str
    source: str


_SOURCES = {
    "pure": "basic composition (Dwork and Roth 2014, Corollary 3.15)",
    "renyi": "Renyi composition (Mironov 2017) and conversion of Canonne, Kamath, Steinke 2020,"
    " Proposition 12",
    "losses": "dominating pairs of privacy losses, composed concurrently (Vadhan and Zhang"
    " 2023); docs/explanation/prices.md",
}
Kinds = tuple[tuple[Event, int], ...]


def _readings(events: Sequence[Event]) -> list[Kinds]:
    """Return the list with all events in parts, and, where some may cost less whole, with these
    whole."""
    apart = _together([part for event in events for part in event.parts()])
    if not any(event.joint for event in events):
        return [apart]
    listed = [[event] if event.joint else event.parts() for event in events]
    return [apart, _together([part for parts in listed for part in parts])]


def _together(events: Sequence[Event]) -> Kinds:
    """Return events that differ, equal steps as one event, and how often each is there."""
    counted: Counter[Event] = Counter()
    for event in events:
        if event.counted:
            counted[event.repeated(1)] += event.times
        else:
            counted[event] += 1
    return tuple((one.repeated(n), 1) if one.counted else (one, n) for one, n in counted.items())


def _pure_loss(kinds: Kinds) -> Fraction | None:
    """Return the sum of pure losses, failures set aside; None if some event has none."""
    total = Fraction(0)
    for event, count in kinds:
        loss = event.pure()
        if loss is None:
            return None
        total += count * loss
    return total


@functools.lru_cache(maxsize=256)
def _total_losses(kinds: Kinds) -> tuple[Losses, ...]:
    """Return losses that dominate all events together, and those by divergences of streams and
    draws."""
    bounds = [cached_losses]
    if any(isinstance(event, BoundedRange | SparseStream) for event, _ in kinds):
        bounds.append(charged_losses)
    return tuple(fold((bound(event), count) for event, count in kinds) for bound in bounds)


def _divergences(
    kinds: Kinds, epsilon: float | None, delta: float | None
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the divergences of all events together, and their orders.

    Labels of more than two classes have theirs searched at the few orders that are likely best at
    this epsilon or delta; at others they count as their noisy counts. A table has its price at its
    own order; beyond the least of them nothing is known of the list.
    """
    found, likely = np.zeros(len(ORDERS)), np.zeros(len(ORDERS))
    for event, count in kinds:
        divergence = count * cached_renyi(event)
        found = found + divergence
        if isinstance(event, ClassLabels):
            divergence = event.queries * likely_renyi(event.sigma, ORDERS)
        likely = likely + divergence
    streams = (event.stream if isinstance(event, Sampled) else event for event, _ in kinds)
    few = sorted(event.order for event in streams if isinstance(event, TableStream))[:1]
    scales = [event.sigma for event, _ in kinds if isinstance(event, ClassLabels)]
    if scales:
        last = int(np.searchsorted(ORDERS, most_order(min(scales)), side="right")) - 1
        steps = NEAR if max(scales) < LONG_SIGMA else FEWER
        place = min(last, _likely_place(likely, epsilon, delta))
        few += [float(ORDERS[max(0, min(place + step, last))]) for step in steps]
    if not few:
        return found, ORDERS
    orders = np.array(few)
    searched = sum((count * event.renyi(orders) for event, count in kinds), np.zeros(len(few)))
    return np.append(found, searched), np.append(ORDERS, orders)


def _likely_place(divergences: FloatArray, epsilon: float | None, delta: float | None) -> int:
    """Return the place in `ORDERS` that is likely best."""
    with np.errstate(invalid="ignore"):
        if delta is None:
            at = (ORDERS - 1) * (divergences - (epsilon or 0.0)) + log_factor(ORDERS)
        else:
            at = divergences + lost_epsilon(ORDERS, delta)
    return int(np.argmin(np.where(np.isnan(at), np.inf, at)))


def delta_upper(events: Sequence[Event], epsilon: float) -> float:
    """Return the smallest certified delta, rounded up, at which `events` are (epsilon, delta)-DP.

    Parameters
    ----------
    events : sequence of Event
        Parameters fixed beforehand; queries inside may be adaptive.
    epsilon : float
        Privacy loss, in nats; finite.
    """
    return price(events, epsilon=epsilon).delta


def epsilon_upper(events: Sequence[Event], delta: float) -> float:
    """Return the smallest certified epsilon >= 0, rounded up, at `delta`.

    Infinite where there is none. Parameters and errors are those of `price`.
    """
    return price(events, delta=delta).epsilon


def price(
    events: Sequence[Event], *, epsilon: float | None = None, delta: float | None = None
) -> Price:
    """Price `events` at a given epsilon or at a given delta (exactly one of them).

    Parameters
    ----------
    events : sequence of Event
        Parameters fixed beforehand; queries inside may be adaptive.
    epsilon : float, optional
        Privacy loss, in nats; finite.
    delta : float, optional
        In (0, 1); where all events are pure it may be 0.

    Raises
    ------
    ParameterError
        If `events` is empty or holds something else, or one of the two is not given alone or is
        out of range.
    """
    if not all(isinstance(event, Event) for event in events):
        raise ParameterError("Something in the list is no event of `core.events`.")
    if not events:
        raise ParameterError("The list of events is empty; a price needs at least one event.")
    if (epsilon is None) == (delta is None):
        raise ParameterError("A price needs either epsilon or delta, not both and not neither.")
    readings = _readings(events)
    if epsilon is not None:
        at = check_finite("epsilon", epsilon)
        return min((_price_at_epsilon(kinds, at) for kinds in readings), key=lambda one: one.delta)
    found = (_price_at_delta(kinds, delta) for kinds in readings)
    return min(found, key=lambda one: one.epsilon)


def _price_at_delta(kinds: Kinds, delta: float | None) -> Price:
    pure, failure = _pure_loss(kinds), _failure_of(kinds)
    if pure is not None and delta == 0 and not failure > 0:
        return Price(_float_above(pure), 0.0, "pure", _SOURCES["pure"])
    target = check_probability("delta", delta)
    divergences = _divergences(kinds, None, target)

    def keeps(epsilon: float) -> bool:
        return _price_at_epsilon(kinds, epsilon, divergences).delta <= target

    low, high = 0.0, 1.0 if pure is None else _float_above(pure)
    while not keeps(high):
        if high > MOST_EPSILON:
            return Price(math.inf, target, "losses", _SOURCES["losses"])
        low, high = high, 2 * high
    if keeps(low):
        high = low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    # what is reserved at this price must pass `delta_upper`, whose orders follow the epsilon
    found, step = _price_at_epsilon(kinds, high), 1e-9
    while not found.delta <= target:
        found = _price_at_epsilon(kinds, max(found.epsilon * (1 + step), step * 1e-9))
        step *= 2
    return replace(found, delta=target)


def _price_at_epsilon(
    kinds: Kinds, epsilon: float, divergences: tuple[FloatArray, FloatArray] | None = None
) -> Price:
    pure = _pure_loss(kinds)
    at, failure = np.array([epsilon]), _failure_of(kinds)
    if pure is not None and pure <= Fraction(epsilon) and not failure > 0:
        return Price(epsilon, 0.0, "pure", _SOURCES["pure"])
    by_renyi = delta_of(*(divergences or _divergences(kinds, epsilon, None)), at)[0]
    found = {"renyi": round_up(float(by_renyi) + failure)}
    # of an epsilon that is looked for, decimals are not given up for less than anybody sees
    if pure is not None and epsilon >= (float(pure) if divergences else 0.0):
        found["pure"] = round_up(_response_delta(pure, epsilon) + failure)
    found["losses"] = min((round_up(float(one(at)[0])) for one in _profiles(kinds)), default=1.0)
    method = min(found, key=lambda name: found[name])
    return Price(epsilon, min(1.0, found[method]), method, _SOURCES[method])


def _response_delta(loss: Fraction, epsilon: float) -> float:
    """Return delta at epsilon >= 0 of one part of that pure loss, which randomised response
    dominates: tiny where a sum of decimals exceeds an epsilon by its last digit."""
    beyond = loss - Fraction(epsilon)
    if not beyond > 0:
        return 0.0
    return -math.expm1(-_float_above(beyond)) / (1 + math.exp(-float(loss)))


def _failure_of(kinds: Kinds) -> float:
    return math.fsum(count * event.failure() for event, count in kinds)


def _float_above(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def _profiles(kinds: Kinds) -> list[Profile]:
    """Return bounds on delta at each epsilon: of all losses together; none of a table of
    abstentions alone, whose losses follow from its divergences; and of a sample alone read off at
    the epsilon itself, too, not between places of a grid."""
    alone = kinds[0][0] if kinds[0][1] == len(kinds) == 1 else None
    if isinstance(alone, TableStream):
        return []
    found: list[Profile] = [one.delta for one in _total_losses(kinds)]
    if isinstance(alone, Sampled):
        profile, _ = alone.profile()
        found.append(lambda at: np.where(at >= 0, profile(np.maximum(at, 0.0)), 1.0))
    return found
