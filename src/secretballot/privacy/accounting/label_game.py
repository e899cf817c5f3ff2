"""The exact price of binary labels released alone: a game against an adaptive adversary.

One label is a Bernoulli variable. Between neighbours its probability moves from p(v) to p(v +- 1),
where v, chosen adaptively by the adversary from everything released so far, is the number of votes
for class 1. Let V_j(x) be the largest hockey-stick divergence that j further labels can reach from
likelihood ratio x = e^epsilon Q / P:

    V_0(x) = max(0, 1 - x),    V_{j+1}(x) = max over (p, q) of p V_j(x q / p) + (1 - p) V_j(x (1 -
    q) / (1 - p)),

and delta(epsilon) = V_l(e^epsilon). Every V_j is convex and decreasing with V_j(0) = 1, so linear
interpolation between grid points bounds it from above: what is computed is an upper bound, and
converges to the exact value.

The value of a step is convex in (p, q), so the maximum over the curve of pairs is at most the
maximum over the corners of any polygon around the curve: a few dozen corners stand for thousands of
vote counts. Proofs: `docs/explanation/prices.md`.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.sparse import csr_array

from secretballot._typing import FloatArray, IntArray
from secretballot.privacy.accounting.gaussian import discrete_gaussian_pmf
from secretballot.privacy.accounting.renyi import ORDERS, bernoulli_renyi

# grid points per step of the likelihood ratio at an even vote; the excess falls with its square
RESOLUTION = 10
# standard deviations past which one corner covers all vote counts: beyond, a label tells less than
# 1e-20
FAR = 9.5
DENSITY = 24  # corners per standard deviation near an even vote
NEAR = 3.0  # standard deviations within which corners stand densely
REACH = 6.5  # standard deviations of the total loss that the grid covers
OVERHEAD = 50  # multiplications that handling one grid point once costs as much as
MAX_NUMBERS = 5e7  # corners and window, times grid points; prices depend on this limit
# grid points at a time: up to three times as fast as all at once; fewer where their windows would
# not stay in the cache, which takes four times as long
BLOCK, LEAST_BLOCK, CACHED = 256, 32, 36_000
MAX_EPSILON = 25.0  # nats; beyond, a promise does not repay a long game
MAX_SIGMA = 2e5  # beyond, the noise's distribution would fill the memory; the Gaussian price holds
# below, one label is nearly the vote itself and the Gaussian price says all there is
MIN_SIGMA = 0.25
# nats, and as a share of them: what floats may lose of a logarithm of chances
LOST = 2.0**-48


@dataclass(frozen=True)
class VoteCurve:
    """Pairs (p, p + gap).

    The probability of label 1 under v and under v + 1 votes, or corners that cover them.

    Attributes
    ----------
    p, rest, gap, over : ndarray of shape (n,)
        In increasing order of p; rest = 1 - p and over = 1 - (p + gap), apart so that both tails
        keep their digits.
    outer : float
        Gap of the two corners (0, outer) and (1 - outer, 1) that cover the vote counts farther out;
        0 if there is none.
    """

    p: FloatArray
    rest: FloatArray
    gap: FloatArray
    over: FloatArray
    outer: float


def vote_curve(sigma: float, n_teachers: int | None) -> VoteCurve:
    """Return the corners of one query's pairs, closed under exchanging neighbours and classes.

    With t = ceil(K / 2) - v, label 1 has probability P(N >= t) under v votes and P(N >= t - 1)
    under v + 1. For either parity of K the t lie in [1 - K // 2, 1 + K // 2], which exchanging
    neighbours and classes maps to itself: t to 2 - t.
    """
    far = math.ceil(FAR * sigma)
    half = far + 1 if n_teachers is None else n_teachers // 2
    t = np.arange(1 + min(far, half), -min(far, half), -1)
    pairs, steps = _pairs_at(t, sigma)
    outer = (
        float(pairs.gap[0] - math.expm1(_log_slope(int(t[0]), sigma)) * pairs.p[0])
        if half > far
        else 0.0
    )
    return replace(_corners_around(pairs, steps, int(t[0]), sigma), outer=outer)


def _pairs_at(t: IntArray, sigma: float) -> tuple[VoteCurve, FloatArray]:
    """Return the pairs at these t, and how far p goes from each to the next."""
    reach, pmf = discrete_gaussian_pmf(sigma)
    above = np.cumsum(pmf[::-1])[::-1]  # above[i] = P(N >= i - reach)
    gap = pmf[t - 1 + reach]
    pairs = VoteCurve(above[t + reach], above[1 - t + reach], gap, above[2 - t + reach], 0.0)
    return pairs, gap


def _log_slope(t: int, sigma: float) -> float:
    """Return the logarithm of the slope of the edge from t to t - 1, in p and p + gap."""
    return (2 * (t - 1) - 1) / (2 * sigma**2)


def _corners_around(pairs: VoteCurve, steps: FloatArray, first_t: int, sigma: float) -> VoteCurve:
    """Return corners of a polygon around the pairs, dense near an even vote.

    Each edge lies on or above all pairs.

    Edge k joins pair k to pair k + 1: a step of steps[k] in p, along which the gap changes with
    slope expm1((2 (t_k - 1) - 1) / (2 sigma^2)), decreasing in k. Where edges i < j meet is a
    sum of positive terms: no digits are lost.
    """
    n = len(pairs.p)
    stride = int(sigma / DENSITY)
    if stride < 2 or n < 4:
        return pairs
    edges = [0]
    while edges[-1] < n - 2:
        near = abs(first_t - edges[-1]) <= NEAR * sigma
        edges.append(min(n - 2, edges[-1] + (stride if near else 4 * stride)))
    p, rest, gap = [pairs.p[0]], [pairs.rest[0]], [pairs.gap[0]]
    bend = 1 / sigma**2  # from one edge to the next, of the logarithm of the slope
    for i, j in itertools.pairwise(edges):
        share = np.expm1((j - np.arange(i, j)) * bend) / math.expm1((j - i) * bend)
        step = float(share @ steps[i:j])
        p.append(pairs.p[i] + step)
        rest.append(pairs.rest[i] - step)
        gap.append(pairs.gap[i] + step * math.expm1(_log_slope(first_t - i, sigma)))
    p, rest, gap = [*p, pairs.p[-1]], [*rest, pairs.rest[-1]], [*gap, pairs.gap[-1]]
    return VoteCurve(np.array(p), np.array(rest), np.array(gap), np.subtract(rest, gap), 0.0)


@dataclass(frozen=True)
class Grid:
    """Likelihood ratios e^(h i), i = -below .. above."""

    h: float
    below: int
    above: int

    @classmethod
    def of(
        cls, sigma: float, queries: int, epsilon: float, resolution: int, reach: float = REACH
    ) -> "Grid":
        """Return the grid for a game.

        `reach` standard deviations of its total loss, and `epsilon` on the grid.
        """
        even = _even_chance(sigma)
        step = math.log1p(even) - math.log1p(-even) if even < 1 else 40.0
        return cls.of_step(step, queries, epsilon, resolution, reach)

    @classmethod
    def of_step(
        cls, step: float, queries: int, epsilon: float, resolution: int, reach: float = REACH
    ) -> "Grid":
        """Return the grid for a game whose labels lose `step` nats each, as a root mean square, at
        most."""
        total = step * math.sqrt(queries)
        h = min(step / resolution, 0.02)
        if epsilon > h:
            h = epsilon / math.ceil(epsilon / h)  # epsilon itself becomes a grid point
        return cls(
            h,
            math.ceil(reach * total / h),
            math.ceil((max(epsilon, 0.0) + reach * total + total**2 / 2) / h),
        )

    @property
    def size(self) -> int:
        """Number of grid points."""
        return self.below + self.above + 1


@functools.lru_cache(maxsize=256)
def _even_chance(sigma: float) -> float:
    """Return P(N = 0), by which an even vote's two labels differ between neighbours."""
    if sigma > 20:
        # right to all digits (docs/explanation/prices.md, section 1)
        return 1 / (math.sqrt(2 * math.pi) * sigma)
    _, pmf = discrete_gaussian_pmf(sigma)
    return float(pmf.max())


def _lowered_logarithm(logarithm: FloatArray) -> FloatArray:
    """Return logarithms of likelihood ratios below the true ones; a game's value falls with the
    ratio."""
    return logarithm - LOST * (1 + np.abs(logarithm))


def _transition_stencil(
    chances: FloatArray, log_ratios: FloatArray, grid: Grid
) -> tuple[int, csr_array]:
    """Return (offset, weights): row c maps V on a window starting `offset` points lower to the
    value of the c-th pair of distributions.

    Chances of all outcomes, and logarithms of the neighbour's over them, have shape (outcomes, n).
    """
    # a game that ends at a kink would show the last digit of a loss: each is taken for smaller
    # past the grid V stays at its last value, so how far past does not matter
    shifts = np.minimum(_lowered_logarithm(log_ratios) / grid.h, grid.size)
    offset = -math.floor(shifts.min())
    n = chances.shape[1]
    rows, columns, weights = [], [], []
    for shift, chance in zip(shifts, chances, strict=True):
        whole = np.floor(shift)
        part = np.expm1((shift - whole) * grid.h) / math.expm1(grid.h)
        column = offset + whole.astype(np.int64)
        rows += 2 * [np.arange(n)]
        columns += [column, column + 1]
        weights += [chance * (1 - part), chance * part]
    shape = (n, offset + math.floor(shifts.max()) + 2)
    entries = np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))
    return offset, csr_array(entries, shape=shape)


