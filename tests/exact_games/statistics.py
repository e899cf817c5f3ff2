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
    """Return the two-sided p-value of a number of successes under a known probability.

    Raises
    ------
    ValueError
        If the numbers do not fit together.
    """
    n = trials
    k = successes
    if not k <= n or not 0 <= probability <= 1:
        raise ValueError(
            f"{k} successes in {n} trials at probability {probability!r} do not fit together; "
            "give at most as many successes as trials and a probability."
        )
    return min(1.0, 2 * float(min(binom.cdf(k, n, probability), binom.sf(k - 1, n, probability))))


def sample_p_value(sample: IntArray, distribution: Distribution) -> float:
    """Return the p-value of independent draws under a distribution.

    Too many or too few up to any of several quantiles.

    Parameters
    ----------
    sample : ndarray of int64, shape (n_draws,)
    distribution : Distribution
        What the draws should follow.
    """
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
    """Return the p-value of independent outcomes under their exact probabilities.

    0 if one has none.

    Parameters
    ----------
    outcomes : sequence
        Hashable outcomes.
    distribution : mapping
        Outcome to probability.
    """
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

    Parameters
    ----------
    outputs, neighbour_outputs : ndarray, shape (n_runs,)
        One hashable output per independent run, on each side.
    epsilon : float
        Privacy loss at which to attack, in nats.
    alpha : float
        Probability that the bound is above the truth.

    Returns
    -------
    float
        At least 0. Above the promised delta, the promise is broken (with confidence 1 - alpha).

    Raises
    ------
    ValueError
        If the two sides have fewer than two runs or differ in number.
    """
    n = len(outputs)
    if n < 2 or len(neighbour_outputs) != n:
        raise ValueError(
            f"{n} and {len(neighbour_outputs)} runs were given; give two or more, as many on each"
            " side."
        )
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
