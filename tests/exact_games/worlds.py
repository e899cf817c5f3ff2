"""Small worlds: all vote counts of a few teachers, all neighbours, and the exact distribution of
what a mechanism says.

The distribution is read off the mechanism's own code: it runs once on every value its noise can
take.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exact_games.distributions import Distribution
from secretballot._typing import FloatArray, IntArray
from secretballot.core.types import Noise


@dataclass
class ScriptedNoise:
    """Hand out noise from a list, in order, whatever scale is asked for."""

    values: Sequence[int] | IntArray
    exact: bool = False
    description: str = "scripted for a test; not noise"

    def __post_init__(self) -> None:
        self._left = np.asarray(self.values, dtype=np.int64)

    def _next_draws(self, _: float, size: int) -> IntArray:
        assert size <= len(self._left), "the script is at its end"
        taken, self._left = self._left[:size], self._left[size:]
        return taken

    discrete_laplace = discrete_gaussian = uniform_integers = _next_draws


def all_counts(n_teachers: int, n_classes: int) -> IntArray:
    """Return every vector of vote counts, shape (n_vectors, n_classes), rows summing to the
    number of teachers."""
    return np.array(list(_compositions_of(n_teachers, n_classes)), dtype=np.int64)


def _compositions_of(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions_of(total - first, parts - 1):
            yield (first, *rest)


def neighbouring_counts(n_teachers: int, n_classes: int) -> tuple[IntArray, IntArray]:
    """Return all ordered pairs of vote counts that differ by one teacher's vote, as two tables of
    shape (n_pairs, n_classes)."""
    pairs = []
    for row in all_counts(n_teachers, n_classes):
        for source, target in itertools.permutations(range(n_classes), 2):
            if row[source]:
                moved = row.copy()
                moved[[source, target]] += -1, 1
                pairs.append((row, moved))
    counts, neighbours = zip(*pairs, strict=True)
    return np.array(counts), np.array(neighbours)


def output_distribution(
    release: Callable[[IntArray, Noise], IntArray],
    query: Sequence[int] | IntArray | int,
    distribution: Distribution,
    *,
    draws: int = 1,
    n_outcomes: int,
) -> FloatArray:
    """Return the exact distribution of one query's outcome, shape (n_outcomes,), by running
    `release` on all noise values.

    `query` is the row of counts of one query, for which `draws` adjacent values of the noise are
    drawn. `release` takes many such rows and a noise source, and returns one integer below
    `n_outcomes` (or a truth value) for each; outcome -1 counts as the last.
    """
    # every combination of draws runs once through the mechanism's own code, all of them as one
    # batch
    grid = np.stack(np.meshgrid(*[distribution.support] * draws, indexing="ij"), axis=-1).reshape(
        -1, draws
    )
    weight = np.ones(1)
    for _ in range(draws):
        weight = np.multiply.outer(weight, distribution.pmf).ravel()
    row = np.asarray(query, dtype=np.int64)
    tiled = np.tile(row, (len(grid),) + (1,) * row.ndim)
    outcome = np.asarray(release(tiled, ScriptedNoise(grid.ravel()))).astype(np.int64) % n_outcomes
    return np.asarray(np.bincount(outcome, weights=weight, minlength=n_outcomes), dtype=np.float64)
