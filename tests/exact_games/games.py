"""The true delta(epsilon) of short runs against an adversary who chooses every query from all
answers so far.

A step is a pair of outcome distributions: what one query says under the votes and under a
neighbour's. The adversary picks the next step knowing everything released. With x = e^epsilon Q / P
the ratio so far,

    V_0(x) = max(0, 1 - x),
    V_j(x) = max over steps of sum over outcomes o of p_o V_(j-1)(x q_o / p_o),

and delta(epsilon) = V_l(e^epsilon). Ratios multiply in any order, so after j steps only as many
values of x occur as there are multisets of j outcome ratios: few enough to list, with nothing
rounded but the merging of equal products.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from exact_games.distributions import Distribution
from secretballot._typing import FloatArray

Step = tuple[FloatArray, FloatArray]

_MERGE = 1e-11  # log ratios closer than this are one product of floats


def hockey_stick(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """Return the sum of max(0, p - e^epsilon q): the delta of two listed distributions, in this
    direction."""
    return float(np.maximum(0.0, np.asarray(p) - math.exp(epsilon) * np.asarray(q)).sum())


def adaptive_delta(steps: Sequence[Step], length: int, epsilon: float) -> float:
    """Return the exact delta(epsilon) of `length` adaptively chosen steps.

    Parameters
    ----------
    steps : sequence of (p, q)
        Outcome distributions of one query on both sides, arrays of one shape; the adversary may
        choose any, again and again. Give both directions of each pair if the neighbouring relation
        is symmetric.
    length : int
        Number of queries.
    epsilon : float
    """
    p, q = np.array([step[0] for step in steps]), np.array([step[1] for step in steps])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, np.log(q) - np.log(p), 0.0)
    certain = (q == 0) & (p > 0)
    ratio[certain] = 0.0
    levels = [np.array([epsilon])]
    moves = _merged_values(np.append(ratio[(p > 0) & ~certain], 0.0))
    for _ in range(length):
        levels.append(_merged_values(np.add.outer(levels[-1], moves).ravel()))
    value = np.maximum(0.0, -np.expm1(levels[-1]))
    for before, after in zip(levels[-2::-1], levels[:0:-1], strict=True):
        best = np.zeros(len(before))
        for p_step, ratio_step, certain_step in zip(p, ratio, certain, strict=True):
            # an outcome that the other side cannot produce gives everything away; so does an
            # unlisted one
            unlisted = max(0.0, 1 - float(p_step.sum()))
            total = np.full(len(before), float(p_step[certain_step].sum()) + unlisted)
            for chance, move in zip(p_step[~certain_step], ratio_step[~certain_step], strict=True):
                if chance > 0:
                    total += chance * value[_places_in(after, before + move)]
            np.maximum(best, total, out=best)
        value = best
    return float(value[0])


def _merged_values(values: FloatArray) -> FloatArray:
    ordered = np.sort(values)
    return np.asarray(
        ordered[np.concatenate([[True], np.diff(ordered) > _MERGE])], dtype=np.float64
    )


def _places_in(ordered: FloatArray, wanted: FloatArray) -> NDArray[np.intp]:
    """Return the places of `wanted` in `ordered`, each known to be there up to merging."""
    right = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    left = np.maximum(right - 1, 0)
    return np.where(wanted - ordered[left] <= np.abs(ordered[right] - wanted), left, right)


def shifted_delta(
    distribution: Distribution, shifts: int, epsilon: float, *, distance: int = 1
) -> float:
    """Return the exact delta(epsilon) of `shifts` noisy integers, each moved by `distance` between
    neighbours.

    The noise is symmetric, so moving a count up or down loses the same, and adaptivity gains
    nothing: the privacy loss is a sum of independent ones. Unlisted noise counts as lost.
    """
    p = distribution.pmf
    n = len(p)
    q = np.zeros(n)
    q[distance:] = p[: n - distance]
    # outcomes that the other side cannot produce lie in the unlisted tail: charged, not enumerated
    lost = float(p[q == 0].sum()) + distribution.missing
    loss = np.log(p[q > 0]) - np.log(q[q > 0])
    losses, weights = np.zeros(1), np.ones(1)
    for _ in range(shifts):
        total = np.add.outer(losses, loss).ravel()
        weight = np.multiply.outer(weights, p[q > 0]).ravel()
        losses, weights = _pooled_losses(total, weight)
    return float(weights @ np.maximum(0.0, -np.expm1(epsilon - losses))) + shifts * lost


def _pooled_losses(losses: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(losses)
    first = np.concatenate([[True], np.diff(losses[order]) > 1e-9])
    starts = np.flatnonzero(first)
    return losses[order][starts], np.add.reduceat(weights[order], starts)
