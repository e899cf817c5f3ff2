"""Many labels: the game of a block, and blocks composed as if each met its own worst case.

The game of section 2 of `docs/explanation/prices.md` takes one step for each label. Here it is
played for a block of some hundred labels. What comes out is the largest hockey stick of the block
at every epsilon at once: the profile of a pair of distributions that dominates the block. Blocks
then compose by convolution of their privacy losses. It costs about 1 % of delta, as the adversary
may choose another strategy inside a block for every epsilon, and takes a time that hardly grows
with the number of labels.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.label_game import (
    MIN_SIGMA,
    RESOLUTION,
    Grid,
    game_cost,
    game_values,
)
from secretballot.privacy.accounting.parts import FLOAT_ERROR
from secretballot.privacy.accounting.rounding import round_up

BLOCKS = (1024, 512, 256, 128, 64, 32)  # labels
BLOCK_COST = 2e9  # multiplications that the game of one block may take, about a second
# standard deviations of a block's loss that its grid covers; the rest counts as a failure
REACH = 9.0
MAX_LOSSES = 6000  # entries of a distribution; where there are more, the grid is coarsened
MOST_LOSSES = 100_000  # beyond, one label is so dear that a block says nothing
MOST_DISTANCE = 1.0  # nats between neighbouring losses
NEGLIGIBLE = 1e-26  # probability cut off at each end of a distribution, and charged
CONVOLUTION_ERROR = 2e-12  # relative; more than a sum of `MAX_LOSSES` products can lose


@dataclass(frozen=True, eq=False)
class LossDistribution:
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

    @property
    def losses(self) -> FloatArray:
        """The losses, in nats, of the shape of `chance`."""
        steps = np.arange(self.first, self.first + len(self.chance), dtype=np.float64)
        return self.h * steps

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta at `epsilon`, any real number."""
        losses = self.losses
        # the difference of two near numbers keeps no more digits than they have
        lower = epsilon - losses - FLOAT_ERROR * (abs(epsilon) + np.abs(losses))
        return min(1.0, self.certain + float(self.chance @ -np.expm1(np.minimum(0.0, lower))))


def loss_distribution(value: FloatArray, grid: Grid) -> LossDistribution:
    """Return the losses whose profile lies on or above a game's value at every x.

    `value` has shape (grid.size,).

    Between grid points the profile is linear, so at each of them sits the probability by which its
    slope changes. Below x = 1 it is read off its mirror image, since neighbours have no order: V(x)
    = 1 - x + x V(1 / x).
    """
    v = value[grid.below :]
    x = np.exp(grid.h * np.arange(len(v)))
    # not as a difference, which keeps few digits where the grid is fine
    slope = np.append(np.diff(v) / (x[:-1] * math.expm1(grid.h)), 0.0)
    # in a difference of slopes each value may be off by its last digits, which is added
    up = np.maximum(0.0, x[1:] * np.diff(slope)) + 2.0**-50 * v[:-1] / -math.expm1(-grid.h)
    down = up / x[1:]
    middle = max(0.0, 1 - float(v[-1]) - math.fsum(up) - math.fsum(down)) + 2.0**-50
    return _without_ends(
        LossDistribution(grid.h, -len(up), np.concatenate([down[::-1], [middle], up]), float(v[-1]))
    )


def _without_ends(losses: LossDistribution) -> LossDistribution:
    """Return the losses without their ends.

    Low ones are raised to the lowest that stays, high ones become certain.
    """
    chance = losses.chance
    low = int(np.searchsorted(np.cumsum(chance), NEGLIGIBLE))
    high = len(chance) - int(np.searchsorted(np.cumsum(chance[::-1]), NEGLIGIBLE))
    if not low < high:
        return losses
    kept = chance[low:high].copy()
    kept[0] += chance[:low].sum()
    return LossDistribution(
        losses.h, losses.first + low, kept, losses.certain + float(chance[high:].sum())
    )


def _on_coarser_grid(losses: LossDistribution) -> LossDistribution:
    """Return the losses on a grid of twice the distance.

    Odd ones are split so that P and Q keep their mass.
    """
    h, chance = losses.h, losses.chance
    first = losses.first - losses.first % 2
    before = losses.first - first
    padded = np.concatenate([np.zeros(before), chance, np.zeros((before + len(chance) + 1) % 2)])
    even, odd = padded[0::2].copy(), padded[1::2]
    even[:-1] += odd / (1 + math.exp(h))
    even[1:] += odd / (1 + math.exp(-h))
    return LossDistribution(2 * h, first // 2, even, losses.certain)


def _convolved_losses(one: LossDistribution, other: LossDistribution) -> LossDistribution:
    chance = np.convolve(one.chance, other.chance) * (1 + CONVOLUTION_ERROR)
    certain = one.certain + other.certain - one.certain * other.certain
    return _without_ends(
        LossDistribution(one.h, one.first + other.first, chance, min(1.0, round_up(certain)))
    )


def repeated_losses(
    base: LossDistribution, count: int, rest: LossDistribution | None
) -> LossDistribution | None:
    """Return `count` times the base and once the rest, by repeated squaring on one grid, coarser as
    they grow.

    None where losses spread so far that the grid would be of no use.
    """
    result = rest
    while True:
        while max(len(base.chance), 0 if result is None else len(result.chance)) > MAX_LOSSES:
            if base.h > MOST_DISTANCE:
                return None
            base, result = (
                _on_coarser_grid(base),
                None if result is None else _on_coarser_grid(result),
            )
        if count & 1:
            result = base if result is None else _convolved_losses(result, base)
        count >>= 1
        if not count:
            return result
        base = _convolved_losses(base, base)


def block_size(sigma: float, n_teachers: int | None) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    if not sigma >= MIN_SIGMA:
        return None
    for labels in BLOCKS:
        if game_cost(sigma, labels, n_teachers, 0.0, RESOLUTION, REACH) <= BLOCK_COST:
            return labels
    return None


@functools.lru_cache(maxsize=64)
def composed_blocks(
    sigma: float,
    queries: int,
    n_teachers: int | None,
    block: int,
    resolution: int = RESOLUTION,
) -> LossDistribution | None:
    """Return losses that dominate `queries` adaptively asked labels, by blocks of `block`.

    None if they are too many.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; at least `MIN_SIGMA`.
    queries : int
        Number l of labels, at least `block`.
    n_teachers : int or None
        K; None for every K at once.
    block : int
        Labels of a block.
    resolution : int
        Grid points per typical step, as for `label_game.label_profile`.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query.
    Source : the game of `label_game`; dominating pairs compose (Zhu, Dong, Wang 2022, Theorem 10);
        docs/explanation/prices.md.
    Rounding : upward (convex interpolation, mass-keeping splits, ends charged in full).
    """
    grid = Grid.of(sigma, block, 0.0, resolution, REACH)
    if grid.above > MOST_LOSSES:
        return None
    count, left = divmod(queries, block)
    values = game_values(sigma, n_teachers, grid, [left, block])
    rest = loss_distribution(values[0], grid) if left else None
    return repeated_losses(loss_distribution(values[1], grid), count, rest)