def game_cost(
    sigma: float,
    queries: int,
    n_teachers: int | None,
    epsilon: float,
    resolution: int = RESOLUTION,
    reach: float = REACH,
) -> float:
    """Return about how many multiplications a game will need (1e9 take about half a second).

    Infinite where corners and window, times grid points, are more than `MAX_NUMBERS`.
    """
    if sigma > MAX_SIGMA or epsilon > MAX_EPSILON:
        return math.inf
    grid = Grid.of(sigma, queries, epsilon, resolution, reach)
    far = min(FAR, math.inf if n_teachers is None else n_teachers / 2 / sigma)
    near = min(far, NEAR)
    corners = min(2 * far * sigma, 2 * DENSITY * (near + (far - near) / 4)) + 2
    # a vote at distance z changes the log ratio by about (z + 1.3) / sigma at most
    width = min(2.0 * grid.size, (2 * far + 2.6) / sigma / grid.h + 2)
    if not grid.size * (corners + width) <= MAX_NUMBERS:
        return math.inf
    return queries * grid.size * (5 * corners + width + OVERHEAD)


@dataclass(frozen=True, eq=False)
class LabelProfile:
    """delta(epsilon) of a label-only release.

    An upper bound everywhere, sharp up to the epsilon it was made for.
    """

    value: FloatArray
    grid: Grid

    def delta(self, epsilon: float) -> float:
        """Return the bound at `epsilon`.

        Linear between grid points in x = e^epsilon, as V is convex there.
        """
        grid, value = self.grid, self.value
        # a little lower, as a grid point that floats take for this epsilon may lie above it
        place = (epsilon - LOST * (1 + abs(epsilon))) / grid.h + grid.below
        if place <= 0:
            return float(1 - (1 - value[0]) * math.exp(epsilon + grid.below * grid.h))
        low = min(math.floor(place), grid.size - 1)
        if low == grid.size - 1:
            return float(value[-1])
        part = math.expm1((place - low) * grid.h) / math.expm1(grid.h)
        return float((1 - part) * value[low] + part * value[low + 1])


