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

*Divergences* for accounts are read off the same list: a mixture has no larger moment than its
parts. For little noise there is no list, and the lattice is small: its largest moments are taken.
Proofs: `docs/explanation/prices.md`, section 15.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from secretballot.core.label_games import (
    OVERHEAD,
    Grid,
    Laws,
    NoiseTable,
    Step,
    block_of,
    played_losses,
)
from secretballot.core.losses import Losses, count_losses, largest_moments, moments
from secretballot.core.types import BoolArray, FloatArray, IntArray

_LEAST_SIGMA = 1.0  # votes; below, labels cost nearly what their counts do
MIN_SIGMA, MAX_SIGMA = 10.0, 2000.0  # votes, of a list; beyond, its check fails or takes long
# standard deviations; of one noise and of both, beyond which the noise counts as revealed
FAR, DEEP = 7.8, 5.4
# what a label may cost beside the laws of the list, as a probability: noise farther out, the slack
# of the check and what floats lose in it
_LEFT_OUT = 5e-14
CHECK_SLACK, FLOAT_SLACK = 5e-15, 1e-14
_LISTED_SLACK = CHECK_SLACK + FLOAT_SLACK  # of the laws of the list alone
_FLOAT_ERROR = 1e-10  # relative, of a chance and of a ratio of two
# where the points of the list lie, in standard deviations of the difference and of the sum of the
# two noises; the first of the sums stands for all below it
_APART = (
    *(0.0, 0.13, 0.26, 0.4, 0.52, 0.65, 0.78, 0.9, 1.02, 1.15, 1.3, 1.5, 1.8, 2.2, 2.7, 3.4, 4.4),
    *(5.4, 6.5, 7.5, 8.5),
)
_TOGETHER = (
    *(-3.6, -1.7, -1.3, -1.0, -0.75, -0.5, -0.2, 0.15, 0.6, 1.2, 2.0, 3.0, 4.7, 6.1, 7.4, 8.8),
)
_MIRRORED_FROM = 40.0  # votes; from here on a law the other way round is nearly one of the lattice
# by how much a spread law may exceed the largest moments of the lattice; the first that passes
_TOLERANCES = (0.015, 0.02, 0.03, 0.05, 0.07)
_SPREADS = np.concatenate([[0.0], np.geomspace(1e-3, 0.4, 48)])
_LEAST_RATIO = 0.1
# orders over sigma of the moments that laws are spread by, beside the variance; beyond the last
# one divergences of the list are loose
_TILTS = (0.4, 0.8, 1.2)
_FIRST_SIDE = 0.25  # standard deviations, of the first squares
_SQUARES = 4096  # handled at a time
_USUAL_LAWS = 600  # that stand for the work of a game
# times sigma: the largest root mean square of one label's loss, where labels are many
_LOSS_OF_SIGMA = 1.135

_MOMENT_ERROR = 1e-5  # relative; more than sums of 28 MAX_SIGMA terms lose of a moment
_MOST_ORDER = 1.5  # over sigma; beyond, divergences are those of counts
_MAX_SIGMA_CUT = 300.0  # votes; beyond, cutting the lattice for high orders takes long
_SQUARE_MARGIN = 1e-3  # relative, of the largest moments of a wide lattice


