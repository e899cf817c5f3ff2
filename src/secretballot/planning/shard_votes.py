"""Teachers on made-up shards of labelled rows, voting on the rows that they did not learn from."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.stats import poisson

from secretballot.ensemble.ballots import count_ballots
from secretballot.ensemble.isolation import one_thread
from secretballot.ensemble.rows import take_rows
from secretballot.ensemble.training import Recipe, train_shard

__all__ = ["Stock", "out_of_shard_votes"]

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stock:
    """Labelled rows that shards are drawn from; the first ones are voted on.

    Attributes
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    y : ndarray of int64, shape (n_rows,)
        Class indices.
    n_classes : int
    n_points : int
        Rows that are voted on.
    """

    X: Any
    y: IntArray
    n_classes: int
    n_points: int


def out_of_shard_votes(
    teacher: Any, stock: Stock, shard_size: float, n_teachers: int, largest: int, seed: int
) -> IntArray:
    """Train teachers on made-up shards, and count at every point the votes of those that did not learn from it.

    Parameters
    ----------
    teacher : classifier
        Copied for every shard.
    stock : Stock
    shard_size : float
        Mean number of rows in a shard; the sizes follow a Poisson law, as the shards of n records do under a keyed hash
        but for a factor 1 - 1 / K in their variance.
    n_teachers : int
    largest : int
        Rows of the largest shard; drawn sizes above are cut.
    seed : int
        The shards of one seed and of two sizes share their rows as far as they go, so that neighbouring sizes are
        compared like with like.

    Returns
    -------
    ndarray of int64, shape (n_points, n_classes)
        Rows differ in their sum: about n_teachers (1 - shard_size / n_rows) votes each.
    """
    recipe = Recipe.of(teacher, seed)
    points = take_rows(stock.X, np.arange(stock.n_points))
    counts = np.zeros((stock.n_points, stock.n_classes), dtype=np.int64)
    ask = (stock.n_classes, stock.n_points, seed, sklearn.get_config())
    with one_thread():
        for number, rows in enumerate(_made_up_shards(len(stock.y), shard_size, n_teachers, largest, seed)):
            model = train_shard(recipe, take_rows(stock.X, rows), stock.y[rows], number)
            ballots = count_ballots({number: model}, points, *ask)
            ballots[rows[rows < stock.n_points]] = 0
            counts += ballots
    return counts


def _made_up_shards(n: int, shard_size: float, n_teachers: int, largest: int, seed: int) -> Iterator[IntArray]:
    """Yield rows for each teacher, distinct within a shard."""
    for number in range(n_teachers):
        rng = np.random.default_rng([seed, number])
        # one uniform number per teacher, so that all sizes grow together with their mean
        size = int(poisson.ppf(rng.random(), shard_size))
        yield rng.permutation(n)[: min(size, largest)]
