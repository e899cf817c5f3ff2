"""Rare classes: what is known of them in public, and decisions that count them for more.

A model of a class that one record in a hundred has calls nearly every point by another name, and is
right 99 times in 100. Weights of classes move its decisions after the release; that is
post-processing, and costs nothing.
"""

from collections.abc import Mapping, Sequence
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


#: By how much a model's decisions count each class, as on the certificate: a number for each;
#: "balanced", as if classes were equally frequent; or "auto", so where frequencies are `SKEWED`.
ClassWeights = str | list[float]


def weights_of_model(weights: ClassWeights, predicted: FloatArray) -> list[float]:
    """Return the weights of a model that predicts these shares of the pool in the mean.

    Balanced is by what the model itself says of the public points: noise makes it say that a rare
    class is rarer than it is, and a stated share would then ask for more than it ever gives.

    Parameters
    ----------
    weights : ClassWeights
    predicted : ndarray of float64, shape (n_classes,)
        Follows from released values and public points.
    """
    if not isinstance(weights, str):
        return weights
    shares = np.maximum(predicted, _LEAST_SHARE)
    alike = weights == AUTO and not shares.max() > SKEWED * shares.min()
    found: list[float] = (np.ones(len(shares)) if alike else 1 / (len(shares) * shares)).tolist()
    return found


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
        return weight
    if not isinstance(weight, Mapping) or set(weight) != set(classes):
        raise ParameterError(
            Parameter("class_weight"),
            f" is {shown(weight)}; it must be {BALANCED!r}, {AUTO!r}, or a positive number for each"
            f" of the {len(classes)} declared classes ({shown_classes(classes)}).",
        )
    return [check_positive("class_weight", weight[name]) for name in classes]
