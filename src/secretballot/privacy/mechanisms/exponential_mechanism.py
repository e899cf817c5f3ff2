"""Choose one of many candidates by a private score: the exponential mechanism."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, check_probability, shown
from secretballot.core.noise import ExponentialNoise, least_scale
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.privacy.accounting import Pure
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_values


@dataclass(frozen=True)
class ExponentialMechanism(Mechanism):
    """Release the index of one candidate, drawn with probability proportional to exp(score /
    scale).

    Parameters
    ----------
    epsilon : float
        Price of one choice, in nats; positive, at most 1e6.
    monotone : bool
        True: when one unit comes, no score falls, or none rises, as counts of errors or of right
        answers do under add or remove; scale = 1 / epsilon. False: scores may move both ways at
        once, as they do when a unit is replaced; scale = 2 / epsilon.

    Privacy
    -------
    Unit : one record or user, as the caller's scores count them.
    Relation : add or remove one unit where `monotone`; else also replace it in place.
    Sensitivity : every score moves by at most 1 when one unit changes, all of them at once if need
        be. Scores are integers: an error rate errors / n would hide a private n. The
        candidates, and their order are fixed without looking at the private
        data.
    Price : per choice (epsilon, 0). With w and w' the weights of neighbours, w(i) / w'(i) lies in
        [e^-1/scale, e^1/scale] and so does the ratio of their sums: 2 / scale in all. Where all
        scores move one way, both ratios lie on the same side of 1, and 1 / scale is enough.
    Source : McSherry, Talwar 2007, theorem 6; Nandi, Bassily 2020, algorithms 2 and 7, where the
        exponent has the half and is only safe with it, as records are replaced.
    Rounding : the scale is the smallest float that keeps the loss at most epsilon in exact
        arithmetic.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Notes
    -----
    The attributes `l1_sensitivity` and `squared_l2_sensitivity` speak about one score.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.ExponentialMechanism(epsilon=1.0, monotone=True)
    >>> mechanism.scale
    1.0
    >>> mechanism.distribution(np.array([10, 10])).tolist()
    [0.5, 0.5]
    >>> mechanism.event()
    Pure(epsilon=1.0, count=1)
    """

    epsilon: float
    monotone: bool
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not isinstance(self.monotone, bool):
            raise ParameterError(
                Parameter("monotone"), f" is {shown(self.monotone)}; it must be true or false."
            )
        least_scale(self._scores_moved, self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def _scores_moved(self) -> int:
        return 1 if self.monotone else 2

    @property
    def scale(self) -> float:
        """Scale of the weights, in units of the score."""
        return least_scale(self._scores_moved, self.epsilon)

    def event(self, count: int = 1) -> Pure:
        """Return what `count` choices, adaptively made, are to the accountant."""
        return Pure(epsilon=self.epsilon, count=count)

    def release(self, scores: IntArray, noise: ExponentialNoise) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        scores : ndarray of int64, shape (n_candidates,)
            Higher is better.
        noise : ExponentialNoise

        Raises
        ------
        DataError
            If `scores` do not fit; no value is named.
        """
        return noise.exponential_index(_check_scores(scores), self.scale)

    def release_range(
        self, starts: IntArray, ends: IntArray, noise: ExponentialNoise
    ) -> tuple[int, int] | None:
        """Return the first and last place of the chosen range, or None for no range.

        Parameters
        ----------
        starts, ends : ndarray of int64, shape (m,)
            The range from place i to place j >= i has the score starts[i] - ends[j], no range the
            score 0; or all of them so much more or less, which changes no probability. Each of
            these m (m + 1) / 2 + 1 scores moves by at most 1 when one unit changes, and where
            `monotone`, all of them one way.
        noise : ExponentialNoise

        Raises
        ------
        DataError
            If `starts` and `ends` do not fit; no value is named.
        """
        return noise.exponential_range(_check_scores(starts), _check_scores(ends), self.scale)

    def distribution(self, scores: IntArray) -> FloatArray:
        """Return the probability of each candidate, shape (n_candidates,).

        Private, for audits and tests.
        """
        values = _check_scores(scores)
        weights = np.exp((values - values.max()) / self.scale)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def score_loss(self, n_candidates: int, beta: float) -> float:
        """Return how far the chosen score may fall short of the best, except with probability
        `beta`.

        Parameters
        ----------
        n_candidates : int
            Number of candidates.
        beta : float
            Failure probability of the statement.

        Returns
        -------
        float
            scale * log(n_candidates / beta), in units of the score: each candidate that falls short
            by more is chosen with probability below beta / n_candidates.
        """
        return self.scale * math.log(
            check_count("n_candidates", n_candidates) / check_probability("beta", beta)
        )


def _check_scores(scores: IntArray) -> IntArray:
    values = check_values(scores)
    if not len(values):
        raise DataError(Parameter("scores"), " are empty; give one integer for each candidate.")
    return values
