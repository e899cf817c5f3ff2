"""Models in integers for numbers between 0 and 1: one line, or a logistic function per column."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.bases.exact_products import exact_products
from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    WEIGHT_UNIT,
    IntegerModel,
    integer_weights,
)
from secretballot.bases.rotation import UNIT

_LINE_SHIFT = (UNIT * WEIGHT_UNIT // PROBABILITY_UNIT).bit_length() - 1


@dataclass(frozen=True, eq=False)
class TargetModel(ABC):
    """What predicts numbers between 0 and 1, each a function of its own row, to the last bit.

    Parameters
    ----------
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        In units of 1 / `WEIGHT_UNIT`; one column for each target.
    """

    weights: IntArray

    @classmethod
    def of(cls, weights: FloatArray) -> Self:
        """Return the nearest model to weights of floating point, shape (n_coordinates,
        n_columns)."""
        return cls(integer_weights(weights))

    @abstractmethod
    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return what is predicted, in units of 1 / `PROBABILITY_UNIT`, int64 of shape (n_rows,
        n_columns).

        Parameters
        ----------
        coordinates : ndarray of int64, shape (n_rows, n_coordinates)
            None beyond `LARGEST_COORDINATE` in size.
        """


class IntegerLine(TargetModel):
    """Linear functions around one half, cut to lie between 0 and 1."""

    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return predictions as `TargetModel` does, int64 of shape (n_rows, n_columns)."""
        sums = exact_products(coordinates, self.weights, LARGEST_COORDINATE) >> _LINE_SHIFT
        cut: IntArray = np.clip(sums + PROBABILITY_UNIT // 2, 0, PROBABILITY_UNIT)
        return cut


class IntegerLabels(TargetModel):
    """Probabilities of labels that may each be there or not: one logistic function for each."""

    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return probabilities as `TargetModel` does, int64 of shape (n_rows, n_columns)."""
        columns = [
            IntegerModel(self.weights[:, [k]]).probabilities(coordinates)[:, 1]
            for k in range(self.weights.shape[1])
        ]
        return np.column_stack(columns)
