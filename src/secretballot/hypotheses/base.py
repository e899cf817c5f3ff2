"""What every hypothesis class promises: an exact learner, its dichotomies, its version spaces."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import is_exact, rows_alone
from secretballot.hypotheses.points import check_labels, check_points

# Representatives that are tried one by one: some seconds for ten thousand other points.
MOST_TRIED = 250_000


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

    Their order and the representatives follow from the points alone, never from labels. Nothing is
    listed until asked for.

    Examples
    --------
    >>> found = sb.hypotheses.Thresholds().dichotomies([[1.0], [2.0], [3.0]])
    >>> len(found)
    4
    >>> found.errors([0, 1, 1])
    array([1, 0, 1, 2])
    """

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of distinct labellings."""

    @abstractmethod
    def hypothesis(self, index: int) -> Hypothesis:
        """Return the representative of the labelling with that number.

        Raises
        ------
        ParameterError
            If `index` is not from 0 to the number of labellings less 1.
        """

    @abstractmethod
    def errors(self, y: ArrayLike) -> IntArray:
        """Return the number of mistakes of every labelling against `y`, shape (len(self),), int64.

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
            Labels of the points, in their order.
        """

    def errors_on(self, X: ArrayLike, y: ArrayLike) -> IntArray:
        """Return the mistakes of every representative on other points, shape (len(self),), int64.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Any points, such as private records where the labelled points are public ones.
        y : array of 0 and 1, shape (n,)
            Their labels.

        Raises
        ------
        DataError
            If points or labels do not fit.
        ParameterError
            If there are more labellings than are tried one by one.
        ResourceError
            If the machine failed at the code of a representative.

        Privacy
        -------
        Sensitivity : a point changes each number by at most one. A representative of another
            package meets one point at a time, and says 0 where it fails.
        """
        if not len(self) <= MOST_TRIED:
            raise ParameterError(
                f"There are {len(self):,} labellings of the points, and at most {MOST_TRIED:,} are"
                " tried one by one on other points; give a sample of the points, or a FiniteClass"
                " of fitted models."
            )
        points = check_points(X, None)
        labels = check_labels(y, len(points))
        return np.array(
            [np.count_nonzero(_labels_by(found, points) != labels) for found in self],
            dtype=np.int64,
        )

    def __iter__(self) -> Iterator[Hypothesis]:
        return (self.hypothesis(index) for index in range(len(self)))


def _labels_by(hypothesis: Hypothesis, points: FloatArray) -> IntArray:
    if is_exact(hypothesis):
        return hypothesis.predict(points)
    found = rows_alone(lambda point: int(hypothesis.predict(point)[0]), points)
    return np.array([label or 0 for label in found])


class VersionSpace(ABC):
    """A set of hypotheses that are still possible. Immutable; never empty.

    Examples
    --------
    >>> space = sb.hypotheses.Thresholds().version_space()
    >>> space = space.restrict([[1.0], [2.0], [3.0]], [0, 1, 1], slack=0)
    >>> space.disagreement_region([[0.5], [1.5], [2.5]])
    array([False,  True, False])
    """

    @abstractmethod
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
            If points, labels or weights do not fit, or the slack is negative or nan.
        """

    @abstractmethod
    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two hypotheses of the space label each row differently, shape (n,).

        Parameters
        ----------
        X : array of shape (n, n_features)
        """

    @abstractmethod
    def hypothesis(self) -> Hypothesis:
        """Return a member with the fewest mistakes in the last `restrict`, by a fixed rule."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what is left of the class as JSON values, for reports."""


class HypothesisClass(ABC):
    """A class of functions from points to 0 or 1, small enough to be searched exactly.

    Attributes
    ----------
    name : str
        Name for messages and reports.
    vc_dimension : int
        Vapnik-Chervonenkis dimension.

    Examples
    --------
    >>> intervals = sb.hypotheses.Intervals()
    >>> isinstance(intervals, sb.hypotheses.HypothesisClass), intervals.vc_dimension
    (True, 2)
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def vc_dimension(self) -> int:
        """Vapnik-Chervonenkis dimension of the class."""

    @abstractmethod
    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Hypothesis:
        """Return a hypothesis with the least weighted mistakes (empirical risk minimiser).

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

    @abstractmethod
    def dichotomies(self, X: ArrayLike) -> Dichotomies:
        """Return the distinct labellings of points; equal rows are one point.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """

    @abstractmethod
    def version_space(self) -> VersionSpace:
        """Return the whole class as a version space."""

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two hypotheses of the class label each row differently, shape (n,).

        Parameters
        ----------
        X : array of shape (n, n_features)
        """
        return self.version_space().disagreement_region(X)


def check_hypotheses(given: object) -> HypothesisClass:
    """Return a class of hypotheses.

    Raises
    ------
    ParameterError
        If it is none, or a type of which no instance was made.
    """
    if isinstance(given, HypothesisClass):
        return given
    kind = f"the type {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    raise ParameterError(
        Parameter("hypotheses"), f" is {kind}; give a HypothesisClass, such as Thresholds()."
    )
