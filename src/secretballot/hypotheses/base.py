"""What every hypothesis class promises: its dichotomies, and by them an exact learner and exact
version spaces."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import shown_kind
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import is_exact
from secretballot.hypotheses.points import check_labelled, check_points

# Of the weight of all answers, so much more is allowed than the slack: prefix sums of a million
# weights lose less.
_ROUNDING = 1e-9


class Hypothesis(Protocol):
    """One member of a class, a function from points to 0 or 1. Equal parameters compare equal.

    Examples
    --------
    >>> best = sb.hypotheses.Thresholds().erm([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> best.predict([[0.5], [2.5]])
    array([0, 1])
    """

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""
        ...


class Dichotomies(ABC):
    """The distinct labellings that a class gives to some points, each with one hypothesis.

    Their order and the representatives follow from the points alone, never from labels. Classes
    with structure list nothing until asked for, and count mistakes by prefix sums.

    Parameters
    ----------
    points : ndarray of float64, shape (m, n_features)

    Examples
    --------
    >>> found = sb.hypotheses.Thresholds().dichotomies([[1.0], [2.0], [3.0]])
    >>> len(found)
    4
    >>> found.errors([0, 1, 1])
    array([1, 0, 1, 2])
    """

    def __init__(self, points: FloatArray) -> None:
        self.points = points

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of distinct labellings."""

    @abstractmethod
    def hypothesis(self, index: int) -> Hypothesis:
        """Return the representative of the labelling with that number.

        Raises
        ------
        IndexError
            If there are not so many.
        """

    @abstractmethod
    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the mistakes of every representative on other points, shape (len(self),).

        Parameters
        ----------
        X : array of shape (n, n_features)
            Any points, such as private records where the labelled points are public ones.
        y : array of 0 and 1, shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default, and then numbers are int64.

        Raises
        ------
        DataError
            If points or labels do not fit.
        ResourceError
            If the machine failed at the code of a representative.

        Privacy
        -------
        Sensitivity : a point changes each number by at most one.
        """

    def errors(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NDArray[Any]:
        """Return the mistakes of every labelling against `y`, the labels of the points in their
        order; as for `errors_on`."""
        return self.errors_on(self.points, y, sample_weight)

    @abstractmethod
    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart, shape (m,).

        Parameters
        ----------
        left : ndarray of bool, shape (len(self),)
        """

    def __iter__(self) -> Iterator[Hypothesis]:
        return (self.hypothesis(index) for index in range(len(self)))


class HypothesisClass(ABC):
    """A class of functions from points to 0 or 1, small enough to be searched exactly.

    Attributes
    ----------
    name : str
        Name for messages and reports.
    n_features : int or None
        Columns of the points; None for any number.
    vc_dimension : int
        Vapnik-Chervonenkis dimension; of a finite class, an upper bound of it.

    Examples
    --------
    >>> intervals = sb.hypotheses.Intervals()
    >>> isinstance(intervals, sb.hypotheses.HypothesisClass), intervals.vc_dimension
    (True, 2)
    """

    name: ClassVar[str]
    n_features: int | None = None
    vc_dimension: int

    @abstractmethod
    def dichotomies(self, X: ArrayLike) -> Dichotomies:
        """Return the distinct labellings of points; equal rows are one point.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Hypothesis:
        """Return a hypothesis with the least weighted mistakes (empirical risk minimiser), the
        first of `dichotomies` among equals.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            At least 0; 1 by default.

        Raises
        ------
        DataError
            If points, labels or weights do not fit the class.
        """
        found = self.dichotomies(X)
        return found.hypothesis(int(np.argmin(found.errors(y, sample_weight))))

    def version_space(self) -> "VersionSpace":
        """Return the whole class as a version space."""
        return VersionSpace(self)

    def representatives(self, asked: FloatArray, points: FloatArray) -> tuple[IntArray, IntArray]:
        """Return rows of some points, and the place among them of the one that each point is
        disputed like, whatever is known of the points that were asked.

        Parameters
        ----------
        asked, points : ndarray of float64, shape (k, n_features) and (n, n_features)
        """
        every = np.arange(len(points))
        return every, every


class _Restriction(NamedTuple):
    """Answers, and how many weighted mistakes a hypothesis may make on them."""

    points: FloatArray
    labels: IntArray
    weights: NDArray[Any]
    most: float


class VersionSpace:
    """A set of hypotheses that are still possible: all those of a class that make few enough
    mistakes on what was asked. Immutable; never empty.

    It is exact, also for points that were never asked: hypotheses that label alike both these and
    all that was asked stay together or fall together, so the distinct labellings of both decide.

    Parameters
    ----------
    hypotheses : HypothesisClass

    Notes
    -----
    Cost: that of all labellings of the points concerned, and of their mistakes, once for each
    restriction.

    Examples
    --------
    >>> space = sb.hypotheses.Thresholds().version_space()
    >>> space = space.restrict([[1.0], [2.0], [3.0]], [0, 1, 1], slack=0)
    >>> space.disagreement_region([[0.5], [1.5], [2.5]])
    array([False,  True, False])
    """

    def __init__(
        self,
        hypotheses: HypothesisClass,
        restrictions: Sequence[_Restriction] = (),
        chosen: Hypothesis | None = None,
    ) -> None:
        self._class, self._restrictions, self._chosen = hypotheses, tuple(restrictions), chosen

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "VersionSpace":
        """Keep the hypotheses whose weighted mistakes exceed the least of the space by at most
        `slack`.

        Liu et al. 2021, supplement, Algorithm 7, line 12, with numbers of mistakes in place of
        rates.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        slack : float
            In mistakes, in the unit of the weights; at least 0.
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.

        Raises
        ------
        DataError, ParameterError
            If points, labels or weights do not fit, the slack is negative or nan, or the points
            have too many labellings.
        """
        points = check_points(X, self._class.n_features)
        labels, weights = check_labelled(y, sample_weight, len(points))
        if not slack >= 0:
            raise ParameterError(
                Parameter("slack"), f" is {slack}; it must be a number of mistakes, at least 0."
            )
        found, left = self._labellings(points)
        # all others make more mistakes than any number
        mistakes = np.where(left, found.errors_on(points, labels, weights), math.inf)
        best = int(np.argmin(mistakes))
        # what floats lose in sums of weights drops no hypothesis that belongs
        most = float(mistakes[best]) + slack + _ROUNDING * float(weights.sum())
        new = _Restriction(points, labels, weights, most)
        return VersionSpace(self._class, (*self._restrictions, new), found.hypothesis(best))

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two hypotheses of the space label each row differently, shape (n,).

        Parameters
        ----------
        X : array of shape (n, n_features)
        """
        points = check_points(X, self._class.n_features)
        asked = [one.points for one in self._restrictions]
        rows, like = self._class.representatives(np.concatenate([*asked, points[:0]]), points)
        found, left = self._labellings(points[rows])
        return np.asarray(found.disputed(left)[-len(rows) :][like])

    def hypothesis(self) -> Hypothesis | None:
        """Return the first member with the fewest mistakes in the last `restrict`; None before."""
        return self._chosen

    def describe(self) -> dict[str, Any]:
        """Return how many labellings of what was asked are left, and the first and the last of
        them, as JSON values."""
        about: dict[str, Any] = {"class": self._class.name}
        if self._restrictions:
            found, left = self._labellings(self._restrictions[-1].points)
            places = np.flatnonzero(left)
            first, last = (found.hypothesis(int(places[at])).describe() for at in (0, -1))
            about |= {"labellings": len(places), "first": first, "last": last}
        return about

    def _labellings(self, points: FloatArray) -> tuple[Dichotomies, BoolArray]:
        """Return all labellings of the points that were asked, and of more of them after these; and
        which of them are in the space."""
        asked = [one.points for one in self._restrictions]
        found = self._class.dichotomies(np.concatenate([*asked, points]))
        left = np.ones(len(found), dtype=np.bool_)
        for one in self._restrictions:
            left &= found.errors_on(one.points, one.labels, one.weights) <= one.most
        return found, left


def check_hypotheses(given: Any) -> HypothesisClass:
    """Return a class of hypotheses of this package: nothing shows that the labellings of another
    one are exact, nor that it meets each private point by itself.

    Raises
    ------
    ParameterError
        If it is none, or a type of which no instance was made.
    """
    if not (isinstance(given, HypothesisClass) and is_exact(given)):
        raise ParameterError(
            Parameter("hypotheses"),
            f" is {shown_kind(given)}; give a class of secretballot.hypotheses, such as"
            " Thresholds() or a FiniteClass of your own fitted estimators.",
        )
    return given
