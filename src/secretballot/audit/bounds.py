"""Certified lower bounds on epsilon, from runs whose world was a secret fair coin.

A mechanism that is (epsilon, delta)-DP lets nobody distinguish two neighbouring worlds too often:
of the guesses of fair coins at most a binomial number of chance e^epsilon / (1 + e^epsilon) each is
right, up to a term of delta (Steinke, Nasr, Jagielski 2023, arXiv:2305.08846, theorem 5.2). Guesses
may be withheld, and the coins may all belong to one run (canaries) or to one run each. The bound is
exact at every number of runs.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom

from secretballot._typing import BoolArray, FloatArray
from secretballot._validation import check_count, check_delta, check_probability
from secretballot.exceptions import ParameterError

_HALVINGS = 40
_LOOKED_AT = 20


def clopper_pearson(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return exact one-sided confidence bounds of a probability, lower and upper, each wrong with
    chance `alpha`.

    Parameters
    ----------
    successes, trials : int
        Of independent runs.
    alpha : float
        Chance that the lower bound is above the truth; likewise of the upper one below it.

    Returns
    -------
    (float, float)

    Raises
    ------
    ParameterError
        If there are more successes than trials.
    """
    n, k = check_count("trials", trials, minimum=0), check_count("successes", successes, minimum=0)
    level = check_probability("alpha", alpha)
    if not k <= n:
        raise ParameterError(
            f"{k} successes in {n} trials do not fit together; give at most as many as trials."
        )
    low = float(beta.ppf(level, k, n - k + 1)) if k else 0.0
    high = float(beta.ppf(1 - level, k + 1, n - k)) if k < n else 1.0
    return low, high


def guess_p_value(right: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """Return a bound on the chance of so many right guesses under (epsilon, delta)-DP.

    Parameters
    ----------
    right, guesses, coins : int
        Right guesses, guesses made, and fair coins tossed: those without a guess count in the term
        of delta.
    epsilon, delta : float
        The promise under test.

    Returns
    -------
    float
        At most 1.
    """
    chance = 1 / (1 + math.exp(-epsilon))
    by_chance = float(binom.sf(right - 1, guesses, chance))
    if delta == 0 or right == 0:
        return min(1.0, by_chance)
    # P[right > W >= right - i]
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    worst = float((below / np.arange(1, right + 1)).max())
    return min(1.0, by_chance + 2 * coins * delta * worst)


def epsilon_from_guesses(
    right: int, guesses: int, coins: int, *, delta: float, alpha: float
) -> float:
    """Return a lower confidence bound on epsilon from the number of coins that were guessed right.

    Parameters
    ----------
    right, guesses, coins : int
        As in `guess_p_value`; how many guesses are made must not depend on which of them are right.
    delta : float
        At which epsilon is bounded.
    alpha : float
        Chance that the bound is above the truth.

    Returns
    -------
    float
        At least 0, in nats: the smallest epsilon that the guesses do not refute.
    """
    slack, level = check_delta("delta", delta), check_probability("alpha", alpha)
    chance, _ = clopper_pearson(right, guesses, level)
    # the epsilon of which a chance of a right guess is the limit
    at_most = math.log(chance / (1 - chance)) if chance > 0.5 else 0.0
    if slack == 0 or at_most == 0:
        return at_most

    def refuted(epsilon: float) -> bool:
        return guess_p_value(right, guesses, coins, epsilon, slack) <= level

    low, high = 0.0, at_most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    # The term of delta need not rise with epsilon everywhere: a smaller one that holds is the
    # bound.
    below = (
        epsilon for epsilon in np.linspace(0.0, low, _LOOKED_AT).tolist() if not refuted(epsilon)
    )
    return float(next(below, low))


@dataclass(frozen=True)
class Verdict:
    """What scores of fair coins showed, of canaries or of runs held out.

    Attributes
    ----------
    right, guesses, coins : int
        Right guesses, guesses, and all coins.
    bound : float
        Certified lower bound on epsilon, in nats.
    power : float
        The bound that right guesses alone would have certified.
    """

    right: int
    guesses: int
    coins: int
    bound: float
    power: float


def canary_bound(
    scores: FloatArray, present: BoolArray, *, delta: float, alpha: float, share: float = 1.0
) -> Verdict:
    """Return what the scores of all coins show: of canaries, or of runs.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_coins,)
        Above 0, the canary is guessed to be present, or the run to be in the second world.
    present : ndarray of bool, shape (n_coins,)
        The random draws.
    delta, alpha : float
        As in `epsilon_from_guesses`.
    share : float
        Share of the coins that are guessed, the surest first; to be fixed beforehand.
    """
    guesses = max(1, round(share * len(scores)))
    surest = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    right = int(((scores[surest] > 0) == present[surest]).sum())
    bound, power = (
        epsilon_from_guesses(count, guesses, len(scores), delta=delta, alpha=alpha)
        for count in (right, guesses)
    )
    return Verdict(right, guesses, len(scores), bound, power)


def group_privacy(epsilon: float, delta: float, steps: int) -> tuple[float, float]:
    """Return the promise for inputs that are several neighbouring steps apart.

    Parameters
    ----------
    epsilon, delta : float
        Promise for one step.
    steps : int

    Returns
    -------
    (float, float)
        k epsilon, and delta (1 + e^epsilon + ... + e^((k - 1) epsilon)).
    """
    k = check_count("steps", steps)
    return k * epsilon, min(1.0, delta * math.fsum(math.exp(i * epsilon) for i in range(k)))