@functools.lru_cache(maxsize=64)
def label_profile(
    sigma: float,
    queries: int,
    n_teachers: int | None,
    epsilon: float,
    resolution: int = RESOLUTION,
) -> LabelProfile:
    """Play the game of `queries` adaptively asked binary labels under discrete Gaussian noise.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; at least `MIN_SIGMA`.
    queries : int
        Number l of labels.
    n_teachers : int or None
        K; None for every K at once.
    epsilon : float
        Largest epsilon at which the profile will be read, in nats.
    resolution : int
        Grid points per typical step: the excess falls, and the time grows, with its square; 10
        keeps delta within 2 % of the exact value at 300 labels and sigma 60.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query.
    Source : docs/explanation/differences.md 3, on Liu et al. 2021, Algorithm 1; proof in
        docs/explanation/prices.md.
    Rounding : upward (convex interpolation, polygon around the pairs, tails charged in full).
    """
    grid = Grid.of(sigma, queries, epsilon, resolution)
    return LabelProfile(game_values(sigma, n_teachers, grid, [queries])[0], grid)


def game_values(
    sigma: float, n_teachers: int | None, grid: Grid, after: Sequence[int]
) -> list[FloatArray]:
    """Return the game's value at every grid point, rounded up, after each of the given numbers of
    labels.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; at least `MIN_SIGMA`.
    n_teachers : int or None
        K; None for every K at once.
    grid : Grid
    after : sequence of int
        Numbers of labels, in increasing order.
    """
    return curve_values(vote_curve(sigma, n_teachers), grid, after)


