"""Labels of more than two classes released alone: their largest Renyi divergence, certified.

A label is the class with the most votes under discrete Gaussian noise. One teacher takes a vote
from one class and gives it to another. Let the adversary see the largest noisy count of all other
classes. What is left is which of three wins: the class that loses a vote, the one that gains it, or
the best of the others. With the noise that the first needs to reach the others written u, and that
of the second w, the chances depend on the integers u and w alone, and a neighbour has u + 1 and
w - 1.

Each chance is monotone in u and in w, and so is the ratio of each chance to that of the neighbour.
So four corners of a square of integers (u, w) bound the divergence of all votes in it. Squares are
halved where that bound is above the largest divergence that was found, until none is by more than a
hundredth. Proofs: `docs/explanation/prices.md`, section 15.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.privacy.accounting.renyi import ORDERS

MIN_SIGMA, MAX_SIGMA = 1.0, 2000.0  # votes; outside, the price of noisy counts holds
# by this much at most the bound exceeds the largest divergence on the lattice, relatively
TOLERANCE = 0.01
FAR, DEEP = 9.0, 3.25  # standard deviations; of one noise and of both, beyond which all is told
# relative to the moment less 1; sums of 28 MAX_SIGMA terms lose less
FLOAT_ERROR = 1e-5
FIRST_SIDE = 0.25  # standard deviations, of the first squares
STRIDE = 4  # every fourth order may be computed: the least over orders hardly moves
NEAR = 1  # orders computed on either side of the one that is likely best
LEAST_WORK, WORK_OF_SIGMA = 6e6, 1.6e4  # numbers that stand for the time of one scale
FEWEST, MOST = 1.05, 512.0  # orders worth computing
SQUARES = 2048  # handled at a time

_ORDERS = np.array(ORDERS)


class Noise:
    """Tables of the noise of one scale, and the chances of three outcomes.

    Integers of which chances are asked must lie within `reach` of 0.
    """

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma
        self.reach = math.ceil(14 * sigma) + 2
        self._k = np.arange(-self.reach, self.reach + 1)
        weight = np.exp(-(self._k.astype(np.float64) ** 2) / (2 * sigma**2))
        self._pmf = weight / weight.sum()
        # of a noise below t, at t + reach: summed from the far end, so that tails keep their digits
        below = np.concatenate([[0.0], np.cumsum(self._pmf)])
        # with the noise's whole width on either side, so that shifted tables are parts of this one
        width = len(below)
        self._below = np.concatenate([np.zeros(width), below, np.full(width, below[-1])])
        self._zero = width + self.reach

    def below(self, t: IntArray) -> FloatArray:
        """Return P(N < t), for integers of any shape."""
        found: FloatArray = self._below[np.clip(t + self._zero, 0, len(self._below) - 1)]
        return found

    def chances(self, u: IntArray, w: IntArray) -> FloatArray:
        """Return the chances that the others win, the first class and the second.

        The first wins at noise of at least u that exceeds u by no less than the noise of the second
        exceeds w. The shape is (3, n).
        """
        found = np.empty((3, len(u)))
        found[0] = self.below(u) * self.below(w)
        apart = w - u
        order = np.argsort(apart, kind="stable")
        first = np.flatnonzero(np.diff(apart[order], prepend=apart[order][:1] - 1))
        for places in np.split(order, first[1:]):
            d = int(apart[places[0]])
            found[1, places] = self._chances_from(u[places], d + 1)
            found[2, places] = self._chances_from(w[places], -d)
        return found

    def _chances_from(self, least: IntArray, shift: int) -> FloatArray:
        """Return the sums over k >= least of P(N = k) P(N < k + shift), one for each `least`.

        All terms are positive, so their order costs no digits.
        """
        starts, own = np.unique(least + self.reach, return_inverse=True)
        first = starts[0]
        at = self._zero - self.reach + shift
        terms = self._pmf[first:] * self._below[at + first : at + len(self._pmf)]
        parts = np.add.reduceat(terms, starts - first)
        found: FloatArray = np.cumsum(parts[::-1])[::-1][own]
        return found

    def left_out(self, edge: int, deep: int, orders: FloatArray) -> FloatArray:
        """Return what noise beyond the squares adds to a moment at most: section 15.

        That is both noises below -deep, and either of them below -edge or from edge on. The
        shape is that of the orders, (n_orders,).
        """
        deep_below, below, above = self._k < -deep, self._k < -edge, self._k >= edge
        every = np.ones(len(self._k), dtype=np.bool_)
        sets = [(deep_below, deep_below)]
        sets += [pair for far in (below, above) for pair in ((far, every), (every, far))]
        return np.array(
            [
                sum(self._pointwise_moment(*pair, order) for pair in sets)
                for order in orders.tolist()
            ]
        )

    def _pointwise_moment(self, one: BoolArray, other: BoolArray, order: float) -> float:
        """Return the larger of the moments, less 1, of both directions of two noises that lie in
        two sets, told to the last digit."""
        # the first class has a vote less next door, so its noise n is told as n + 1; the second's
        # as n - 1
        variance = self.sigma**2
        losses = [-(2 * self._k + 1) / (2 * variance), (2 * self._k - 1) / (2 * variance)]
        p, q, there, back = 1.0, 1.0, 1.0, 1.0
        for inside, loss in zip((one, other), losses, strict=True):
            pmf, log_r = self._pmf[inside], loss[inside]
            p, q = p * pmf.sum(), q * (pmf @ np.exp(log_r))
            there *= pmf @ np.exp((1 - order) * log_r)
            back *= pmf @ np.exp(order * log_r)
        return max(there - p + (order - 1) * (q - p), back - p - order * (q - p))

    def losses(self, u: IntArray, w: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the chances and log of their ratios, of the neighbour's to them; shapes (3, n)."""
        p = self.chances(u, w)
        return p, np.log(self.chances(u + 1, w - 1) / p)


