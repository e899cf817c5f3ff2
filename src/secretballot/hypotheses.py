"""Classes of hypotheses that can be searched exactly: dichotomies, and by them an exact learner,
version spaces and disagreement coefficients; thresholds, stumps and intervals, and any finite list
of fitted estimators as a class.

What they take in: finite points, labels 0 and 1, weights of mistakes. Nothing here knows private
data.
"""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Json, Names
from secretballot._validation import (
    HYPOTHESES,
    check_choice,
    check_count,
    check_finite,
    name_part,
    refusal,
    shown_kind,
)
from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import is_exact, rows_alone

__all__ = [
    "DecisionStumps",
    "Dichotomies",
    "FiniteClass",
    "Hypothesis",
    "HypothesisClass",
    "Intervals",
    "Thresholds",
    "VersionSpace",
    "disagreement_coefficient",
    "hypotheses_by_name",
]


def _as_floats(name: str, values: Any) -> FloatArray:
    # numpy's own sentence may quote a cell, hence no raise inside an except
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        array = np.asarray(values)
        if array.dtype.kind in "buifO":
            return array.astype(np.float64)
    raise DataError(
        name_part(name), " is no dense array of real numbers alone; encode it as one first."
    )


def check_points(X: ArrayLike, n_features: int | None) -> FloatArray:
    """Return the points as a new array of shape (n, d), in which -0 is 0.

    Parameters
    ----------
    X : array of shape (n, n_features), or (n,) where there is one feature
        At least one row.
    n_features : int or None
        Columns that the class needs; None for any number.

    Raises
    ------
    DataError
        If there is no row, the number of columns differs, or a value is not a finite number.
    """
    points = _as_floats("X", X)
    if points.ndim == 1 and n_features == 1:
        points = points[:, None]
    if points.ndim != 2 or not points.size or n_features not in (None, points.shape[1]):
        wanted = "" if n_features is None else f", in {n_features} columns"
        raise DataError(
            Parameter("X"), f" has shape {points.shape}; give a row for each point{wanted}."
        )
    points += 0.0  # minus zero becomes zero, so that equal parameters look equal
    bad = ~np.isfinite(points)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"X holds nan or infinity (first in row {row}, column {column}); give finite numbers"
            " only."
        )
    return points


