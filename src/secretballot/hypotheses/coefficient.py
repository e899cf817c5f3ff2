"""The exact disagreement coefficient of a class about one of its hypotheses, on public points."""

import math

import numpy as np
from numpy.typing import ArrayLike

from secretballot._validation import check_finite
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.hypotheses.base import Hypothesis, HypothesisClass, check_hypotheses
from secretballot.hypotheses.points import check_points


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
        raise ParameterError(
            Parameter("alpha"), f" is {alpha!r}; it is a share of the points, from 0 to 1."
        )
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
