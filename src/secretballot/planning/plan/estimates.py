"""What is expected, with its range; and what record moments would reach."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number that is expected, and the range in which nine runs of ten should fall.

    Attributes
    ----------
    value, low, high : float

    Examples
    --------
    >>> sb.planning.Estimate(value=0.82, low=0.79, high=0.85).high
    0.85
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class MomentsForecast:
    """What record moments would reach, tried on a stand-in.

    Attributes
    ----------
    student_accuracy : Estimate
        Share of new points that the student gets right, at the task's epsilon.
    frontier : tuple of (float, Estimate)
        The same at other epsilons, in rising order.
    n_private, n_pool : int
        Rows of the stand-in that represented private records and for public points.
    rare_share : float or None
        Share of the rarest class of the stand-in, where it is so small that accuracy is no figure.

    Examples
    --------
    >>> better = sb.planning.Estimate(0.86, 0.84, 0.88)
    >>> sb.planning.MomentsForecast(better, ((1.0, better),), 3000, 500).student_accuracy.value
    0.86
    """

    student_accuracy: Estimate
    frontier: tuple[tuple[float, Estimate], ...]
    n_private: int
    n_pool: int
    rare_share: float | None = None