def _check_labelled(
    y: ArrayLike, sample_weight: ArrayLike | None, n: int
) -> tuple[IntArray, AnyArray]:
    """Return the labels of n points as int64, and what a mistake on each counts: ones, as int64,
    where nothing is given.

    Raises
    ------
    DataError
        If there is not one label and one weight for each point, a label is neither 0 nor 1, a
        weight is negative or nan, or their sum is infinite.
    """
    labels = _as_floats("y", y)
    if labels.shape != (n,) or not np.all((labels == 0) | (labels == 1)):
        raise DataError(
            Parameter("y"),
            f" has shape {labels.shape}; it must hold one label, 0 or 1, for each of the {n}"
            " points.",
        )
    if sample_weight is None:
        return labels.astype(np.int64), np.ones(n, dtype=np.int64)
    weights = _as_floats("sample_weight", sample_weight)
    with np.errstate(over="ignore"):
        good = weights.shape == (n,) and np.all(weights >= 0) and np.isfinite(weights.sum())
    if not good:
        raise DataError(
            Parameter("sample_weight"),
            f" must hold a number of at least 0 for each of the {n} points, and have a finite sum.",
        )
    return labels.astype(np.int64), weights


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

    def describe(self) -> Json:
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
    ) -> AnyArray:
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

    def errors(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AnyArray:
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


class _Restriction(NamedTuple):
    """Answers, and how many weighted mistakes a hypothesis may make on them."""

    points: FloatArray
    labels: IntArray
    weights: AnyArray
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
        self, hypotheses: HypothesisClass, restrictions: Sequence[_Restriction] = ()
    ) -> None:
        self._class, self._restrictions = hypotheses, tuple(restrictions)

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
        labels, weights = _check_labelled(y, sample_weight, len(points))
        if not slack >= 0:
            raise refusal("slack", f" is {slack}; it must be a number of mistakes, at least 0.")
        found, left = self._labellings(points)
        # all others make more mistakes than any number
        mistakes = np.where(left, found.errors_on(points, labels, weights), math.inf)
        # what floats lose in sums of weights drops no hypothesis that belongs
        # Of the weight of all answers, so much more is allowed than the slack: prefix sums of a
        # million weights lose less.
        most = float(mistakes.min()) + slack + 1e-9 * float(weights.sum())
        new = _Restriction(points, labels, weights, most)
        return VersionSpace(self._class, (*self._restrictions, new))

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two hypotheses of the space label each row differently, shape (n,).

        Parameters
        ----------
        X : array of shape (n, n_features)
        """
        points = check_points(X, self._class.n_features)
        found, left = self._labellings(points)
        return found.disputed(left)[-len(points) :]

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
        raise refusal(
            "hypotheses",
            f" is {shown_kind(given)}; give a class of secretballot.hypotheses, such as"
            " Thresholds() or a FiniteClass of your own fitted estimators.",
        )
    return given


def disagreement_coefficient(
    hypotheses: HypothesisClass, best: Hypothesis, X: ArrayLike, alpha: float = 0.0
) -> float:
    """Return the disagreement coefficient of a class about `best`, on public points.

    theta(alpha) = max(1, sup over r >= alpha of P[DIS(B(h, r))] / r), where B(h, r) holds the
    hypotheses that differ from h on a share of at most r, and DIS is where two of them differ
    (Hanneke 2014; Liu et al. 2021, section 3.3 and Definition E.12). Exact: a point is disputed
    from the radius on that the best hypothesis with the other label there has. One is learnt for
    each distinct point.

    Known values under the uniform distribution: 2 for thresholds; max(4, 1 / w) for intervals of
    width w, as alpha goes to 0.

    Parameters
    ----------
    hypotheses : HypothesisClass
    best : Hypothesis
        A member, on these points; chosen by public things alone, such as released labels: the
        result reveals it.
    X : array of shape (m, n_features), or (m,) where there is one feature
        Public points. Rows that are equal count together.
    alpha : float, default 0
        Level, a share of the points; at 0 the supremum is over all r > 0.

    Raises
    ------
    ParameterError
        If `hypotheses` is no class, or `alpha` no share.
    DataError
        If points do not fit, or no member labels them as `best` does.

    Examples
    --------
    >>> points, classes = np.linspace(0, 1, 101)[:, None], sb.hypotheses.Thresholds()
    >>> best = classes.erm(points, points[:, 0] >= 0.5)
    >>> 1.9 < sb.hypotheses.disagreement_coefficient(classes, best, points, alpha=0.1) < 2.1
    True
    """
    check_hypotheses(hypotheses)
    if not 0 <= check_finite("alpha", alpha) <= 1:
        raise refusal("alpha", f" is {alpha!r}; it is a share of the points, from 0 to 1.")
    points = check_points(X, 1 if np.ndim(X) == 1 else None)
    distinct, counts = np.unique(points, axis=0, return_counts=True)
    labels = np.asarray(best.predict(distinct), dtype=np.int64)
    # a function that is no member has no ball of members about it
    if not np.array_equal(hypotheses.erm(distinct, labels).predict(distinct), labels):
        raise DataError(
            Parameter("best"),
            " is no member of the class on these points; give one, such as hypotheses.erm(X, y).",
        )
    # The least radius, in points, of a hypothesis that differs at each point. A mistake there
    # counts more than all others together, and all counts are integers, so that sums are exact.
    radii = np.full(len(distinct), math.inf)
    for point in range(len(distinct)):
        wanted, weights = labels.copy(), counts.copy()
        wanted[point] = 1 - wanted[point]
        weights[point] = counts.sum() + 1
        differs = hypotheses.erm(distinct, wanted, weights).predict(distinct) != labels
        if differs[point]:
            radii[point] = counts[differs].sum()
    reached = np.isfinite(radii)
    at, place = np.unique(radii[reached], return_inverse=True)
    disputed = np.cumsum(np.bincount(place, weights=counts[reached], minlength=len(at)))
    # as floats compare: a radius of 29 points of 100 is not beyond a share of .29
    beyond = at / len(points) > alpha
    ratios = disputed[beyond] / at[beyond]
    within = disputed[~beyond].max(initial=0.0) / len(points)
    at_level = within / alpha if alpha > 0 else 0.0
    return max(1.0, float(at_level), float(ratios.max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class _Member:
    """One estimator of the list.

    Attributes
    ----------
    place : int
        Its place in the list, from 0.
    estimator : object
        Fitted, with `predict`, which says 0 or 1.
    """

    place: int
    estimator: Any

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64.

        Raises
        ------
        DataError
            If the points are not finite numbers.
        ResourceError
            If the machine failed.
        """
        return self.labels(check_points(X, None)).astype(np.int64)

    def labels(self, points: FloatArray) -> BoolArray:
        """Return whether the estimator says 1, for points that were checked.

        It is asked for one point at a time, since it may compute a point's class differently, in
        the last digit, when other points are around it. No answer counts as 0.

        Parameters
        ----------
        points : ndarray of shape (n, n_features)

        Raises
        ------
        ResourceError
            If the machine failed.
        """
        return np.array([answer is True for answer in self.answers(points)])

    def answers(self, points: FloatArray) -> list[bool | None]:
        """Return what the estimator says of points, of shape (n, n_features); None where it has no
        answer.

        Raises
        ------
        ResourceError
            If the machine failed.
        """
        return rows_alone(self._says_one, points)

    def _says_one(self, point: FloatArray) -> bool:
        (said,) = self.estimator.predict(point)
        if not (said == 0 or said == 1):
            raise ValueError("a prediction must be 0 or 1")
        return bool(said == 1)

    def describe(self) -> Json:
        """Return the place in the list and the estimator's type as JSON values."""
        return {"place": self.place, "estimator": type(self.estimator).__name__}


