"""Tests of drawn noise and drawn answers against their exact distributions, with p-values that hold
at every sample size.

Nothing here is asymptotic: each p-value comes from binomial tails, several at once by the union
bound. A test that rejects at 1e-6 is wrong once in a million runs, and a sampler whose scale is off
by 30 % must be rejected.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom

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


def delta_lower(
    outputs: NDArray[Any], neighbour_outputs: NDArray[Any], epsilon: float, *, alpha: float = 1e-6
) -> float:
    """Return a lower confidence bound on delta(epsilon) from runs of a black box on two neighbours.

    Half of the runs choose the set of outputs that distinguishes the two best; the other half
    measure it.

    `outputs` and `neighbour_outputs` are of as many independent runs each. The bound is above the
    truth with probability `alpha`: above the promised delta, the promise is broken.
    """
    n = len(outputs)
    factor = np.exp(epsilon)
    half, level = n // 2, alpha / 2
    values, codes = np.unique(np.concatenate([outputs, neighbour_outputs]), return_inverse=True)
    here, there = codes[:n], codes[n:]
    # the first halves choose the set of outputs, the second halves judge it: chosen on the same
    # runs it would flatter itself
    chosen = np.bincount(here[:half], minlength=len(values)) > factor * np.bincount(
        there[:half], minlength=len(values)
    )
    trials = n - half
    hits, misses = int(chosen[here[half:]].sum()), int(chosen[there[half:]].sum())
    # each bound fails with half of alpha, so that both hold together
    at_least = float(beta.ppf(level, hits, trials - hits + 1)) if hits else 0.0
    at_most = float(beta.ppf(1 - level, misses + 1, trials - misses)) if misses < trials else 1.0
    return max(0.0, at_least - float(factor) * at_most)