def curve_values(curve: VoteCurve, grid: Grid, after: Sequence[int]) -> list[FloatArray]:
    """Return what `game_values` returns, for any corners of the pairs."""
    log_ratios = np.stack([np.log1p(curve.gap / curve.p), np.log(curve.over / curve.rest)])
    return law_values(np.stack([curve.p, curve.rest]), log_ratios, grid, after, curve.outer)


def law_values(
    chances: FloatArray,
    log_ratios: FloatArray,
    grid: Grid,
    after: Sequence[int],
    outer: float = 0.0,
) -> list[FloatArray]:
    """Return the value at every grid point, rounded up, after each of the given numbers of steps,
    where a step is any of n pairs of distributions.

    Parameters
    ----------
    chances, log_ratios : ndarray of shape (outcomes, n)
        Of the outcomes under P, and the logarithms of those under Q over them.
    grid : Grid
    after : sequence of int
        Numbers of steps, in increasing order.
    outer : float
        As for `VoteCurve`.
    """
    offset, weights = _transition_stencil(chances, log_ratios, grid)
    reach = weights.shape[1] - offset - 1
    used, column = np.unique(weights.indices, return_inverse=True)
    rows: IntArray | slice = slice(None)
    if 2 * len(used) < weights.shape[1]:
        # some labels move the ratio far, and most of the window is read by no corner
        rows, shape = used.astype(np.int64), (weights.shape[0], len(used))
        weights = csr_array((weights.data, column, weights.indptr), shape=shape)
    beyond = np.exp(-grid.h * np.arange(offset, 0, -1.0))
    value = np.maximum(0.0, -np.expm1(grid.h * np.arange(-grid.below, grid.above + 1)))
    played, found = 0, []
    for labels in after:
        for _ in range(labels - played):
            # below the grid: the chord to V(0) = 1; above it: the last value, since V decreases
            padded = np.concatenate([1 - (1 - value[0]) * beyond, value, np.full(reach, value[-1])])
            best = _best_of_corners(weights, rows, padded, grid.size)
            if outer > 0:
                np.maximum(best, _outer_value(value, outer, grid.h), out=best)
            value = np.maximum(value, best)
        played = labels
        found.append(value)
    return found


