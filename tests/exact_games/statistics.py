"""Tests of drawn noise and drawn answers against their exact distributions, with p-values that hold
at every sample size.

Nothing here is asymptotic: each p-value comes from binomial tails, several at once by the union
bound. A test that rejects at 1e-6 is wrong once in a million runs, and a sampler whose scale is off
by 30 % must be rejected.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy.stats import binom

from exact_games.distributions import Distribution
from secretballot._typing import IntArray

Outcome = TypeVar("Outcome")

_QUANTILES = (0.001, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.999)


def frequency_p_value(successes: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of a number of successes under a known probability."""
    below = binom.cdf(successes, trials, probability)
    return min(1.0, 2 * float(min(below, binom.sf(successes - 1, trials, probability))))


def sample_p_value(sample: IntArray, distribution: Distribution) -> float:
    """Return the p-value of independent draws under a distribution: too many or too few up to any
    of several quantiles."""
    draws = np.asarray(sample)
    below = np.cumsum(distribution.pmf)
    cuts = np.unique(distribution.low + np.searchsorted(below, _QUANTILES))
    values = [
        frequency_p_value(
            int((draws <= cut).sum()), len(draws), min(1.0, float(distribution.at_most(cut)))
        )
        for cut in cuts
    ]
    # single values as well: a sampler that favours even numbers has the right quantiles
    centre = range(-2, 3)
    values += [
        frequency_p_value(
            int((draws == x).sum()),
            len(draws),
            float(distribution.at_least(x)) - float(distribution.at_least(x + 1)),
        )
        for x in centre
    ]
    odd = float(distribution.pmf[(distribution.support % 2) == 1].sum())
    values.append(frequency_p_value(int((draws % 2 == 1).sum()), len(draws), min(1.0, odd)))
    return min(1.0, len(values) * min(values))


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
