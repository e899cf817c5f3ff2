"""Fixed lists of events: priced together when an account is made, taken later in any order.

Which listed event comes next, for which query, and whether any comes at all may depend on all that
was released: the price of the whole list holds for what was taken of it. The proof, and the kinds
of events that it is about, are in section 16 of docs/explanation/prices.md.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from secretballot._validation import check_count
from secretballot.exceptions import BudgetError, Parameter, ParameterError
from secretballot.privacy.accounting.budget import PrivacyBudget
from secretballot.privacy.accounting.calibration import calibrate_vector_sum
from secretballot.privacy.accounting.events import (
    MAX_COUNT,
    ArgmaxGaussianEvent,
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PureEvent,
    VectorSumEvent,
    VoteTableEvent,
)
from secretballot.privacy.accounting.pricing import delta_upper
from secretballot.privacy.accounting.vector_sum import LEAST_SIGMA

__all__ = ["MAX_LINES", "EventList", "event_in_words", "listed_sums", "sum_sigma"]

MAX_LINES = 10  # as many kinds of events as a certificate may list
#: Kinds of events that a list may hold, and what says how many steps each of them is. No other kind
#: is a number of like steps, of which every one has its own price whatever came before.
_COUNTED_BY: dict[type[Event], str] = {
    GaussianEvent: "shifts",
    LabelGaussianEvent: "queries",
    ArgmaxGaussianEvent: "queries",
    VoteTableEvent: "queries",
    VectorSumEvent: "count",
    PureEvent: "count",
}
# of listed sums: a fine grid, and more integers than any sum has, which cost nothing to speak of
_LISTED_BOUND, _LISTED_COORDINATES = 10**6, 10**9


class _Line(NamedTuple):
    """One kind of step, as an event of one step, and how many of them there are."""

    step: Event
    number: int


@dataclass(frozen=True)
class EventList:
    """Events that an account was made with, and what of them an event takes.

    Parameters
    ----------
    lines : tuple
        Distinct steps and how many there are of each, as `of` makes them.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> listed = accounting.EventList.of([accounting.LabelGaussianEvent(40.0, 100, 250)])
    >>> listed.taken_by([accounting.LabelGaussianEvent(40.0, 30, 250)])
    (30,)
    >>> print(listed.taken_by([accounting.LabelGaussianEvent(39.0, 30, 250)]))
    None
    """

    lines: tuple[_Line, ...]

    @classmethod
    def of(cls, events: Sequence[Event]) -> "EventList":
        """Return the list of these events; like ones are put together.

        Raises
        ------
        ParameterError
            If there is none, or one of a kind whose steps may not be taken one by one.
        """
        numbers: dict[Event, int] = {}
        for event in events:
            line = _steps_of(event)
            if line is None:
                raise ParameterError(
                    f"{type(event).__name__} cannot be listed: only Gaussian counts and labels,"
                    " labels from a table of chances, sums of vectors and pure answers have steps"
                    " that may be taken one by one; use a ledger with composition 'basic' or"
                    " 'renyi' for it."
                )
            numbers[line.step] = numbers.get(line.step, 0) + line.number
        if not 1 <= len(numbers) <= MAX_LINES:
            raise ParameterError(
                Parameter("events"),
                f" are of {len(numbers)} kinds; list one to {MAX_LINES}.",
            )
        # the events of the list are checked as any others are
        return cls(
            tuple(
                _steps_of(_repeated_step(step, n)) or _Line(step, n) for step, n in numbers.items()
            )
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """One event for each kind of step."""
        return tuple(_repeated_step(line.step, line.number) for line in self.lines)

    @property
    def numbers(self) -> tuple[int, ...]:
        """How many steps there are of each kind."""
        return tuple(line.number for line in self.lines)

    def taken_by(self, events: Sequence[Event]) -> tuple[int, ...] | None:
        """Return how many steps of each kind some events take; None where one is of no listed
        kind.

        An event takes from the line that covers it at the least price, the first of those that are
        alike, whatever is left of it.
        """
        taken = [0] * len(self.lines)
        for event in events:
            asked = _steps_of(event)
            place = None if asked is None else self._line_for(asked.step)
            if asked is None or place is None:
                return None
            taken[place] += asked.number
        return tuple(taken)

    def after(self, taken: Sequence[int]) -> tuple[Event, ...]:
        """Return what is left after so many steps of each kind."""
        return self.some(
            [line.number - number for line, number in zip(self.lines, taken, strict=True)]
        )

    def some(self, numbers: Sequence[int]) -> tuple[Event, ...]:
        """Return the events of so many steps of each kind; of none where there are none."""
        pairs = zip(self.lines, numbers, strict=True)
        return tuple(_repeated_step(line.step, number) for line, number in pairs if number > 0)

    def _line_for(self, step: Event) -> int | None:
        places = [i for i, line in enumerate(self.lines) if _covers_step(line.step, step)]
        return min(places, key=lambda i: _cost_order(self.lines[i].step), default=None)

    def check_price(self, budget: PrivacyBudget) -> None:
        """Refuse a list that costs more than a budget.

        Raises
        ------
        BudgetError
            If it does.
        """
        delta = _list_delta(self.events, budget.epsilon)
        if not delta <= budget.delta:
            raise BudgetError(
                f"The listed events cost delta {delta:g} at epsilon {budget.epsilon:g}, more than"
                f" the delta {budget.delta:g} that they are to be kept within; list fewer, or with"
                " more noise."
            )


@functools.lru_cache(maxsize=64)  # a ledger asks before every reservation
def _list_delta(events: tuple[Event, ...], epsilon: float) -> float:
    return delta_upper(events, epsilon)


def _steps_of(event: Event) -> _Line | None:
    """Return the one step that an event repeats, and how often; None where it does not."""
    # the very class: a sum with budget groups is a vector sum, and promises more
    field = _COUNTED_BY.get(type(event))
    return None if field is None else _Line(replace(event, **{field: 1}), getattr(event, field))


def _repeated_step(step: Event, number: int) -> Event:
    """Return the event of so many steps."""
    return replace(step, **{_COUNTED_BY[type(step)]: number})


def _covers_step(listed: Event, asked: Event) -> bool:
    """Return whether a step costs at most what a listed one does, in every price of a list."""
    if isinstance(listed, LabelGaussianEvent) and isinstance(asked, LabelGaussianEvent):
        # a label event without a number of teachers is priced for every one
        return listed.sigma == asked.sigma and listed.n_teachers in (None, asked.n_teachers)
    if isinstance(listed, PureEvent) and isinstance(asked, PureEvent):
        return asked.epsilon <= listed.epsilon
    if isinstance(listed, VectorSumEvent) and isinstance(asked, VectorSumEvent):
        return listed == asked or _covers_sum(listed, asked)
    return listed == asked


def _covers_sum(listed: VectorSumEvent, asked: VectorSumEvent) -> bool:
    """Return whether a sum has at least the noise of a listed one for its sensitivity, and not more
    coordinates."""
    if not (min(listed.sigma, asked.sigma) >= LEAST_SIGMA):
        return False  # its only price is that of its own divergence; it must be the very same
    # exact in fractions: variance for the squared sensitivity, as it is drawn and as section 10 of
    # docs/explanation/prices.md counts it, less the rounding
    of_list, of_asked = Fraction(listed.sigma) ** 2, Fraction(asked.sigma) ** 2
    return asked.coordinates <= listed.coordinates and all(
        asked.squared_sensitivity * (of_list - less)
        <= listed.squared_sensitivity * (of_asked - less)
        for less in (0, 4)
    )


def _cost_order(step: Event) -> float:
    """Return what orders listed steps that cover the same one, the least first."""
    match step:
        case PureEvent():
            return step.epsilon
        case VectorSumEvent():
            return step.squared_sensitivity / step.sigma**2
        case LabelGaussianEvent():
            return math.inf if step.n_teachers is None else step.n_teachers
    return 0.0


def listed_sums(budget: PrivacyBudget, count: int) -> VectorSumEvent:
    """Return sums to list, with the least noise for their sensitivity at which so many keep a
    budget.

    They cover sums of any other sensitivity and grid with as much noise for it (`sum_sigma`).

    Parameters
    ----------
    budget : PrivacyBudget
        Of all of them together.
    count : int
        How many.

    Raises
    ------
    ParameterError
        If delta is 0, or no noise keeps the budget.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> listed = accounting.listed_sums(sb.PrivacyBudget(1.0, 1e-6), count=4)
    >>> sigma = accounting.sum_sigma(listed, squared_sensitivity=10**4, coordinates=20)
    >>> print(f"{sigma:.1f}")
    844.9
    """
    number = check_count("count", count)
    if not number * _LISTED_COORDINATES <= MAX_COUNT:
        raise ParameterError(
            Parameter("count"),
            f" is {number}; list at most {MAX_COUNT // _LISTED_COORDINATES} sums.",
        )
    squared = _LISTED_BOUND**2
    sigma = calibrate_vector_sum(budget, squared, _LISTED_COORDINATES, number)
    return VectorSumEvent(sigma, squared, _LISTED_COORDINATES, number)


def sum_sigma(listed: VectorSumEvent, squared_sensitivity: int, coordinates: int) -> float:
    """Return the least noise, in units of the grid, with which a sum is covered by a listed one.

    Parameters
    ----------
    listed : VectorSumEvent
        With a sigma of at least 4.
    squared_sensitivity, coordinates : int
        Of the sum that is to be drawn.

    Raises
    ------
    ParameterError
        If no noise is enough, as the sum has more coordinates or the listed one too little noise.
    """
    if listed.sigma < LEAST_SIGMA or coordinates > listed.coordinates:
        raise ParameterError(
            f"A sum of {coordinates} coordinates is not covered by listed sums of"
            f" {listed.coordinates} with sigma {listed.sigma:g}; use another ledger."
        )
    share = squared_sensitivity / listed.squared_sensitivity
    variance = max(share * listed.sigma**2, share * (listed.sigma**2 - 4) + 4)
    sigma = max(LEAST_SIGMA, math.sqrt(variance))
    asked = VectorSumEvent(sigma, squared_sensitivity, coordinates)
    # floats round to nearest: a few steps up cover exactly
    while not _covers_sum(listed, asked):
        asked = replace(asked, sigma=math.nextafter(asked.sigma, math.inf))
    return asked.sigma


def event_in_words(event: Event) -> str:
    """Return a listed event in a few words: how many of what, with which noise."""
    match event:
        case GaussianEvent():
            return f"{event.shifts} noisy counts (sigma {event.sigma:.12g})"
        case LabelGaussianEvent(n_teachers=None):
            return f"{event.queries} labels of two classes (sigma {event.sigma:.12g})"
        case LabelGaussianEvent():
            return (
                f"{event.queries} labels of two classes (sigma {event.sigma:.12g},"
                f" {event.n_teachers} teachers)"
            )
        case ArgmaxGaussianEvent():
            return f"{event.queries} labels of more classes (sigma {event.sigma:.12g})"
        case VoteTableEvent():
            return (
                f"{event.queries} labels from a table of {len(event.weights)} chances"
                f" ({event.n_teachers} teachers)"
            )
        case VectorSumEvent():
            noise = event.sigma / math.sqrt(event.squared_sensitivity)
            return f"{event.count} noisy sums (noise {noise:.12g} times the sensitivity)"
        case PureEvent():
            return f"{event.count} pure answers (epsilon {event.epsilon:.12g})"
    return f"one {event.name}"
