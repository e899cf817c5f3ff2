"""Delta of two noisy sums in a world so small that every outcome can be listed."""

import numpy as np

from secretballot.core.types import Guarantee
from secretballot.learners.moment_vectors import Records, vector_sums


def records_of(coordinates, targets, persons=None, marks=None):
    """Return records as a learner makes them: those of a person stand together."""
    marks = np.empty((len(coordinates), 0), dtype=np.int64) if marks is None else marks
    order = np.argsort(np.zeros(len(targets)) if persons is None else persons, kind="stable")
    parts = [one[order] for one in (coordinates, targets, marks)]
    return Records(*parts, None if persons is None else persons[order])


def sum_of(records, asked):
    """Return the exact sum of what a stage asks."""
    unit = "record" if records.persons is None else "user"
    guarantee = Guarantee.model_validate({"unit": unit, "relation": "add-remove"})
    return vector_sums([[records]], asked, guarantee)._unseal()[0]


def mass(sigma, reach):
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def stage_distribution(total, single, reach):
    """Return the probabilities of all noisy sums in a square around 0."""
    x, y = (np.roll(single, int(shift)) for shift in total)
    return np.outer(x, y).ravel()


def true_delta(one, other, staged, sigma, epsilon, reach=34, *, first_sigma=None):
    """Return delta(epsilon) of two adaptive stages of two coordinates, by every outcome of both.

    Parameters
    ----------
    one, other : Records
        Neighbours.
    staged : callable
        Returns what the first stage asks, of None, and the second, of the sign of the first number.
    sigma, epsilon : float
    reach : int
        Outcomes beyond are not looked at.
    first_sigma : float, optional
        Scale of the noise of the first stage; by default that of the second.
    """
    single, begun = mass(sigma, reach), mass(first_sigma or sigma, reach)
    first = np.repeat(np.arange(-reach, reach + 1), 2 * reach + 1)  # of the first coordinate
    stages = {}
    for sign in (-1, 1):
        ask = staged(sign)
        stages[sign] = [
            stage_distribution(sum_of(side, ask), single, reach) for side in (one, other)
        ]
    start = staged(None)
    p, q = (stage_distribution(sum_of(side, start), begun, reach) for side in (one, other))
    delta = 0.0
    for sign in (-1, 1):
        here = (first > 0) == (sign > 0)
        p2, q2 = stages[sign]
        # hockey stick of the second stage at epsilon less the loss of the first
        ratio = np.divide(q2, p2, out=np.zeros_like(p2), where=p2 > 0)
        order = np.argsort(ratio)
        tops = np.cumsum(p2[order]), np.cumsum(q2[order])
        with np.errstate(divide="ignore"):
            limits = p[here] / (np.exp(epsilon) * q[here])
        places = np.searchsorted(ratio[order], limits)
        inside = places > 0
        at = np.maximum(places - 1, 0)
        gains = p[here] * tops[0][at] - np.exp(epsilon) * q[here] * tops[1][at]
        delta += float(np.sum(np.maximum(gains, 0)[inside]))
    return delta
