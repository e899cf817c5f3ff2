"""The price of labels of more than two classes, released alone under discrete Gaussian noise.

One teacher takes a vote from one class and gives it to another. Let the adversary see the largest
noisy count of all other classes. What is left is which of three wins: the class that loses a vote,
the one that gains it, or the best of the others. With the noise that the first needs to reach the
others written u, and that of the second w, the chances depend on the integers u and w alone, and a
neighbour has u + 1 and w - 1. Each chance is monotone in u and in w, and so is its ratio to that of
the neighbour, so that corners bound what all votes of a square of integers reveal.

*The game* is that of `label_games`, with three outcomes. The laws at some points of the lattice,
their ratios spread a little, are a list that stands for all votes: each law on the lattice is
dominated by a mixture of the four of the list that lie around it. That is checked, square by
square; squares that fail are cut in four. Where the points lie and how far each is
spread is chosen so that the list is short; nothing rests on that choice, as a list that fails the
check is not used.

*Divergences* for accounts are searched on the same lattice: four corners bound the divergence in a
square, and squares are halved where that bound exceeds the largest found by more than a hundredth.
Proofs: `docs/explanation/prices.md`, section 15.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from secretballot.core.label_games import (
    OVERHEAD,
    RESOLUTION,
    Grid,
    block_of,
    blocks_of,
    joined_blocks,
    law_values,
)
from secretballot.core.losses import Losses, count_losses
from secretballot.core.types import BoolArray, FloatArray, IntArray

MIN_SIGMA, MAX_SIGMA = 10.0, 600.0  # votes; beyond, the check fails or takes long
# standard deviations; of one noise and of both, beyond which the noise counts as revealed
FAR, DEEP = 7.8, 5.4
# what a label may cost beside the laws of the list, as a probability: noise farther out, the slack
# of the check and what floats lose in it
LEFT_OUT = 5e-14
CHECK_SLACK, DROP_SLACK, FLOAT_SLACK = 5e-15, 1e-15, 1e-14
FLOAT_ERROR = 1e-10  # relative, of a chance and of a ratio of two
# where the points of the list lie, in standard deviations of the difference and of the sum of the
# two noises; the first of the sums stands for all below it
APART = (
    *(0.0, 0.13, 0.26, 0.4, 0.52, 0.65, 0.78, 0.9, 1.02, 1.15, 1.3, 1.5, 1.8, 2.2, 2.7, 3.4, 4.4),
    *(5.4, 6.5, 7.5, 8.5),
)
TOGETHER = (
    *(-3.6, -1.7, -1.3, -1.0, -0.75, -0.5, -0.2, 0.15, 0.6, 1.2, 2.0, 3.0, 4.7, 6.1, 7.4, 8.8),
)
MIRRORED_FROM = 40.0  # votes; from here on a law the other way round is nearly one of the lattice
# by how much a spread law may exceed the largest moments of the lattice; the first that passes
TOLERANCES = (0.015, 0.02, 0.03, 0.05)
SPREADS = np.concatenate([[0.0], np.geomspace(1e-3, 0.4, 48)])
LEAST_RATIO = 0.1
TILTS = (0.4, 0.8, 1.2)  # orders of moments over sigma, beside the variance
FIRST_SIDE = 0.25  # standard deviations, of the first squares
SQUARES = 4096  # handled at a time
USUAL_LAWS = 600  # that stand for the work of a game
# times sigma: the largest root mean square of one label's loss, where labels are many
LOSS_OF_SIGMA = 1.135

# of the search of divergences: scales; by how much at most the bound exceeds the largest on the
# lattice; standard deviations as above; what sums of 28 SEARCH_MAX_SIGMA terms lose of a moment
SEARCH_MIN_SIGMA, SEARCH_MAX_SIGMA = 1.0, 2000.0
SEARCH_TOLERANCE = 0.01
SEARCH_FAR, SEARCH_DEEP = 9.0, 3.25
SEARCH_FLOAT_ERROR = 1e-5
SEARCH_SQUARES = 2048  # handled at a time
MOST_ORDER = 512.0  # beyond, none is computed


class Noise:
    """Tables of the noise of one scale, and the chances of three outcomes.

    Integers whose chances are computed must lie within `reach` of 0.
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
        two sets, revealed in full."""
        # the first class has a vote less under Q, so its noise n is seen as n + 1; the second's
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


@dataclass(frozen=True, eq=False)
class StepLaws:
    """Pairs of distributions on three outcomes, one of which dominates what a label reveals.

    Attributes
    ----------
    chance : ndarray of shape (n, 3)
        Under P.
    log_ratio : ndarray of shape (n, 3)
        Logarithms of the chances under Q over those under P.
    """

    chance: FloatArray
    log_ratio: FloatArray


@functools.lru_cache(maxsize=32)
def covering_laws(sigma: float) -> StepLaws | None:
    """Return laws that dominate one label of more than two classes, whatever the votes are.

    For every label and every convex function V from 1 down to at least 0, the largest mean of V
    over the laws, plus `LEFT_OUT`, is at least that over the outcomes of the label. None where no
    list passes the check.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote taken from one class and given to another.
    Source : docs/explanation/prices.md, section 15.
    Rounding : upward (monotone bounds on squares of the lattice, far noise charged in full).
    """
    if not MIN_SIGMA <= sigma <= MAX_SIGMA:
        return None
    noise = Noise(sigma)
    edge, deep = math.ceil(FAR * sigma), math.ceil(DEEP * sigma)
    left_out = _chance_beyond(noise, edge, deep) + CHECK_SLACK + 2 * DROP_SLACK + FLOAT_SLACK
    if not left_out <= LEFT_OUT:
        return None
    largest = _largest_moments(noise)
    for tolerance in TOLERANCES:
        mesh = _Mesh.of(noise, edge, deep, largest * (1 + tolerance))
        if _covers_lattice(mesh, noise, edge, deep):
            return _without_dominated(mesh)
    return None


def _chance_beyond(noise: Noise, edge: int, deep: int) -> float:
    """Return the probability of the noises that count as revealed, in either direction."""
    # under Q a noise stands for one that is larger or smaller by one; of one far below, of the
    # first class far above and of the second, and of both below
    below = noise.below(np.array([1 - edge, 2 - edge, 1 - deep]))
    return 2 * float(below[0]) + float(below[1]) + float(below[2]) ** 2


def _ratio_moments(p: FloatArray, ratio: FloatArray, sigma: float) -> FloatArray:
    """Return what moments of the ratios exceed 1 by, of shape (..., 7): of order 2, and of several
    orders in both directions. Outcomes are on the first axis."""
    # orders follow sigma, so that the same part of the losses counts at each scale
    found = [(p * (ratio - 1) ** 2).sum(axis=0)]
    log_r = np.log(ratio)
    for tilt in TILTS:
        order = tilt * sigma
        for a in (order, 1 - order):
            found.append((p * (np.exp(a * log_r) - 1 - a * (ratio - 1))).sum(axis=0))
    return np.stack(found, axis=-1)


def _largest_moments(noise: Noise) -> FloatArray:
    """Return about the largest moments on the lattice; both directions have the same."""
    sigma = noise.sigma
    axis = np.arange(math.ceil(-4 * sigma), math.ceil(3 * sigma), max(1, int(sigma / 10)))
    u, w = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    p, log_r = noise.losses(u, w)
    found: FloatArray = _ratio_moments(p, np.exp(log_r), sigma).max(axis=0)
    for i in range(1, len(found), 2):
        found[i : i + 2] = found[i : i + 2].max()
    return found


@dataclass(frozen=True, eq=False)
class _Mesh:
    """Laws of the list at the corners of cells, and the hockey sticks of each cell's four.

    `apart` and `together` are where the corners lie, as differences w - u and sums u + w. `p` and
    `q` have shape (sums, differences, 3). All x at which a slope of one of the hockey sticks
    changes, and 1, are `kinks`, of shape (cells, 13); `excess` of shape (cells, 4, 13) is what a
    hockey stick exceeds that of silence by.
    """

    apart: FloatArray
    together: FloatArray
    p: FloatArray
    q: FloatArray
    kinks: FloatArray
    excess: FloatArray
    closed: bool  # whether the laws the other way round are among them

    @classmethod
    def of(cls, noise: Noise, edge: int, deep: int, most: FloatArray) -> "_Mesh":
        """Return laws of the lattice, spread as far as their moments stay below `most`, of shape
        (7,)."""
        sigma = noise.sigma
        mirrored = sigma >= MIRRORED_FROM
        across = math.sqrt(2) * sigma
        differences = np.unique(np.maximum(1, np.round(np.array(APART) * across).astype(np.int64)))
        # the middle of two neighbouring laws: from -d - 1/2 to -d + 3/2 a noise has to lead by
        middles = differences - 0.5
        apart = np.concatenate([-middles[::-1], middles])
        if not mirrored:
            differences = np.concatenate([1 - differences[::-1], differences])
        sums = 2 * np.round(np.array(TOGETHER) * across / 2).astype(np.int64)
        d, s = np.meshgrid(differences, sums[1:])
        u = (s + d % 2 - d) // 2
        top = np.maximum(-deep, np.abs(differences) - edge)
        u = np.vstack([np.minimum(top, top - differences), u])
        w = u + differences
        rim = edge + math.ceil(sigma)  # beyond, chances end in floats
        u, w = (np.clip(one, -rim, rim) for one in (u, w))
        p, q = _spread_laws(noise, u.ravel(), w.ravel(), most)
        p, q = (np.moveaxis(one.reshape(3, *u.shape), 0, -1) for one in (p, q))
        p, q = _with_whole_sums(p, q)
        if mirrored:
            p, q = np.concatenate([q[:, ::-1], p], axis=1), np.concatenate([p[:, ::-1], q], axis=1)
        corners = [
            np.stack([a[:-1, :-1], a[:-1, 1:], a[1:, :-1], a[1:, 1:]], axis=2).reshape(-1, 4, 3)
            for a in (p, q)
        ]
        ratio = corners[1] / corners[0]
        kinks = np.concatenate([1 / ratio.reshape(-1, 12), np.ones((len(ratio), 1))], axis=1)
        excess = _excess_over_silence(corners[0][:, :, None], ratio[:, :, None], kinks[:, None])
        return cls(apart, sums.astype(np.float64), p, q, kinks, excess, mirrored)

    def around(self, u: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the cell of each point, and the shares of its four laws, of shape (n, 4)."""
        column, across = _place_between(self.apart, w - u - 0.5)
        row, along = _place_between(self.together, u + w)
        shares = [(1 - along) * (1 - across), (1 - along) * across]
        shares += [along * (1 - across), along * across]
        return row * (len(self.apart) - 1) + column, np.stack(shares, axis=1)


