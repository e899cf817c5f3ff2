"""Any finite list of fitted estimators as a class of hypotheses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import rows_alone
from secretballot.hypotheses.base import Dichotomies, HypothesisClass, VersionSpace
from secretballot.hypotheses.points import (
    check_index,
    check_labels,
    check_points,
    check_slack,
    check_weighted,
    rounding_allowance,
)


@dataclass(frozen=True, eq=False)
class Member:
    """One estimator of the list. Two are equal if they are the same estimator at the same place.

    Attributes
    ----------
    place : int
        Its place in the list, from 0.
    estimator : object
        Fitted, with `predict`.
    positive : object
        The prediction that means 1; None where predictions are 0 and 1.
    """

    place: int
    estimator: Any
    positive: Any = None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Member)
            and other.place == self.place
            and other.estimator is self.estimator
        )

    def __hash__(self) -> int:
        return hash((self.place, id(self.estimator)))

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
        return np.array([answer is True for answer in rows_alone(self._says_one, points)])

    def checked_labels(self, points: FloatArray) -> BoolArray:
        """Return the same; refuse points, of shape (n, n_features), without an answer.

        Raises
        ------
        DataError
            If there is one; it is not named.
        ResourceError
            If the machine failed.
        """
        answers = rows_alone(self._says_one, points)
        if None in answers:
            raise DataError(
                f"Estimator {self.place} does not answer with one of two classes to every point"
                f" of {points.shape[1]} numbers; leave it out, or name the class that stands for 1"
                " as `positive`."
            )
        return np.array(answers)

    def _says_one(self, point: FloatArray) -> bool:
        (said,) = self.estimator.predict(point)
        if self.positive is not None:
            return bool(said == self.positive)
        if not (said == 0 or said == 1):
            raise ValueError("a prediction must be 0 or 1")
        return bool(said == 1)

    def describe(self) -> dict[str, Any]:
        """Return the place in the list and the estimator's type as JSON values."""
        return {"place": self.place, "estimator": type(self.estimator).__name__}


class FiniteClass(HypothesisClass):
    """The functions of a list of fitted estimators.

    Parameters
    ----------
    estimators : sequence of objects with `predict`
        At least one. What is stated of the class holds for a list that was fixed without the labels
        which now choose from it.
    positive : object, optional
        The prediction that means 1; without it predictions must be 0 and 1.

    Notes
    -----
    With N estimators and n points, everything costs N n predictions of one point: an estimator
    meets one point at a time. Where it fails at a point, or says neither class, its answer is 0.
    Memory: O(n), but N n / 8 bytes for `dichotomies`.

    Raises
    ------
    ParameterError
        If the list is empty, or a member has no `predict`.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0]], [1, 1, 0]
    >>> fitted = [sb.hypotheses.Thresholds(way).erm(X, y) for way in ("up", "down")]
    >>> sb.hypotheses.FiniteClass(fitted).erm(X, y).place
    1
    """

    name: ClassVar[str] = "finite class"

    def __init__(self, estimators: Sequence[Any], positive: Any = None) -> None:
        self.members = tuple(
            Member(place, estimator, positive) for place, estimator in enumerate(estimators)
        )
        if not self.members:
            raise ParameterError(
                Parameter("estimators"), " is empty; give at least one fitted estimator."
            )
        for member in self.members:
            if not callable(getattr(member.estimator, "predict", None)):
                raise ParameterError(
                    f"Estimator {member.place} has no method predict; give fitted estimators."
                )

    @property
    def vc_dimension(self) -> int:
        """floor(log2 N): an upper bound, since 2^v labellings need as many functions."""
        return len(self.members).bit_length() - 1

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Member:
        """Return the estimator with the least weighted mistakes; the first among equals.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        points, labels, weights = check_weighted(X, y, sample_weight, None)
        mistakes = _mistakes_of_members(self.members, points, labels, weights)
        return self.members[int(np.argmin(mistakes))]

    def dichotomies(self, X: ArrayLike) -> "FiniteDichotomies":
        """Return the labellings, in the order of the first estimators that have them.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return FiniteDichotomies(self.members, check_points(X, None))

    def version_space(self) -> "FiniteSpace":
        """Return the whole list as a version space."""
        return FiniteSpace(self.members, np.ones(len(self.members), dtype=bool), 0)


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
    members = hypotheses.members if isinstance(hypotheses, FiniteClass) else ()
    for member in members:
        member.checked_labels(points)


