"""Regions of disagreement: where hypotheses still in the running label a point differently."""

from abc import ABC, abstractmethod
from typing import Any

from secretballot._rows import take_rows
from secretballot._typing import BoolArray, IntArray
from secretballot.hypotheses.base import HypothesisClass
from secretballot.queries.base import PublicPool
from secretballot.queries.labelled import LabelledRows


class Region(ABC):
    """The region of disagreement of a version space V on a pool; V starts as the class and shrinks.

    Attributes
    ----------
    looks_ahead : bool
        Whether a look at the whole rest of the pool is cheap; otherwise points are looked at as
        they come.
    """

    looks_ahead: bool

    @abstractmethod
    def contains(self, rows: IntArray) -> BoolArray:
        """Return whether each given row of the pool lies in the region, shape (len(rows),)."""

    @abstractmethod
    def update(self, known: LabelledRows, slack: float) -> None:
        """Keep of V what makes at most `slack` mistakes on `known` above the fewest in V."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what is left of V, as JSON values."""


class ExactRegion(Region):
    """Region of the version space of a class that can be searched exactly.

    Parameters
    ----------
    hypotheses : HypothesisClass
    pool : PublicPool
    """

    looks_ahead = True

    def __init__(self, hypotheses: HypothesisClass, pool: PublicPool) -> None:
        self._X = pool.X
        self._space = hypotheses.version_space()

    def contains(self, rows: IntArray) -> BoolArray:
        """Ask the version space about `rows`; shape (n_rows,)."""
        return self._space.disagreement_region(take_rows(self._X, rows))

    def update(self, known: LabelledRows, slack: float) -> None:
        """Restrict the version space."""
        self._space = self._space.restrict(
            take_rows(self._X, known.rows), known.labels, slack, known.weights
        )

    def describe(self) -> dict[str, Any]:
        """Return the version space and a best member."""
        return {
            "version_space": self._space.describe(),
            "hypothesis": self._space.hypothesis().describe(),
        }
