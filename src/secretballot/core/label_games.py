"""The price of binary labels released alone: a game against an adaptive adversary.

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
vote counts. Chances are those of noise on the count, or of a table, in units of 2^-53, so that
floats hold each chance and each difference of two exactly.

A game is played for a block of labels at most. Its value is the profile of a pair that dominates
the block, and blocks add as losses do. Proofs: `docs/explanation/prices.md`, sections 2 and 13.

Confident voting has a price for threshold and label as one (section 12). One teacher moves the
highest count and the label together. A label is uncertain where two counts are nearly equal, and
then neither is far above half of the teachers: a threshold well above that refuses most such
queries, and what it lets pass reveals little by its label. So a step of the game is a whole query:
refused, or one of two labels.

With K teachers, v of them for class 1, the highest count is at most max(v, K - v), and a student's
predictions, which are not negative, only lower it. Let e say how far the vote is from even. Then
the threshold is answered by a pair of chances at some t >= threshold - K // 2 - e, one vote less
for an even vote of an odd K, and no more is known. Votes are grouped by e, from the clearest to
even ones; each t is in the group of the least clear votes that allow it, and may be followed by
a label of that group or of clearer votes. In a group the value of a step is convex in both pairs,
so that corners stand for them.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from pydantic import Field, model_validator
from scipy.sparse import csr_array

from secretballot.core.errors import ParameterError
from secretballot.core.losses import LOST as MOMENT_LOST
from secretballot.core.losses import Losses, count_losses, discrete_gaussian_pmf, largest_moments
from secretballot.core.types import Count, FloatArray, IntArray, Model, Scale, Squared

# grid points per step of the likelihood ratio at an even vote: the excess falls, and the time
# grows, with its square; 10 keeps delta within 2 % of the exact value at 300 labels and sigma 60
RESOLUTION = 10
FINE, FINER = 2000, 4000  # grid points of a game of few labels, and more of one, read between them
# standard deviations past which one corner covers all vote counts: beyond, a label reveals less
# than 1e-20
_FAR = 9.5
_DENSITY = 24  # corners per standard deviation near an even vote
_NEAR = 3.0  # standard deviations within which corners are dense
_REACH = 9.0  # standard deviations of the total loss that the grid covers; the rest is a failure
OVERHEAD = 50  # multiplications that handling one grid point once costs as much as
_MAX_NUMBERS = 5e7  # corners and window, times grid points; prices depend on this limit
_BLOCKS = (1024, 512, 256, 128, 64, 32)  # labels
# multiplications that the game of one block may take, about a second; that of all labels may take
# more, as blocks cost a little
BLOCK_WORK, WHOLE_WORK = 2e9, 6e9
# numbers handled at a time, as many as stay in the cache: up to three times as fast as all at once;
# and the least number of grid points
CACHED, LEAST_BLOCK = 144_000, 32
_MAX_SIGMA = 2e5  # beyond, the noise's distribution would fill the memory; the Gaussian price holds
# below, one label is nearly the vote itself and the Gaussian price is nearly exact
_MIN_SIGMA = 0.25
# nats, and as a share of them: what floats may lose of a logarithm of chances
_LOST = 2.0**-48
# how far above the pairs of a table a corner may lie, as a share of its gap: it costs about one per
# cent of delta
_TOLERANCE = 1e-3
# nats; below, floats hold no grid that is fine enough, and a label reveals next to nothing
_LEAST_DEVIATION = 1e-6
_LONGEST_GRID = 600.0  # nats; beyond, e^x is no float, and a label is nearly the vote
CHANCE_BITS = 53  # chances of a table are multiples of 2^-53, which floats hold exactly
_ONE = 2**CHANCE_BITS
MAX_WEIGHTS = 10_000  # of one table; bounds what a certificate makes a reader compute

# Of confident voting.
_MOST_SIGMA = 5e3  # votes; beyond, no game is played
_CONFIDENT_DENSITY = 8  # corners per standard deviation near an even vote
_GROUPS = 60  # of votes that are equally far from even
_FAR_FROM_EVEN = 5.0  # standard deviations of a label's noise, beyond which all votes are one group
_CONFIDENT_BLOCK = 256  # queries of one game; blocks add as losses do
_CONFIDENT_RESOLUTION = 6  # grid points per usual step
# more than the chances of noise that is left out, 14 standard deviations away, add to a step
_LEFT_OUT = 1e-30
_SHARES = np.linspace(0.0, 1.0, 9)  # of a label's divergence that are charged to answers

# chance and gap to the next one, in units of 2^-53
_Point = tuple[int | Fraction, int | Fraction]


class GaussianChances(Model):
    """Labels 1 if 2 (count + discrete Gaussian noise) >= K.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes.
    n_teachers : int or None
        Number K of teachers; None prices labels for every K at once.

    Examples
    --------
    >>> from secretballot import accounting
    >>> accounting.GaussianChances(sigma=40.0, n_teachers=250)
    GaussianChances(sigma=40.0, n_teachers=250)
    """

    sigma: Scale
    n_teachers: Count | None = None


class TableChances(Model):
    """Labels drawn from a table: with the margin m the minority's label has the chance
    weights[m // 2] / 2^53, the last weight standing for all larger margins.

    Parameters
    ----------
    weights : sequence of int
        Chances of the minority's label, in units of 2^-53, for margins from the smallest on: 0, 2,
        4, ... for an even number of teachers, 1, 3, 5, ... for an odd one. None is larger than the
        one before or below 1, and the last is below 2^52. An even vote is a fair coin: its weight
        is 2^52.
    n_teachers : int
        Number K of teachers.

    Examples
    --------
    >>> from secretballot import accounting
    >>> table = accounting.TableChances(weights=[2**52, 2**51, 2**50], n_teachers=10)
    >>> [chance / 2**53 for chance in table.chances]
    [0.125, 0.25, 0.5, 0.75, 0.875]
    """

    weights: Annotated[tuple[Squared, ...], Field(min_length=1, max_length=MAX_WEIGHTS)]
    n_teachers: Count

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        weights, half = self.weights, _ONE // 2
        falling = all(one >= later for one, later in itertools.pairwise(weights))
        even = self.n_teachers % 2 == 0
        fits = falling and half >= weights[0] and weights[-1] < half
        if not (fits and len(weights) <= self.n_teachers // 2 + 1 and weights[0] >= even * half):
            raise ParameterError(
                "A table needs falling chances of the minority, one a margin, and a half at a tie."
            )
        return self

    @property
    def chances(self) -> tuple[int, ...]:
        """Chances of label 1, in units of 2^-53, vote by vote; all others equal the first or the
        last."""
        above = tuple(_ONE - weight for weight in self.weights)
        below = self.weights[::-1]
        return below + (above[1:] if self.n_teachers % 2 == 0 else above)


Chances = GaussianChances | TableChances


class Laws(NamedTuple):
    """Pairs of distributions, any of which one step of a game may be.

    Attributes
    ----------
    chance : ndarray of shape (outcomes, n)
        Of the outcomes under P.
    log_ratio : ndarray of shape (outcomes, n)
        Logarithms of the chances under Q over those under P.
    """

    chance: FloatArray
    log_ratio: FloatArray

    @property
    def squares(self) -> FloatArray:
        """Mean squares of the losses, of shape (n,)."""
        return np.asarray((self.chance * self.log_ratio**2).sum(axis=0))


class _Pairs(NamedTuple):
    """Pairs (p, p + gap): the probability of label 1 under v and under v + 1 votes, or corners
    that cover them.

    Attributes
    ----------
    p, rest, gap, over : ndarray of shape (n,)
        In increasing order of p; rest = 1 - p and over = 1 - (p + gap), apart so that both tails
        keep their digits.
    """

    p: FloatArray
    rest: FloatArray
    gap: FloatArray
    over: FloatArray

    @property
    def laws(self) -> Laws:
        """Of both labels, P under v votes and Q under v + 1."""
        log_ratio = np.stack([np.log1p(self.gap / self.p), np.log(self.over / self.rest)])
        return Laws(np.stack([self.p, self.rest]), log_ratio)


class NoiseTable:
    """Chances of noise of one scale on -reach, ..., reach, and of noise below an integer."""

    def __init__(self, sigma: float) -> None:
        self.sigma = sigma
        self.reach, self.pmf = discrete_gaussian_pmf(sigma)
        # of a noise below t, at t + reach: summed from the far end, so that tails keep their digits
        self._below = np.concatenate([[0.0], np.cumsum(self.pmf)])

    def below(self, t: IntArray) -> FloatArray:
        """Return P(N < t), for integers of any shape."""
        return self._below[np.clip(t + self.reach, 0, len(self._below) - 1)]


def _vote_pairs(chances: GaussianChances, far: int) -> tuple[_Pairs, float]:
    """Return corners of one query's pairs, closed under exchanging neighbours and classes, up to
    `far` votes from an even one; and the most by which the label of any other vote moves.

    With t = ceil(K / 2) - v, label 1 has probability P(N >= t) under v votes and P(N >= t - 1)
    under v + 1. For either parity of K the t lie in [1 - K // 2, 1 + K // 2], which exchanging
    neighbours and classes maps to itself: t to 2 - t.
    """
    half = math.inf if chances.n_teachers is None else chances.n_teachers // 2
    last = 1 + int(min(far, half))
    pairs = _corners(NoiseTable(chances.sigma), 2 - last, last)
    return pairs, float(pairs.gap[0]) if half > far else 0.0


def _corners(noise: NoiseTable, first: int, last: int, density: int = _DENSITY) -> _Pairs:
    """Return corners of a polygon around the pairs at t = first, ..., last, `density` a standard
    deviation near an even vote.

    Each edge lies on or above all pairs. Edge k joins pair k to pair k + 1: a step of gap[k] in p,
    along which the gap changes with slope expm1((2 (t_k - 1) - 1) / (2 sigma^2)), decreasing in k.
    Where edges i < j meet is a sum of positive terms: no digits are lost.
    """
    sigma, t = noise.sigma, np.arange(last, first - 1, -1)
    step = noise.pmf[t - 1 + noise.reach]
    every = _Pairs(noise.below(1 - t), noise.below(t), step, noise.below(t - 1))
    stride, n = int(sigma / density), len(t)
    if stride < 2 or n < 4:
        return every
    edges = [0]
    while edges[-1] < n - 2:
        near = abs(last - edges[-1]) <= _NEAR * sigma
        edges.append(min(n - 2, edges[-1] + (stride if near else 4 * stride)))
    p, rest, gap = [every.p[0]], [every.rest[0]], [step[0]]
    bend = 1 / sigma**2  # from one edge to the next, of the logarithm of the slope
    for i, j in itertools.pairwise(edges):
        share = np.expm1((j - np.arange(i, j)) * bend) / math.expm1((j - i) * bend)
        along = float(share @ step[i:j])
        slope = math.expm1((2 * (last - i - 1) - 1) / (2 * sigma**2))
        p.append(every.p[i] + along)
        rest.append(every.rest[i] - along)
        gap.append(step[i] + along * slope)
    p, rest, gap = [*p, every.p[-1]], [*rest, every.rest[-1]], [*gap, step[-1]]
    return _Pairs(np.array(p), np.array(rest), np.array(gap), np.subtract(rest, gap))


class Grid(NamedTuple):
    """Likelihood ratios e^(h i), i = -below .. above."""

    h: float
    below: int
    above: int

    @classmethod
    def of_step(cls, step: float, labels: int, resolution: float = RESOLUTION) -> "Grid":
        """Return the grid for a game whose labels lose `step` nats each, as a root mean square, at
        most."""
        total = step * math.sqrt(labels)
        reach = _REACH * total + total**2 / 2
        points = FINE + FINER / labels
        h = min(step / resolution, 0.02, (_REACH * total + reach) / points)
        return cls(h, math.ceil(_REACH * total / h), math.ceil(reach / h))

    @property
    def size(self) -> int:
        """Number of grid points."""
        return self.below + self.above + 1


@functools.lru_cache(maxsize=256)
def _step_of(chances: Chances) -> float:
    """Return the largest root mean square of one label's loss, in nats."""
    if isinstance(chances, TableChances):
        return math.sqrt(float(_table_corners(chances).laws.squares.max()))
    # an even vote's two labels differ by P(N = 0) between neighbours
    even = float(discrete_gaussian_pmf(chances.sigma)[1].max())
    return math.log1p(even) - math.log1p(-even)


class Step:
    """What one step of a game may be, any of n pairs of distributions: the larger values that it
    makes of the values of its outcomes.

    Parameters
    ----------
    laws : Laws
        Of none, all values are 0.
    grid : Grid
    apart : bool
        Whether each outcome has values of its own.
    """

    def __init__(self, laws: Laws, grid: Grid, *, apart: bool = False) -> None:
        chance, log_ratio = laws
        # a game that ends at a kink would show the last digit of a loss: each is taken for smaller;
        # past the grid a value stays at its last one, so how far past does not matter
        lowered = log_ratio - _LOST * (1 + np.abs(log_ratio))
        shifts = np.minimum(lowered / grid.h, grid.size)
        whole = np.floor(shifts)
        part = np.expm1((shifts - whole) * grid.h) / math.expm1(grid.h)
        places = whole.astype(np.int64)
        below, self._above = -int(places.min(initial=0)), int(places.max(initial=-1)) + 1
        self._beyond = np.exp(-grid.h * np.arange(below, 0, -1.0))
        rows = places + below
        if apart:  # the values of one outcome come after those of the other
            rows += np.arange(len(rows))[:, None] * (below + grid.size + self._above)
        self._rows, columns = np.unique([rows, rows + 1], return_inverse=True)
        weights = np.stack([chance * (1 - part), chance * part])
        pairs = np.broadcast_to(np.arange(chance.shape[1]), weights.shape)
        self._weights = csr_array(
            (weights.ravel(), (pairs.ravel(), columns.ravel())),
            shape=(chance.shape[1], len(self._rows)),
        )

    def best(self, *values: FloatArray) -> FloatArray:
        """Return the largest mean over the outcomes of one pair at every grid point, from the
        values of all outcomes, or of each.

        Grid points go some at a time, so that what all pairs make of them stays in the processor's
        cache; every number is that of all points at once.
        """
        size = len(values[0])
        windows = sliding_window_view(np.concatenate([*map(self._padded, values)]), size)
        best = np.empty(size)
        block = max(LEAST_BLOCK, CACHED // sum(self._weights.shape, 1))
        for start in range(0, size, block):
            part = slice(start, start + block)
            made = self._weights @ windows[self._rows, part]
            np.max(made, axis=0, initial=0.0, out=best[part])
        return best

    def _padded(self, value: FloatArray) -> FloatArray:
        # below the grid: the chord to V(0) = 1; above it: the last value, since V decreases
        above = np.full(self._above, value[-1])
        return np.concatenate([1 - (1 - value[0]) * self._beyond, value, above])


def played_losses(
    step_on: Callable[[Grid], Callable[[FloatArray], FloatArray]],
    usual: float,
    queries: int,
    block: int,
    *,
    beside: float,
    resolution: float = RESOLUTION,
    least: Callable[[int], Losses] | None = None,
) -> Losses:
    """Return losses that dominate a game of so many steps, played for blocks and added up.

    Parameters
    ----------
    step_on : callable
        Takes a grid, and returns the step on it: from values at its points to those before one
        query more.
    usual : float
        About the largest root mean square of one query's loss, in nats.
    queries, block : int
        All queries, and those of one block.
    beside : float
        What one query may cost beside the outcomes of the step, as a probability.
    resolution : float
        Grid points per usual step.
    least : callable, optional
        Losses that dominate so many queries, if any are known: the profile of a block is nowhere
        above theirs.
    """
    size = min(block, queries)
    grid = Grid.of_step(usual, size, resolution)
    step = step_on(grid)
    value: FloatArray = np.maximum(0.0, -np.expm1(grid.h * np.arange(-grid.below, grid.above + 1)))
    parts, at = [], grid.h * np.arange(grid.above + 1.0)
    for played in range(1, size + 1):
        value = np.minimum(1.0, np.maximum(value, step(value)) + beside)
        # the last block, if it is shorter, or one of all others
        times = queries // size if played == size else int(played == queries % size)
        if times:
            found = value[grid.below :]
            if least is not None:
                found = np.minimum(found, least(played).delta(at))
            parts.append(Losses.of_values(np.minimum.accumulate(found), grid.h) * times)
    return functools.reduce(operator.add, parts)


def _game_work(chances: Chances, labels: int) -> float:
    """Return about how many multiplications a game will need (1e9 take about half a second).

    Infinite where none is played: it would fill the memory, floats end, or it bounds nothing.
    """
    if isinstance(chances, TableChances):
        if not _step_of(chances) >= _LEAST_DEVIATION:
            return math.inf
        pairs = _table_corners(chances)
        n, moved = float(len(pairs.p)), float(np.ptp(pairs.laws.log_ratio))
    else:
        sigma, half = chances.sigma, (chances.n_teachers or math.inf) / 2
        if not _MIN_SIGMA <= sigma <= _MAX_SIGMA:
            return math.inf
        far = min(_FAR, half / sigma)
        near = min(far, _NEAR)
        n = min(2 * far * sigma, 2 * _DENSITY * (near + (far - near) / 4)) + 2
        # a vote at distance z changes the log ratio by about (z + 1.3) / sigma at most
        moved = (2 * far + 2.6) / sigma
    grid = Grid.of_step(_step_of(chances), labels)
    width = min(2.0 * grid.size, moved / grid.h + 2)
    if not (grid.size * (n + width) <= _MAX_NUMBERS and grid.above * grid.h <= _LONGEST_GRID):
        return math.inf
    # of a wide window only what some corner reads is copied
    return labels * grid.size * (5 * n + min(width, 4.0 * n) + OVERHEAD)


def block_of(queries: int, work: Callable[[int], float]) -> int | None:
    """Return of how many labels a block is played, from the work of a game; None where none is."""
    if queries <= _BLOCKS[0] and work(queries) <= WHOLE_WORK:
        return queries
    return next((n for n in _BLOCKS if n <= queries and work(n) <= BLOCK_WORK), None)


def label_block(chances: Chances, queries: int) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    return block_of(queries, lambda labels: _game_work(chances, labels))


@functools.lru_cache(maxsize=256)
def label_losses(chances: Chances, queries: int, block: int) -> Losses:
    """Return losses that dominate `queries` adaptively chosen labels, by blocks of `block`.

    Parameters
    ----------
    chances : GaussianChances or TableChances
        Of which a game is played.
    queries : int
        Number l of labels.
    block : int
        Labels of a block.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query.
    Source : docs/explanation/differences.md 3, on Liu et al. 2021, Algorithm 1; dominating pairs
        compose (Zhu, Dong, Wang 2022, Theorem 10); proof in docs/explanation/prices.md.
    Rounding : upward (convex interpolation, polygon around the pairs, tails charged in full).
    """
    if isinstance(chances, TableChances):
        pairs, beside, least = _table_corners(chances), 0.0, None
    else:
        pairs, beside = _vote_pairs(chances, math.ceil(_FAR * chances.sigma))
        # no more than the counts that the labels are read off, which corners can exceed for a few
        least = functools.partial(count_losses, chances.sigma)
    return played_losses(
        lambda grid: Step(pairs.laws, grid).best,
        _step_of(chances),
        queries,
        block,
        beside=beside,
        least=least,
    )


@functools.lru_cache(maxsize=1024)
def label_renyi(chances: Chances, orders: tuple[float, ...]) -> FloatArray:
    """Return the largest divergence of one label between neighbours, over all vote counts.

    Like the game's value, the divergence's moment is convex in the pair of probabilities, so
    corners stand for all pairs. Where not all vote counts can be enumerated, orders past 1 + 4
    sigma get no bound (infinity): below, a count farther than 14 sigma from an even vote
    has a moment within 1e-16 of 1, which is never the largest.
    """
    a = np.array(orders)
    if isinstance(chances, TableChances):
        pairs, beside = _table_corners(chances, 0.0), 0.0  # no pair is left out
    elif chances.sigma <= _MAX_SIGMA:
        pairs, beside = _vote_pairs(chances, discrete_gaussian_pmf(chances.sigma)[0] - 2)
    else:
        return np.full(len(a), math.inf)
    if not (np.all(pairs.p > 0) and np.all(pairs.over > 0)):  # floats run out
        return np.full(len(a), math.inf)
    found: FloatArray = np.log1p(largest_moments(*pairs.laws, a)) / (a - 1)
    if isinstance(chances, GaussianChances) and beside > 0:
        found[~(a <= 1 + 4 * chances.sigma)] = math.inf
    return found


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


def _meeting_point(hull: list[_Point], i: int, j: int) -> _Point:
    """Return where the lines through edges i < j of a hull meet."""
    (a, b), (c, d), (e, f), (g, h) = hull[i], hull[i + 1], hull[j], hull[j + 1]
    first, second = Fraction(d - b, c - a), Fraction(h - f, g - e)
    x = (f - b + first * a - second * e) / (first - second)
    return x, b + first * (x - a)


@functools.lru_cache(maxsize=256)
def _table_corners(chances: TableChances, tolerance: float = _TOLERANCE) -> _Pairs:
    """Return corners of a polygon around all pairs of neighbouring chances.

    Few where neighbouring pairs lie nearly on a line; at most `tolerance` above the pairs.
    Everything is computed in fractions; the corners themselves are rounded to floats.
    """
    each = itertools.pairwise(chances.chances)
    hull = _upper_hull([(low, high - low) for low, high in each if high > low])
    x = np.array([point[0] for point in hull], dtype=np.float64)
    y = np.array([point[1] for point in hull], dtype=np.float64)
    found: list[_Point] = [hull[0]]
    i = 0
    while i < len(hull) - 2:
        # a corner above the hull only adds to the price: one stands for as many edges as it may
        start, i = i, i + 1
        corner = hull[i]
        while i < len(hull) - 2:
            further = _meeting_point(hull, start, i + 1)
            if further[1] > (1 + tolerance) * np.interp(float(further[0]), x, y):
                break
            corner, i = further, i + 1
        found.append(corner)
    if len(hull) > 1:
        found.append(hull[-1])
    exact = [(x, _ONE - x, y, _ONE - x - y) for x, y in found]
    return _Pairs(*np.array([[float(Fraction(one, _ONE)) for one in each] for each in exact]).T)


@functools.lru_cache(maxsize=4096)
def largest_loss(chances: TableChances) -> float:
    """Return the largest loss of one label, in nats, rounded up."""
    # of both labels and directions: by symmetry each ratio of chances of label 0 is one of label 1
    pairs = _table_corners(chances, 0.0)
    worst = np.log1p(pairs.gap / pairs.p).max()
    return float(worst) * (1 + 1e-14)


# --- confident voting ---


class Group(NamedTuple):
    """Votes that are about equally far from even.

    Attributes
    ----------
    labels : Laws
        Of the labels of these votes alone.
    passing : Laws
        Of the answers about the threshold that these votes allow, and no less clear ones.
    """

    labels: Laws
    passing: Laws


Groups = tuple[Group, ...]
_SURELY = Laws(np.array([[1.0], [0.0]]), np.zeros((2, 1)))  # passed


def _both_ways(noise: NoiseTable, first: int, last: int) -> Laws:
    """Return corners of a polygon around the pairs at first, ..., last, of those that lie within
    the table, none where no pair does; and the same turned round."""
    first, last = max(first, 3 - noise.reach), min(last, noise.reach - 1)
    pairs = _corners(noise, first, last, _CONFIDENT_DENSITY)
    there, turned = pairs.laws, np.stack([pairs.p + pairs.gap, pairs.over])
    return Laws(np.hstack([there.chance, turned]), np.hstack([there.log_ratio, -there.log_ratio]))


@functools.lru_cache(maxsize=64)
def groups_of(threshold_sigma: float, sigma: float, threshold: int, n_teachers: int) -> Groups:
    """Return the groups of votes, the clearest first; none where no game is played."""
    if not _MIN_SIGMA <= min(threshold_sigma, sigma) <= max(threshold_sigma, sigma) <= _MOST_SIGMA:
        return ()
    tops, labels = NoiseTable(threshold_sigma), NoiseTable(sigma)
    half = n_teachers // 2
    span = min(half, math.ceil(_FAR_FROM_EVEN * sigma))
    ends = [*range(0, span, max(1, math.ceil(span / _GROUPS))), half]
    found, before, above = [], -1, tops.reach
    for end in ends:  # from even votes on
        # where an odd vote is even the highest count may stay where it is
        moves = int(end > 0 or n_teachers % 2 == 0)
        first = threshold - min(n_teachers, half + 1 + end) + moves
        passing = _both_ways(tops, first, above - 1)
        if first < min(above, 3 - tops.reach):  # some of these votes pass surely
            passing = Laws(*map(np.hstack, zip(passing, _SURELY, strict=True)))
        found.append(Group(_both_ways(labels, 2 + before, 1 + end), passing))
        before, above = end, min(above, first)
    return tuple(found[::-1])


def _usual_step(groups: Groups) -> float:
    """Return about the largest root mean square of one query's loss, in nats."""
    label, whole = 0.0, 0.0
    for group in groups:
        label = max(label, float(group.labels.squares.max(initial=0.0)))
        squares = group.passing.squares + group.passing.chance[0] * label
        whole = max(whole, float(squares.max(initial=0.0)))
    return math.sqrt(whole)


def _step_on(groups: Groups, grid: Grid) -> Callable[[FloatArray], FloatArray]:
    """Return the step of one query on a grid."""
    steps = [(Step(one.labels, grid), Step(one.passing, grid, apart=True)) for one in groups]

    def further(value: FloatArray) -> FloatArray:
        labelled, best = value, value
        for label, question in steps:
            labelled = np.maximum(labelled, label.best(value))
            best = np.maximum(best, question.best(labelled, value))
        return best

    return further


def is_played(groups: Groups) -> bool:
    """Return whether a game is played: a query reveals something, and not nearly all."""
    return 1e-6 <= _usual_step(groups) <= 1.0


def joint_losses(groups: Groups, queries: int) -> Losses:
    """Return losses that dominate adaptively chosen queries, each refused or answered by a label of
    two classes.

    Parameters
    ----------
    groups : tuple of Group
        Of which a game is played.
    queries : int

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query, in the highest count and in the label.
    Source : docs/explanation/prices.md, section 12, on Papernot et al. 2018, Algorithms 1 and 2.
    Rounding : upward (convex interpolation, polygons around the pairs, groups of votes).
    """
    return played_losses(
        functools.partial(_step_on, groups),
        _usual_step(groups),
        queries,
        _CONFIDENT_BLOCK,
        beside=_LEFT_OUT,
        resolution=_CONFIDENT_RESOLUTION,
    )


def joint_renyi(groups: Groups, queries: int, answers: int, orders: FloatArray) -> FloatArray:
    """Return bounds on the divergences of such queries, of which at most `answers` are answered.

    An answer is charged for a share of what a label may reveal, and a query for what is left
    of the worst one: (P / Q)^a e^(-(a charge for each)) is a supermartingale under Q.
    """
    power = (1 - orders)[:, None]
    label, kept = np.zeros(len(orders)), []
    for group in groups:
        label = np.maximum(label, np.log1p(largest_moments(*group.labels, orders)))
        kept.append(label)
    best = np.full(len(orders), np.inf)
    for share in _SHARES.tolist():
        charge, worst = share * label, np.zeros(len(orders))
        for group, most in zip(groups, kept, strict=True):
            chances, ratios = group.passing
            answered = power * ratios[0] + (most - charge)[:, None]
            with np.errstate(over="ignore"):
                refused, passed = np.expm1(power * ratios[1]), np.expm1(answered)
                above = chances[1] * refused + chances[0] * passed
                # what floats lose of two terms that nearly cancel
                lost = (1 + np.abs(power * ratios[1])) * np.abs(chances[1] * refused)
                lost += (1 + np.abs(answered)) * np.abs(chances[0] * passed)
                worst = np.maximum(worst, np.max(above + MOMENT_LOST * lost, axis=1, initial=0.0))
        best = np.minimum(best, queries * np.log1p(worst) + answers * charge)
    return best / (orders - 1)
