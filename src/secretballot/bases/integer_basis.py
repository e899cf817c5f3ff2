"""What every public basis is: rows to integers, each row by itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.integer_model import with_constant
from secretballot.bases.rotation import UNIT
from secretballot.bases.vectors import number_blocks
from secretballot.exceptions import Parameter, ParameterError

#: The cells of a basis without any.
NO_CELLS: BoolArray = np.zeros(0, dtype=np.bool_)
BLOCK = 4096  # rows of vectors that are mapped at a time


# scikit-learn ships no types
class IntegerBasis(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A feature map that public points alone have fixed.

    Attributes
    ----------
    n_directions_ : int
        Coordinates of a row.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.
    levels_ : ndarray of bool, shape (n_cells,)
        Which of the cells that trees compare are numbers of levels; a basis may have no cells.
    """

    #: On certificates.
    name: ClassVar[str]
    n_directions_: int
    uncovered_share_: float
    levels_: BoolArray = NO_CELLS

    @abstractmethod
    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / 2^14, an array of int64 of shape (n_rows,
        n_directions); each row a function of itself and of public values, to the last bit."""

    @abstractmethod
    def covered(self, X: Any) -> BoolArray:
        """Return which rows the public points cover, shape (n_rows,); each row by itself."""

    def rows(self, X: Any) -> IntArray:
        """Return rows as a `LinearModel` takes them: coordinates, that of the intercept, and the
        cells that trees compare, int64 of shape (n_rows, n_directions + 1 + n_cells)."""
        return with_constant(self.integers(X))

    def mapped(self, X: Any) -> tuple[IntArray, BoolArray]:
        """Return what `rows` and `covered` do, in one pass where that is faster."""
        return self.rows(X), self.covered(X)

    def describe(self) -> dict[str, Any]:
        """Return name and settings as JSON values, for a certificate."""
        return {"name": self.name, **self.get_params()}

    def transform(self, X: Any) -> FloatArray:
        """Return coordinates, an array of shape (n_rows, n_directions); public points have a root
        mean square length of one."""
        return self.integers(X) / UNIT

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return a name for each direction."""
        check_is_fitted(self, "n_directions_")
        return np.array([f"direction{i}" for i in range(self.n_directions_)], dtype=object)


def check_whitening(whitening: float) -> None:
    """Refuse a whitening that is none.

    Raises
    ------
    ParameterError
        If it does not lie between 0 and 1.
    """
    if not 0 <= whitening <= 1:
        raise ParameterError(
            Parameter("whitening"),
            f" is {whitening}; it must lie between 0 and 1, such as 0.5.",
        )


class VectorBasis(IntegerBasis):
    """A feature map of vectors of numbers, which maps them block by block.

    Attributes
    ----------
    n_features_in_ : int
        Columns of the public points.
    """

    n_features_in_: int

    @abstractmethod
    def _coordinates(self, numbers: FloatArray) -> IntArray:
        """Return coordinates of numbers, of shape (n_rows, n_features)."""

    @abstractmethod
    def _near_public(self, numbers: FloatArray) -> BoolArray:
        """Return which rows are about as near to public points as these are to each other."""

    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / 2^14, an array of int64 of shape (n_rows,
        n_directions).

        Raises
        ------
        DataError
            If the columns are not as many as those of the public points.
        """
        nothing = np.empty((0, self.n_directions_), dtype=np.int64)
        return np.concatenate([nothing, *map(self._coordinates, self._blocks(X))])

    def covered(self, X: Any) -> BoolArray:
        """Return which rows are about as near to public points as these are to each other, shape
        (n_rows,). Each row is looked at by itself."""
        return np.concatenate([NO_CELLS, *map(self._near_public, self._blocks(X))])

    def _blocks(self, X: Any) -> Iterator[FloatArray]:
        check_is_fitted(self, "n_directions_")
        return number_blocks(X, self.n_features_in_, BLOCK)
