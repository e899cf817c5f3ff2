"""Tell whether an integer of sensitivity 1, with discrete Gaussian noise, reaches a threshold."""

import operator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import shown
from secretballot.core.noise import MAX_SCALE, NoiseSource, check_scale
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import BinaryLabels, GaussianChances
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_values


def check_threshold(value: object) -> int:
    """Return a threshold in whole votes, at most 2^40 in size, or raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is no integer of that size.
    """
    if isinstance(value, bool):
        raise ParameterError(
            Parameter("threshold"), f" is {shown(value)}; it must be an integer of votes."
        )
    try:
        threshold = operator.index(value)  # type: ignore[arg-type]  # index refuses
    except TypeError:
        raise ParameterError(
            Parameter("threshold"), f" is {shown(value)}; it must be an integer of votes."
        ) from None
    if not abs(threshold) <= MAX_SCALE:
        raise ParameterError(
            Parameter("threshold"), f" is {threshold}; it must be at most 2^40 votes in size."
        )
    return threshold


@dataclass(frozen=True)
class GaussianThreshold(Mechanism):
    """Release, per query, whether value + discrete Gaussian noise >= threshold.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; positive and finite.
    threshold : int
        Public threshold, in votes.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : the caller's values move by at most 1 when one teacher moves one vote, as the
        highest count and `stability` do.
    Price : the exact adaptive game on the answer alone, as for labels of any number of teachers: an
        answer is yes with probability P(N >= threshold - value). The noisy value must not be shown.
    Source : Papernot et al. 2018, arXiv:1802.08908, section 4.1 (the check of Confident-GNMax).
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianThreshold(sigma=5.0, threshold=60)
    >>> mechanism.release(np.array([90, 62]), sb.audit.ScriptedNoise([3, -3]))
    array([ True, False])
    """

    sigma: float
    threshold: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        object.__setattr__(self, "threshold", check_threshold(self.threshold))

    def event(self, count: int = 1) -> BinaryLabels:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return BinaryLabels(chances=GaussianChances(sigma=self.sigma), queries=count)

    def release(self, values: IntArray, noise: NoiseSource) -> BoolArray:
        """Return whether each noisy value reaches the threshold, shape (n_queries,)."""
        checked = check_values(values)
        return np.asarray(
            checked + noise.discrete_gaussian(self.sigma, len(checked)) >= self.threshold
        )