def _best_of_corners(
    weights: csr_array, rows: IntArray | slice, padded: FloatArray, size: int
) -> FloatArray:
    """Return the largest value that any corner has at every grid point, shape (size,).

    Column i of `weights` is for the values `rows[i]` places on in `padded`.
    Grid points go some at a time, so that what all corners make of them stays in the processor's
    cache; every number is that of all points at once.
    """
    windows, best = sliding_window_view(padded, size), np.empty(size)
    block = min(BLOCK, max(LEAST_BLOCK, CACHED // weights.shape[1]))
    for start in range(0, size, block):
        part = slice(start, start + block)
        np.max(weights @ windows[:, part][rows], axis=0, out=best[part])
    return best


def label_game_delta(
    epsilon: float, sigma: float, queries: int, n_teachers: int | None, resolution: int = RESOLUTION
) -> float:
    """Return delta(epsilon) of a label-only release; see `label_profile`."""
    if not sigma >= MIN_SIGMA:
        return 1.0
    return label_profile(sigma, queries, n_teachers, epsilon, resolution).delta(epsilon)


def _outer_value(value: FloatArray, outer: float, h: float) -> FloatArray:
    """Value of the two outer corners: (0, outer) keeps V(x (1 - outer)).

    (1 - outer, 1) loses `outer` to certainty.
    """
    # outer is far below h: x (1 - outer) lies between a grid point and the one before
    part = (-math.expm1(-h) - outer) / -math.expm1(-h)
    first = part * value + (1 - part) * np.concatenate([value[:1], value[:-1]])
    first[0] = value[0] + outer * (1 - value[0])  # the chord to V(0) = 1
    return np.maximum(first, (1 - outer) * value + outer)


def corner_numbers(sigma: float) -> float:
    """Return about how many numbers `label_renyi` handles to find its corners.

    0 where it gives no bound.
    """
    return 30 * sigma if sigma <= MAX_SIGMA else 0.0


@functools.lru_cache(maxsize=4096)
def label_renyi(order: float, sigma: float, n_teachers: int | None) -> float:
    """Return the largest Renyi divergence of one label between neighbours, over all vote counts.

    Like the game's value, the divergence's moment is convex in the pair of probabilities, so
    corners stand for all pairs. Where not all vote counts can be enumerated, orders past 1 + 4
    sigma get no bound (infinity): below, a count farther than 14 sigma from an even vote
    has a moment within 1e-16 of 1, which is never the largest.
    """
    if sigma > MAX_SIGMA:
        return math.inf
    pairs, complete = _all_corners(sigma, n_teachers)
    if pairs is None or not (complete or order <= 1 + 4 * sigma):
        return math.inf
    return bernoulli_renyi(order, pairs.p, pairs.rest, pairs.gap)


@functools.lru_cache(maxsize=64)
def label_renyi_at_orders(sigma: float, n_teachers: int | None) -> FloatArray:
    """Return what `label_renyi` returns, at all of `ORDERS`, an array of their shape."""
    found = np.full(len(ORDERS), math.inf)
    corners = _all_corners(sigma, n_teachers) if sigma <= MAX_SIGMA else (None, False)
    pairs, complete = corners
    if pairs is not None:
        for i, order in enumerate(ORDERS):
            if complete or order <= 1 + 4 * sigma:
                found[i] = bernoulli_renyi(order, pairs.p, pairs.rest, pairs.gap)
    return found


@functools.lru_cache(maxsize=64)
def _all_corners(sigma: float, n_teachers: int | None) -> tuple[VoteCurve | None, bool]:
    """Return corners around all pairs within 14 sigma, and whether that is all there are.

    None where floats run out.
    """
    reach = discrete_gaussian_pmf(sigma)[0]
    complete = n_teachers is not None and n_teachers // 2 <= reach - 2
    half = n_teachers // 2 if n_teachers is not None and complete else reach - 2
    t = np.arange(1 + half, -half, -1)
    pairs, steps = _pairs_at(t, sigma)
    if not (np.all(pairs.p > 0) and np.all(pairs.rest > pairs.gap)):
        return None, complete
    return _corners_around(pairs, steps, int(t[0]), sigma), complete
