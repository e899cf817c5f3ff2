"""A public basis for grey images: their edges, compared by the graph of the public ones."""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from secretballot._typing import FloatArray, Pair
from secretballot.bases.graph import GraphBasis
from secretballot.exceptions import DataError, Parameter

#: Pixels along each edge of an image, at least and at most. Sums of maps then stay below 2^53.
LEAST_SIDE, LARGEST_SIDE = 16, 48
#: Steps from the darkest to the brightest pixel.
BRIGHTEST = 255
ORIENTATIONS = 8
#: Places of a map along each edge of an image, about.
_PLACES = 9
#: Integers for 1.0 in weights and in the parts of a direction.
WEIGHT = 16
#: A gradient counts for a direction by what it has beyond this share of its largest part: about
#: the cosine of 45 degrees, over `WEIGHT`.
SHARPENED = 11
_IMAGES_AT_ONCE = 256
#: Correlation of pixels beside each other, at least, in images.
_LEAST_ALIKE = 0.5
_LOOKED_AT = 2000  # public points, to see whether they are images
_NEEDED = 12  # public points, for a graph of ten neighbours


@dataclass(eq=False, repr=False)
class ImageBasis(GraphBasis):
    """Map square grey images to coordinates by the public images whose edges are most like theirs.

    An image becomes blurred maps of the directions of its gradients, each the square root of its
    share of all; these are compared as vectors are in a `GraphBasis`. Pixels are whole numbers and
    so are all sums, so no row depends on another.

    Parameters
    ----------
    n_modes, n_neighbours, n_nearest
        As for `GraphBasis`.

    Attributes
    ----------
    n_directions_ : int
        Functions kept.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.

    Examples
    --------
    >>> from scipy.ndimage import gaussian_filter
    >>> noise = np.random.default_rng(0).normal(size=(100, 16, 16))
    >>> pool = gaussian_filter(noise, (0, 2, 2)).reshape(100, 256)
    >>> basis = sb.bases.ImageBasis(n_modes=10).fit(pool)
    >>> basis.transform(pool[:3]).shape == (3, basis.n_directions_)
    True

    Notes
    -----
    Maps of orientations as in Dalal and Triggs 2005. Fitting takes time in proportion to the square
    of the public points, and mapping in proportion to rows times public points.
    """

    name: ClassVar[str] = "images"
    # not a parameter: shares of maps are on one scale
    scaled: bool = field(default=False, init=False)

    def _learn_vectors(self, numbers: FloatArray) -> FloatArray:
        self.side_ = _side_of(numbers.shape[1])
        if not self.side_:
            raise DataError(
                Parameter("X"),
                f" has {numbers.shape[1]} columns; square images have the square of a number from"
                f" {LEAST_SIDE} to {LARGEST_SIDE}.",
            )
        finite = np.where(np.isfinite(numbers), numbers, np.nan)
        # a table may have been centred pixel by pixel: the darkest public one is black
        self.black_: FloatArray = np.nan_to_num(np.fmin.reduce(finite, axis=0))
        self.range_ = float(np.fmax.reduce(finite - self.black_, axis=None))
        if not self.range_ > 0:
            raise DataError("The public points are all alike; no direction is left of them.")
        return self._vectors(numbers)

    def _vectors(self, numbers: FloatArray) -> FloatArray:
        if not len(numbers):
            return np.empty((0, ORIENTATIONS * blurring(self.side_).shape[1] ** 2))
        starts = range(0, len(numbers), _IMAGES_AT_ONCE)
        parts = [self._maps(numbers[start : start + _IMAGES_AT_ONCE]) for start in starts]
        return np.concatenate(parts)

    def _maps(self, numbers: FloatArray) -> FloatArray:
        """Return the roots of the shares of all maps, shape (n_images, n_places)."""
        with np.errstate(all="ignore"):
            steps = (numbers - self.black_) / self.range_ * BRIGHTEST
        pixels = np.rint(np.clip(np.nan_to_num(steps, nan=0.0), 0, BRIGHTEST))
        images = pixels.reshape(-1, self.side_, self.side_)
        smooth, slope = gradients(self.side_)
        down, across = slope.T @ images @ smooth, smooth.T @ images @ slope
        parts = [right * across + below * down for right, below in directions()]
        most = SHARPENED * np.maximum.reduce(parts)
        blurred = blurring(self.side_)
        maps = [blurred.T @ np.maximum(WEIGHT * part - most, 0) @ blurred for part in parts]
        table = np.stack(maps, axis=1).reshape(len(images), -1)
        # sums of whole numbers are exact, and roots and quotients look at one number alone
        shares: FloatArray = np.sqrt(table / np.maximum(table.sum(axis=1, keepdims=True), 1))
        return shares


def directions() -> list[Pair]:
    """Return the parts of unit vectors, in whole numbers of 1 / 16."""
    turns = 2 * np.pi * np.arange(ORIENTATIONS) / ORIENTATIONS
    both = np.rint(WEIGHT * np.column_stack([np.cos(turns), np.sin(turns)]))
    return [(right, below) for right, below in both.tolist()]


def gradients(side: int) -> tuple[FloatArray, FloatArray]:
    """Return what smooths a line of pixels, and what takes the slope of the smoothed one, in whole
    numbers: of shape (side, n_places), at places that begin before the line and end behind it."""
    step = _step_of(side)
    smooth = _bells(side, 0.23 * step, np.arange(-step - 1, side + step + 1))
    return smooth[:, 1:-1], smooth[:, 2:] - smooth[:, :-2]


def blurring(side: int) -> FloatArray:
    """Return what blurs a line of gradients, in whole numbers, shape (n_places, n_maps)."""
    step = _step_of(side)
    n = side + 2 * step
    return _bells(n, 0.67 * step, np.arange(1, n, step))


def _bells(n: int, width: float, places: Any) -> FloatArray:
    """Return bell curves at some places of a line of n, shape (n, n_places)."""
    apart = (np.arange(n)[:, None] - places) / width
    bells: FloatArray = np.rint(WEIGHT * np.exp(-(apart**2) / 2))
    return bells


def _step_of(side: int) -> int:
    return max(1, round(side / _PLACES))


def _side_of(n_columns: int) -> int:
    """Return the pixels along each edge of an image; 0 where it is none that can be mapped."""
    side = math.isqrt(n_columns)
    return side if side**2 == n_columns and LEAST_SIDE <= side <= LARGEST_SIDE else 0


def are_images(numbers: FloatArray) -> bool:
    """Return whether public points, of shape (n_public, n_features), look like square grey images.

    In images a pixel is like the one beside it and like the one below it, and less like the one in
    between in the row of columns, which is half a line farther. In spectra and series it is the
    nearer ones that are more alike.
    """
    side = _side_of(numbers.shape[1])
    if not side or len(numbers) < _NEEDED:
        return False
    centred = np.nan_to_num(numbers[:_LOOKED_AT], nan=0.0, posinf=0.0, neginf=0.0)
    centred -= centred.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)

    def alike(apart: int) -> float:
        """Return the mean correlation of columns so far apart, of those that vary."""
        products = (centred[:, apart:] * centred[:, :-apart]).sum(axis=0)
        sizes = lengths[apart:] * lengths[:-apart]
        return float(np.mean(products[sizes > 0] / sizes[sizes > 0])) if sizes.any() else 0.0

    beside, below = alike(1), alike(side)
    return min(beside, below) > _LEAST_ALIKE and below > alike(side // 2)
