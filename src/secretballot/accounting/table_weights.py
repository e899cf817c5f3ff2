"""Tables of chances that lose as little as possible for what they tell.

From an even vote outward the chance of the minority's label falls as fast as a Renyi divergence of
one order between neighbouring votes allows. No promise rests on how a table was found: what is
released under it is priced from its integers (`vote_table`).
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction

from secretballot.core.label_games import CHANCE_BITS, MAX_WEIGHTS

# below, one label in many millions is wrong, and a table would only grow longer
LEAST_CHANCE = 2.0**-40
PRECISION = 1e-7  # relative, of a step in the logarithm of a chance
LONGEST_STEP = 3.0  # nats from one chance to the next


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
        for chance in minority_chances(n_teachers, order, divergence)
    )


def minority_chances(n_teachers: int, order: float, divergence: float) -> list[float]:
    """Return the chances that a table gives the minority's label, margin by margin."""
    most = min(MAX_WEIGHTS, n_teachers // 2 + 1)
    chances = [0.5 if n_teachers % 2 == 0 else _straddling_chance(order, divergence)]
    step = 0.1
    while len(chances) < most and chances[-1] > LEAST_CHANCE:
        step = _next_step(chances[-1], order, divergence, step)
        chances.append(max(LEAST_CHANCE, chances[-1] * math.exp(-step)))
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

    return _last_within(moment, limit, start, LONGEST_STEP)


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
    while high - low > PRECISION * high:
        share = (aim - below) / (above - below) if math.isfinite(above) else 0.5
        middle = low + min(max(share, 0.02), 0.98) * (high - low)
        found = math.sqrt(max(0.0, moment(middle)))
        if found <= aim:
            low, below = middle, found
        else:
            high, above = middle, found
    return low