class FiniteClass(HypothesisClass):
    """The functions of a list of fitted estimators.

    Parameters
    ----------
    estimators : sequence of objects with `predict`
        At least one; their predictions are 0 and 1. What is stated of the class holds for a list
        that was fixed without the labels which now choose from it.

    Notes
    -----
    With N estimators and n points, everything costs N n predictions of one point: an estimator
    meets one point at a time. Where it fails at a point, or says neither class, its answer is 0.
    Memory: O(n), but N n / 8 bytes for `dichotomies`.

    Raises
    ------
    ParameterError
        If the list is empty, or a member has no `predict`, or classes other than 0 and 1.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0]], [1, 1, 0]
    >>> fitted = [sb.hypotheses.Thresholds(way).erm(X, y) for way in ("up", "down")]
    >>> sb.hypotheses.FiniteClass(fitted).erm(X, y).place
    1
    """

    name = "finite class"

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.members = tuple(_Member(place, one) for place, one in enumerate(estimators))
        odd = [
            place
            for place, one in enumerate(estimators)
            if not hasattr(one, "predict")
            or not np.isin(np.ravel(getattr(one, "classes_", (0, 1))), (0, 1)).all()
        ]
        if odd or not self.members:
            raise refusal(
                "estimators",
                f" has {len(self.members)} members, of which {odd} do not predict 0 and 1; give one"
                " or more fitted estimators, with the two classes mapped to 0 and 1.",
            )
        # an upper bound: 2^v labellings need as many functions
        self.vc_dimension = len(self.members).bit_length() - 1

    def dichotomies(self, X: ArrayLike) -> "_FiniteDichotomies":
        """Return the labellings, in the order of the first estimators that have them.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return _FiniteDichotomies(self.members, check_points(X, None))


def check_answers(hypotheses: HypothesisClass, points: FloatArray) -> None:
    """Refuse a list with an estimator that has no answer to some points; other classes answer to
    all.

    Parameters
    ----------
    hypotheses : HypothesisClass
    points : ndarray of shape (m, n_features)
        Public or synthetic.

    Raises
    ------
    DataError
        If there is one.
    """
    for member in hypotheses.members if isinstance(hypotheses, FiniteClass) else ():
        if None in member.answers(points):
            raise DataError(
                f"Estimator {member.place} does not answer with 0 or 1 to every point"
                f" of {points.shape[1]} numbers; leave it out."
            )


class _FiniteDichotomies(Dichotomies):
    """The distinct labellings of points by the members of a list, each by its first member."""

    def __init__(self, members: Sequence[_Member], points: FloatArray) -> None:
        super().__init__(points)
        found: dict[bytes, tuple[_Member, BoolArray]] = {}
        for member in members:
            labels = member.labels(points)
            found.setdefault(labels.tobytes(), (member, labels))
        self._members = [member for member, _ in found.values()]
        self.labels = np.array([labels for _, labels in found.values()])

    def __len__(self) -> int:
        return len(self._members)

    def hypothesis(self, index: int) -> _Member:
        """Return the first member with that labelling."""
        return self._members[index]

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> AnyArray:
        """Return the mistakes of every representative, which meets one point at a time."""
        points = check_points(X, None)
        labels, weights = _check_labelled(y, sample_weight, len(points))
        every = (member.labels(points) for member in self._members)
        return np.array([weights[found != (labels == 1)].sum() for found in every])

    def errors(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> AnyArray:
        """Return the mistakes of every labelling against `y`, by the labellings that are known."""
        labels, weights = _check_labelled(y, sample_weight, len(self.points))
        return np.array([weights[wrong].sum() for wrong in self.labels != (labels == 1)])

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart."""
        labels = self.labels[left]
        return np.asarray(labels.any(axis=0) & ~labels.all(axis=0))