class _Noise(NoiseTable):
    """Tables of the noise of one scale, and the chances of three outcomes.

    Integers whose chances are computed must lie within `reach` of 0.

    Attributes
    ----------
    edge, deep : int
        Where one noise, and where both, count as revealed.
    """

    def __init__(self, sigma: float) -> None:
        super().__init__(sigma)
        self.edge, self.deep = math.ceil(FAR * sigma), math.ceil(DEEP * sigma)

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
        noise = np.arange(first - self.reach, self.reach + 1)
        terms = self.pmf[first:] * self.below(noise + shift)
        parts = np.add.reduceat(terms, starts - first)
        return np.cumsum(parts[::-1])[::-1][own]

    def losses(self, u: IntArray, w: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the chances and log of their ratios, of the neighbour's to them; shapes (3, n)."""
        p = self.chances(u, w)
        return p, np.log(self.chances(u + 1, w - 1) / p)


# the largest chances in squares, logarithms of the smallest ratios and of the largest
_Bounds = tuple[FloatArray, FloatArray, FloatArray]


@functools.lru_cache(maxsize=32)
def _covering_laws(sigma: float) -> Laws | None:
    """Return laws that dominate one label of more than two classes, whatever the votes are.

    For every label and every convex function V from 1 down to at least 0, the largest mean of V
    over the laws, plus `_LEFT_OUT`, is at least that over the outcomes of the label. None where no
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
    noise = _Noise(sigma)
    # of noises that count as revealed, in either direction: of one far below, of the first class
    # far above and of the second, and of both below; under Q they are larger or smaller by one
    edges = np.array([1 - noise.edge, 2 - noise.edge, 1 - noise.deep])
    one, two, both = noise.below(edges).tolist()
    if not 2 * one + two + both**2 + _LISTED_SLACK <= _LEFT_OUT:
        return None
    orders = [tilt * sigma for tilt in _TILTS]
    largest = _largest_moments(noise, orders)
    for tolerance in _TOLERANCES:
        mesh = _Mesh.of(noise, orders, largest * (1 + tolerance))
        if _closes_lattice(noise, functools.partial(_open_squares, mesh, noise)):
            return mesh.laws
    return None


def _ratio_moments(p: FloatArray, log_ratio: FloatArray, orders: list[float]) -> FloatArray:
    """Return what moments of the ratios exceed 1 by, of shape (..., 4): of order 2, and of several
    orders in the direction of the larger one. Outcomes are on the first axis."""
    square = (p * np.expm1(log_ratio) ** 2).sum(axis=0)
    return np.stack([square, *(moments(p, [log_ratio], a) for a in orders)], axis=-1)


def _largest_moments(noise: _Noise, orders: list[float]) -> FloatArray:
    """Return about the largest moments on the lattice."""
    sigma = noise.sigma
    axis = np.arange(math.ceil(-4 * sigma), math.ceil(3 * sigma), max(1, int(sigma / 10)))
    u, w = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    return np.asarray(_ratio_moments(*noise.losses(u, w), orders).max(axis=0))


class _Mesh(NamedTuple):
    """The list, and where its laws are corners of cells, the hockey sticks of each cell's four.

    `apart` and `together` are where the corners lie, as differences w - u and sums u + w. All x at
    which a slope of one of the hockey sticks
    changes, and 1, are `kinks`, of shape (cells, 13); `excess` of shape (cells, 4, 13) is what a
    hockey stick exceeds that of silence by.
    """

    laws: Laws
    apart: FloatArray
    together: FloatArray
    kinks: FloatArray
    excess: FloatArray

    @classmethod
    def of(cls, noise: _Noise, orders: list[float], most: FloatArray) -> "_Mesh":
        """Return laws of the lattice, spread as far as their moments of these orders stay below
        `most`, of shape (4,)."""
        sigma = noise.sigma
        mirrored = sigma >= _MIRRORED_FROM
        across = math.sqrt(2) * sigma
        differences = np.unique(np.maximum(1, np.round(np.array(_APART) * across).astype(np.int64)))
        # the middle of two neighbouring laws: from -d - 1/2 to -d + 3/2 a noise has to lead by
        middles = differences - 0.5
        apart = np.concatenate([-middles[::-1], middles])
        if not mirrored:
            differences = np.concatenate([1 - differences[::-1], differences])
        sums = 2 * np.round(np.array(_TOGETHER) * across / 2).astype(np.int64)
        d, s = np.meshgrid(differences, sums[1:])
        u = (s + d % 2 - d) // 2
        top = np.maximum(-noise.deep, np.abs(differences) - noise.edge)
        u = np.vstack([np.minimum(top, top - differences), u])
        w = u + differences
        rim = noise.edge + math.ceil(sigma)  # beyond, chances end in floats
        u, w = (np.clip(one, -rim, rim) for one in (u, w))
        p, q = _spread_laws(noise, u.ravel(), w.ravel(), orders, most)
        p, q = (np.moveaxis(one.reshape(3, *u.shape), 0, -1) for one in (p, q))
        _make_sums_whole(p, q)
        if mirrored:
            p, q = np.concatenate([q[:, ::-1], p], axis=1), np.concatenate([p[:, ::-1], q], axis=1)
        corners = [
            np.stack([a[:-1, :-1], a[:-1, 1:], a[1:, :-1], a[1:, 1:]], axis=2).reshape(-1, 4, 3)
            for a in (p, q)
        ]
        ratio = corners[1] / corners[0]
        kinks = np.concatenate([1 / ratio.reshape(-1, 12), np.ones((len(ratio), 1))], axis=1)
        excess = _excess_over_silence(corners[0][:, :, None], ratio[:, :, None], kinks[:, None])
        p, q = (one.reshape(-1, 3).T for one in (p, q))
        if not mirrored:
            p, q = np.hstack([p, q]), np.hstack([q, p])
        return cls(Laws(p, np.log(q / p)), apart, sums.astype(np.float64), kinks, excess)

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
    noise: _Noise, u: IntArray, w: IntArray, orders: list[float], most: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return chances and those of the neighbour, of shape (3, n), the ratios spread about 1."""
    p, log_r = noise.losses(u, w)
    change = np.expm1(log_r)
    ratio = 1 + change[:, :, None] * (1 + _SPREADS)
    held = np.log(np.maximum(ratio, _LEAST_RATIO))
    fits = (_ratio_moments(p[:, :, None], held, orders) <= most).all(axis=-1)
    fits &= (ratio >= _LEAST_RATIO).all(axis=0)
    fits[:, 0] = True
    spread = _SPREADS[len(_SPREADS) - 1 - fits[:, ::-1].argmax(axis=1)]
    return p, p * (1 + change * (1 + spread))


def _make_sums_whole(p: FloatArray, q: FloatArray) -> None:
    """Let chances sum to 1 but for the last digit of the largest of three, in place."""
    largest = p.argmax(axis=-1)[..., None]
    for chances in (p, q):
        np.put_along_axis(chances, largest, 0.0, axis=-1)
        np.put_along_axis(chances, largest, 1 - chances.sum(axis=-1, keepdims=True), axis=-1)


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


def _closes_lattice(noise: _Noise, cut: Callable[[IntArray, IntArray, int], BoolArray]) -> bool:
    """Return whether no square of the lattice stays open.

    `cut` gets the first corners of squares, and their side, and says which are cut in four.
    """
    side = 2 ** max(0, math.ceil(math.log2(_FIRST_SIDE * noise.sigma)))
    starts = np.arange(-noise.edge, noise.edge + 1, side)
    u, w = (axis.ravel() for axis in np.meshgrid(starts, starts, indexing="ij"))
    while True:
        # where both are far below, a point on the rim stands for all of the same difference
        near = (np.maximum(u, w) + side - 1 >= -noise.deep) & (np.maximum(u, w) <= noise.edge)
        u, w = u[near], w[near]
        chosen = cut(u, w, side)
        if side == 1 or not chosen.any():
            return not chosen.any()
        side //= 2
        u, w = u[chosen], w[chosen]
        u = np.concatenate([u, u + side, u, u + side])
        w = np.concatenate([w, w, w + side, w + side])


def _bounds_on(noise: _Noise, u: IntArray, w: IntArray, side: int) -> _Bounds:
    """Return the largest chances in squares of integers, of shape (3, n), and the logarithms of the
    smallest and of the largest ratios."""
    last_u, last_w = u + side - 1, w + side - 1
    # the largest ratios, and the first class's chance; then the smallest, and the second class's
    p_high, log_high = noise.losses(u, last_w)
    p_low, log_low = (p_high, log_high) if side == 1 else noise.losses(last_u, w)
    most = np.stack([noise.below(last_u) * noise.below(last_w), p_high[1], p_low[2]])
    return most, log_low, log_high


def _open_squares(mesh: _Mesh, noise: _Noise, u: IntArray, w: IntArray, side: int) -> BoolArray:
    """Return which squares of integers may hold a law that is not dominated."""
    most, log_low, log_high = _bounds_on(noise, u, w, side)
    most *= 1 + _FLOAT_ERROR
    most_r, least_r = np.exp(log_high) * (1 + _FLOAT_ERROR), np.exp(log_low) * (1 - _FLOAT_ERROR)
    cell, shares = mesh.around((2 * u + side - 1) / 2, (2 * w + side - 1) / 2)
    beyond = np.empty(len(u), dtype=np.bool_)
    for start in range(0, len(u), _SQUARES):
        part = slice(start, start + _SQUARES)
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


def class_block(sigma: float, queries: int) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    if not MIN_SIGMA <= sigma <= MAX_SIGMA:
        return None

    def work(labels: int) -> float:
        size = Grid.of_step(_LOSS_OF_SIGMA / sigma, labels).size
        return labels * size * (7.5 * _USUAL_LAWS + OVERHEAD)

    return block_of(queries, work)


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
    laws = _covering_laws(sigma)
    if laws is None:
        return None
    return played_losses(
        lambda grid: Step(laws, grid).best,
        _LOSS_OF_SIGMA / sigma,
        queries,
        block,
        beside=_LEFT_OUT,
        least=lambda labels: count_losses(sigma, 2 * labels),
    )


@functools.lru_cache(maxsize=256)
def class_renyi(sigma: float, orders: tuple[float, ...]) -> FloatArray:
    """Return bounds on the divergences of one label between neighbours, over all votes.

    They hold for any number of classes above two and any number of teachers. Infinite where none is
    computed.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.
    orders : tuple of float
        Above 1.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace).
    Sensitivity : one vote taken from one class and given to another.
    Source : docs/explanation/prices.md, section 15.
    Rounding : upward (dominating laws, far noise charged in full).
    """
    a, found = np.array(orders), np.full(len(orders), math.inf)
    if not _LEAST_SIGMA <= sigma <= MAX_SIGMA:
        return found
    noise, held = _Noise(sigma), a <= 1 + _MOST_ORDER * sigma
    listed = held & (a <= _TILTS[-1] * sigma)
    laws = _covering_laws(sigma) if listed.any() else None
    if laws is not None:
        of_list = largest_moments(*laws, a[listed])
        found[listed] = _divergences(of_list, noise, a[listed], _LISTED_SLACK)
    whole = held if sigma < MIN_SIGMA else held & ~listed
    if whole.any() and sigma <= _MAX_SIGMA_CUT:
        found[whole] = _divergences(_largest_on_lattice(noise, a[whole]), noise, a[whole], 0.0)
    return found


def _divergences(found: FloatArray, noise: _Noise, a: FloatArray, beside: float) -> FloatArray:
    """Return the divergences of the largest moments, less 1, with what far noise may add, and what
    hockey sticks may lack, `beside`."""
    edge, deep = noise.edge, noise.deep
    # a hockey stick is that of silence beyond the largest ratio of the lattice
    _, ends = noise.losses(np.array([edge, -edge]), np.array([-edge, edge]))
    two = 2 * noise.sigma**2
    lacking = beside * np.exp((a - 1) * np.abs(ends).max())
    lacking += 4 * np.exp((2 * a * (a - 1) - (edge - a) ** 2) / two)
    lacking += np.exp((a * (a - 1) - (deep - a) ** 2 - deep**2) / two)
    divergences: FloatArray = np.log1p(found * (1 + _MOMENT_ERROR) + a * lacking) / (a - 1)
    return divergences * (1 + 1e-12)


def _largest_on_lattice(noise: _Noise, orders: FloatArray) -> FloatArray:
    """Return bounds on the largest moments of the lattice, less 1, one for each order."""
    reached = np.zeros(len(orders))
    margin = 0.0 if noise.sigma < MIN_SIGMA else _SQUARE_MARGIN

    def open_squares(u: IntArray, w: IntArray, side: int) -> BoolArray:
        most, log_low, log_high = _bounds_on(noise, u, w, side)
        bounds = np.stack([moments(most, (log_low, log_high), a) for a in orders.tolist()])
        # at the middles of the squares they are reached
        there = noise.losses(u + side // 2, w + side // 2)
        reached[:] = np.maximum(reached, largest_moments(*there, orders))
        return np.asarray(~(bounds <= (1 + margin) * reached[:, None]).all(axis=0))

    _closes_lattice(noise, open_squares)
    return (1 + margin) * reached