def _moment_excesses(log_ratio: FloatArray, orders: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return r^(1-a) - 1 + (a-1)(r-1) and r^a - 1 - a(r-1), of shape (3, n, orders).

    Both are convex in r and at least 0. Their means under P are the moments of order a of both
    directions, less 1.
    """
    log_r = log_ratio[:, :, None]
    change = np.expm1(log_r)
    with np.errstate(over="ignore"):
        return (
            np.expm1((1 - orders) * log_r) + (orders - 1) * change,
            np.expm1(orders * log_r) - orders * change,
        )


def _largest_moments(sigma: float, orders: FloatArray) -> FloatArray:
    """Return bounds on the largest moment of each order, less 1, over all integers u and w."""
    noise = Noise(sigma)
    edge, deep, side = math.ceil(FAR * sigma), math.ceil(DEEP * sigma), 1
    while side < FIRST_SIDE * sigma:
        side *= 2
    starts = np.arange(-edge, edge + 1, side)
    u, w = (axis.ravel() for axis in np.meshgrid(starts, starts, indexing="ij"))
    best = np.zeros(len(orders))
    while True:
        # where both are far below, a square on the rim stands for all votes of the same difference
        near = np.maximum(u, w) + side - 1 >= -deep
        u, w = u[near], w[near]
        kept = []
        for start in range(0, len(u), SQUARES):
            part = slice(start, start + SQUARES)
            upper = _bounds_of_squares(noise, u[part], w[part], side, orders, best)
            kept.append((upper > best * (1 + TOLERANCE)).any(axis=1))
        chosen = np.concatenate(kept)
        if side == 1 or not chosen.any():
            break
        side //= 2
        u, w = u[chosen], w[chosen]
        u, w = (
            np.concatenate([u, u + side, u, u + side]),
            np.concatenate([w, w, w + side, w + side]),
        )
    return best * ((1 + TOLERANCE) * (1 + FLOAT_ERROR)) + noise.left_out(edge, deep, orders)


def _bounds_of_squares(
    noise: Noise, u: IntArray, w: IntArray, side: int, orders: FloatArray, best: FloatArray
) -> FloatArray:
    """Return bounds on the moments less 1 in squares of integers, of shape (n, orders).

    `best` is raised to the largest moment at their corners. A square of one point is its corner.
    """
    last_u, last_w = u + side - 1, w + side - 1
    p_high, log_high = noise.losses(u, last_w)  # the largest ratios, and the first class's chance
    high = _moment_excesses(log_high, orders)
    if side == 1:
        moments = [np.einsum("in,ino->no", p_high, excess) for excess in high]
        best[:] = np.maximum(best, np.maximum(*moments).max(axis=0))
        found: FloatArray = np.maximum(*moments)
        return found
    p_low, log_low = noise.losses(last_u, w)  # the smallest ratios, and the second class's chance
    low = _moment_excesses(log_low, orders)
    for p, excesses in ((p_high, high), (p_low, low)):
        for excess in excesses:
            best[:] = np.maximum(best, np.einsum("in,ino->no", p, excess).max(axis=0))
    most = np.stack([noise.below(last_u) * noise.below(last_w), p_high[1], p_low[2]])
    # a convex function on an interval is largest at an end
    bounds: FloatArray = np.maximum(
        *(
            np.einsum("in,ino->no", most, np.maximum(one, other))
            for one, other in zip(high, low, strict=True)
        )
    )
    return bounds


def _most_order(sigma: float) -> float:
    # further out the charge for far noise is no longer nothing
    return min(MOST, 1 + 1.5 * sigma)


@functools.lru_cache(maxsize=4096)
def class_label_renyi(order: float, sigma: float) -> float:
    """Return a bound on the Renyi divergence of one label between neighbours, over all votes.

    It holds for any number of classes above two and any number of teachers. Infinite where none is
    computed.

    Parameters
    ----------
    order : float
        Order, > 1.
    sigma : float
        Scale of the noise on each count, in votes.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote taken from one class and given to another.
    Source : docs/explanation/prices.md, section 15.
    Rounding : upward (monotone bounds on squares of the lattice, far noise charged in full).
    """
    if not (MIN_SIGMA <= sigma <= MAX_SIGMA and order <= _most_order(sigma)):
        return math.inf
    return float(_renyi_divergences(sigma, [order])[0])


def class_label_work(sigma: float) -> float:
    """Return about how many numbers `class_label_renyi_at` handles; 0 where it gives no bound."""
    return LEAST_WORK + WORK_OF_SIGMA * sigma if MIN_SIGMA <= sigma <= MAX_SIGMA else 0.0


def likely_divergences(sigma: float) -> FloatArray:
    """Return about what the divergence of one label is at all of `ORDERS`: no bound, to choose an
    order by."""
    by_counts: FloatArray = _ORDERS / sigma**2
    if not MIN_SIGMA <= sigma <= MAX_SIGMA:
        return by_counts
    share = 0.6465 + 0.015 * (_ORDERS / sigma) ** 2
    return by_counts * np.where(_most_order(sigma) >= _ORDERS, np.minimum(1.0, share), 1.0)


def class_label_renyi_at(sigma: float, place: int) -> FloatArray:
    """Return what `class_label_renyi` returns at the orders around `ORDERS[place]`, and infinity
    at the others; an array of the shape of `ORDERS`."""
    least, most = (
        int(np.searchsorted(ORDERS, order, side="right")) // STRIDE
        for order in (FEWEST, _most_order(sigma))
    )
    return _divergences_around(sigma, STRIDE * min(max(round(place / STRIDE), least), most))


@functools.lru_cache(maxsize=256)
def _divergences_around(sigma: float, middle: int) -> FloatArray:
    found = np.full(len(ORDERS), math.inf)
    if not MIN_SIGMA <= sigma <= MAX_SIGMA:
        return found
    around = range(middle - NEAR * STRIDE, middle + NEAR * STRIDE + 1, STRIDE)
    chosen = [
        i for i in around if 0 <= i < len(ORDERS) and FEWEST <= ORDERS[i] <= _most_order(sigma)
    ]
    if chosen:
        found[chosen] = _renyi_divergences(sigma, [ORDERS[i] for i in chosen])
    return found


def _renyi_divergences(sigma: float, orders: Sequence[float]) -> FloatArray:
    a = np.array(orders)
    found: FloatArray = np.log1p(_largest_moments(sigma, a)) / (a - 1) * (1 + 1e-12)
    return found