def _mistakes_of_members(
    members: Sequence[Member], points: FloatArray, labels: IntArray, weights: FloatArray
) -> FloatArray:
    """Return the weighted mistakes of every member, shape (len(members),)."""
    ones = labels == 1
    return np.array([weights[member.checked_labels(points) != ones].sum() for member in members])


class FiniteDichotomies(Dichotomies):
    """The distinct labellings of points by the members of a list, each by its first member.

    Notes
    -----
    Labellings are held as bits: n / 8 bytes each.
    """

    def __init__(self, members: Sequence[Member], points: FloatArray) -> None:
        self._n = len(points)
        self._labellings: dict[bytes, Member] = {}
        for member in members:
            self._labellings.setdefault(np.packbits(member.labels(points)).tobytes(), member)
        self._members = tuple(self._labellings.values())

    def __len__(self) -> int:
        return len(self._members)

    def hypothesis(self, index: int) -> Member:
        """Return the first member with that labelling."""
        return self._members[check_index(index, len(self))]

    def errors(self, y: ArrayLike) -> IntArray:
        """Return the number of mistakes of every labelling against `y`. Cost: O(N n / 8).

        Parameters
        ----------
        y : array of 0 and 1, shape (m,)
            Labels of the points, in their order.
        """
        truth = np.packbits(check_labels(y, self._n).astype(bool))
        return np.array(
            [int(np.bitwise_count(bits ^ truth).sum()) for bits in self._labellings_as_bits()],
            dtype=np.int64,
        )

    def _labellings_as_bits(self) -> Iterator[NDArray[np.uint8]]:
        return (np.frombuffer(labelling, dtype=np.uint8) for labelling in self._labellings)


class FiniteSpace(VersionSpace):
    """The members of a list that are left: a mask.

    Attributes
    ----------
    mask : ndarray of bool, shape (N,)
    """

    def __init__(self, members: Sequence[Member], mask: BoolArray, chosen: int) -> None:
        self._members, self.mask, self._chosen = tuple(members), mask, chosen
        self.mask.flags.writeable = False

    def _members_left(self) -> list[Member]:
        return [self._members[place] for place in np.flatnonzero(self.mask)]

    def restrict(
        self, X: ArrayLike, y: ArrayLike, slack: float, sample_weight: ArrayLike | None = None
    ) -> "FiniteSpace":
        """See `VersionSpace.restrict`."""
        points, labels, weights = check_weighted(X, y, sample_weight, None)
        margin = check_slack(slack) + rounding_allowance(weights)
        mistakes = _mistakes_of_members(self._members_left(), points, labels, weights)
        places = np.flatnonzero(self.mask)
        mask = np.zeros(len(self._members), dtype=bool)
        mask[places[mistakes <= mistakes.min() + margin]] = True
        return FiniteSpace(self._members, mask, int(places[mistakes.argmin()]))

    def disagreement_region(self, X: ArrayLike) -> BoolArray:
        """Return whether two members of the space label each row of `X` differently, shape (n,)."""
        points = check_points(X, None)
        first, *others = self._members_left()
        reference, differs = first.labels(points), np.zeros(len(points), dtype=bool)
        for member in others:
            differs |= member.labels(points) != reference
        return differs

    def hypothesis(self) -> Member:
        """Return the first member with the fewest mistakes on the points of the last `restrict`."""
        return self._members[self._chosen]

    def describe(self) -> dict[str, Any]:
        """Return how many members are left, and their places in the list."""
        places = np.flatnonzero(self.mask).tolist()
        return {"class": "finite class", "members": len(places), "places": places}
