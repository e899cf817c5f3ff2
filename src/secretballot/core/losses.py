"""Privacy losses as distributions on a grid, and Renyi divergences: two ways to compose, and to
reach delta at epsilon.

Divergences add; distributions fold. A distribution stands for a pair of distributions whose privacy
loss takes the values of the grid; its profile is linear in e^epsilon between them. Any pair is
dominated by the one whose profile is its own at the grid points: an atom between two of them is
split so that its mass under P and under Q stays. Grids have steps of 2^-k nats, so that each is
part of every finer one, and making one coarser only raises the profile. Proofs:
`docs/explanation/prices.md`, section 3.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from scipy.special import ndtr

from secretballot.core.types import AnyArray, FloatArray

#: Orders at which divergences are added; the certified figure is the best of them, so the grid only
#: costs sharpness.
ORDERS: FloatArray = 1 + np.geomspace(1e-3, 5e3, 300)

# What floats may lose of an exponent, as a share of its terms. What every price is rounded up by
# covers it but for large orders at large epsilons.
LOST = 2.0**-50
_COVERED = 1e-11


def _log_factor(orders: FloatArray) -> FloatArray:
    """Return the logarithm of (1 - 1/a)^a / (a - 1)."""
    return orders * np.log1p(-1 / orders) - np.log(orders - 1)


def delta_of(divergences: FloatArray, orders: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return the smallest delta at each epsilon that bounds on Renyi divergences give.

    Parameters
    ----------
    divergences, orders : ndarray of shape (n,)
        Upper bounds in nats, and their orders, above 1.
    epsilon : ndarray of any shape

    Notes
    -----
    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    at = np.asarray(epsilon)[..., None]
    lost = (orders - 1) * (np.abs(divergences) + np.abs(at)) * LOST - _COVERED
    exponent = (orders - 1) * (divergences - at) + _log_factor(orders) + np.maximum(0.0, lost)
    return np.asarray(np.exp(np.minimum(0.0, exponent.min(axis=-1))))


def lost_epsilon(orders: FloatArray, delta: float) -> FloatArray:
    """Return by how much epsilon at `delta` exceeds the divergence of each order."""
    return (_log_factor(orders) - math.log(delta)) / (orders - 1)


def response(epsilon: float, orders: FloatArray) -> FloatArray:
    """Return the divergence of randomised response, the worst of all epsilon-DP mechanisms.

    Source: Kairouz, Oh, Viswanath 2015 (randomised response dominates). Discrete Laplace noise of
    scale 1 / epsilon under a shift by one has exactly this pair: its privacy loss takes the two
    values +-epsilon.
    """
    excess = response_excess(epsilon, orders)
    # log cosh(u) = u - log 2 + log1p(e^(-2 u)); the last term is nothing at such u
    far = (2 * orders - 1) * epsilon / 2 - epsilon / 2 - math.log1p(math.exp(-epsilon))
    near = np.log1p(np.where(np.isinf(excess), 0.0, excess))
    return np.where(np.isinf(excess), far, near) / (orders - 1)


def response_excess(epsilon: float, orders: FloatArray) -> FloatArray:
    """Return E_Q[(P / Q)^order] - 1 of randomised response, without losing digits where it is
    small; may be infinite.

    The moment is cosh((2 a - 1) e / 2) / cosh(e / 2), and the difference of two cosh a product of
    two sinh.
    """
    held = (2 * orders - 1) * epsilon <= 1200
    a, e = np.where(held, orders, 1.0), min(epsilon, 1200.0)
    product = np.sinh(a * e / 2) * np.sinh((a - 1) * e / 2)
    return np.where(held, 2 * product / math.cosh(e / 2), np.inf)


def moments(chance: FloatArray, log_ratios: Iterable[FloatArray], order: float) -> FloatArray:
    """Return the moments of an order, less 1, of pairs P, Q of distributions, the larger one of
    E_Q[(P / Q)^order] and E_P[(Q / P)^order]; rounded up.

    Each is a sum of p (r^b - 1 - b (r - 1)) with r = q / p, b = 1 - order or b = order: terms that
    are at least 0, so that close pairs lose no digits. They grow with the distance of r from 1, so
    that of a range of ratios one end has the largest.

    Parameters
    ----------
    chance : ndarray of shape (outcomes, n)
        Of the outcomes under P.
    log_ratios : iterable of ndarrays of shape (outcomes, n)
        Logarithms of those under Q over them; of several the largest terms count.
    order : float

    Returns
    -------
    ndarray of shape (n,)
    """
    found = []
    for power in (1 - order, order):
        terms = np.zeros_like(chance)
        for log_ratio in log_ratios:
            with np.errstate(over="ignore"):
                grown, line = np.expm1(power * log_ratio), power * np.expm1(log_ratio)
                lost = (1 + np.abs(power * log_ratio)) * np.abs(grown) + np.abs(line)
                terms = np.maximum(terms, grown - line + LOST * lost)  # nan stays
        found.append((chance * terms).sum(axis=0))
    return np.asarray(np.maximum(*found))


def largest_moments(chance: FloatArray, log_ratio: FloatArray, orders: FloatArray) -> FloatArray:
    """Return the largest of the `moments` of all pairs, for each order."""
    every = [moments(chance, [log_ratio], order).max(initial=0.0) for order in orders.tolist()]
    return np.array(every)


Profile = Callable[[FloatArray], FloatArray]

_CELLS = 6000  # of one distribution
TAIL = 1e-26  # probability cut off at each end of a distribution, and charged
_FOLDING_ERROR = 2e-12  # relative; more than a sum of `2 * CELLS` products can lose
LOSS_ERROR = 2.0**-48  # relative, of a loss; and of an epsilon less a loss
FARTHEST = 2.0**14  # nats; larger losses are taken for infinite, and smaller ones than its negative
_FINEST = 2.0**-60  # nats between neighbouring losses
# more than the relative error of a profile that is read at many points
PROFILE_ERROR = 1e-11
_REACH = 11.0  # standard deviations of a normal loss that are listed


def _grid_step(span: float) -> float:
    """Return the least step of a grid that covers so many nats with `_CELLS` points."""
    return max(_FINEST, 2.0 ** math.ceil(math.log2(max(span, _FINEST) / (_CELLS - 2))))


@dataclass(frozen=True, eq=False)
class Losses:
    """Privacy losses under P, each rounded up.

    Attributes
    ----------
    h : float
        Distance between neighbouring losses, in nats.
    first : int
        The lowest loss, in multiples of `h`.
    chance : ndarray of shape (n,)
        Of the losses h first, h (first + 1), ...
    certain : float
        Probability of an infinite loss.
    """

    h: float
    first: int
    chance: FloatArray
    certain: float

    @classmethod
    def of_atoms(cls, losses: FloatArray, chance: FloatArray, certain: float = 0.0) -> "Losses":
        """Return the distribution that dominates given losses.

        Parameters
        ----------
        losses, chance : ndarray of shape (n,)
            Losses in increasing order, right to a relative 2^-50, and their chances.
        certain : float
            Probability of an infinite loss.
        """
        low, kept, beyond = _without_ends(chance, int(np.searchsorted(losses, FARTHEST)))
        if not len(kept):
            return _all_certain(certain + beyond)
        stay = losses[low : low + len(kept)]
        at = np.maximum(stay + LOSS_ERROR * np.abs(stay), -FARTHEST)
        h = _grid_step(max(float(at[-1] - at[0]), 2.0**-30 * float(np.abs(at).max())))
        return _on_grid(h, at, kept, certain + beyond)

    @classmethod
    def of_profile(cls, delta: Profile, reach: float) -> "Losses":
        """Return the distribution whose profile is the convex hull of values at grid points.

        Parameters
        ----------
        delta : callable
            Upper bounds on delta at each epsilon >= 0 of an array, for both orders of neighbours.
        reach : float
            Largest epsilon at which it is read; what it is there is the chance of an infinite loss.
        """
        h = _grid_step(2 * min(reach, FARTHEST))
        n = math.floor(min(reach, FARTHEST) / h) + 1
        value: FloatArray = np.minimum.accumulate(np.minimum(1.0, delta(h * np.arange(n + 1.0))))
        return cls.of_values(value, h)

    @classmethod
    def of_values(cls, value: FloatArray, h: float) -> "Losses":
        """Return the distribution of a profile's bounds at epsilon 0, h, 2 h, ..., of shape (n,).

        `h` may be any step; the losses are put on a grid at the end.
        """
        # neighbours have no order, so the hull is that of V(x) = 1 - x + x V(1 / x) as well
        left = np.exp(-h * np.arange(len(value)))
        middle = (2 * value * left - np.expm1(-h * np.arange(len(value)))) / (1 + left)
        value = np.append(middle.min(), value[1:])
        at = np.array(_lower_hull(value.tolist(), h))
        v, gap = value[at], h * np.diff(at)
        fall = v[:-1] - v[1:]
        # x times the slopes on both sides of each loss, as differences would lose digits
        before = fall / -np.expm1(-gap)
        after = np.append((fall / np.expm1(np.minimum(gap, 700.0)))[1:], 0.0)
        up = np.maximum(0.0, before - after) + 2.0**-50 * v[:-1] / -math.expm1(-h)
        loss = h * at[1:]
        down = up * np.exp(-loss)
        zero = max(0.0, 1 - float(v[-1]) - math.fsum(up) - math.fsum(down)) + 2.0**-50
        losses = np.concatenate([-loss[::-1], [0.0], loss])
        chance = np.concatenate([down[::-1], [zero], up]) * (1 + PROFILE_ERROR)
        return cls.of_atoms(losses, chance, float(v[-1]) * (1 + PROFILE_ERROR))

    @classmethod
    def of_gaussian(cls, mu: float, more: float = 0.0) -> "Losses":
        """Return the distribution of a normal loss of mean mu^2 / 2 + `more` and variance mu^2.

        Between two grid points the density of the loss has a falling logarithmic slope. Were it
        constant, at its largest value rho, a share of at most 1/2 + h rho / 12 + |h rho|^3 / 720 +
        h / 8 of the mass would go to the upper point.
        """
        mean, reach = mu * mu / 2 + more, _REACH * mu
        if not mean + reach < FARTHEST:
            return _all_certain(1.0)
        h = _grid_step(2 * reach)
        first = math.floor((mean - reach) / h)
        points = h * np.arange(first, math.ceil((mean + reach) / h) + 1)
        z = (points - mean) / mu
        # differences in the nearer tail, where they keep their digits
        mass = np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
        slope = -h / mu * z[:-1]
        share = 0.5 + slope / 12 + np.abs(slope) ** 3 / 720 + h / 8 + _FOLDING_ERROR
        upper = mass * np.clip(share, 0.0, 1.0)
        chance = np.append(mass - upper, 0.0)
        chance[1:] += upper
        chance[0] += float(ndtr(z[0]))
        certain = float(ndtr(-z[-1])) * (1 + PROFILE_ERROR)
        return cls(h, first, chance * (1 + PROFILE_ERROR), certain)._shorter()

    @property
    def reach(self) -> float:
        """An epsilon above 0 from which on delta is the probability of an infinite loss."""
        return self.h * max(1, self.first + len(self.chance) - 1)

    @property
    def span(self) -> float:
        """How far the finite losses lie apart, in nats."""
        return self.h * len(self.chance)

    def _shorter(self) -> "Losses":
        """Return the losses without their ends."""
        farthest = max(0, math.floor(FARTHEST / self.h) - self.first)
        low, kept, beyond = _without_ends(self.chance, farthest)
        if not len(kept):
            return _all_certain(self.certain + beyond)
        return Losses(self.h, self.first + low, kept, min(1.0, self.certain + beyond))

    def coarser(self, h: float) -> "Losses":
        """Return the losses on a grid of step `h`, a power of two times the present one."""
        if not h > self.h:
            return self
        at = self.h * np.arange(self.first, self.first + len(self.chance))
        return _on_grid(h, at, self.chance, self.certain)

    def _fitting(self) -> "Losses":
        return self if len(self.chance) <= _CELLS else self.coarser(2 * self.h)._fitting()

    def __add__(self, other: "Losses") -> "Losses":
        if max(self.certain, other.certain) >= 1:
            return _all_certain(1.0)
        h = max(self.h, other.h)
        one, two = self.coarser(h), other.coarser(h)
        chance = np.convolve(one.chance, two.chance) * (1 + _FOLDING_ERROR)
        certain = one.certain + two.certain - one.certain * two.certain
        certain = min(1.0, certain * (1 + _FOLDING_ERROR))
        return Losses(h, one.first + two.first, chance, certain)._shorter()._fitting()

    def __mul__(self, count: int) -> "Losses":
        # of 1, 2, 4, ... times the losses, those that add up to so many
        doubled = accumulate(range(1, count.bit_length()), lambda one, _: one + one, initial=self)
        return functools.reduce(
            operator.add, (one for i, one in enumerate(doubled) if count >> i & 1)
        )

    @functools.cached_property
    def _values(self) -> tuple[FloatArray, float]:
        """Delta at every loss, that of an infinite one left out, and the sum of all chances."""
        rising, stays = -math.expm1(-self.h), math.exp(-self.h)
        above = np.cumsum(self.chance[::-1])
        steps = accumulate(above[:-1].tolist(), lambda d, a: stays * d + rising * a, initial=0.0)
        found = list(steps)
        return np.array(found[::-1]) * (1 + _FOLDING_ERROR), float(above[-1]) * (1 + _FOLDING_ERROR)

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """Return the bound on delta at each epsilon, any real numbers."""
        value, whole = self._values
        # an epsilon keeps no more digits than it has
        at = epsilon - LOSS_ERROR * np.abs(epsilon)
        place = np.minimum(at / self.h - self.first, len(value) - 1)
        low = np.clip(np.floor(place), 0, max(0, len(value) - 2)).astype(np.int64)
        share = np.expm1((place - low) * self.h) / math.expm1(self.h)
        after = value[np.minimum(low + 1, len(value) - 1)]
        inside = (1 - share) * value[low] + share * after
        # below the lowest loss the profile goes on towards the whole mass at 0
        left = np.exp(np.minimum(0.0, at - self.h * self.first))
        below = whole - left * (whole - value[0])
        found: FloatArray = np.where(place < 0, below, inside)
        return np.minimum(1.0, found + self.certain)


def _on_grid(h: float, losses: AnyArray, chance: FloatArray, certain: float) -> Losses:
    """Return losses on the grid of step `h`: each is split between the point below it and the next
    one so that its mass under P and under Q stays."""
    place = np.floor(losses / h)
    upper = chance * (np.expm1(place * h - losses) / math.expm1(-h))
    first = int(place[0])
    cell = (place - first).astype(np.int64)
    size = int(cell[-1]) + 2
    lower = np.bincount(cell, chance - upper, size).astype(np.float64)
    shared = (lower + np.bincount(cell + 1, upper, size)) * (1 + _FOLDING_ERROR)
    return Losses(h, first, shared, certain)._shorter()


def _without_ends(chance: FloatArray, farthest: int) -> tuple[int, FloatArray, float]:
    """Return the chances of rising losses without the ends: the first place that stays, to which
    lower ones are raised, the chances from there on, and that of higher ones, which become
    infinite; `farthest` and all after it do."""
    high = min(farthest, len(chance) - int(np.searchsorted(np.cumsum(chance[::-1]), TAIL)))
    low = max(0, min(high - 1, int(np.searchsorted(np.cumsum(chance), TAIL))))
    kept = chance[low:high].copy()
    kept[:1] += chance[:low].sum()
    return low, kept, float(chance[high:].sum())


def _all_certain(chance: float) -> Losses:
    """Return losses that are infinite with this chance, and else 0."""
    rest = max(0.0, 1 - chance)
    return Losses(1.0, 0, np.array([rest, 0.0]), min(1.0, chance))


def _lower_hull(value: list[float], h: float) -> list[int]:
    """Return the places of values that are on their lower convex hull in e^epsilon."""
    hull = [0]
    for i, v in enumerate(value[1:], 1):
        while len(hull) > 1:
            a, b = hull[-2:]
            first = (value[a] - value[b]) / -math.expm1(-h * (b - a))
            gap = h * (i - b)
            if first > (value[b] - v) / math.expm1(gap) if gap < 700 else first > 0:
                break
            hull.pop()
        hull.append(i)
    return hull


def fold(listed: Iterable[tuple[Losses, int]]) -> Losses:
    """Return the losses of several mechanisms, each so many times, on one grid.

    The grid depends on what is listed alone, and more of it makes it coarser, so that more never
    costs less.
    """
    kinds = list(listed)
    h = _grid_step(math.sqrt(math.fsum(count * one.span**2 for one, count in kinds)))
    kinds.sort(key=lambda kind: kind[0].span)
    return functools.reduce(operator.add, (one.coarser(h) * count for one, count in kinds))


def least_losses(one: Losses, other: Losses) -> Losses:
    """Return losses of whatever two dominate: of the hull of the smaller profile."""

    return Losses.of_profile(
        lambda at: np.minimum(one.delta(at), other.delta(at)), min(one.reach, other.reach)
    )


FLAT_SIGMA = 4.0  # from here on |P(S = s) - normal density| <= 5 n exp(-pi^2 sigma^2 / 2) < 3e-34 n
_LEFT_OUT = 1e-42  # more than what `discrete_gaussian_pmf` leaves out
_WIDE = 5000.0  # standard deviations of a sum, in votes, from which its lattice is read as a line
_DEVIATIONS = 12.5  # of a sum; the sub-Gaussian tail beyond is exp(-_DEVIATIONS^2 / 2) < 2e-34


def discrete_gaussian_pmf(sigma: float) -> tuple[int, FloatArray]:
    """Return (reach, pmf) of the discrete Gaussian on -reach..reach.

    What is left out weighs less than 1e-42.
    """
    reach = math.ceil(14 * sigma) + 2
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-(x * x) / (2 * sigma * sigma))
    return reach, weight / weight.sum()


@functools.lru_cache(maxsize=256)
def count_losses(sigma: float, shifts: int) -> Losses:
    """Return the losses of `shifts` integers released with discrete Gaussian noise, each moved by
    at most one vote between neighbours.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote per integer; values chosen adaptively.
    Source : product of the dominating pairs (Zhu, Dong, Wang 2022, Theorem 10); Canonne, Kamath,
        Steinke 2020 for the distribution; docs/explanation/prices.md, section 1.
    Rounding : upward.
    """
    deviation = math.sqrt(shifts) * sigma
    if not shifts / sigma**2 < 4 * FARTHEST:
        return _all_certain(1.0)
    if sigma < FLAT_SIGMA:
        reach, pmf = discrete_gaussian_pmf(sigma)
        noise = np.arange(-reach, reach + 1.0)
        return Losses.of_atoms((noise + 0.5) / sigma**2, pmf, _LEFT_OUT) * shifts
    terms = 2 * _DEVIATIONS * deviation + 3
    certain = 2 * math.exp(-(_DEVIATIONS**2) / 2)
    certain += 5 * shifts * terms * math.exp(-(math.pi**2) * sigma**2 / 2)
    if deviation > _WIDE:
        more = 1 / (8 * sigma**4) + 3.2 / (deviation * sigma**2)
        line = Losses.of_gaussian(math.sqrt(shifts) / sigma, more)
        wider = line.chance * (1 + 0.2 / deviation**2)
        return replace(line, chance=wider, certain=line.certain + certain)
    reach = math.ceil(_DEVIATIONS * deviation)
    s = np.arange(-reach, reach + 1.0)
    chance = np.exp(-(s**2) / (2 * deviation**2)) / (math.sqrt(2 * math.pi) * deviation)
    return Losses.of_atoms((s + shifts / 2) / sigma**2, chance, certain)


MOST_ANSWERS = 200_000  # of randomised response, whose losses are listed; more are added


@functools.lru_cache(maxsize=256)
def response_losses(epsilon: float, count: int, failure: float = 0.0) -> Losses:
    """Return the losses of `count` answers of epsilon-DP randomised response, which dominates every
    epsilon-DP part; `failure` is the chance that some part reveals everything.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3.
    """
    if count > MOST_ANSWERS:
        # of one answer as often, float errors would add up
        many, left = divmod(count, MOST_ANSWERS)
        whole = response_losses(epsilon, MOST_ANSWERS) * many
        whole = whole + response_losses(epsilon, left) if left else whole
        return replace(whole, certain=min(1.0, whole.certain + failure))
    # weights are right to a relative 3e-12
    chance = response_weights(count, epsilon)[::-1] * ((1 - failure) * (1 + 4e-12))
    losses = (2 * np.arange(count + 1.0) - count) * epsilon
    return Losses.of_atoms(losses, chance, failure)


def response_weights(count: int, epsilon: float) -> FloatArray:
    """Return the chances that 0, 1, .. `count` answers of epsilon-DP randomised response are lies.

    That is, of a binomial number of chance 1 / (1 + e^epsilon) each, in an array of shape
    (count + 1,).

    Notes
    -----
    Each weight is the one before it times (count - i) / (i + 1) e^-epsilon, from the largest one to
    both sides, and all are divided by their sum: as products of numbers up to 1, they neither
    overflow nor lose digits where they are tiny. Weights above 1e-35 lie within 13 standard
    deviations of the largest one, so each is a product of 6,000 factors at most, with a relative
    error below 3e-12, for any `count` up to `MOST_ANSWERS`.
    """
    odds = math.exp(-epsilon)
    mode = min(count, int((count + 1) * odds / (1 + odds)))
    i = np.arange(count, dtype=np.float64)
    up = np.cumprod((count - i[mode:]) / (i[mode:] + 1) * odds)
    down = np.cumprod((i[:mode] + 1)[::-1] / ((count - i[:mode])[::-1] * odds)) if mode else i[:0]
    weights = np.concatenate([down[::-1], [1.0], up])
    return np.asarray(weights / weights.sum())


def one_of_many(probability: float, count: int) -> float:
    """Return 1 - (1 - probability)^count, digits kept for tiny probabilities; of one below 1."""
    return -math.expm1(count * math.log1p(-probability))
