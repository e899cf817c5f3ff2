"""Tests of drawn answers against their exact distributions, with p-values that hold at every sample
size.

Nothing here is asymptotic: each p-value comes from binomial tails, several at once by the union
bound. A test that rejects at 1e-6 is wrong once in a million runs, and a sampler whose scale is off
by 30 % must be rejected.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from scipy.stats import binom

Outcome = TypeVar("Outcome")


def frequency_p_value(successes: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of a number of successes under a known probability."""
    below = binom.cdf(successes, trials, probability)
    return min(1.0, 2 * float(min(below, binom.sf(successes - 1, trials, probability))))


def outcomes_p_value(outcomes: Sequence[Outcome], distribution: Mapping[Outcome, float]) -> float:
    """Return the p-value of independent outcomes under their exact probabilities; 0 if one has
    none."""
    if not set(outcomes) <= set(distribution):
        return 0.0
    values = [
        frequency_p_value(
            sum(seen == outcome for seen in outcomes), len(outcomes), min(1.0, probability)
        )
        for outcome, probability in distribution.items()
    ]
    return min(1.0, len(values) * min(values))
