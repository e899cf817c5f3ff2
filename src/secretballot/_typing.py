"""Types of many modules: arrays by what they hold, and what points and models must offer."""

import os
from collections.abc import Callable
from typing import Any, Protocol

from secretballot.core.errors import Json, JsonView, Names
from secretballot.core.types import (
    AnyArray,
    BoolArray,
    CountArray,
    FloatArray,
    IntArray,
    ObjectArray,
    UnsignedArray,
)

__all__ = [
    "AnyArray",
    "BoolArray",
    "Classifier",
    "CountArray",
    "FloatArray",
    "IntArray",
    "Json",
    "JsonView",
    "Matrix",
    "Names",
    "ObjectArray",
    "Pair",
    "Place",
    "Progress",
    "UnsignedArray",
    "Values",
]

#: Classes, say, in their order.
Values = tuple[Any, ...]
#: Such as the bounds of a number.
Pair = tuple[float, float]
#: A path; of a table a URL too.
Place = str | os.PathLike[str]
#: Takes how many are done, and of how many.
Progress = Callable[[int, int], None]


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
