"""The exact price of binary labels that are drawn from a table of chances, by the game of labels.

A table gives the chance of label 1 at every number of votes, in units of 2^-53, so that floats hold
each chance and each difference of two exactly. Between neighbours the number of votes moves by one,
so a step of the game of `label_game` is one of the pairs of neighbouring chances: the same game,
with other pairs. Proof: `docs/explanation/prices.md`, section 13.
"""

import functools
import itertools
import math

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.events import CHANCE_BITS, VoteTableEvent
from secretballot.privacy.accounting.label_blocks import (
    BLOCK_COST,
    BLOCKS,
    MOST_LOSSES,
    LossDistribution,
    loss_distribution,
    repeated_losses,
)
from secretballot.privacy.accounting.label_blocks import REACH as BLOCK_REACH
from secretballot.privacy.accounting.label_game import (
    MAX_EPSILON,
    MAX_NUMBERS,
    OVERHEAD,
    REACH,
    RESOLUTION,
    Grid,
    LabelProfile,
    VoteCurve,
    curve_values,
)
from secretballot.privacy.accounting.renyi import ORDERS, bernoulli_renyi

# how far above the pairs a corner may lie, as a share of its gap: it costs about one per cent of
# delta
TOLERANCE = 1e-3
USUAL_LENGTH = 1000  # chances; of longer tables corners alone are compared
# nats; below, floats hold no grid that is fine enough, and a label tells next to nothing
LEAST_DEVIATION = 1e-6
LONGEST_GRID = 600.0  # nats; beyond, e^x is no float, and a label is nearly the vote
ONE = 2**CHANCE_BITS

_Point = tuple[int, int]  # chance and gap to the next one, in units of 2^-53


def _pairs_of(event: VoteTableEvent) -> list[_Point]:
    """Return the chances of label 1, and how far the next vote moves each; those that it moves."""
    chances = event.chances
    return [(low, high - low) for low, high in itertools.pairwise(chances) if high > low]


