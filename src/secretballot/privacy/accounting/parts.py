"""Optimal composition of (epsilon0, delta0) parts, alone or together with anything that has a
privacy profile.

Randomised response dominates every epsilon0-DP part, so T parts dominate by a binomial mixture: i
of the T losses are -epsilon0 and the rest +epsilon0 (Kairouz, Oh, Viswanath 2015, Theorem 3.3).
Another mechanism that runs beside them is priced at the remaining epsilon of every term, in
expectation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from secretballot._typing import FloatArray
from secretballot.exceptions import ParameterError

# of the groups' loss counts; more groups than that are priced by Renyi divergence
MAX_COMBINATIONS = 200_000
FLOAT_ERROR = 2.0**-49  # relative; a sum of a few products
MAX_READINGS = 512  # of another profile beside parts, each of up to a hundred thousand terms
LARGE = 600.0  # nats; beyond, e^epsilon is not computed
NO_LOSS = 1e-12  # nats; losses nearer than this are all taken for the largest
NEGLIGIBLE = 1e-30  # binomial terms with less weight together are charged in full instead of priced

Profile = Callable[[float], float]


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


def response_weights(count: int, epsilon: float) -> FloatArray:
    """Return the chances that 0, 1, .. `count` answers of epsilon-DP randomised response are lies.

    That is, of a binomial number of chance 1 / (1 + e^epsilon) each, in an array of shape
    (count + 1,).

    Notes
    -----
    Each weight is the one before it times (count - i) / (i + 1) e^-epsilon, from the largest one to
    both sides, and all are divided by their sum: as products of numbers up to 1, they neither
    overflow nor lose digits where they are tiny. Weights above 1e-35 lie within 13 standard
    deviations of the largest one, so each is a product of 6,000 factors at most, with a relative
    error below 3e-12, for any `count` up to `MAX_COMBINATIONS`.
    """
    odds = math.exp(-epsilon)
    mode = min(count, int((count + 1) * odds / (1 + odds)))
    i = np.arange(count, dtype=np.float64)
    up = np.cumprod((count - i[mode:]) / (i[mode:] + 1) * odds)
    down = np.cumprod((i[:mode] + 1)[::-1] / ((count - i[:mode])[::-1] * odds)) if mode else i[:0]
    weights = np.concatenate([down[::-1], [1.0], up])
    found: FloatArray = weights / weights.sum()
    return found


def _part_losses(part: Part) -> tuple[FloatArray, FloatArray, float]:
    """Return total losses, their weights under randomised response, and the weight left out."""
    weight = response_weights(part.count, part.epsilon)
    i = np.arange(part.count + 1)
    keep = weight > NEGLIGIBLE / (part.count + 1)
    losses = np.asarray((part.count - 2.0 * i[keep]) * part.epsilon, dtype=np.float64)
    return losses, weight[keep], float(weight[~keep].sum())


def is_composable(parts: Sequence[Part]) -> bool:
    """Return whether the groups have few enough combinations of losses to enumerate."""
    return math.prod(part.count + 1 for part in parts) <= MAX_COMBINATIONS


def compose_parts(parts: Sequence[Part], epsilon: float, profile: Profile = point_profile) -> float:
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
    return beside_parts(parts, profile)(epsilon)


def beside_parts(parts: Sequence[Part], profile: Profile = point_profile) -> Profile:
    """Return the profile of the parts composed with a mechanism of the given privacy profile.

    See `compose_parts`.

    Raises
    ------
    ParameterError
        If the groups have too many combinations of losses to enumerate.
    """
    if not is_composable(parts):
        raise ParameterError(
            f"{len(parts)} groups of parts have more than {MAX_COMBINATIONS} combinations of"
            " losses; price them by Renyi divergence."
        )
    losses, weights, left_out = _combined_losses(parts)
    failure = math.fsum(part.count * math.log1p(-part.delta) for part in parts if part.delta < 1)
    together = beside_losses(losses, weights, left_out, profile)

    def delta(epsilon: float) -> float:
        if any(part.delta >= 1 for part in parts):
            return 1.0
        return min(1.0, -math.expm1(failure + math.log1p(-min(together(epsilon), 1 - 1e-16))))

    return delta


def beside_losses(
    losses: FloatArray,
    weights: FloatArray,
    certain: float,
    profile: Profile,
    *,
    readings: int | None = None,
) -> Profile:
    """Return the profile of one pair, given by its losses, beside one that is given by its profile.

    Where there are many losses, the other profile is read at `MAX_READINGS` points or so, and by
    chords between them: a hockey-stick divergence is convex in e^epsilon, so a chord lies above.

    Parameters
    ----------
    losses, weights : ndarray of shape (n,)
        Privacy losses and their probabilities.
    certain : float
        Probability of an infinite loss.
    profile : callable
        delta(epsilon) of what runs beside it, for any real epsilon.
    readings : int, optional
        At about how many points the other profile is read, once for all; by default at every loss
        where they are few.
    """
    spacing = 0.0
    if readings is not None or len(losses) > MAX_READINGS:
        spacing = float(losses.max() - losses.min()) / (readings or MAX_READINGS)
        if spacing < NO_LOSS:
            losses, weights, spacing = losses.max(keepdims=True), weights.sum(keepdims=True), 0.0
    known: dict[int, float] = {}

    def delta(epsilon: float) -> float:
        # the difference of two near numbers keeps no more digits than they have: read the profile a
        # little lower
        at = epsilon - losses - FLOAT_ERROR * (abs(epsilon) + np.abs(losses))
        if profile is point_profile:
            read = -np.expm1(np.minimum(0.0, at))
        elif spacing > 0:
            read = _read_by_chords(profile, at, spacing, known)
        else:
            read = np.array([profile(one) for one in at.tolist()])
        return certain + float(weights @ read)

    return delta


def _combined_losses(parts: Sequence[Part]) -> tuple[FloatArray, FloatArray, float]:
    """Return the total losses of all groups together, their weights, and the weight left out."""
    losses, weights, left_out = np.zeros(1), np.ones(1), 0.0
    for part in parts:
        more, chance, missing = _part_losses(part)
        losses = (losses[:, None] + more).ravel()
        weights = (weights[:, None] * chance).ravel()
        left_out += missing
    return losses, weights, left_out


def _read_by_chords(
    profile: Profile, at: FloatArray, spacing: float, known: dict[int, float]
) -> FloatArray:
    """Return bounds on the profile from its values at multiples of `spacing`, kept in `known`."""
    low = np.floor(at / spacing)
    nodes = np.unique(np.concatenate([low, low + 1]))
    for node in nodes.tolist():
        if node not in known:
            known[int(node)] = profile(node * spacing)
    values = np.array([known[int(node)] for node in nodes.tolist()])
    # where nodes are so far apart that floats end, the lower node stands for all
    share = (
        np.clip(np.expm1(at - low * spacing) / math.expm1(spacing), 0.0, 1.0)
        if spacing < LARGE
        else 0.0 * at
    )
    below, above = values[np.searchsorted(nodes, low)], values[np.searchsorted(nodes, low + 1)]
    read: FloatArray = (1 - share) * below + share * above
    return read
