"""The true delta(epsilon) of short runs against an adversary who chooses every query from all
answers so far, with nothing rounded but the merging of equal products of floats."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from exact_games.worlds import neighbouring_counts
from secretballot._typing import FloatArray, IntArray
from secretballot.core.mechanisms import plurality, stability

Step = tuple[FloatArray, FloatArray]
#: An outcome: the state after it, and its chances on both sides.
Outcome = tuple[Any, float, float]


def hockey_stick(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """Return the sum of max(0, p - e^epsilon q): the delta of two listed distributions, in this
    direction."""
    return float(np.maximum(0.0, np.asarray(p) - math.exp(epsilon) * np.asarray(q)).sum())


def adaptive_delta(
    steps: Sequence[Step],
    length: int,
    epsilon: float,
    *,
    counted: Sequence[int] = (),
    most: int = 1,
) -> float:
    """Return the exact delta(epsilon) of `length` adaptively chosen steps.

    With x the logarithm of e^epsilon Q / P so far, V_0(x) = max(0, 1 - e^x), and V_j(x) is the
    largest mean, over the steps, of V_(j-1)(x + log(q_o / p_o)). Ratios multiply in any order, so
    few values of x occur.

    Parameters
    ----------
    steps : sequence of (p, q)
        Outcome distributions of one query on both sides, arrays of one shape; the adversary may
        choose any, again and again. Give both directions of each pair if the neighbouring relation
        is symmetric. Outcomes that are not listed count as lost.
    length : int
        Number of queries.
    epsilon : float
    counted : sequence of int, optional
        Outcomes of which `most` end a run.
    most : int, default 1
    """
    p, q = (np.array([step[side] for step in steps], dtype=float) for side in (0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.where(p > 0, np.log(q) - np.log(p), 0.0)
    ends = np.isin(np.arange(p.shape[1]), counted)

    def value(x: FloatArray, left: int, most: int) -> FloatArray:
        if not left or not most:
            return np.maximum(0.0, -np.expm1(np.minimum(x, 700.0)))
        best = np.tile(np.maximum(0.0, 1 - p.sum(axis=1)), (len(x), 1))
        for columns, then in ((~ends, most), (ends, most - 1)):
            if columns.any():
                after = x[:, None, None] + moves[:, columns]
                _, first, where = np.unique(after.round(10), return_index=True, return_inverse=True)
                found = value(after.ravel()[first], left - 1, then)[where].reshape(after.shape)
                best += (p[:, columns] * found).sum(axis=2)
        return np.asarray(best.max(axis=1))

    return float(value(np.array([epsilon]), length, most)[0])


class Asked(Protocol):
    """What may be asked: a state at first, and the questions that each state allows."""

    start: Any

    def questions(self, state: Any) -> Iterable[Sequence[Outcome]]:
        """Return the outcomes of each question."""


class Steps:
    """So many steps, each with one of some pairs of distributions."""

    def __init__(self, count: int, laws: Iterable[tuple[Any, Any]]) -> None:
        self.start = count
        self.laws = {(tuple(map(float, p)), tuple(map(float, q))) for p, q in laws}

    def questions(self, state: int) -> Iterator[list[Outcome]]:
        if state:
            for p, q in self.laws:
                yield [(state - 1, *both) for both in zip(p, q, strict=True)]


#: Distances of a query on both sides, and whether the label that an answer shows differs.
Move = tuple[int, int, bool]


def stream_moves(
    n_teachers: int, n_classes: int = 2, distance: Callable[[IntArray], IntArray] = stability
) -> set[Move]:
    """Return what one query may be on all neighbouring votes that it tells apart, by the
    code of the mechanisms. `distance` is of counts; another than `stability` shows its cost."""
    here, there = neighbouring_counts(n_teachers, n_classes)
    differs = (plurality(here) != plurality(there)).tolist()
    moves = zip(distance(here).tolist(), distance(there).tolist(), differs, strict=True)
    return {move for move in moves if move[0] != move[1] or move[2]}


class Stream:
    """Exact labels, some withheld. The state is what is left, and what is known on both sides of a
    hidden threshold, of which every abstention draws a new one."""

    def __init__(
        self,
        count: int,
        moves: Iterable[Move],
        answers: Callable[[int], FloatArray],
        hidden: FloatArray,
    ) -> None:
        """`answers` gives the chance of an answer at a distance, for each hidden threshold."""
        self.moves, self.answers, self.hidden = sorted(moves), answers, hidden
        self.start = count, hidden, hidden

    def questions(self, state: Any) -> Iterator[list[Outcome]]:
        left, p, q = state
        if not left:
            return
        for here, there, differs in self.moves:
            one, other = p * self.answers(here), q * self.answers(there)
            told, told_there = float(one.sum()), float(other.sum())
            after = left, one / max(told, 1e-300), other / max(told_there, 1e-300)
            fresh = left - 1, self.hidden, self.hidden
            silent = [(fresh, float(p.sum()) - told, float(q.sum()) - told_there)]
            if differs:  # a label that one side alone could have given
                yield [*silent, (after, told, 0.0), (after, 0.0, told_there)]
            else:
                yield [*silent, (after, told, told_there)]


def delta_of_all_orders(asked: Sequence[Asked], length: int, epsilon: float) -> float:
    """Return the most that any strategy reaches with so many questions of any kind, each chosen
    from all answers so far."""

    def truth(states: tuple[Any, ...], left: int, p: float, q: float) -> float:
        best = max(0.0, p - q)
        if not left or not q or not p:
            return best
        for i, one in enumerate(asked):
            for outcomes in one.questions(states[i]):
                found = sum(
                    truth((*states[:i], after, *states[i + 1 :]), left - 1, p * a, q * b)
                    for after, a, b in outcomes
                    if a > 0
                )
                best = max(best, found)
        return best

    return truth(tuple(one.start for one in asked), length, 1.0, math.exp(epsilon))
