"""A public basis for vectors of numbers, such as images: likeness to public points."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_count, refusal
from secretballot.bases.columns import ONE
from secretballot.bases.integer_basis import VectorBasis, fitted_scale, public_numbers, rounded
from secretballot.bases.integer_model import fitted_rotation

#: Steps of the exponent in the table of the kernel.
EXPONENT_STEPS = 2**10


@dataclass(eq=False, repr=False)
class KernelBasis(VectorBasis):
    """Map vectors to coordinates by how near they are to public landmarks.

    Every vector is rounded to integers, its squared distances to landmarks are exact, and its
    Gaussian kernel with each of them is looked up; these features are centred, rotated to the
    principal axes of the public points and partly whitened (Nystroem's method in integers). No row
    depends on another. Missing and infinite numbers count as the mean and the ends of the range.

    Parameters
    ----------
    n_landmarks : int, default 500
        Public points that others are compared with, chosen at random by `random_state`; all of them
        where there are fewer.
    width : float, default 1.0
        Width of the kernel, over the median distance of public points and landmarks.
    scaled : bool, default True
        Whether every column is measured in its own standard deviations. Otherwise all are in those
        of the widest, as pixels should be.
    ranked : bool, default False
        Whether numbers are replaced by their ranks among the public ones, column by column: for
        tables of numbers, whose columns have long tails and scales of their own.
    whitening : float, default 0.5
        As for `TableBasis`.
    n_directions : int, default 500
        Largest number of directions kept.
    random_state : int, default 0
        Public seed of the choice of landmarks.

    Attributes
    ----------
    n_directions_ : int
        Directions kept.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.

    Examples
    --------
    >>> pool = np.random.default_rng(0).normal(size=(200, 3))
    >>> basis = sb.bases.KernelBasis(n_landmarks=50).fit(pool)
    >>> basis.transform([[0.0, 1.0, -1.0]]).shape == (1, basis.n_directions_)
    True
    """

    name: ClassVar[str] = "kernel"

    n_landmarks: int = 500
    width: float = 1.0
    _: KW_ONLY
    scaled: bool = True
    ranked: bool = False
    whitening: float = 0.5
    n_directions: int = 500
    random_state: int = 0

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the map from public points.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of numbers, shape (n_public, n_features)
            Public.
        y : None
            Ignored.

        Raises
        ------
        DataError
            If the points are no table of numbers, or all alike.
        ParameterError
            If a setting is out of range.
        """
        check_count("n_landmarks", self.n_landmarks)
        check_count("random_state", self.random_state, minimum=0)
        if not 0.01 <= self.width <= 100:
            raise refusal("width", f" is {self.width}; it must lie between 0.01 and 100.")
        numbers = public_numbers(X)
        self.n_features_in_ = numbers.shape[1]
        # of every column whose numbers are ranked
        self._sorted_values = (
            [np.sort(one[np.isfinite(one)]) for one in numbers.T] if self.ranked else []
        )
        numbers = self._public_ranks(numbers)[0]
        self._centre, self._spread = fitted_scale(numbers, self.scaled)
        points = rounded(numbers, self._centre, self._spread)
        drawn = np.random.default_rng(self.random_state).permutation(len(points))
        self._landmarks = points[np.sort(drawn[: self.n_landmarks])]
        squares = self._squared_distances(points)
        self._median = max(1, round(float(np.median(squares)) * self.width**2))
        # Beyond all public points but one in a thousand: a landmark is near itself, so the distance
        # to the second is taken.
        place = min(1, squares.shape[1] - 1)
        second = np.partition(squares, place, axis=1)[:, place]
        self._farthest = int(np.quantile(second, 0.999, method="higher"))
        beyond = sum(2 / (len(values) + 1) for values in self._sorted_values if len(values))
        self.uncovered_share_ = min(1.0, 0.002 + 2 / (len(points) + 1) + beyond)
        self._rotation = fitted_rotation(
            self._kernel_values(squares),
            ONE,
            whitening=self.whitening,
            n_directions=self.n_directions,
        )
        self.n_directions_ = self._rotation.weights.shape[1]
        return self

    def _map(self, numbers: FloatArray) -> tuple[IntArray, BoolArray]:
        ranked, within = self._public_ranks(numbers)
        squares = self._squared_distances(rounded(ranked, self._centre, self._spread))
        # ranks end where the public points do, so a number beyond all of them is not covered either
        covered = within & (squares.min(axis=1) <= self._farthest)
        return self._rotation.coordinates(self._kernel_values(squares)), covered

    def _public_ranks(self, numbers: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return ranks among the public numbers of each column, from -`ONE` to `ONE`, nan where
        there is no number; and which rows have no number beyond these. Where numbers are not
        ranked, return them as they are."""
        within = np.ones(len(numbers), dtype=np.bool_)
        if not self.ranked:
            return numbers, within
        ranks = np.full(numbers.shape, np.nan)
        for place, values in enumerate(self._sorted_values):
            known = np.flatnonzero(~np.isnan(numbers[:, place]))
            cells = numbers[known, place]
            below = np.searchsorted(values, cells, side="left")
            upto = np.searchsorted(values, cells, side="right")
            ranks[known, place] = 0  # a column without public numbers is uninformative
            if len(values):
                ranks[known, place] = (below + upto) * ONE // len(values) - ONE
                within[known] &= (upto > 0) & (below < len(values))
        return ranks, within

    def _squared_distances(self, points: IntArray) -> IntArray:
        """Return squared distances to the landmarks, exactly: sums of integers below 2^53."""
        products = points.astype(np.float64) @ self._landmarks.T.astype(np.float64)
        lengths = np.einsum("ij,ij->i", points, points)
        others = np.einsum("ij,ij->i", self._landmarks, self._landmarks)
        squares: IntArray = lengths[:, None] + others - 2 * products.astype(np.int64)
        return squares

    def _kernel_values(self, squares: IntArray) -> IntArray:
        """Return the Gaussian kernel of squared distances in units of 1 / `ONE`, from a table."""
        table = kernel_table()
        kernel: IntArray = table[
            np.minimum(squares * EXPONENT_STEPS // self._median, len(table) - 1)
        ]
        return kernel


def kernel_table() -> IntArray:
    """Return the kernel by steps of its exponent, in units of 1 / `ONE`; 0 at the end."""
    table = np.rint(ONE * np.exp(-np.arange(16 * EXPONENT_STEPS) / EXPONENT_STEPS))
    whole: IntArray = np.append(table, 0).astype(np.int64)
    return whole
