"""Linear maps and models in integers: what they make of a row does not depend on the rows around
it, since products of integers are exact."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import linalg

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.bases.forest import Forest
from secretballot.exceptions import DataError, Parameter, ParameterError

#: Floating point holds all integers up to here.
_EXACT = 2.0**53
#: Columns of weights that a product with sparse rows takes at a time: so many stay in the cache.
_COLUMNS = 64


def exact_products(rows: Any, weights: IntArray, largest: int) -> IntArray:
    """Return rows times weights, an array of int64 of shape (n_rows, n_columns).

    Parameters
    ----------
    rows : array or sparse array of int64, shape (n_rows, n_inputs)
    weights : ndarray of int64, shape (n_inputs, n_columns)
        Public.
    largest : int
        No number of `rows` is larger in size; public.

    Notes
    -----
    Where no sum can reach 2^53, floating point is exact in any order, and much faster. The weights
    alone decide, and never the rows. Otherwise the products are those of integers, of which sums
    beyond 2^63 wrap around alike in any order.
    """
    wide = weights.astype(np.float64)
    longest = np.abs(wide).sum(axis=0).max(initial=0.0)
    if not longest * largest < _EXACT / 2:
        return np.asarray(rows.astype(np.int64) @ weights)
    floats = rows.astype(np.float64, copy=False)
    if isinstance(rows, np.ndarray):
        products: IntArray = (floats @ wide).astype(np.int64)
        return products
    found = np.empty((rows.shape[0], wide.shape[1]), dtype=np.int64)
    for start in range(0, wide.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        found[:, part] = floats @ np.ascontiguousarray(wide[:, part])
    return found


#: Integers for 1.0 in the coordinates that come out.
UNIT = 2**14
#: Integers for 1.0 in the weights of the rotation.
_ROTATION_UNIT = 2**18
#: Directions that carry less than this share of the largest variance are left out.
_LEAST_VARIANCE = 1e-6
#: Share of entries that are not 0 from which on the product of two arrays is the faster one.
_FILLED = 0.2
#: Less is what floating point makes of none.
NO_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Rotation:
    """An affine map from integers to integers.

    Attributes
    ----------
    weights : ndarray of int64, shape (n_inputs, n_directions)
    offset : ndarray of int64, shape (n_directions,)
    shift : int
        Bits by which sums are rounded off.
    largest_input : int
        No integer that comes in is larger in size.
    """

    weights: IntArray
    offset: IntArray
    shift: int
    largest_input: int

    def coordinates(self, inputs: Any) -> IntArray:
        """Return the coordinates of rows, an array of int64 of shape (n_rows, n_directions).

        Sums of integers are exact in any order, and rounding looks at one number alone; so a row's
        coordinates do not depend on the rows around it, whatever the library does.
        """
        return self.rounded(exact_products(inputs, self.weights, self.largest_input))

    def rounded(self, sums: IntArray) -> IntArray:
        """Return coordinates, of products of rows with the weights, of the same shape."""
        shifted: IntArray = (sums - self.offset + (1 << (self.shift - 1))) >> self.shift
        return shifted


def fitted_rotation(
    inputs: Any, input_unit: int, *, whitening: float, n_directions: int
) -> Rotation:
    """Return the rotation to the principal axes of public points, longer axes shrunk.

    Parameters
    ----------
    inputs : array or sparse array of int64, shape (n_public, n_inputs)
        Public points.
    input_unit : int
        Integers for 1.0 in `inputs`, of which none is larger in size.
    whitening : float
        Every direction is multiplied by its variance to the power -whitening / 2: 0 rotates only, 1
        makes all variances equal, one half lies between.
    n_directions : int
        Largest number of directions.

    Raises
    ------
    DataError
        If the points are all alike.
    ParameterError
        If a setting is out of range.
    """
    check_count("n_directions", n_directions)
    if not 0 <= whitening <= 1:
        raise ParameterError(
            Parameter("whitening"), f" is {whitening}; it must lie between 0 and 1, such as 0.5."
        )
    scaled = inputs.astype(np.float64) / input_unit
    mean: FloatArray = np.asarray(scaled.mean(axis=0)).ravel()
    # sums of whole multiples of a power of two: exact, and the same, in either way
    if not isinstance(scaled, np.ndarray) and scaled.nnz > _FILLED * np.prod(scaled.shape):
        scaled = scaled.toarray()
    product = scaled.T @ scaled
    dense = product if isinstance(product, np.ndarray) else product.toarray()
    second = np.asarray(dense) / scaled.shape[0]
    variances, axes = linalg.eigh(second - np.outer(mean, mean))
    order = np.argsort(variances)[::-1][: min(n_directions, max(1, scaled.shape[0] - 1))]
    order = order[variances[order] > max(_LEAST_VARIANCE * variances.max(), NO_VARIANCE)]
    if not len(order):
        raise DataError("The public points are too few or all alike; no direction is left of them.")
    kept = variances[order]
    stretched: FloatArray = with_fixed_signs(axes[:, order]) * kept ** (-whitening / 2)
    # public points have a root mean square length of one
    length = np.sqrt(np.sum(kept ** (1 - whitening)))
    weights = np.rint(stretched * (_ROTATION_UNIT / length)).astype(np.int64)
    offset = np.rint(mean * input_unit @ weights).astype(np.int64)
    shift = int(np.log2(input_unit * _ROTATION_UNIT // UNIT))
    return Rotation(weights, offset, shift, input_unit)


def with_fixed_signs(axes: FloatArray) -> FloatArray:
    """Return axes whose largest weight is positive: an eigenvector's sign is the library's whim.
    Of nearly equal ones the first decides, as last digits differ between processors.

    Axes are the columns of an array of shape (n_inputs, n_axes).
    """
    sizes = np.abs(axes)
    largest = (sizes >= (1 - 1e-6) * sizes.max(axis=0)).argmax(axis=0)
    signs = np.sign(axes[largest, np.arange(axes.shape[1])])
    return axes * np.where(signs == 0, 1.0, signs)


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
LINE_SHIFT = (UNIT * WEIGHT_UNIT // PROBABILITY_UNIT).bit_length() - 1
#: Shares in steps of this are looked up; half a step stands for nothing.
SHARE_SHIFT = (PROBABILITY_UNIT // 2**14).bit_length() - 1
#: Logarithms of shares, in the units of logits.
LOGARITHMS = (
    np.rint(_STEPS * np.log(np.append(0.5, np.arange(1, 2**14 + 1)) / 2**14)).astype(np.int64)
    << STEP_SHIFT
)
#: Integers for 1.0 in what logits are multiplied by, and how far these may be stretched.
STRETCH_UNIT, MOST_STRETCHED = 16, 64
_FINE_BITS, _WEIGHT_BITS = 22, 32  # cut off logits and products of shares: sums stay below 2^63
#: exp(-t / `_STEPS`) in units of `PROBABILITY_UNIT`; 0 beyond its end.
EXPONENTIALS = np.append(np.rint(PROBABILITY_UNIT * np.exp(-np.arange(16 * _STEPS) / _STEPS)), 0)


@dataclass(frozen=True, eq=False)
class LinearModel(ABC):
    """What predicts numbers between 0 and 1, each a function of its own row, to the last bit.

    Parameters
    ----------
    weights : ndarray of int64, shape (n_coordinates, n_columns)
        In units of 1 / `WEIGHT_UNIT`; one column for each number.
    before : Smoothed, optional
        Probabilities that the linear functions correct; by default all are alike.

    Notes
    -----
    Rows are arrays of int64 of shape (n_rows, n_coordinates + n_cells): coordinates, none beyond
    `LARGEST_COORDINATE` in size, and behind them the cells that trees compare.
    """

    weights: IntArray
    before: "Smoothed | None" = None

    @classmethod
    def of(cls, weights: FloatArray, before: "Smoothed | None" = None) -> Self:
        """Return the nearest model to weights of floating point, shape (n_coordinates,
        n_columns); none is larger than `LARGEST_WEIGHT`."""
        scaled = np.clip(np.rint(weights * WEIGHT_UNIT), -LARGEST_WEIGHT, LARGEST_WEIGHT)
        return cls(scaled.astype(np.int64), before)

    @abstractmethod
    def at(self, logits: IntArray) -> IntArray:
        """Return what is predicted where `logits` returns these, each row by itself, in units of
        1 / `PROBABILITY_UNIT`: int64 of the same shape."""

    def predictions(self, rows: IntArray) -> IntArray:
        """Return what is predicted, as `at` does, of shape (n_rows, n_columns)."""
        return self.at(self.logits(rows))

    def logits_of(self, predicted: IntArray) -> IntArray:
        """Return the logits of probabilities, in units of 1 / (`UNIT` `WEIGHT_UNIT`), of the same
        shape: of several classes up to what is the same for all."""
        logs: IntArray = LOGARITHMS[predicted >> SHARE_SHIFT]
        if isinstance(self, IntegerModel) and predicted.shape[1] > 1:
            return logs
        odds: IntArray = logs - LOGARITHMS[(PROBABILITY_UNIT - predicted) >> SHARE_SHIFT]
        return odds

    def parts_of(self, rows: IntArray, unit: int) -> IntArray:
        """Return predictions in units of 1 / `unit`, int64 of shape (n_rows, n_columns)."""
        predicted = self.predictions(rows)
        return (predicted * unit + PROBABILITY_UNIT // 2) // PROBABILITY_UNIT

    def logits(self, rows: IntArray) -> IntArray:
        """Return the linear functions, int64 of shape (n_rows, n_columns)."""
        coordinates = rows[:, : len(self.weights)]
        found = exact_products(coordinates, self.weights, LARGEST_COORDINATE)
        if self.before is not None:
            found += self.before.logits(rows)
        return found


@dataclass(frozen=True, eq=False)
class Smoothed:
    """The mean of what a model predicts, and of trees that predict the model, made as sure as it.

    Trees predict means, which are nearer to each other than what they are means of. A linear
    correction makes up for that in directions of the coordinates alone, so all logits are
    stretched.

    Attributes
    ----------
    model : LinearModel
    forest : Forest
        Grown on the public points.
    stretch : int
        What logits are multiplied by, in units of 1 / `STRETCH_UNIT`.
    """

    model: LinearModel
    forest: Forest
    stretch: int = STRETCH_UNIT

    @classmethod
    def of(cls, model: LinearModel, pool: IntArray, levels: BoolArray, stage: int) -> "Smoothed":
        """Return the model of a stage, smoothed by public points.

        Parameters
        ----------
        model : LinearModel
        pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
        levels : ndarray of bool, shape (n_cells,)
            Which cells are numbers of levels.
        stage : int
            From 1; the public seed of the trees. What the first one fixes is mostly noise, so it
            is not stretched.

        Notes
        -----
        The stretch is that by which the logits of the mean come nearest to those of the model on
        the public points, in squares that count as the variance of a label does. Sums are of
        integers and exact.
        """
        cells, predicted = pool[:, len(model.weights) :], model.predictions(pool)
        own = cls(model, Forest.grown(cells, levels, predicted, f"stage {stage}"))
        if stage == 1:
            return own
        shares = own._mean(pool)
        sure, mean = (model.logits_of(one) >> _FINE_BITS for one in (predicted, shares))
        if isinstance(model, IntegerModel) and shares.shape[1] > 1:
            # only differences between classes mean something
            sure, mean = (
                one - one.sum(axis=1, keepdims=True) // one.shape[1] for one in (sure, mean)
            )
        weighted = mean * (shares * (PROBABILITY_UNIT - shares) >> _WEIGHT_BITS)
        squares = max(1, int(np.sum(weighted * mean)))
        stretch = (STRETCH_UNIT * int(np.sum(weighted * sure)) + squares // 2) // squares
        return replace(own, stretch=min(max(stretch, STRETCH_UNIT), MOST_STRETCHED))

    def logits(self, rows: IntArray) -> IntArray:
        """Return logits in the units of `LinearModel.logits_of`, of shape (n_rows, n_columns)."""
        return self.model.logits_of(self._mean(rows)) * self.stretch // STRETCH_UNIT

    def _mean(self, rows: IntArray) -> IntArray:
        smooth = self.forest.predictions(rows[:, len(self.model.weights) :])
        return (self.model.predictions(rows) + smooth) // 2


class IntegerModel(LinearModel):
    """The softmax of linear functions: one column for each class, or one for two classes, whose
    first has logit 0."""

    def at(self, logits: IntArray) -> IntArray:
        """Return probabilities as `LinearModel` does: of two classes that of the second alone."""
        return _of_classes(logits)[:, -logits.shape[1] :]

    def probabilities(self, rows: IntArray) -> IntArray:
        """Return probabilities of all classes, an array of int64 of shape (n_rows, n_classes).

        Notes
        -----
        Sums are of integers and exact; what follows looks at one row alone, in integers and a
        table. So a row's probabilities are the same whatever is beside it, to the last bit.
        """
        return _of_classes(self.logits(rows))

    def labels(self, rows: IntArray) -> IntArray:
        """Return the index of the most probable class of each row, the first of equal ones: int64
        of shape (n_rows,)."""
        logits = self.logits(rows)
        if logits.shape[1] == 1:
            return (logits[:, 0] > 0).astype(np.int64)
        most: IntArray = logits.argmax(axis=1)
        return most


class IntegerLine(LinearModel):
    """Linear functions around one half, cut to lie between 0 and 1."""

    def at(self, logits: IntArray) -> IntArray:
        """Return predictions as `LinearModel` does."""
        cut: IntArray = np.clip((logits >> LINE_SHIFT) + PROBABILITY_UNIT // 2, 0, PROBABILITY_UNIT)
        return cut


class IntegerLabels(LinearModel):
    """Probabilities of labels that may each be there or not: one logistic function for each."""

    def at(self, logits: IntArray) -> IntArray:
        """Return probabilities as `LinearModel` does."""
        both = np.stack([np.zeros_like(logits), logits], axis=2)
        return _shares_of(both)[:, :, 1]


def _of_classes(logits: IntArray) -> IntArray:
    """Return the probabilities of all classes, of which the first of two has logit 0."""
    if logits.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    return _shares_of(logits)


def _shares_of(logits: IntArray) -> IntArray:
    """Return the softmax of logits along the last axis."""
    below = (logits.max(axis=-1, keepdims=True) - logits) >> STEP_SHIFT
    parts = EXPONENTIALS.astype(np.int64)[np.minimum(below, len(EXPONENTIALS) - 1)]
    totals = parts.sum(axis=-1, keepdims=True)
    shares: IntArray = (parts * PROBABILITY_UNIT + totals // 2) // totals
    return shares


def model_of_stages(
    kind: type[LinearModel],
    weights: Sequence[IntArray],
    covered_only: Sequence[bool],
    pool: IntArray,
    levels: BoolArray,
) -> LinearModel:
    """Return the last model of some stages, from what a certificate states of each.

    Parameters
    ----------
    kind : type of LinearModel
    weights : sequence of ndarrays of int64, shape (n_coordinates, n_columns)
        Of all stages, and what corrects the last model where it was smoothed once more.
    covered_only : sequence of bool
        Where a stage asks other records than the one before it, it begins anew.
    pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
    levels : ndarray of bool, shape (n_cells,)
    """
    model = kind(weights[0])
    for stage, own in enumerate(weights[1:], 1):
        goes_on = stage == len(covered_only) or covered_only[stage] == covered_only[stage - 1]
        # numbers are not smoothed, and a basis without cells has nothing to smooth by
        smooths = goes_on and len(levels) and kind is not IntegerLine
        model = kind(own, Smoothed.of(model, pool, levels, stage) if smooths else None)
    return model


def with_constant(coordinates: IntArray) -> IntArray:
    """Return coordinates of rows, cut to `LARGEST_COORDINATE`, that of the intercept behind.

    From int64 of shape (n_rows, n_directions) to int64 of shape (n_rows, n_directions + 1).
    """
    cut = np.clip(coordinates, -LARGEST_COORDINATE, LARGEST_COORDINATE)
    return np.column_stack([cut, np.full(len(cut), CONSTANT, dtype=np.int64)])
