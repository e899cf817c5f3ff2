"""Linear models in integers: what they predict of a row does not depend on the rows around it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.bases.exact_products import exact_products
from secretballot.bases.rotation import UNIT

#: Integers for 1.0 in a probability.
PROBABILITY_UNIT = 2**20
#: Integers for 1.0 in a weight.
WEIGHT_UNIT = 2**16
#: The coordinate of the intercept, where public points have a root mean square length of `UNIT`.
CONSTANT = UNIT // 2
#: Coordinates beyond are cut.
LARGEST_COORDINATE = 2**18
LARGEST_WEIGHT = 2**23

_STEPS = 2**10  # of a logit, in the table of exponentials
STEP_SHIFT = (UNIT * WEIGHT_UNIT // _STEPS).bit_length() - 1
_LINE_SHIFT = (UNIT * WEIGHT_UNIT // PROBABILITY_UNIT).bit_length() - 1
#: exp(-t / `_STEPS`) in units of `PROBABILITY_UNIT`; 0 beyond its end.
EXPONENTIALS = np.append(np.rint(PROBABILITY_UNIT * np.exp(-np.arange(16 * _STEPS) / _STEPS)), 0)


@dataclass(frozen=True, eq=False)
class LinearModel(ABC):
    """What predicts numbers between 0 and 1, each a function of its own row, to the last bit.

    Parameters
    ----------
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        In units of 1 / `WEIGHT_UNIT`; one column for each number.
    """

    weights: IntArray

    @classmethod
    def of(cls, weights: FloatArray) -> Self:
        """Return the nearest model to weights of floating point, shape (n_coordinates,
        n_columns); none is larger than `LARGEST_WEIGHT`."""
        scaled = np.clip(np.rint(weights * WEIGHT_UNIT), -LARGEST_WEIGHT, LARGEST_WEIGHT)
        return cls(scaled.astype(np.int64))

    @abstractmethod
    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return what is predicted, in units of 1 / `PROBABILITY_UNIT`, int64 of shape (n_rows,
        n_columns).

        Parameters
        ----------
        coordinates : ndarray of int64, shape (n_rows, n_coordinates)
            None beyond `LARGEST_COORDINATE` in size.
        """

    def parts_of(self, coordinates: IntArray, unit: int) -> IntArray:
        """Return predictions in units of 1 / `unit`, int64 of shape (n_rows, n_columns)."""
        predicted = self.predictions(coordinates)
        return (predicted * unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT


class IntegerModel(LinearModel):
    """The softmax of linear functions: one column for each class, or one for two classes, whose
    first has logit 0."""

    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return probabilities as `LinearModel` does: of two classes that of the second alone."""
        return self.probabilities(coordinates)[:, -self.weights.shape[1] :]

    def probabilities(self, coordinates: IntArray) -> IntArray:
        """Return probabilities of all classes, an array of int64 of shape (n_rows, n_classes).

        Parameters
        ----------
        coordinates : ndarray of int64, shape (n_rows, n_coordinates)
            None beyond `LARGEST_COORDINATE` in size.

        Notes
        -----
        Sums are of integers and exact; what follows looks at one row alone, in integers and a
        table. So a row's probabilities are the same whatever stands beside it, to the last bit.
        """
        logits = exact_products(coordinates, self.weights, LARGEST_COORDINATE)
        if logits.shape[1] == 1:
            logits = np.hstack([np.zeros_like(logits), logits])
        below = (logits.max(axis=1, keepdims=True) - logits) >> STEP_SHIFT
        parts = EXPONENTIALS.astype(np.int64)[np.minimum(below, len(EXPONENTIALS) - 1)]
        totals = parts.sum(axis=1, keepdims=True)
        probabilities: IntArray = (parts * PROBABILITY_UNIT + totals // 2) // totals
        return probabilities

    def labels(self, coordinates: IntArray) -> IntArray:
        """Return the index of the most probable class of each row, the first of equal ones: int64
        of shape (n_rows,), for coordinates as in `probabilities`."""
        logits = exact_products(coordinates, self.weights, LARGEST_COORDINATE)
        if logits.shape[1] == 1:
            return (logits[:, 0] > 0).astype(np.int64)
        most: IntArray = logits.argmax(axis=1)
        return most


class IntegerLine(LinearModel):
    """Linear functions around one half, cut to lie between 0 and 1."""

    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return predictions as `LinearModel` does, int64 of shape (n_rows, n_columns)."""
        sums = exact_products(coordinates, self.weights, LARGEST_COORDINATE) >> _LINE_SHIFT
        cut: IntArray = np.clip(sums + PROBABILITY_UNIT // 2, 0, PROBABILITY_UNIT)
        return cut


class IntegerLabels(LinearModel):
    """Probabilities of labels that may each be there or not: one logistic function for each."""

    def predictions(self, coordinates: IntArray) -> IntArray:
        """Return probabilities as `LinearModel` does, int64 of shape (n_rows, n_columns)."""
        columns = [
            IntegerModel(self.weights[:, [k]]).probabilities(coordinates)[:, 1]
            for k in range(self.weights.shape[1])
        ]
        return np.column_stack(columns)


def with_constant(coordinates: IntArray) -> IntArray:
    """Return coordinates of rows, cut to `LARGEST_COORDINATE`, that of the intercept behind.

    From int64 of shape (n_rows, n_directions) to int64 of shape (n_rows, n_directions + 1).
    """
    cut = np.clip(coordinates, -LARGEST_COORDINATE, LARGEST_COORDINATE)
    return np.column_stack([cut, np.full(len(cut), CONSTANT, dtype=np.int64)])
