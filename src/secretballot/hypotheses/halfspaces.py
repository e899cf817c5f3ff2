"""Halfspaces of the line and the plane, searched exactly by turning a line around every point."""

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.hypotheses.base import Dichotomies, Hypothesis, HypothesisClass, VersionSpace
from secretballot.hypotheses.planar import Fan, Plane, fans
from secretballot.hypotheses.planar_lines import CONSTANTS, Halfspace, behind_line
from secretballot.hypotheses.planar_mistakes import Mistakes
from secretballot.hypotheses.planar_versions import HalfspaceVersionSpace
from secretballot.hypotheses.points import check_index, check_labels, check_points
from secretballot.hypotheses.thresholds import Thresholds

__all__ = ["HalfspaceDichotomies", "Halfspaces"]


# 10^8 labellings: 800 MB for one list of their mistakes.
_MOST_POINTS = 10_000


class HalfspaceDichotomies(Dichotomies):
    """The labellings of points of the plane by halfspaces, each listed once.

    A labelling with both labels is separated by lines of a whole interval of angles. At its first
    angle the line touches a point p labelled 1 and, further on in its direction, a point labelled
    0. So the labellings are the two constants, 0 then 1, and one for each point p and each
    direction in which another point is seen from it: 1 to the left of that ray, on p, and behind p.

    Parameters
    ----------
    X : array of shape (m, 2)
        Checked points; equal rows are one point.

    Raises
    ------
    DataError
        If there are more than 10,000 distinct points.
    """

    def __init__(self, X: FloatArray) -> None:
        points, self._point = np.unique(X, axis=0, return_inverse=True)
        if len(points) > _MOST_POINTS:
            raise DataError(
                Parameter("X"),
                f" has {len(points)} distinct points; halfspaces label them in up to"
                f" {_most_labellings(len(points)):,} ways, too many to list: give at most"
                f" {_MOST_POINTS:,}.",
            )
        self._plane = Plane(points)

    def _all_fans(self) -> Iterator[Fan]:
        everything = np.arange(len(self._plane))
        return fans(self._plane, everything, everything)

    @cached_property
    def _first_numbers(self) -> IntArray:
        """Number of the first labelling of each pivot, and one past the last."""
        counts = [fan.representatives().sum(axis=1) for fan in self._all_fans()]
        return np.asarray(2 + np.concatenate([[0], np.cumsum(np.concatenate(counts))]))

    def __len__(self) -> int:
        return int(self._first_numbers[-1])

    def hypothesis(self, index: int) -> Halfspace:
        """Return the representative of the labelling with that number."""
        index = check_index(index, len(self))
        if index < 2:
            return CONSTANTS[index]
        pivot = int(np.searchsorted(self._first_numbers, index, side="right")) - 1
        (fan,) = fans(self._plane, np.array([pivot]), np.arange(len(self._plane)))
        place = np.flatnonzero(fan.representatives()[0])[index - self._first_numbers[pivot]]
        return behind_line(self._plane, fan, int(place))

    def errors(self, y: ArrayLike) -> IntArray:
        """Return the number of mistakes of every labelling against `y`, in O(m^2 log m).

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
            Labels of the points, in their order.
        """
        labels = check_labels(y, len(self._point))
        mistakes = Mistakes.count(self._point, len(self._plane), labels)
        errors = np.empty(_most_labellings(len(self._plane)), dtype=np.int64)
        errors[0], errors[1], filled = mistakes.base, mistakes.base + mistakes.costs.sum(), 2
        for fan in self._all_fans():
            units = mistakes.base + fan.excess(mistakes.costs)[fan.representatives()]
            errors[filled : filled + len(units)] = units
            filled += len(units)
        return errors[:filled]


def _most_labellings(n_points: int) -> int:
    return n_points * (n_points - 1) + 2


class Halfspaces(HypothesisClass):
    """Halfspaces ``1[w . x + b >= 0]`` of either side, with the two constants.

    In the plane, sides of lines are decided exactly for the floats that are given. So three points
    that look as if on one line, (0.1, 0.3), (0.2, 0.5) and (0.3, 0.7), may be bent in the last
    place, and are labelled accordingly.

    Parameters
    ----------
    n_features : {1, 2}, default=2
        Columns of the points; on the line, halfspaces are thresholds of either direction.

    Notes
    -----
    On m points of which no three lie on one line there are m (m - 1) + 2 labellings. Cost with n
    points: O(n^2 log n) for `erm` and for errors of all labellings; memory O(n), and 8 bytes for
    every labelling in a list of errors.

    Raises
    ------
    ParameterError
        If `n_features` is neither 1 nor 2.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 0, 0, 1]
    >>> sb.hypotheses.Halfspaces(n_features=2).erm(X, y).predict(X)
    array([0, 0, 0, 1])
    """

    name: ClassVar[str] = "halfspaces"

    def __init__(self, n_features: int = 2) -> None:
        self.n_features = check_count("n_features", n_features)
        if self.n_features > 2:
            raise ParameterError(
                Parameter("n_features"),
                f" is {n_features}; halfspaces are searched exactly with one or two, since n"
                f" points with {n_features} features have about 2 n^{n_features} / {n_features}!"
                " labellings: give a FiniteClass of fitted models.",
            )
        self._on_line = Thresholds(direction="either") if self.n_features == 1 else None

    @property
    def vc_dimension(self) -> int:
        """One more than the number of features. Exact."""
        return self.n_features + 1

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Hypothesis:
        """Return a halfspace with the least weighted mistakes, the first of equal ones.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        if self._on_line is not None:
            return self._on_line.erm(X, y, sample_weight)
        return HalfspaceVersionSpace.whole().restrict(X, y, 0.0, sample_weight).hypothesis()

    def dichotomies(self, X: ArrayLike) -> Dichotomies:
        """Return the labellings: the constants 0 and 1, then by point and direction.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        if self._on_line is not None:
            return self._on_line.dichotomies(X)
        return HalfspaceDichotomies(check_points(X, 2))

    def version_space(self) -> VersionSpace:
        """Return the whole class as a version space."""
        if self._on_line is not None:
            return self._on_line.version_space()
        return HalfspaceVersionSpace.whole()
