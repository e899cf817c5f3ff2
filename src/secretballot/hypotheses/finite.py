"""Any finite list of fitted estimators as a class of hypotheses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import rows_alone
from secretballot.hypotheses.base import Dichotomies, HypothesisClass
from secretballot.hypotheses.points import check_labelled, check_points


@dataclass(frozen=True, eq=False)
class Member:
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

    def describe(self) -> dict[str, Any]:
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

    name: ClassVar[str] = "finite class"

    def __init__(self, estimators: Sequence[Any]) -> None:
        self.members = tuple(Member(place, one) for place, one in enumerate(estimators))
        if not self.members:
            raise ParameterError(
                Parameter("estimators"), " is empty; give at least one fitted estimator."
            )
        for member in self.members:
            known = np.ravel(getattr(member.estimator, "classes_", (0, 1)))
            if not (hasattr(member.estimator, "predict") and np.isin(known, (0, 1)).all()):
                raise ParameterError(
                    f"Estimator {member.place} does not predict 0 and 1; give fitted estimators,"
                    " with the two classes mapped to 0 and 1."
                )
        # an upper bound: 2^v labellings need as many functions
        self.vc_dimension = len(self.members).bit_length() - 1

    def dichotomies(self, X: ArrayLike) -> "FiniteDichotomies":
        """Return the labellings, in the order of the first estimators that have them.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return FiniteDichotomies(self.members, check_points(X, None))


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


class FiniteDichotomies(Dichotomies):
    """The distinct labellings of points by the members of a list, each by its first member."""

    def __init__(self, members: Sequence[Member], points: FloatArray) -> None:
        super().__init__(points)
        found: dict[bytes, tuple[Member, BoolArray]] = {}
        for member in members:
            labels = member.labels(points)
            found.setdefault(labels.tobytes(), (member, labels))
        self._members = [member for member, _ in found.values()]
        self.labels = np.array([labels for _, labels in found.values()])

    def __len__(self) -> int:
        return len(self._members)

    def hypothesis(self, index: int) -> Member:
        """Return the first member with that labelling."""
        return self._members[index]

    def errors_on(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Return the mistakes of every representative, which meets one point at a time."""
        points = check_points(X, None)
        labels, weights = check_labelled(y, sample_weight, len(points))
        every = (member.labels(points) for member in self._members)
        return np.array([weights[found != (labels == 1)].sum() for found in every])

    def errors(self, y: ArrayLike, sample_weight: ArrayLike | None = None) -> NDArray[Any]:
        """Return the mistakes of every labelling against `y`, by the labellings that are known."""
        labels, weights = check_labelled(y, sample_weight, len(self.points))
        return np.array([weights[wrong].sum() for wrong in self.labels != (labels == 1)])

    def disputed(self, left: BoolArray) -> BoolArray:
        """Return which points two of the labellings that are left tell apart."""
        labels = self.labels[left]
        return np.asarray(labels.any(axis=0) & ~labels.all(axis=0))
