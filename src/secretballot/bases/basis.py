"""What every public basis offers."""

from typing import Any, Protocol

from secretballot._typing import IntArray

__all__ = ["Basis"]


class Basis(Protocol):
    """A feature map made of public points, applied to one record at a time.

    The integers of a record depend on that record and on public values alone, to the last bit: that
    is what the price of a sum over records rests on.
    """

    def fit(self, X: Any, y: None = None) -> "Basis":
        """Make the map of public points, shape (n_public, n_features)."""
        ...

    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / `UNIT`, an array of int64, (n_rows, n_directions)."""
        ...
