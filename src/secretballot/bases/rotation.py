"""Centre, rotate and partly whiten integer features, by public points; the map itself is exact.

Products of integers are exact, so that a row's do not depend on the rows around it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
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
    if not _exact_in_floats(weights, largest):
        return np.asarray(rows.astype(np.int64) @ weights)
    floats, wide = rows.astype(np.float64, copy=False), weights.astype(np.float64)
    if isinstance(rows, np.ndarray):
        products: IntArray = (floats @ wide).astype(np.int64)
        return products
    found = np.empty((rows.shape[0], wide.shape[1]), dtype=np.int64)
    for start in range(0, wide.shape[1], _COLUMNS):
        part = slice(start, start + _COLUMNS)
        found[:, part] = floats @ np.ascontiguousarray(wide[:, part])
    return found


def _exact_in_floats(weights: IntArray, largest: int) -> bool:
    """Return whether no sum over numbers up to `largest` times weights can come near 2^53.

    `weights` is an array of int64 of shape (n_inputs, n_outputs).
    """
    longest = np.abs(weights.astype(np.float64)).sum(axis=0).max(initial=0.0)
    return bool(longest * largest < _EXACT / 2)


#: Integers for 1.0 in the coordinates that come out.
UNIT = 2**14
#: Integers for 1.0 in the weights of the rotation.
WEIGHT_UNIT = 2**18
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
            Parameter("whitening"),
            f" is {whitening}; it must lie between 0 and 1, such as 0.5.",
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
    weights = np.rint(stretched * (WEIGHT_UNIT / length)).astype(np.int64)
    offset = np.rint(mean * input_unit @ weights).astype(np.int64)
    shift = int(np.log2(input_unit * WEIGHT_UNIT // UNIT))
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
