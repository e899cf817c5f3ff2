"""Types that many rooms share: arrays by what they hold, and what points and models must offer."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[Any]
BoolArray = NDArray[np.bool_]
CountArray = NDArray[np.int32]  # vote counts, which never exceed the number of teachers
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ObjectArray = NDArray[np.object_]
UnsignedArray = NDArray[np.uint64]


class Matrix(Protocol):
    """Points in rows: a numpy array or a scipy sparse matrix of shape (n_rows, n_features)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: Any, /) -> Any: ...


class Classifier(Protocol):
    """A model that learns classes from points, as scikit-learn's classifiers do."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from points of shape (n_rows, n_features) and their classes, of shape (n_rows,)."""

    def predict(self, X: Any) -> Any:
        """Return a class for each point, of shape (n_rows,)."""
