"""How clearly teachers vote, and how noisy labels are near the boundary: for the curator's eyes.

Margins are private: one record moves one vote at every query, so that counts of clear queries,
means and curves of margins are as private as the votes. Nothing of this may be published without
noise and a price, and settings of a later run must not be chosen by it. What is stated of the
Tsybakov condition is as public as the regression function that it is given: one that is known, or
estimated on public labelled points.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_probability
from secretballot.exceptions import DataError, Parameter

# Points of the tail below which no exponent is given: its relative error is about one over the root
# of them.
_LEAST_TAIL = 20
# |r - 1/2| that sums of a few rounded chances leave where r is 1/2.
_ROUNDING = 2.5e-16


def vote_margins(counts: npt.ArrayLike) -> IntArray:
    """Return the votes for the first class less those for the second, at every query, shape (m,).

    From so many votes the distance to instability, max(0, ceil(margin / 2) - 1), follows: as many
    teachers may change and the label stays, whatever the rule for ties (Liu et al. 2021,
    Algorithm 2).

    Parameters
    ----------
    counts : array of shape (m, C), int
        Votes per query and class.

    Privacy
    -------
    Sensitivity : one unit moves one vote, hence every margin by up to 2; and a mean, a share or a
        curve of margins by as much as all of it.

    Examples
    --------
    >>> from secretballot.teachers.margins import vote_margins
    >>> vote_margins([[40, 10], [26, 24]]).tolist()
    [30, 2]
    """
    ranked = np.partition(np.asarray(counts, dtype=np.int64), -2, axis=1)
    return np.asarray(ranked[:, -1] - ranked[:, -2])


@dataclass(frozen=True)
class TsybakovFit:
    """What the tail of |r(x) - 1/2| near 0 says of the Tsybakov condition.

    Attributes
    ----------
    tau : float
        From 0, no condition, to 1, bounded (Massart) noise.
    eta : float
        Constant of Lemma 4 at `tau`: no labelling h that flips as many points as the tail has, or
        more, disagrees with the best on more than eta (error of h - error of the best)^tau. For
        fewer flips the fitted tail has the same ratio, while the points themselves tell nothing but
        their luck. At least 1.
    massart : float
        The least |r(x) - 1/2|: under bounded noise that far from 1/2, tau is 1 with eta = max(1, 1
        / (2 massart)).
    level : float
        t up to which the tail was fitted.
    n_points, n_tail : int
        Points, and those of them below that level, or at it where none is below.
    """

    tau: float
    eta: float
    massart: float
    level: float
    n_points: int
    n_tail: int


def tsybakov_fit(regression: npt.ArrayLike, *, tail: float = 0.1) -> TsybakovFit:
    """Estimate (tau, eta) of the Tsybakov condition P(|r(x) - 1/2| <= t) <= C t^(tau / (1 - tau)).

    Source: Liu et al. 2021, Definition 3 and Lemma 4, r(x) = E[y | x]. The exponent a = tau / (1 -
    tau) is the slope of log P(|r - 1/2| <= t) against log t for small t, fitted by maximum
    likelihood on the tail (Hill 1975): 1 / a is the mean of log(level / |r(x) - 1/2|) over the
    tail. Points with r = 1/2 in it give tau = 0, even if only by rounding, taken to be below
    2.5e-16. The relative error of the exponent is about one over the root of `n_tail`. Where many
    points share the level at which the tail would end, it ends below that level, and may be of few
    points; a tail at one level gives tau = 1.
    Bounded noise whose levels differ gives less than 1, and closer to 1 the smaller the tail: a
    finite sample cannot tell a steep tail from a gap, so look at `massart` as well.

    Parameters
    ----------
    regression : array of shape (m,)
        r at independent points, from 0 to 1.
    tail : float
        Share of the points with the least |r - 1/2| to fit, in (0, 1).

    Raises
    ------
    DataError
        If a value is no probability, or the tail has fewer than 20 points.
    """
    margins = _checked_margins(regression)
    share = check_probability("tail", tail)
    size = math.floor(share * len(margins))
    # an exponent fitted to a handful of points would only show their noise
    if not _LEAST_TAIL <= size < len(margins):
        least = math.ceil(_LEAST_TAIL / share)
        raise DataError(
            f"There are {len(margins)} points, whose tail is too short to fit: give at least"
            f" {least}, or a larger tail."
        )
    exponent, edge, n_tail = _tail_exponent(margins, size)
    tau = 1.0 if math.isinf(exponent) else exponent / (1 + exponent)
    eta = _least_constant(margins, tau, n_tail)
    return TsybakovFit(tau, eta, float(margins.min()), edge, len(margins), n_tail)


def _checked_margins(regression: npt.ArrayLike) -> FloatArray:
    values = np.asarray(regression, dtype=np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise DataError(
            Parameter("regression"),
            " must be one probability, from 0 to 1, for each of at least one point.",
        )
    margins = np.abs(values - 0.5)
    return np.where(margins < _ROUNDING, 0.0, margins)


def _tail_exponent(margins: FloatArray, size: int) -> tuple[float, float, int]:
    """Return the exponent of the tail of so many points, the level at which it ends, and the points
    below it.

    A level that many points share does not belong to the tail where it cuts through them: then the
    tail ends at the next level below, which may leave none below it. They count as the tail that
    they make up themselves.
    """
    least = np.partition(margins, size)[: size + 1]
    edge = float(least[size])
    if not least.min() > 0:
        return 0.0, edge, size
    below = least[least < edge]
    if 0 < below.size < size:
        edge = float(below.max())
        within, below = below.size, below[below < edge]
    else:
        within = size
    if not below.size:
        return math.inf, edge, within
    return float(below.size / np.log(edge / below).sum()), edge, int(below.size)


def _least_constant(margins: FloatArray, tau: float, fewest: int) -> float:
    """Return the least constant for all labellings that flip at least so many points."""
    m = len(margins)
    excess = np.cumsum(np.sort(2 * margins))[fewest - 1 :] / m
    if tau > 0 and not excess[0] > 0:
        return math.inf
    return max(1.0, float(np.max(np.arange(fewest, m + 1) / m / excess**tau)))