def _upper_hull(points: list[_Point]) -> list[_Point]:
    """Return the points on the upper hull, in increasing order of the first coordinate."""
    hull: list[_Point] = []
    for x, y in points:
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            # the middle one of three stays only if it lies above the line through the others
            if (d - b) * (x - a) > (y - b) * (c - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


def _meeting_point(hull: list[_Point], i: int, j: int) -> tuple[int, int, int]:
    """Return where the lines through edges i < j of a hull meet: both coordinates, and what they
    are divided by."""
    if j == i + 1:
        return (*hull[j], 1)
    (a, b), (c, d), (e, f), (g, h) = hull[i], hull[i + 1], hull[j], hull[j + 1]
    # slopes up / along and down / far
    up, along, down, far = d - b, c - a, h - f, g - e
    divisor = up * far - down * along
    x = (f - b) * along * far + up * far * a - down * along * e
    y = b * divisor * along + up * (x - a * divisor)
    return x * along, y, divisor * along


@functools.lru_cache(maxsize=256)
def table_corners(
    weights: tuple[int, ...], n_teachers: int, tolerance: float = TOLERANCE
) -> VoteCurve:
    """Return corners of a polygon around all pairs of neighbouring chances.

    Few where neighbouring pairs lie nearly on a line; at most `tolerance` above the pairs.
    Everything is computed in integers; the corners themselves are rounded to floats.
    """
    hull = _upper_hull(_pairs_of(VoteTableEvent(weights, 1, n_teachers)))
    x = np.array([point[0] for point in hull], dtype=np.float64)
    y = np.array([point[1] for point in hull], dtype=np.float64)
    corners: list[tuple[int, int, int]] = [(*hull[0], 1)]
    i = 0
    while i < len(hull) - 2:
        # a corner above the hull only adds to the price: one stands for as many edges as it may
        j = i + 1
        while j < len(hull) - 2 and _excess_share(x, y, i, j + 1) <= tolerance:
            j += 1
        corners.append(_meeting_point(hull, i, j))
        i = j
    if len(hull) > 1:
        corners.append((*hull[-1], 1))
    p = np.array([a / (ONE * c) for a, _, c in corners])
    rest = np.array([(ONE * c - a) / (ONE * c) for a, _, c in corners])
    gap = np.array([b / (ONE * c) for _, b, c in corners])
    over = np.array([(ONE * c - a - b) / (ONE * c) for a, b, c in corners])
    return VoteCurve(p, rest, gap, over, 0.0)


def _excess_share(x: FloatArray, y: FloatArray, i: int, j: int) -> float:
    """Return by what share of the hull's height the lines through edges i < j meet above it."""
    first = (y[i + 1] - y[i]) / (x[i + 1] - x[i])
    second = (y[j + 1] - y[j]) / (x[j + 1] - x[j])
    if not first > second:
        return math.inf
    along = (y[j] - y[i] - second * (x[j] - x[i])) / (first - second)
    height = y[i] + first * along
    below = float(np.interp(x[i] + along, x[i : j + 2], y[i : j + 2]))
    return float(height / below - 1)


def _loss_deviation(curve: VoteCurve) -> float:
    """Return the largest root mean square of one label's loss, in nats."""
    up, down = _losses_of(curve)
    return math.sqrt(float(np.max(curve.p * up**2 + curve.rest * down**2)))


def _losses_of(curve: VoteCurve) -> tuple[FloatArray, FloatArray]:
    """Return by how much each label moves log Q / P."""
    return np.log1p(curve.gap / curve.p), np.log(curve.over / curve.rest)


@functools.lru_cache(maxsize=4096)
def largest_loss(event: VoteTableEvent) -> float:
    """Return the largest loss of one label, in nats, rounded up."""
    below = np.array(event.weights, dtype=np.float64)  # exact, as 1 - chance is
    above = (ONE - below)[1 if event.n_teachers % 2 == 0 else 0 :]
    chance = np.concatenate([below[::-1], above])
    low, high = chance[:-1], chance[1:]
    # of both labels and directions: by symmetry each ratio of chances of label 1 is one of label 0;
    # differences are exact, so that ratios near 1 lose no digits
    gap = high - low
    worst = max(np.log1p(gap / low).max(), np.log1p(gap / (ONE - high)).max())
    return float(worst) * (1 + 1e-14)


def table_cost(event: VoteTableEvent, queries: int, epsilon: float, reach: float = REACH) -> float:
    """Return about how many multiplications a game of `queries` labels will need.

    Infinite where it would fill the memory, or floats end.
    """
    if epsilon > MAX_EPSILON:
        return math.inf
    curve = table_corners(event.weights, event.n_teachers)
    deviation = _loss_deviation(curve)
    if not deviation >= LEAST_DEVIATION:
        return math.inf
    grid = Grid.of_step(deviation, queries, epsilon, RESOLUTION, reach)
    if not max(grid.below, grid.above) * grid.h <= LONGEST_GRID:
        return math.inf
    up, down = _losses_of(curve)
    width = min(2.0 * grid.size, (float(up.max()) - float(down.min())) / grid.h + 2)
    corners = len(curve.p)
    if not grid.size * (corners + width) <= MAX_NUMBERS:
        return math.inf
    # of a wide window only what some corner reads is copied
    return queries * grid.size * (5 * corners + min(width, 4.0 * corners) + OVERHEAD)


def table_numbers(event: VoteTableEvent) -> float:
    """Return about how many numbers are handled for the divergences of a table."""
    return 3000.0 * min(len(event.weights), USUAL_LENGTH) + 1000.0 * len(event.weights)


@functools.lru_cache(maxsize=64)
def table_profile(event: VoteTableEvent, epsilon: float) -> LabelProfile:
    """Play the game of adaptively asked labels drawn from a table.

    Parameters
    ----------
    event : VoteTableEvent
    epsilon : float
        Largest epsilon at which the profile will be read, in nats.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query.
    Source : the game of `label_game`, with the pairs of the table; docs/explanation/prices.md,
        section 13.
    Rounding : upward (convex interpolation, polygon around the pairs).
    """
    curve = table_corners(event.weights, event.n_teachers)
    grid = Grid.of_step(_loss_deviation(curve), event.queries, epsilon, RESOLUTION)
    return LabelProfile(curve_values(curve, grid, [event.queries])[0], grid)


def table_block(event: VoteTableEvent) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    for labels in BLOCKS:
        if table_cost(event, labels, 0.0, BLOCK_REACH) <= BLOCK_COST:
            return labels
    return None


@functools.lru_cache(maxsize=64)
def table_losses(event: VoteTableEvent, block: int) -> LossDistribution | None:
    """Return losses that dominate a table's labels, by blocks of `block`.

    None if they are too many.
    """
    curve = table_corners(event.weights, event.n_teachers)
    size = min(block, event.queries)
    grid = Grid.of_step(_loss_deviation(curve), size, 0.0, RESOLUTION, BLOCK_REACH)
    if grid.above > MOST_LOSSES:
        return None
    count, left = divmod(event.queries, size)
    values = curve_values(curve, grid, [left, size])
    rest = loss_distribution(values[0], grid) if left else None
    return repeated_losses(loss_distribution(values[1], grid), count, rest)


@functools.lru_cache(maxsize=4096)
def table_renyi(order: float, weights: tuple[int, ...], n_teachers: int) -> float:
    """Return the largest Renyi divergence of one label between neighbours, over all vote counts.

    The divergence's moment is convex in the pair of chances, so corners stand for all pairs.
    """
    # of a table of usual length no pair is left out
    tolerance = 0.0 if len(weights) <= USUAL_LENGTH else TOLERANCE
    curve = table_corners(weights, n_teachers, tolerance)
    return bernoulli_renyi(order, curve.p, curve.rest, curve.gap)


@functools.lru_cache(maxsize=64)
def table_renyi_at_orders(weights: tuple[int, ...], n_teachers: int) -> FloatArray:
    """Return what `table_renyi` returns, at all of `ORDERS`, an array of their shape."""
    return np.array([table_renyi.__wrapped__(order, weights, n_teachers) for order in ORDERS])
