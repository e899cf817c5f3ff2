"""Teachers on simulated shards of labelled rows, voting on rows that they did not learn from."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn

from secretballot._typing import FloatArray, IntArray
from secretballot.foreign_code import one_thread
from secretballot.teachers.ensemble import Poll, count_ballots
from secretballot.teachers.rows import take_rows
from secretballot.teachers.training import Recipe, train_shard


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


@dataclass(frozen=True, eq=False)
class ShardVotes:
    """Votes of teachers on the points that they did not learn from.

    Attributes
    ----------
    counts : ndarray of int64, shape (n_points, n_classes)
        Rows differ in their sum: about n_teachers (1 - shard size / rows of the stock) votes each.
    truth : ndarray of int64, shape (n_points,)
    right : ndarray of float64, shape (n_classes,)
        Share of right votes, over the points of each true class; nan where no vote was counted.
    both_right : ndarray of float64, shape (n_classes,)
        Share of pairs of teachers with disjoint shards that are both right, likewise.
    """

    counts: IntArray
    truth: IntArray
    right: FloatArray
    both_right: FloatArray


def out_of_shard_votes(
    teacher: Any, stock: Stock, shard_size: float, n_teachers: int, largest: int, seed: int
) -> ShardVotes:
    """Train teachers on simulated shards, and count their votes on points that they have not seen.

    Parameters
    ----------
    teacher : classifier
        Copied for every shard.
    stock : Stock
    shard_size : float
        Mean number of rows in a shard; the sizes follow a Poisson distribution, as the shards of n
        records do under a keyed hash but for a factor 1 - 1 / K in their variance.
    n_teachers : int
    largest : int
        Rows of the largest shard, less than half of the stock; drawn sizes above are cut.
    seed : int

    Notes
    -----
    The stock is shuffled and cut into disjoint shards, and again, until there are enough. Shards of
    one shuffling are to each other what real ones are. Shards of two shufflings share rows, so that
    on all of them together teachers agree too well, by a share of about shard size / stock size of
    their variance. (Drawing rows with replacement gives teachers the right spread, but around a
    model of the stock rather than of the distribution behind it: each of them is then less accurate
    than a real one.) Both shares that are returned by class are free of that: single teachers learn
    from what real ones would, and `both_right` counts pairs of one shuffling alone.
    """
    recipe = Recipe.of(teacher, seed)
    points, truth = take_rows(stock.X, np.arange(stock.n_points)), stock.y[: stock.n_points]
    ask = (stock.n_classes, stock.n_points, seed, sklearn.get_config())
    counts = np.zeros((stock.n_points, stock.n_classes), dtype=np.int64)
    pairs = np.zeros((2, stock.n_classes))  # all, and those that are both right

    def all_and_right(votes: IntArray) -> tuple[IntArray, IntArray]:
        return votes.sum(axis=1), votes[np.arange(len(truth)), truth]

    def by_class(values: IntArray) -> FloatArray:
        return np.asarray(np.bincount(truth, values, stock.n_classes), dtype=np.float64)

    shards = enumerate(_simulated_shards(stock, shard_size, n_teachers, largest, seed))
    with one_thread():
        # only teachers of one shuffling have disjoint shards, so pairs are counted within each
        for _, disjoint in itertools.groupby(shards, key=lambda shard: shard[1][0]):
            now = np.zeros_like(counts)
            for number, (_, rows) in disjoint:
                model = train_shard(recipe, take_rows(stock.X, rows), stock.y[rows], number)
                ballots = count_ballots({number: model}, Poll(points, *ask))
                # a teacher knows the rows that it learnt from, and would vote too well on them
                ballots[rows[rows < stock.n_points]] = 0
                now += ballots
            pairs += [by_class(votes * (votes - 1)) for votes in all_and_right(now)]
            counts += now
    given, right = map(by_class, all_and_right(counts))
    with np.errstate(invalid="ignore"):
        return ShardVotes(counts, truth, right / given, pairs[1] / pairs[0])


def _simulated_shards(
    stock: Stock, shard_size: float, n_teachers: int, largest: int, seed: int
) -> Iterator[tuple[int, IntArray]]:
    """Yield the number of the shuffling and the rows of a shard for each teacher."""
    sizes = np.minimum(np.random.default_rng([seed, 0]).poisson(shard_size, n_teachers), largest)

    shuffling, start, order = 0, 0, np.random.default_rng([seed, 1]).permutation(len(stock.y))
    for size in sizes:
        if start + size > len(order):
            shuffling, start = shuffling + 1, 0
            order = np.random.default_rng([seed, 1 + shuffling]).permutation(len(stock.y))
        yield shuffling, order[start : start + size]
        start += int(size)
