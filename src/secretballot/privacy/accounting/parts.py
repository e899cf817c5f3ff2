"""Optimal composition of (epsilon0, delta0) parts, alone or together with anything that has a privacy profile.

Randomised response dominates every epsilon0-DP part, so T parts dominate by a binomial mixture: i of the T losses are
-epsilon0 and the rest +epsilon0 (Kairouz, Oh, Viswanath 2015, Theorem 3.3). Another mechanism that runs beside them is
priced at the remaining epsilon of every term, in expectation.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import binom

from secretballot.exceptions import ParameterError

__all__ = ["Part", "compose_parts", "one_of_many", "point_profile"]

MAX_COMBINATIONS = 200_000  # of the groups' loss counts; more groups than that are priced by Renyi divergence
FLOAT_ERROR = 2.0**-49  # relative; a sum of a few products
NEGLIGIBLE = 1e-30  # binomial terms that weigh less together are charged in full instead of priced


@dataclass(frozen=True)
class Part:
    """`count` adaptively composed (epsilon, delta)-DP parts."""

    epsilon: float
    delta: float
    count: int


def point_profile(epsilon: float) -> float:
    """Return delta(epsilon) of a mechanism that reveals nothing."""
    return max(0.0, -math.expm1(epsilon)) if epsilon < 0 else 0.0


def one_of_many(probability: float, count: int) -> float:
    """Return 1 - (1 - probability)^count, digits kept for tiny probabilities."""
    if probability >= 1:
        return 1.0
    return -math.expm1(count * math.log1p(-probability))


def _losses(part: Part) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return total losses, their weights under randomised response, and the weight left out."""
    i = np.arange(part.count + 1)
    weight = np.asarray(binom.pmf(i, part.count, expit(-part.epsilon)), dtype=np.float64)
    keep = weight > NEGLIGIBLE / (part.count + 1)
    losses = np.asarray((part.count - 2.0 * i[keep]) * part.epsilon, dtype=np.float64)
    return losses, weight[keep], float(weight[~keep].sum())


def compose_parts(parts: Sequence[Part], epsilon: float, profile: Callable[[float], float] = point_profile) -> float:
    """Return delta(epsilon) of the parts composed with a mechanism of the given privacy profile.

    Parameters
    ----------
    parts : sequence of Part
        Groups of equal parts.
    epsilon : float
        Privacy loss, in nats.
    profile : callable
        delta(epsilon) of what runs beside them, for any real epsilon.

    Raises
    ------
    ParameterError
        If the groups have too many combinations of losses to enumerate.
    """
    if math.prod(part.count + 1 for part in parts) > MAX_COMBINATIONS:
        raise ParameterError(
            f"{len(parts)} groups of parts have more than {MAX_COMBINATIONS} combinations of losses; "
            "price them by Renyi divergence."
        )
    groups = [_losses(part) for part in parts]
    total = sum(left_out for _, _, left_out in groups)
    for combination in itertools.product(*(range(len(losses)) for losses, _, _ in groups)):
        loss = sum(float(groups[g][0][i]) for g, i in enumerate(combination))
        weight = math.prod(float(groups[g][1][i]) for g, i in enumerate(combination))
        # the difference of two near numbers keeps no more digits than they have: read the profile a little lower
        total += weight * profile(epsilon - loss - FLOAT_ERROR * (abs(epsilon) + abs(loss)))
    failure = math.fsum(part.count * math.log1p(-part.delta) for part in parts if part.delta < 1)
    if any(part.delta >= 1 for part in parts):
        return 1.0
    return min(1.0, -math.expm1(failure + math.log1p(-min(total, 1 - 1e-16))))