def _place_between(knots: FloatArray, at: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return between which two knots a number lies, and how far along; an end stands for all
    beyond it."""
    place = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(knots) - 2)
    part = (at - knots[place]) / (knots[place + 1] - knots[place])
    return place, np.clip(part, 0.0, 1.0)


def _spread_laws(
    noise: Noise, u: IntArray, w: IntArray, most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return chances and those of the neighbour, of shape (3, n), the ratios spread about 1."""
    p, log_r = noise.losses(u, w)
    change = np.expm1(log_r)
    ratio = 1 + change[:, :, None] * (1 + SPREADS)
    held = np.maximum(ratio, LEAST_RATIO)
    with np.errstate(over="ignore"):
        fits = (_ratio_moments(p[:, :, None], held, noise.sigma) <= most).all(axis=-1)
    fits &= (ratio >= LEAST_RATIO).all(axis=0)
    fits[:, 0] = True
    spread = SPREADS[len(SPREADS) - 1 - fits[:, ::-1].argmax(axis=1)]
    return p, p * (1 + change * (1 + spread))


def _with_whole_sums(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return chances that sum to 1 but for the last digit of the largest of three."""
    largest = p.argmax(axis=-1)[..., None]
    found = []
    for chances in (p, q):
        whole = chances.copy()
        np.put_along_axis(whole, largest, 0.0, axis=-1)
        np.put_along_axis(whole, largest, 1 - whole.sum(axis=-1, keepdims=True), axis=-1)
        found.append(whole)
    return found[0], found[1]


def _excess_over_silence(p: FloatArray, ratio: FloatArray, x: FloatArray) -> FloatArray:
    """Return by how much hockey sticks exceed that of silence at x.

    Outcomes are on the last axis of `p` and `ratio`, which x lacks. The largest outcome is what the
    other two leave, so that small excesses keep their digits.
    """
    terms = p * (1 - x[..., None] * ratio)
    others = np.arange(3) != p.argmax(axis=-1)[..., None]
    down = np.maximum(terms, 0.0).sum(axis=-1, where=others)
    up = np.maximum(-terms, 0.0).sum(axis=-1, where=others)
    found: FloatArray = np.where(x >= 1, np.maximum(down, 1 - x + up), np.maximum(up, down - 1 + x))
    return found


def _all_settled(
    sigma: float, edge: int, deep: int, open_ones: Callable[[IntArray, IntArray, int], BoolArray]
) -> bool:
    """Return whether all points of the lattice of two noises are settled.

    `open_ones` takes the first points of squares and their side, and returns which are not settled
    as a whole: these are cut in four.
    """
    side = 1
    while side < FIRST_SIDE * sigma:
        side *= 2
    starts = np.arange(-edge, edge + 1, side)
    u, w = (axis.ravel() for axis in np.meshgrid(starts, starts, indexing="ij"))
    while True:
        # where both are far below, a point on the rim stands for all of the same difference
        near = (np.maximum(u, w) + side - 1 >= -deep) & (np.maximum(u, w) <= edge)
        u, w = u[near], w[near]
        chosen = open_ones(u, w, side)
        if side == 1 or not chosen.any():
            return not chosen.any()
        side //= 2
        u, w = u[chosen], w[chosen]
        u, w = (
            np.concatenate([u, u + side, u, u + side]),
            np.concatenate([w, w, w + side, w + side]),
        )


def _covers_lattice(mesh: _Mesh, noise: Noise, edge: int, deep: int) -> bool:
    """Return whether each law of the lattice is dominated by a mixture of a cell's laws."""
    open_ones = functools.partial(_open_squares, mesh, noise)
    return _all_settled(noise.sigma, edge, deep, open_ones)


def _open_squares(mesh: _Mesh, noise: Noise, u: IntArray, w: IntArray, side: int) -> BoolArray:
    """Return which squares of integers may hold a law that is not dominated."""
    last_u, last_w = u + side - 1, w + side - 1
    # the largest ratios, and the first class's chance; then the smallest, and the second class's
    p_high, log_high = noise.losses(u, last_w)
    p_low, log_low = (p_high, log_high) if side == 1 else noise.losses(last_u, w)
    most = np.stack([noise.below(last_u) * noise.below(last_w), p_high[1], p_low[2]])
    most *= 1 + FLOAT_ERROR
    most_r, least_r = np.exp(log_high) * (1 + FLOAT_ERROR), np.exp(log_low) * (1 - FLOAT_ERROR)
    cell, shares = mesh.around((u + last_u) / 2, (w + last_w) / 2)
    beyond = np.empty(len(u), dtype=np.bool_)
    for start in range(0, len(u), SQUARES):
        part = slice(start, start + SQUARES)
        x = mesh.kinks[cell[part]]
        bound = _largest_excess(most[:, part], least_r[:, part], most_r[:, part], x)
        found = np.einsum("nk,nkx->nx", shares[part], mesh.excess[cell[part]])
        beyond[part] = ~(bound <= found + CHECK_SLACK * np.minimum(1.0, x)).all(axis=1)
    return beyond


def _largest_excess(
    most: FloatArray, least_r: FloatArray, most_r: FloatArray, x: FloatArray
) -> FloatArray:
    """Return bounds at x, of shape (n, kinks), on what hockey sticks exceed that of silence by,
    from bounds of shape (3, n) on chances and their ratios."""
    p, least, greatest = most[:, :, None], least_r[:, :, None], most_r[:, :, None]
    down = p * np.maximum(0.0, 1 - x * least)
    up = p * np.maximum(0.0, x * greatest - 1)
    below, silent = x < 1, 1 - x
    bound: FloatArray = np.where(below, up[0] + up[1] + up[2], down[0] + down[1] + down[2])
    # any one outcome is what the other two leave
    for i, j in ((0, 1), (0, 2), (1, 2)):
        two_down, two_up = down[i] + down[j], up[i] + up[j]
        left = np.where(
            below, np.maximum(two_up, two_down - silent), np.maximum(two_down, two_up + silent)
        )
        np.minimum(bound, left, out=bound)
    return bound


def _without_dominated(mesh: _Mesh) -> StepLaws:
    """Return the laws of a mesh, both ways round, without those that another one dominates."""
    p, q = mesh.p.reshape(-1, 3), mesh.q.reshape(-1, 3)
    if not mesh.closed:
        p, q = np.concatenate([p, q]), np.concatenate([q, p])
    ratio = q / p
    left = np.ones(len(p), dtype=np.bool_)
    kept = []
    for i in np.argsort(-(p * (ratio - 1) ** 2).sum(axis=1)).tolist():
        if not left[i]:
            continue
        kept.append(i)
        x = np.append(1 / ratio[i], 1.0)
        found = _excess_over_silence(p[i], ratio[i], x)
        others = _excess_over_silence(p[left], ratio[left], x[:, None])
        left[left] = ~(others <= (found + DROP_SLACK * np.minimum(1.0, x))[:, None]).all(axis=0)
    return StepLaws(p[kept], np.log(ratio[kept]))


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


def _moments_above(sigma: float, orders: FloatArray) -> FloatArray:
    """Return bounds on the largest moment of each order, less 1, over all integers u and w."""
    noise = Noise(sigma)
    edge, deep = math.ceil(SEARCH_FAR * sigma), math.ceil(SEARCH_DEEP * sigma)
    best = np.zeros(len(orders))

    def open_ones(u: IntArray, w: IntArray, side: int) -> BoolArray:
        kept = []
        for start in range(0, len(u), SEARCH_SQUARES):
            part = slice(start, start + SEARCH_SQUARES)
            upper = _bounds_of_squares(noise, u[part], w[part], side, orders, best)
            kept.append((upper > best * (1 + SEARCH_TOLERANCE)).any(axis=1))
        return np.concatenate(kept)

    _all_settled(sigma, edge, deep, open_ones)
    return best * ((1 + SEARCH_TOLERANCE) * (1 + SEARCH_FLOAT_ERROR)) + noise.left_out(
        edge, deep, orders
    )


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


def class_work(sigma: float, labels: int) -> float:
    """Return about how many multiplications a game of `labels` will need.

    Infinite where none is played.
    """
    if not MIN_SIGMA <= sigma <= MAX_SIGMA:
        return math.inf
    grid = Grid.of_step(LOSS_OF_SIGMA / sigma, labels)
    return labels * grid.size * (7.5 * USUAL_LAWS + OVERHEAD)


def class_block(sigma: float, queries: int) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    return block_of(queries, lambda labels: class_work(sigma, labels))


@functools.lru_cache(maxsize=256)
def class_losses(sigma: float, queries: int, block: int) -> Losses | None:
    """Return losses that dominate `queries` adaptively chosen labels of more than two classes, by
    blocks of `block`.

    None where no list of laws stands for all votes.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.
    queries : int
        Number l of labels.
    block : int
        Labels of a block.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote taken from one class and given to another.
    Source : the game of `label_games`; docs/explanation/prices.md, section 15.
    Rounding : upward (convex interpolation, dominating laws, far noise charged in full).
    """
    laws = covering_laws(sigma)
    if laws is None:
        return None
    grid, after = blocks_of(LOSS_OF_SIGMA / sigma, queries, block, RESOLUTION)
    found = law_values(laws.chance.T, laws.log_ratio.T, grid, after)
    # at a value of at most 1, whatever is beside the laws adds no more than its probability
    values = [np.minimum(1.0, one + n * LEFT_OUT) for one, n in zip(found, after, strict=True)]
    least = [count_losses(sigma, 2 * labels) for labels in after]
    return joined_blocks(queries, after, values, grid, least)


def class_renyi(sigma: float, orders: FloatArray) -> FloatArray:
    """Return bounds on the divergences of one label between neighbours, over all votes.

    They hold for any number of classes above two and any number of teachers. Infinite where none is
    computed.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.
    orders : ndarray of shape (n,)
        Above 1; each takes time.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote taken from one class and given to another.
    Source : docs/explanation/prices.md, section 15.
    Rounding : upward (monotone bounds on squares of the lattice, far noise charged in full).
    """
    return _class_renyi(sigma, tuple(orders.tolist()))


@functools.lru_cache(maxsize=1024)
def _class_renyi(sigma: float, orders: tuple[float, ...]) -> FloatArray:
    a = np.array(orders)
    found, held = np.full(len(a), math.inf), a <= most_order(sigma)
    if SEARCH_MIN_SIGMA <= sigma <= SEARCH_MAX_SIGMA and held.any():
        found[held] = np.log1p(_moments_above(sigma, a[held])) / (a[held] - 1) * (1 + 1e-12)
    return found


def most_order(sigma: float) -> float:
    """Return the largest order at which divergences are searched."""
    # further out the charge for far noise is no longer nothing
    return min(MOST_ORDER, 1 + 1.5 * sigma)


def likely_renyi(sigma: float, orders: FloatArray) -> FloatArray:
    """Return about what the divergences of one label are: no bound, to choose an order by."""
    share = 0.6465 + 0.015 * (orders / sigma) ** 2
    held = SEARCH_MIN_SIGMA <= sigma <= SEARCH_MAX_SIGMA and orders <= most_order(sigma)
    return orders / sigma**2 * np.where(held, np.minimum(1.0, share), 1.0)
