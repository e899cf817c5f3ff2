"""Labels of two classes, and what an adversary who chooses every query from all answers so far
learns from them: the definitions, by exact recursion."""

import itertools

import numpy as np

from secretballot.core.losses import discrete_gaussian_pmf


def label_chances(n_teachers, sigma):
    """Return P(2 (votes + noise) >= K), the chance of label 1, for every number of votes."""
    reach, pmf = discrete_gaussian_pmf(sigma)
    noise = np.arange(-reach, reach + 1)
    return [float(pmf[2 * (v + noise) >= n_teachers].sum()) for v in range(n_teachers + 1)]


def both_ways(chances):
    """Return the chances of label 1 under neighbouring votes, in both orders."""
    return [*itertools.pairwise(chances), *itertools.pairwise(reversed(chances))]


def best_attack(pairs, answers, ratio):
    """Return the largest mean of max(0, P - ratio Q) over all adaptive choices of pairs; in
    fractions where pairs and ratio are."""

    def value(p, q, left):
        if left == 0:
            return max(0, p - ratio * q)
        return max(
            value(p * a, q * b, left - 1) + value(p * (1 - a), q * (1 - b), left - 1)
            for a, b in pairs
        )

    return value(1, 1, answers)