@dataclass(frozen=True)
class Cut:
    """One feature, one threshold, one direction.

    Attributes
    ----------
    threshold : float
        From minus infinity to infinity, both included.
    direction : {"up", "down"}
        "up" labels 1 where the feature is at least the threshold, "down" where it is less.
    feature : int
        Column that is looked at.
    n_features : int
        Columns of the points.
    """

    threshold: float
    direction: str = "up"
    feature: int = 0
    n_features: int = 1

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        above = check_points(X, self.n_features)[:, self.feature] >= self.threshold
        return (above if self.direction == "up" else ~above).astype(np.int64)

    def describe(self) -> Json:
        """Return the parameters as JSON values."""
        threshold = _number_or_word(self.threshold)
        return {"threshold": threshold, "direction": self.direction, "feature": self.feature}


@dataclass(frozen=True)
class Interval:
    """1 from `lower` to `upper`, both included, else 0; the empty interval is from inf to -inf.

    Attributes
    ----------
    lower, upper : float
    """

    lower: float
    upper: float

    def predict(self, X: ArrayLike) -> IntArray:
        """Return 0 or 1 for every row of `X`, shape (n,), int64. Cost: O(n)."""
        x = check_points(X, 1)[:, 0]
        return ((x >= self.lower) & (x <= self.upper)).astype(np.int64)

    def describe(self) -> Json:
        """Return the parameters as JSON values."""
        return {"lower": _number_or_word(self.lower), "upper": _number_or_word(self.upper)}


EMPTY = Interval(math.inf, -math.inf)


def _number_or_word(value: float) -> float | str:
    """Return a finite number as it is, and an infinity, which JSON has not, as "inf" or "-inf"."""
    return float(value) if math.isfinite(value) else str(float(value))


