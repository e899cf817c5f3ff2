"""Rare classes: what is said of them in public, and decisions that count them for more.

A model of a class that one record in a hundred has calls nearly every point by another name, and is
right 99 times in 100. Weights of classes move its decisions after the release; that is
post-processing, and costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import check_finite, shown
from secretballot.bases import Basis, TableBasis
from secretballot.bases.named import unfitted_basis
from secretballot.exceptions import Parameter, ParameterError

BALANCED = "balanced"
#: From here on down the noise of a sum drowns what few records of a class say in weak directions.
RARE = 0.05
#: Bins of a column of numbers, in a basis for rare classes.
_FEW_BINS = 4
#: A class is at least as frequent as this when its weight is set.
_LEAST_SHARE = 1e-4
_SUM_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """By how much a model's decisions count each class.

    Attributes
    ----------
    given : ndarray of float64, shape (n_classes,), or None
        None where all are to count as if classes were equally frequent, as the model itself says of
        the public points: noise makes it say that a rare class is rarer than it is, and a stated
        share would then ask for more than it ever gives.
    """

    given: FloatArray | None

    def to_json(self) -> str | list[float]:
        """Return the setting as a JSON value."""
        return BALANCED if self.given is None else self.given.tolist()

    def of_model(self, predicted: FloatArray) -> FloatArray:
        """Return the weights of a model that predicts these shares of the pool in the mean.

        Parameters
        ----------
        predicted : ndarray of float64, shape (n_classes,)
            Follows from released values and public points.
        """
        if self.given is not None:
            return self.given
        weights: FloatArray = 1 / (len(predicted) * np.maximum(predicted, _LEAST_SHARE))
        return weights


def checked_shares(shares: object, classes: tuple[Any, ...]) -> FloatArray | None:
    """Return the public share of each class; one that is left out has the rest.

    Raises
    ------
    ParameterError
        If they are no shares of the declared classes.
    """
    if shares is None:
        return None
    found = _by_class("class_shares", shares, classes)
    left = 1.0 - sum(found.values())
    missing = [name for name in classes if name not in found]
    if len(missing) == 1 and left > _SUM_SLACK:
        found[missing[0]], missing, left = left, [], 0.0
    if missing or not abs(left) <= _SUM_SLACK:
        raise ParameterError(
            Parameter("class_shares"),
            f" are {shown(shares)}; give a share above 0 for every class but at most one, that add"
            " up to 1.",
        )
    return np.array([found[name] for name in classes], dtype=np.float64)


def checked_weights(weight: object, classes: tuple[Any, ...]) -> ClassWeights | None:
    """Return how decisions count classes; None where all count alike.

    Raises
    ------
    ParameterError
        If it is neither "balanced" nor a positive number for each declared class.
    """
    if weight is None:
        return None
    if isinstance(weight, str):
        if weight != BALANCED:
            raise ParameterError(
                Parameter("class_weight"),
                f" is {shown(weight)}; it must be {BALANCED!r}, or a number for each class.",
            )
        return ClassWeights(None)
    found = _by_class("class_weight", weight, classes)
    if len(found) < len(classes):
        raise ParameterError(
            Parameter("class_weight"),
            f" is {shown(weight)}; give a positive number for each of the {len(classes)} classes.",
        )
    return ClassWeights(np.array([found[name] for name in classes], dtype=np.float64))


def rare_basis(basis: Basis | str, X_public: Any, shares: FloatArray | None) -> Basis:
    """Return an unfitted basis as `unfitted_basis` does; one of columns that nobody set has fewer
    directions where public shares, of shape (n_classes,), say that a class is rare."""
    found = unfitted_basis(basis, X_public)
    rare = shares is not None and shares.min() <= RARE
    if rare and isinstance(basis, str) and isinstance(found, TableBasis):
        found.set_params(n_bins=min(found.n_bins, _FEW_BINS), whitening=0.0)
    return found


def _by_class(name: str, given: object, classes: tuple[Any, ...]) -> dict[Any, float]:
    """Return positive numbers by class."""
    if not isinstance(given, Mapping) or not set(given) <= set(classes):
        raise ParameterError(
            Parameter(name), f" is {shown(given)}; give a number by class, of the declared ones."
        )
    found = {one: check_finite(name, value) for one, value in given.items()}
    for value in found.values():
        if not value > 0:
            raise ParameterError(Parameter(name), f" has {shown(value)}; all are above 0.")
    return found
