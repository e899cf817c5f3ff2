"""Rare classes: what is known of them in public, and decisions that count them for more.

A model of a class that one record in a hundred has calls nearly every point by another name, and is
right 99 times in 100. Weights of classes move its decisions after the release; that is
post-processing, and costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import check_positive, shown, shown_classes
from secretballot.exceptions import Parameter, ParameterError

BALANCED, AUTO = "balanced", "auto"
#: Classes are balanced by themselves where one is more than so many times as frequent as another.
SKEWED = 9.0
#: A class is at least as frequent as this when its weight is set.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """By how much a model's decisions count each class.

    Attributes
    ----------
    given : ndarray of float64, shape (n_classes,), or None
        None where all are to count as if classes were equally frequent, as the model itself says of
        the public points: noise makes it say that a rare class is rarer than it is, and a stated
        share would then ask for more than it ever gives.
    auto : bool
        Whether all count as they are unless their frequencies are `SKEWED`.
    """

    given: FloatArray | None
    auto: bool = False

    def to_json(self) -> str | list[float]:
        """Return the setting as a JSON value."""
        if self.given is not None:
            weights: list[float] = self.given.tolist()
            return weights
        return AUTO if self.auto else BALANCED

    def of_model(self, predicted: FloatArray) -> FloatArray:
        """Return the weights of a model that predicts these shares of the pool in the mean.

        Parameters
        ----------
        predicted : ndarray of float64, shape (n_classes,)
            Follows from released values and public points.
        """
        if self.given is not None:
            return self.given
        shares: FloatArray = np.maximum(predicted, _LEAST_SHARE)
        if self.auto and not shares.max() > SKEWED * shares.min():
            return np.ones(len(shares))
        return 1 / (len(shares) * shares)


def checked_weights(weight: object, classes: Sequence[Any]) -> ClassWeights | None:
    """Return how decisions count classes; None where all count alike.

    Raises
    ------
    ParameterError
        If it is neither "balanced" nor "auto", nor a positive number for each declared class.
    """
    if weight is None:
        return None
    if isinstance(weight, str) and weight in (BALANCED, AUTO):
        return ClassWeights(None, weight == AUTO)
    if not isinstance(weight, Mapping) or set(weight) != set(classes):
        raise ParameterError(
            Parameter("class_weight"),
            f" is {shown(weight)}; it must be {BALANCED!r}, {AUTO!r}, or a positive number for each"
            f" of the {len(classes)} declared classes ({shown_classes(classes)}).",
        )
    found = [check_positive("class_weight", weight[name]) for name in classes]
    return ClassWeights(np.array(found, dtype=np.float64))
