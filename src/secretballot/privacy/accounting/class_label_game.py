"""The game of labels of more than two classes, over the laws that stand for all votes.

It is that of `label_game`, with three outcomes in place of two, and blocks of it are those of
`label_blocks`. Proofs: `docs/explanation/prices.md`, sections 2 and 15.
"""

import functools
import math

import numpy as np

from secretballot._typing import FloatArray
from secretballot.privacy.accounting.class_label_laws import (
    LEFT_OUT,
    MAX_SIGMA,
    MIN_SIGMA,
    USUAL_LAWS,
    covering_laws,
)
from secretballot.privacy.accounting.label_blocks import (
    BLOCK_COST,
    BLOCKS,
    LossDistribution,
    loss_distribution,
    repeated_losses,
)
from secretballot.privacy.accounting.label_blocks import REACH as BLOCK_REACH
from secretballot.privacy.accounting.label_game import (
    MAX_EPSILON,
    OVERHEAD,
    REACH,
    RESOLUTION,
    Grid,
    LabelProfile,
    law_values,
)

# times sigma: the largest root mean square of one label's loss, where labels are many
LOSS_OF_SIGMA = 1.135


def _game_grid(sigma: float, queries: int, epsilon: float, resolution: int, reach: float) -> Grid:
    return Grid.of_step(LOSS_OF_SIGMA / sigma, queries, epsilon, resolution, reach)


def class_label_cost(
    sigma: float,
    queries: int,
    epsilon: float,
    resolution: int = RESOLUTION,
    reach: float = REACH,
) -> float:
    """Return about how many multiplications a game of `queries` labels will need.

    Infinite where none is played.
    """
    if not (MIN_SIGMA <= sigma <= MAX_SIGMA and epsilon <= MAX_EPSILON):
        return math.inf
    grid = _game_grid(sigma, queries, epsilon, resolution, reach)
    return queries * grid.size * (7.5 * USUAL_LAWS + OVERHEAD)


def _grid_values(sigma: float, grid: Grid, after: list[int]) -> list[FloatArray] | None:
    """Return the game's value at every grid point, rounded up, after numbers of labels."""
    laws = covering_laws(sigma)
    if laws is None:
        return None
    values = law_values(laws.chance.T, laws.log_ratio.T, grid, after)
    # at a value of at most 1, whatever stands beside the laws adds no more than its probability
    return [
        np.minimum(1.0, value + labels * LEFT_OUT)
        for value, labels in zip(values, after, strict=True)
    ]


@functools.lru_cache(maxsize=64)
def class_label_profile(
    sigma: float, queries: int, epsilon: float, resolution: int = RESOLUTION
) -> LabelProfile | None:
    """Play the game of `queries` adaptively asked labels of more than two classes under discrete
    Gaussian noise on every count.

    None where no list of laws stands for all votes.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.
    queries : int
        Number l of labels.
    epsilon : float
        Largest epsilon at which the profile will be read, in nats.
    resolution : int
        As for `label_game.label_profile`.

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote taken from one class and given to another.
    Source : the game of `label_game`; docs/explanation/prices.md, section 15.
    Rounding : upward (convex interpolation, dominating laws, far noise charged in full).
    """
    grid = _game_grid(sigma, queries, epsilon, resolution, REACH)
    values = _grid_values(sigma, grid, [queries])
    return None if values is None else LabelProfile(values[0], grid)


def class_label_block(sigma: float) -> int | None:
    """Return of how many labels a block is played; None where no game is."""
    for labels in BLOCKS:
        if class_label_cost(sigma, labels, 0.0, RESOLUTION, BLOCK_REACH) <= BLOCK_COST:
            return labels
    return None


@functools.lru_cache(maxsize=64)
def class_label_losses(
    sigma: float, queries: int, block: int, resolution: int = RESOLUTION
) -> LossDistribution | None:
    """Return losses that dominate `queries` adaptively asked labels of more than two classes, by
    blocks of `block`.

    None if no game is played. Parameters and price are those of `class_label_profile`; how blocks
    compose stands at `label_blocks.composed_blocks`.
    """
    size = min(block, queries)
    grid = _game_grid(sigma, size, 0.0, resolution, BLOCK_REACH)
    count, left = divmod(queries, size)
    values = _grid_values(sigma, grid, [left, size])
    if values is None:
        return None
    rest = loss_distribution(values[0], grid) if left else None
    return repeated_losses(loss_distribution(values[1], grid), count, rest)
