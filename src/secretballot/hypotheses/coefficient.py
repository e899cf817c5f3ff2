"""The exact disagreement coefficient of a class about one of its hypotheses, on public points."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_finite, name_part
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.hypotheses.base import Hypothesis, HypothesisClass, check_hypotheses
from secretballot.hypotheses.finite import FiniteClass
from secretballot.hypotheses.points import check_points


@dataclass(frozen=True, eq=False)
class DisagreementCoefficient:
    """How fast a ball about a hypothesis disputes points, as a function of a level.

    Attributes
    ----------
    radii : ndarray of int64, shape (s,)
        Radii at which points become disputed, as numbers of points, ascending, from 1 on.
    disputed : ndarray of int64, shape (s,)
        Points that two hypotheses of the ball of that radius label differently.
    n_points : int

    Examples
    --------
    >>> points, classes = np.linspace(0, 1, 101)[:, None], sb.hypotheses.Thresholds()
    >>> best = classes.erm(points, points[:, 0] >= 0.5)
    >>> theta = sb.hypotheses.disagreement_coefficient(classes, best, points)
    >>> 1.9 < theta(0.1) < 2.1
    True
    """

    radii: IntArray
    disputed: IntArray
    n_points: int

    def mass(self, radius: float) -> float:
        """Return P[DIS(B(h, r))], the share of points disputed within `radius` of h.

        Parameters
        ----------
        radius : float
            r, a share of the points, from 0 to 1.
        """
        place = int(
            np.searchsorted(
                self.radii, self._largest_count(_checked_share("radius", radius)), side="right"
            )
        )
        return 0.0 if place == 0 else float(self.disputed[place - 1]) / self.n_points

    def __call__(self, alpha: float) -> float:
        """Return theta(alpha) = max(1, sup over r >= alpha of P[DIS(B(h, r))] / r).

        Parameters
        ----------
        alpha : float
            From 0, where the supremum is over all r > 0, to 1.
        """
        level = _checked_share("alpha", alpha)
        beyond = self.radii > level * self.n_points
        ratios = self.disputed[beyond] / self.radii[beyond]
        at_level = self.mass(level) / level if level > 0 else 0.0
        return max(1.0, at_level, float(ratios.max(initial=0.0)))

    def _largest_count(self, share: float) -> int:
        """Return the largest number of points whose share is at most `share`, as floats compare."""
        count = round(share * self.n_points)
        return count if count / self.n_points <= share else count - 1


def _checked_share(name: str, value: float) -> float:
    number = check_finite(name, value)
    if not 0 <= number <= 1:
        raise ParameterError(
            name_part(name), f" is {value!r}; it is a share of the points, from 0 to 1."
        )
    return number


def disagreement_coefficient(
    hypotheses: HypothesisClass, best: Hypothesis, X: ArrayLike
) -> DisagreementCoefficient:
    """Return the disagreement coefficient of a class about `best`, on public points.

    theta(alpha) = sup over r >= alpha of P[DIS(B(h, r))] / r, where B(h, r) holds the hypotheses
    that differ from h on a share of at most r, and DIS is where two of them differ (Hanneke 2014;
    Liu et al. 2021, section 3.3 and Definition E.12). Exact: a point is disputed from the radius on
    that the best hypothesis with the other label there has. By that many learnt hypotheses, one for
    each distinct point, or by trying all members of a finite class.

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

    Returns
    -------
    DisagreementCoefficient

    Raises
    ------
    ParameterError
        If `hypotheses` is no class.
    DataError
        If points do not fit, or no member labels them as `best` does.
    """
    check_hypotheses(hypotheses)
    points = check_points(X, 1 if np.ndim(X) == 1 else None)
    distinct, counts = np.unique(points, axis=0, return_counts=True)
    labels = np.asarray(best.predict(distinct), dtype=np.int64)
    # a function that is no member has no ball of members about it
    if not np.array_equal(hypotheses.erm(distinct, labels).predict(distinct), labels):
        raise DataError(
            Parameter("best"),
            " is no member of the class on these points; give one, such as hypotheses.erm(X, y).",
        )
    flips = (
        _differences_of_members(hypotheses, distinct, labels)
        if isinstance(hypotheses, FiniteClass)
        else None
    )
    radii = _least_radii(
        flips if flips is not None else _forced_differences(hypotheses, distinct, labels, counts),
        counts,
    )
    reached = np.isfinite(radii)
    at, place = np.unique(radii[reached].astype(np.int64), return_inverse=True)
    disputed = np.cumsum(np.bincount(place, weights=counts[reached], minlength=len(at)))
    return DisagreementCoefficient(at, disputed.astype(np.int64), len(points))


def _differences_of_members(
    hypotheses: FiniteClass, points: FloatArray, labels: IntArray
) -> Iterator[BoolArray]:
    """Yield where each member differs from the labels."""
    return (member.labels(points) != (labels == 1) for member in hypotheses.members)


def _forced_differences(
    hypotheses: HypothesisClass, points: FloatArray, labels: IntArray, counts: IntArray
) -> Iterator[BoolArray]:
    """Yield, for each point, where the nearest hypothesis differs that is made to differ there.

    A mistake there counts more than all others together, and all counts are integers, so that sums
    are exact.
    """
    for place in range(len(points)):
        wanted, weights = labels.copy(), counts.astype(np.float64)
        wanted[place] = 1 - wanted[place]
        weights[place] = counts.sum() + 1.0
        yield hypotheses.erm(points, wanted, weights).predict(points) != labels


def _least_radii(differences: Iterator[BoolArray], counts: IntArray) -> FloatArray:
    """Return the least radius of a hypothesis that differs at each point; infinity for none."""
    radii = np.full(len(counts), math.inf)
    for differs in differences:
        np.minimum(radii, np.where(differs, counts[differs].sum(), math.inf), out=radii)
    return radii
