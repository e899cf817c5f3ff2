"""Small worlds: all vote counts of a few teachers, all neighbours, and the exact distribution of
what a mechanism says.

The distribution is read off the mechanism's own code: it runs once on every value its noise can
take.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from exact_games.distributions import Distribution
from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import teacher_shape
from secretballot.core.mechanisms import Mechanism, State
from secretballot.core.types import Noise

_MAX_RUNS = 20_000_000


@dataclass
class ScriptedNoise:
    """Hand out noise from a list, in order: for audits and tests, never for a release.

    Parameters
    ----------
    values : sequence of int
        What the next draws return, whatever scale they ask for.
    """

    values: Sequence[int] | IntArray
    exact: bool = False
    description: str = "scripted for an audit; not noise"

    def __post_init__(self) -> None:
        self._left = np.asarray(self.values, dtype=np.int64)

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Return the next `size` values."""
        return self._next_draws(size)

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Return the next `size` values."""
        return self._next_draws(size)

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Return the next `size` values."""
        return self._next_draws(size)

    def _next_draws(self, size: int) -> IntArray:
        if size > len(self._left):
            raise ValueError(
                f"The script has {len(self._left)} values left; {size} were asked for."
            )
        taken, self._left = self._left[:size], self._left[size:]
        return taken


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
    """Return all ordered pairs of vote counts that differ by one teacher's vote.

    Returns
    -------
    counts, relation : ndarray of int64, shape (n_pairs, n_classes)
    """
    counts = all_counts(n_teachers, n_classes)
    pairs = []
    for row in counts:
        for source in np.flatnonzero(row):
            for target in range(n_classes):
                if target != source:
                    moved = row.copy()
                    moved[source] -= 1
                    moved[target] += 1
                    pairs.append((row, moved))
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def drawn_labels(
    mechanism: Mechanism, n_teachers: int, n_classes: int = 2
) -> Callable[[IntArray, Noise], IntArray]:
    """Return the code of a mechanism as a function of counts, shape (n_queries, n_classes), and
    noise."""

    def release(counts: IntArray, noise: Noise) -> IntArray:
        shape = teacher_shape(len(counts), n_classes, n_teachers)
        drawn, _ = mechanism.draw(shape, [counts], noise, State())  # type: ignore[arg-type]
        return drawn[:, 0]

    return release


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

    Parameters
    ----------
    release : callable
        Takes values or counts, one row per query, and a noise source; returns one integer
        below `n_outcomes` (or a truth value) per query. Outcome -1 counts as the last.
    query : int or sequence of int
        The value, or the row of counts, of the one query.
    distribution : Distribution
        Distribution of every draw.
    draws : int
        Noise values drawn per query, adjacent to each other.
    n_outcomes : int

    Raises
    ------
    ValueError
        If the noise has too many combinations of values.
    """
    if not len(distribution.pmf) ** draws <= _MAX_RUNS:
        raise ValueError(
            f"{draws} draws of {len(distribution.pmf)} values are too many to enumerate; use less"
            " noise."
        )
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
