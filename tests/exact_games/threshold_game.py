"""The true delta(epsilon) of the sparse vector on short streams, its hidden threshold noise carried
along exactly.

The adversary picks every query from all answers so far. Between its queries the mechanism remembers
the noisy threshold, so the state of the game is, for both sides, the joint weight of the answers so
far and every value of the threshold noise. Answers multiply these weights in any order, hence a
state is a multiset of answered queries; an abstention draws the threshold anew.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from exact_games.distributions import Distribution, discrete_laplace_distribution
from exact_games.worlds import neighbouring_counts
from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import SparseStream
from secretballot.core.mechanisms import plurality, stability


@dataclass(frozen=True)
class StreamQuery:
    """One query on both sides: its distances, and whether the label that an answer would show
    differs."""

    distance: int
    neighbour_distance: int
    label_differs: bool


def stream_queries(
    n_teachers: int, n_classes: int = 2, distance: Callable[[IntArray], IntArray] = stability
) -> list[StreamQuery]:
    """Return the distinct queries that one teacher's change can turn into one another, both
    directions. `distance` is of counts; another one than `stability` shows what it would cost."""
    counts, neighbours = neighbouring_counts(n_teachers, n_classes)
    here, there = distance(counts).tolist(), distance(neighbours).tolist()
    differs = (plurality(counts) != plurality(neighbours)).tolist()
    found = {StreamQuery(*triple) for triple in zip(here, there, differs, strict=True)}
    informative = [
        query
        for query in found
        if query.label_differs or query.distance != query.neighbour_distance
    ]
    return sorted(
        informative,
        key=lambda query: (query.label_differs, query.distance, query.neighbour_distance),
    )


class ThresholdGame:
    """Play adaptive streams of at most `length` queries against one sparse vector.

    Parameters
    ----------
    stream : SparseStream
        Noise scales, threshold and T.
    queries : sequence of StreamQuery
        What the adversary may ask, again and again.
    labels : bool
        Whether an "above" also shows the label.
    threshold_distribution, query_distribution : Distribution, optional
        Replace the mechanism's noise: to see what broken noise would cost.
    """

    def __init__(
        self,
        stream: SparseStream,
        queries: list[StreamQuery],
        *,
        labels: bool = True,
        threshold_distribution: Distribution | None = None,
        query_distribution: Distribution | None = None,
    ) -> None:
        self.max_below = stream.abstentions
        self._hidden = threshold_distribution or discrete_laplace_distribution(
            stream.threshold_scale
        )
        noise = query_distribution or discrete_laplace_distribution(stream.query_scale)
        # the comparison is strict: above needs at least one more than the noisy threshold
        needed = stream.threshold + self._hidden.support + 1
        self._above_p = np.array([noise.at_least(needed - query.distance) for query in queries])
        self._above_q = np.array(
            [noise.at_least(needed - query.neighbour_distance) for query in queries]
        )
        self._below_p = np.array([noise.at_most(needed - 1 - query.distance) for query in queries])
        self._below_q = np.array(
            [noise.at_most(needed - 1 - query.neighbour_distance) for query in queries]
        )
        self._differs = np.array([labels and query.label_differs for query in queries])
        self._missing_query = noise.missing

    def delta(self, length: int, epsilon: float) -> float:
        """Return the exact delta(epsilon) of adaptive streams of at most `length` queries, unlisted
        noise counted as lost."""
        self._factor = math.exp(epsilon)
        self._known: dict[tuple[object, ...], float] = {}
        start = self._hidden.pmf
        value = self._state_value(start, self._factor * start, (), 0.0, 0, length)
        del self._known
        return value + length * self._missing_query + self.max_below * self._hidden.missing

    def _state_value(
        self,
        p: FloatArray,
        q: FloatArray,
        epoch: tuple[int, ...],
        log_ratio: float,
        below: int,
        left: int,
    ) -> float:
        """Return the value of a state, in which q carries e^epsilon. `epoch` lists the queries
        answered since the threshold was drawn."""
        if left == 0 or below == self.max_below:
            return max(0.0, float(p.sum() - q.sum()))
        # states whose likelihoods are proportional have proportional values, so one of them is
        # computed
        key = (epoch, round(log_ratio, 10), below, left)
        if key not in self._known:
            total = float(p.sum())
            if not total > 0:
                return 0.0
            self._known[key] = self._best_value(p, q, epoch, log_ratio, below, left) / total
        return self._known[key] * float(p.sum())

    def _best_value(
        self,
        p: FloatArray,
        q: FloatArray,
        epoch: tuple[int, ...],
        log_ratio: float,
        below: int,
        left: int,
    ) -> float:
        best = 0.0
        for query in range(len(self._differs)):
            seen = tuple(sorted((*epoch, query)))
            p_above = p * self._above_p[query]
            if self._differs[query]:
                value = float(p_above.sum())  # the label alone distinguishes the sides
            else:
                value = self._state_value(
                    p_above, q * self._above_q[query], seen, log_ratio, below, left - 1
                )
            p_below, q_below = p * self._below_p[query], q * self._below_q[query]
            value += self._after_below(p_below, q_below, below, left)
            best = max(best, value)
        return best

    def _after_below(self, p: FloatArray, q: FloatArray, below: int, left: int) -> float:
        # fresh threshold noise: of the epoch only the two probabilities are left
        p_mass, q_mass = float(p.sum()), float(q.sum())
        if not q_mass > 0:
            return p_mass
        ratio = math.log(q_mass / p_mass) if p_mass > 0 else 0.0
        fresh = self._hidden.pmf
        return self._state_value(p_mass * fresh, q_mass * fresh, (), ratio, below + 1, left - 1)


def stream_law(stream: SparseStream, values: IntArray) -> dict[tuple[bool, ...], float]:
    """Return the exact probability of every pattern of above (true) and below that a fixed stream
    can show, for queries of these values, in order; a pattern ends at the T-th below."""
    hidden = discrete_laplace_distribution(stream.threshold_scale)
    noise = discrete_laplace_distribution(stream.query_scale)
    found: dict[tuple[bool, ...], float] = {}

    def walk(weight: FloatArray, pattern: tuple[bool, ...]) -> None:
        if len(pattern) == len(values) or pattern.count(False) == stream.abstentions:
            found[pattern] = float(weight.sum())
            return
        needed = stream.threshold + hidden.support + 1 - int(values[len(pattern)])
        walk(weight * noise.at_least(needed), (*pattern, True))
        below = (weight * noise.at_most(needed - 1)).sum()
        walk(below * hidden.pmf, (*pattern, False))

    walk(hidden.pmf, ())
    return found
