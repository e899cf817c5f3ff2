"""What every public basis is: rows to integers, each row by itself."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.integer_model import with_constant
from secretballot.bases.rotation import UNIT
from secretballot.exceptions import Parameter, ParameterError

#: The cells of a basis without any.
NO_CELLS: BoolArray = np.zeros(0, dtype=np.bool_)


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

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return name and settings as JSON values, for a certificate."""

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
