"""Tables of chances that a vote is answered, charged for the abstentions they cause.

The table grows as fast as the two inequalities of `core.streams` allow. What is drawn are integers
below 2^62. Floats only guess where the next one lies; that it keeps the inequalities is decided
with sixty digits, so the table is the same on every machine.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from secretballot._typing import IntArray
from secretballot.core.events import TableStream
from secretballot.core.label_games import CHANCE_BITS, MAX_WEIGHTS
from secretballot.core.streams import BITS, MAX_DISTANCE, WHOLE, neighbours_keep

# below, one label in many millions is wrong, and a table would only grow longer
_LEAST_CHANCE = 2.0**-40
_PRECISION = 1e-7  # relative, of a step in the logarithm of a chance
_LONGEST_STEP = 3.0  # nats from one chance to the next


@functools.lru_cache(maxsize=64)
def table_weights(n_teachers: int, order: float, divergence: float) -> tuple[int, ...]:
    """Return the weights of the table whose neighbouring votes differ by a Renyi divergence.

    Parameters
    ----------
    n_teachers : int
        Number K of teachers.
    order : float
        Order of the divergence, > 1.
    divergence : float
        In nats; positive.
    """
    return tuple(
        max(1, round(Fraction(chance) * 2**CHANCE_BITS))
        for chance in _minority_chances(n_teachers, order, divergence)
    )


def _minority_chances(n_teachers: int, order: float, divergence: float) -> list[float]:
    """Return the chances that a table gives the minority's label, margin by margin."""
    most = min(MAX_WEIGHTS, n_teachers // 2 + 1)
    chances = [0.5 if n_teachers % 2 == 0 else _straddling_chance(order, divergence)]
    step = 0.1
    while len(chances) < most and chances[-1] > _LEAST_CHANCE:
        step = _next_step(chances[-1], order, divergence, step)
        chances.append(max(_LEAST_CHANCE, chances[-1] * math.exp(-step)))
    return chances


def _straddling_chance(order: float, divergence: float) -> float:
    """Return the chance at a margin of one vote: its mirror image is the next one."""
    limit = math.expm1((order - 1) * divergence)

    def moment(gap: float) -> float:
        # of the pair of the chances (1 - gap) / 2 and (1 + gap) / 2
        up = math.log1p(gap) - math.log1p(-gap)
        low, high = (1 - gap) / 2, (1 + gap) / 2
        return low * math.expm1((1 - order) * up) + high * _expm1_of((order - 1) * up)

    return (1 - _last_within(moment, limit, 0.01, 1 - 1e-6)) / 2


def _next_step(chance: float, order: float, divergence: float, start: float) -> float:
    """Return by how much the logarithm of a chance may fall, either way round, near `start`."""
    limit = math.expm1((order - 1) * divergence)
    rest = 1 - chance

    def moment(step: float) -> float:
        lower = chance * math.exp(-step)
        more = math.log1p((chance - lower) / rest)
        one = chance * _expm1_of((order - 1) * step) + rest * math.expm1((1 - order) * more)
        other = lower * math.expm1((1 - order) * step) + (1 - lower) * _expm1_of((order - 1) * more)
        return max(one, other)

    return _last_within(moment, limit, start, _LONGEST_STEP)


def _expm1_of(power: float) -> float:
    return math.expm1(power) if power < 700 else math.inf


def _last_within(
    moment: Callable[[float], float], limit: float, start: float, most: float
) -> float:
    """Return about the largest argument up to `most` at which a growing function keeps `limit`."""
    low, high = 0.0, min(start, most)
    while moment(high) <= limit:
        if high == most:
            return most
        low, high = high, min(2 * high, most)
    # the function is nearly quadratic from 0 on, so its root is nearly linear
    below, above, aim = math.sqrt(max(0.0, moment(low))), math.sqrt(moment(high)), math.sqrt(limit)
    while high - low > _PRECISION * high:
        share = (aim - below) / (above - below) if math.isfinite(above) else 0.5
        middle = low + min(max(share, 0.02), 0.98) * (high - low)
        found = math.sqrt(max(0.0, moment(middle)))
        if found <= aim:
            low, below = middle, found
        else:
            high, above = middle, found
    return low


_DIGITS = 32  # binary digits of the smaller one of both, from the second entry on
_LEAST_ABSTENTION = 1 << (BITS - 40)  # from this weight of an abstention on the table stays
_PLACES = 128  # at which a search looks at a table


def answer_weights(event: TableStream, largest: int) -> IntArray:
    """Return the weights of an answer, of 2^62, at distances 0 to `largest` at most.

    Parameters
    ----------
    event : TableStream
    largest : int
        Largest distance that can occur; `MAX_DISTANCE` if that is less.

    Returns
    -------
    ndarray of int64, shape (n,), n <= largest + 1, read-only
        The last holds for all larger distances.

    Notes
    -----
    The first is the largest with `false_answer`; each further one the largest that keeps both
    inequalities with the one before, among those whose smaller side has 32 binary digits. It is
    sought from where floats guess it, and what is accepted was decided with sixty digits.
    """
    length = min(largest, MAX_DISTANCE) + 1
    # more than asked, so that a few walks serve all lengths
    walked = min(1 << length.bit_length(), MAX_DISTANCE + 1)
    return _walk(event.order, event.charge, event.false_answer, walked)[:length]


@functools.lru_cache(maxsize=32)
def _walk(order: float, charge: float, false_answer: float, length: int) -> IntArray:
    """Return the weights at the first `length` distances, read-only."""
    found, step = [_rounded_down(math.floor(Fraction(false_answer) * WHOLE))], 1.0
    while len(found) < length:
        here = found[-1]
        if WHOLE - here <= _LEAST_ABSTENTION:
            break
        s, f = here / WHOLE, (WHOLE - here) / WHOLE
        step = _largest_step(s, f, order, charge, step)
        # the weight whose log-odds are larger by the step; digits are lost where answers are rare,
        # so that the search takes longer there
        shrunk = f * math.exp(-step)
        guess = _rounded_down(WHOLE - max(1, math.ceil(shrunk / (s + shrunk) * WHOLE)))
        after = _last_weight(order, charge, here, max(guess, _later_weight(here, 1)))
        if after == here:  # the digits end
            break
        found.append(after)
    weights = np.array(found, dtype=np.int64)
    weights.setflags(write=False)
    return weights


def _last_weight(order: float, charge: float, here: int, guess: int) -> int:
    """Return the last rounded weight from `here` on that keeps the inequalities with it.

    What keeps them is an interval that starts at `here`, so it does not matter where the search
    begins.
    """
    low, high = here, WHOLE
    at, reach = guess, 1
    # outward from the guess until one holds and the next does not
    while True:
        if here < at < WHOLE and neighbours_keep(order, charge, here, at):
            low, at = at, _later_weight(at, reach)
        else:
            high, at = min(high, at), _rounded_down(max(1, at - reach * _weight_unit(at)))
        if at <= low or at >= high:
            break
        reach *= 2
    while _later_weight(low, 1) < high:
        middle = _rounded_down((low + high) // 2)
        if not low < middle < high:
            middle = _later_weight(low, 1)
        if neighbours_keep(order, charge, here, middle):
            low = middle
        else:
            high = middle
    return low


def _weight_unit(answer: int) -> int:
    """Return the distance of rounded weights near this one."""
    return 1 << max(0, min(answer, WHOLE - answer).bit_length() - _DIGITS)


def _rounded_down(answer: int) -> int:
    """Return the nearest rounded weight that is not larger."""
    unit = _weight_unit(answer)
    # an abstention is rounded up, so that an answer is rounded down: both are multiples of the unit
    return answer // unit * unit


def _later_weight(answer: int, steps: int) -> int:
    return min(WHOLE, answer + steps * _weight_unit(answer))


def _excess_over_one(step: float, s: float, f: float, order: float, charge: float) -> float:
    """Return by how much the larger left side exceeds 1 if the log-odds of an answer grow by
    `step`."""
    if step > 700:
        return math.inf
    # with g = f / e^m and t = s e^r
    m, shrunk = math.log1p(s * math.expm1(step)), f * math.expm1(-step)
    # a difference where both are far apart: the chance left may be none in floats
    r = -math.log1p(shrunk) if shrunk > -0.5 else step - m
    if max(order * r, order * m) > 700:
        return math.inf
    forward = f * math.expm1(-order * m - charge) + s * math.expm1(order * r)
    backward = f * math.expm1((order - 1) * m - charge) + s * math.expm1(-(order - 1) * r)
    return max(forward, backward)


def _largest_step(s: float, f: float, order: float, charge: float, guess: float) -> float:
    """Return about the largest step of the log-odds of an answer that floats allow, from a
    guess."""
    # a ledger opens without it, in less time than it takes to load
    from scipy.optimize import brentq

    def excess(step: float) -> float:
        return _excess_over_one(step, s, f, order, charge)

    high = guess if guess > 0 else 1.0
    while excess(high) < 0:
        high *= 2
    return float(brentq(excess, 0.0, high, xtol=5e-324, rtol=1e-13))


@functools.lru_cache(maxsize=1024)
def distance_answered(event: TableStream, probability: float = 0.999) -> float:
    """Return the distance, in votes, from which on a query is answered with `probability`.

    From a few places of the table, as if it had no end; too large by less than a hundredth. A
    probability nearer to 1 than 2^-39 is taken for that.

    Notes
    -----
    A table takes a step h of the log-odds for each vote, and how long it is changes slowly: so the
    number of votes is about the integral of 1 / h, and to the next order half of ln(h) more.
    """
    probability = min(probability, 1 - 2.0**-39)
    start = math.log(event.false_answer) - math.log1p(-event.false_answer)
    end = math.log(probability) - math.log1p(-probability)
    places = np.linspace(start, max(start, end), _PLACES)
    found, step = [], 1.0
    for place in places.tolist():
        s = 1 / (1 + math.exp(-place))
        step = _largest_step(s, s * math.exp(-place), event.order, event.charge, step)
        found.append(step)
    steps = np.array(found)
    # the trapezoids by hand: scipy.integrate takes a third of the time in which a ledger opens
    area = float((np.diff(places) * (1 / steps[1:] + 1 / steps[:-1])).sum()) / 2
    return area + math.log(steps[-1] / steps[0]) / 2