def _places_between(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return thresholds t with low < t <= high in the middle, or an end that is infinite, shape
    (k,).

    Halves are added, not numbers, because a sum may overflow. Where no float lies strictly between
    neighbours, the upper one separates them: values from it on are at least t. Nothing finite lies
    below a `low` of minus infinity, which is then the threshold.
    """
    middle = low / 2 + high / 2
    placed = np.where((low < middle) & (middle <= high), middle, high)
    return np.where(np.isinf(low), low, placed)


@dataclass(frozen=True, eq=False)
class _SortedColumn:
    """A column of numbers in ascending order, equal ones together.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Distinct values, ascending.
    order : ndarray of shape (n,)
        Rows by ascending value.
    bounds : ndarray of shape (m + 1,)
        The rows with `values[k]` are `order[bounds[k]:bounds[k + 1]]`.
    """

    values: FloatArray
    order: IntArray
    bounds: IntArray

    @classmethod
    def sort(cls, column: FloatArray) -> "_SortedColumn":
        """Sort n numbers, at least one. Cost: O(n log n).

        Parameters
        ----------
        column : array of shape (n,)
        """
        order = np.argsort(column)
        ascending = column[order]
        starts = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
        bounds = np.concatenate([[0], starts, [len(column)]])
        return cls(ascending[bounds[:-1]], order, bounds)

    def prefix_sums(self, amounts: AnyArray) -> AnyArray:
        """Return the sums of amounts over the first 0, ..., m distinct values, shape (m + 1,)."""
        sums = np.zeros(len(amounts) + 1, dtype=amounts.dtype)
        np.cumsum(amounts[self.order], out=sums[1:])
        return sums[self.bounds]

    @cached_property
    def places(self) -> IntArray:
        """The place among the distinct values of each row, shape (n,)."""
        found = np.empty(len(self.order), dtype=np.int64)
        found[self.order] = np.repeat(np.arange(len(self.values)), np.diff(self.bounds))
        return found

    @cached_property
    def cuts(self) -> FloatArray:
        """Thresholds with the first 0, ..., m distinct values below them and the others not, shape
        (m + 1,)."""
        return _places_between(np.append(-math.inf, self.values), np.append(self.values, math.inf))

    @cached_property
    def ends(self) -> FloatArray:
        """The same numbers of values up to them, themselves included: the mirror image of cuts."""
        return -_SortedColumn(-self.values[::-1], self.order, self.bounds).cuts[::-1] + 0.0


class _RangeDichotomies(Dichotomies):
    """Labellings of points that are each 1 on a range of the distinct values of one feature.

    They are numbered in blocks, each of one feature.

    Attributes
    ----------
    columns : tuple of _SortedColumn
        One for every feature.

    Notes
    -----
    Cost: O(d n log n) for sorting, O(log n) for one hypothesis, O(d (n + m) log n) and the number
    of labellings for errors. Memory: O(d n).
    """

    def __init__(self, points: FloatArray) -> None:
        super().__init__(points)
        self.columns = tuple(_SortedColumn.sort(column) for column in points.T)
        self._offsets = np.cumsum(np.append(0, self._sizes()))

    @abstractmethod
    def _sizes(self) -> Sequence[int] | IntArray:
        """Return how many labellings each block has."""

    @abstractmethod
    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        """Return the feature of a block, and from which place to below which one its labellings are
        1, two arrays of its size."""

    @abstractmethod
    def _hypothesis(self, block: int, place: int) -> Hypothesis:
        """Return the representative of the labelling with that place in a block."""

    def _upper_ends(self, column: _SortedColumn) -> tuple[FloatArray, str]:
        """Return the upper ends of ranges with 0, ..., m values below, and on which side of a value
        that equals one it lies, as `numpy.searchsorted` names it."""
        return column.cuts, "left"

    def __len__(self) -> int:
        return int(self._offsets[-1])

    def hypothesis(self, index: int) -> Hypothesis:
        """Return the representative of the labelling with that number."""
        number = range(len(self))[index]
        block = int(np.searchsorted(self._offsets, number, side="right")) - 1
        return self._hypothesis(block, number - int(self._offsets[block]))

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> AnyArray:
        """Return the mistakes of every representative on n other points.

        Raises
        ------
        DataError
            If points or labels do not fit.
        """
        ones, sums = self._sums_on(X, y, sample_weight)
        errors = []
        for block in range(len(self._offsets) - 1):
            feature, starts, stops = self._range(block)
            below_start, below_stop = sums[feature]
            errors.append(ones + below_stop[stops] - below_start[starts])
        return np.concatenate(errors)

    def _sums_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> tuple[Any, list[tuple[AnyArray, AnyArray]]]:
        """Return the ones among n other points, and for every feature zeros less ones below each
        lower and each upper end, two arrays of shape (m + 1,)."""
        points = check_points(X, len(self.columns))
        labels, weights = _check_labelled(y, sample_weight, len(points))
        excess, found = np.where(labels == 1, -weights, weights), []
        for column, values in zip(self.columns, points.T, strict=True):
            others = _SortedColumn.sort(values)
            sums = others.prefix_sums(excess)
            lower, upper = (
                sums[np.searchsorted(others.values, ends, side=side)]  # type: ignore[call-overload]
                for ends, side in ((column.cuts, "left"), self._upper_ends(column))
            )
            found.append((lower, upper))
        return weights[labels == 1].sum(), found

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart."""
        said = np.zeros(len(self.points), dtype=np.int64)  # how many of them are 1 there
        rises = [np.zeros(len(column.values) + 1, dtype=np.int64) for column in self.columns]
        for block, mine in enumerate(np.split(left, self._offsets[1:-1])):
            feature, *ends = self._range(block)
            first, last = (np.bincount(end[mine], minlength=len(rises[feature])) for end in ends)
            rises[feature] += first - last
        for column, rise in zip(self.columns, rises, strict=True):
            said += np.cumsum(rise)[column.places]
        return np.asarray((said > 0) & (said < left.sum()))


class _CutDichotomies(_RangeDichotomies):
    """The distinct labellings of points by cuts.

    In order: the cuts of the first feature in the first direction by ascending threshold, both
    constants among them; then those between points in the next direction; then the next feature,
    without labellings that came before. Thresholds lie midway between neighbours.

    Parameters
    ----------
    points : ndarray of float64, shape (m, n_features)
    directions : sequence of {"up", "down"}

    Notes
    -----
    Cost: O(d^2 n) more, to find labellings that two features share.
    """

    def __init__(self, points: FloatArray, directions: Sequence[str]) -> None:
        self._directions = directions
        super().__init__(points)

    def _sizes(self) -> list[int]:
        self._blocks: list[tuple[int, str, IntArray]] = []
        for feature, column in enumerate(self.columns):
            new = np.ones(len(column.values) - 1, dtype=np.bool_)
            for earlier in self.columns[:feature]:
                new &= ~_shared_cuts(column, earlier)
            between = np.flatnonzero(new) + 1
            self._blocks += [(feature, direction, between) for direction in self._directions]
        self._blocks[0] = (*self._blocks[0][:2], np.arange(len(self.columns[0].values) + 1))
        return [len(cuts) for _, _, cuts in self._blocks]

    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        feature, direction, cuts = self._blocks[block]
        if direction == "down":
            return feature, np.zeros_like(cuts), cuts
        return feature, cuts, np.full_like(cuts, len(self.columns[feature].values))

    def _hypothesis(self, block: int, place: int) -> Cut:
        feature, direction, cuts = self._blocks[block]
        threshold = float(self.columns[feature].cuts[cuts[place]])
        return Cut(threshold, direction, feature, len(self.columns))


def _shared_cuts(column: _SortedColumn, other: _SortedColumn) -> BoolArray:
    """Return, for every cut between values of a column, whether one of the other separates alike:
    there all rows below the cut are below all others, or above them."""
    along, at = other.places[column.order], column.bounds[1:-1]
    below = [bound.accumulate(along)[at - 1] for bound in (np.minimum, np.maximum)]
    above = [bound.accumulate(along[::-1])[::-1][at] for bound in (np.minimum, np.maximum)]
    return (below[1] < above[0]) | (below[0] > above[1])


class IntervalDichotomies(_RangeDichotomies):
    """The distinct labellings of points by intervals.

    Number 0 is the empty interval; then come the intervals that start at the first distinct point,
    by their last one; then those that start at the second; and so on. Ends lie midway between
    neighbours, or at infinity. Nothing is listed until it is asked for.
    """

    def _sizes(self) -> IntArray:
        return np.append(1, np.arange(len(self.columns[0].values), 0, -1))

    def _range(self, block: int) -> tuple[int, IntArray, IntArray]:
        first, m = max(0, block - 1), len(self.columns[0].values)
        stops = np.arange(first + 1, m + 1) if block else np.zeros(1, dtype=np.int64)
        return 0, np.full_like(stops, first), stops

    def _hypothesis(self, block: int, place: int) -> Interval:
        return self.between(block - 1, block - 1 + place) if block else EMPTY

    def _upper_ends(self, column: _SortedColumn) -> tuple[FloatArray, str]:
        return column.ends, "right"

    def between(self, first: int, last: int) -> Interval:
        """Return the interval around the distinct points from one place to another."""
        [column] = self.columns
        return Interval(float(column.cuts[first]), float(column.ends[last + 1]))

    def prefix_mistakes_on(self, X: ArrayLike, y: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return what the mistakes of all representatives on other points are made of.

        Parameters
        ----------
        X : array of shape (n, 1) or (n,)
            Any points. One that lies on an end which two neighbours share is inside both.
        y : array of 0 and 1, shape (n,)

        Returns
        -------
        starts, ends : ndarrays of int64, shape (m,)
            The interval from place i to place j makes ``ends[j] - starts[i]`` mistakes more than
            the empty one.

        Raises
        ------
        DataError
            If points or labels do not fit.

        Notes
        -----
        Cost: O((n + m) log n).
        """
        _, [(below_start, below_stop)] = self._sums_on(X, y)
        return below_start[:-1], below_stop[1:]


class _CutClass(HypothesisClass):
    """Cuts of some features in some directions."""

    n_features: int
    _directions: Names

    def dichotomies(self, X: ArrayLike) -> _CutDichotomies:
        """Return the labellings, by feature, direction (up, then down) and ascending threshold.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return _CutDichotomies(check_points(X, self.n_features), self._directions)


class Thresholds(_CutClass):
    """Functions 1[x >= t] of one feature, with t a real number or an infinity.

    Parameters
    ----------
    direction : {"up", "down", "either"}, default="up"
        "down" has the complements 1[x < t]; "either" has both, the halfspaces of the line.

    Notes
    -----
    On m distinct points there are m + 1 labellings, 2 m for "either". Cost with n points: O(n log
    n) for everything.

    Raises
    ------
    ParameterError
        If `direction` is another word.

    Examples
    --------
    >>> best = sb.hypotheses.Thresholds("down").erm([[1.0], [2.0], [3.0]], [1, 1, 0])
    >>> best.threshold, best.direction
    (2.5, 'down')
    """

    name = "thresholds"
    n_features = 1

    def __init__(self, direction: str = "up") -> None:
        self.direction = check_choice("direction", direction, ("up", "down", "either"))
        self._directions = ("up", "down") if direction == "either" else (direction,)
        self.vc_dimension = len(self._directions)


class DecisionStumps(_CutClass):
    """Functions 1[x_f >= t] and 1[x_f < t] of any one feature f, with t real or infinite.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Notes
    -----
    On m distinct points there are at most 2 d (m - 1) + 2 labellings; fewer where two features
    separate the points alike. Cost with n points: O(d n log n + d^2 n) for everything.

    Raises
    ------
    ParameterError
        If `n_features` is not an integer of at least 1.

    Examples
    --------
    >>> X, y = [[0.0, 5.0], [1.0, 5.0], [0.0, 9.0]], [0, 0, 1]
    >>> best = sb.hypotheses.DecisionStumps(n_features=2).erm(X, y)
    >>> best.feature, best.threshold
    (1, 7.0)
    """

    name = "decision stumps"
    _directions = ("up", "down")

    def __init__(self, n_features: int) -> None:
        self.n_features = check_count("n_features", n_features)
        # A feature orders v points, so that it cuts off two sets of each size, one at either end;
        # all sets of half the points are needed. Leboeuf, LeBlanc and Marchand 2020,
        # arXiv:2010.07374, show that this suffices.
        self.vc_dimension = 2
        while math.comb(self.vc_dimension + 1, (self.vc_dimension + 1) // 2) <= 2 * n_features:
            self.vc_dimension += 1


class Intervals(HypothesisClass):
    """Functions 1[a <= x <= b] of one feature, with a <= b real or infinite, and the function 0.

    Notes
    -----
    On m distinct points there are m (m + 1) / 2 + 1 labellings. Cost with n points: O(n log n) for
    `erm` and `dichotomies`; O(m^2) for errors of all labellings, and for a version space of which m
    points were asked, or are looked at together: 400 MB at 10,000.

    Examples
    --------
    >>> best = sb.hypotheses.Intervals().erm([[1.0], [2.0], [3.0], [4.0]], [0, 1, 1, 0])
    >>> best.lower, best.upper
    (1.5, 3.5)
    """

    name = "intervals"
    n_features = 1
    vc_dimension = 2

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Interval:
        """Return the interval with the least weighted mistakes; among equals the first of
        `dichotomies`.

        The run of neighbours with the largest sum of ones less zeros, by prefix sums (Kadane).
        Cost: O(n log n).

        Parameters
        ----------
        X : array of shape (n, 1)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        found = self.dichotomies(X)
        labels, weights = _check_labelled(y, sample_weight, len(found.points))
        # zeros less ones: mistakes gained
        excess = found.columns[0].prefix_sums(np.where(labels == 1, -weights, weights))
        least_after = np.minimum.accumulate(excess[:0:-1])[::-1]  # over all ends from a start on
        gains = least_after - excess[:-1]
        first = int(gains.argmin())
        if not gains[first] < 0:
            return EMPTY
        return found.between(first, first + int(np.argmin(excess[first + 1 :])))

    def dichotomies(self, X: ArrayLike) -> IntervalDichotomies:
        """Return the labellings: none first, then by first and last point inside.

        Parameters
        ----------
        X : array of shape (m, 1)
        """
        return IntervalDichotomies(check_points(X, 1))


def hypotheses_by_name(given: object, n_features: int) -> HypothesisClass:
    """Return the class of that name on points of so many features; a class as it is.

    Parameters
    ----------
    given : {"stumps", "thresholds", "intervals"} or HypothesisClass
    n_features : int

    Raises
    ------
    ParameterError
        If it is neither.
    """
    if not isinstance(given, str):
        return check_hypotheses(given)
    if check_choice("hypotheses", given, HYPOTHESES) == "stumps":
        return DecisionStumps(n_features)
    return Thresholds("either") if given == "thresholds" else Intervals()
