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

from secretballot.core.errors import (
    ParameterError,
    check_delta,
    check_finite,
    check_positive,
    check_probability,
)
from secretballot.core.events import Event, Sampled, Stream, cached_losses, cached_profile
from secretballot.core.exponential import least_quotient
from secretballot.core.losses import ORDERS, Losses, delta_of, fold
from secretballot.core.types import FloatArray

_SLACK = 1e-10  # relative; more than the float error of every sum and special function used here
_MOST_EPSILON = 1e15  # nats; beyond, no price is looked for


def round_up(value: float) -> float:
    """Return a number above `value` by more than the float error it may carry.

    Nan and negatives become infinity.
    """
    if not value >= 0:
        return math.inf
    return value * (1 + _SLACK) + 1e-300


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
_Kinds = tuple[tuple[Event, int], ...]


def _together(events: Sequence[Event]) -> _Kinds:
    """Return events that differ, equal steps as one event, and how often each is there."""
    counted: Counter[Event] = Counter()
    for event in (part for one in events for part in one.priced()):
        if event.counted:
            counted[event.repeated(1)] += getattr(event, event.counted)
        else:
            counted[event] += 1
    return tuple((one.repeated(n), 1) if one.counted else (one, n) for one, n in counted.items())


def _pure_loss(kinds: _Kinds) -> Fraction | float:
    """Return the sum of pure losses, failures set aside; infinite if some event has none."""
    return sum((count * event.pure() for event, count in kinds), Fraction(0))


@functools.lru_cache(maxsize=256)
def _total_losses(kinds: _Kinds) -> Losses:
    """Return losses that dominate all events together."""
    return fold((cached_losses(event), count) for event, count in kinds)


@functools.lru_cache(maxsize=256)
def _divergences(kinds: _Kinds) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the divergences of all events together, and their orders.

    A table has its price at its own order; beyond the least of them nothing is known of the list.
    """
    own = sorted(order for event, _ in kinds for order in event.own_orders())
    orders = np.append(ORDERS, own[:1])
    return sum((n * event.renyi(orders) for event, n in kinds), np.zeros(len(orders))), orders


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
    kinds = _together(events)
    if epsilon is not None:
        return _price_at_epsilon(kinds, check_finite("epsilon", epsilon))
    return _price_at_delta(kinds, delta)


def _price_at_delta(kinds: _Kinds, delta: float | None) -> Price:
    pure, failure = _pure_loss(kinds), _failure_of(kinds)
    if isinstance(pure, Fraction) and delta == 0 and failure == 0:
        return Price(least_quotient(pure, 1), 0.0, "pure", _SOURCES["pure"])
    target = check_probability("delta", delta)

    def keeps(epsilon: float) -> bool:
        return _price_at_epsilon(kinds, epsilon, sought=True).delta <= target

    low, high = 0.0, least_quotient(pure, 1) if isinstance(pure, Fraction) else 1.0
    while not keeps(high):
        if high > _MOST_EPSILON:
            return Price(math.inf, target, "losses", _SOURCES["losses"])
        low, high = high, 2 * high
    if keeps(low):
        high = low
    # the smallest floats have nothing between them
    while high - low > 1e-12 * high + 1e-300:
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return replace(_price_at_epsilon(kinds, high), delta=target)


def _price_at_epsilon(kinds: _Kinds, epsilon: float, *, sought: bool = False) -> Price:
    pure, failure = _pure_loss(kinds), _failure_of(kinds)
    if pure <= epsilon and failure == 0:
        return Price(epsilon, 0.0, "pure", _SOURCES["pure"])
    at = np.array([epsilon])
    # of a stream alone what its bounds say at the epsilon itself, not between places of a grid
    alone = len(kinds) == kinds[0][1] == 1 and isinstance(kinds[0][0], Stream | Sampled)
    profile = (
        cached_profile(kinds[0][0])[0] if alone and epsilon >= 0 else _total_losses(kinds).delta
    )
    found = {
        "renyi": float(delta_of(*_divergences(kinds), at)[0]) + failure,
        "losses": float(profile(at)[0]),
    }
    # of an epsilon that is looked for, decimals are not given up for less than anybody sees
    if isinstance(pure, Fraction) and epsilon >= (float(pure) if sought else 0.0):
        found["pure"] = _response_delta(pure, epsilon) + failure
    found = {name: round_up(delta) for name, delta in found.items()}
    method = min(found, key=lambda name: found[name])
    return Price(epsilon, min(1.0, found[method]), method, _SOURCES[method])


def _response_delta(loss: Fraction, epsilon: float) -> float:
    """Return delta at epsilon >= 0 of one part of that pure loss, which randomised response
    dominates: tiny where a sum of decimals exceeds an epsilon by its last digit."""
    beyond = loss - Fraction(epsilon)
    if not beyond > 0:
        return 0.0
    return -math.expm1(-least_quotient(beyond, 1)) / (1 + math.exp(-float(loss)))


def _failure_of(kinds: _Kinds) -> float:
    return math.fsum(count * event.failure() for event, count in kinds)
