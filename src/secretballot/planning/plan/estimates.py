"""What is expected, with its range; and what record moments would reach."""

import math
from dataclasses import dataclass

from secretballot._validation import (
    check_count,
    check_finite,
    check_positive,
    check_probability,
    name_part,
)
from secretballot.exceptions import ParameterError


@dataclass(frozen=True)
class Estimate:
    """A number that is expected, and the range in which nine runs of ten should fall.

    Attributes
    ----------
    value, low, high : float

    Raises
    ------
    ParameterError
        If a number is not finite, or the value lies outside of its range.

    Examples
    --------
    >>> sb.planning.Estimate(value=0.82, low=0.79, high=0.85).high
    0.85
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            check_finite(name, getattr(self, name))
        if not self.low <= self.value <= self.high:
            raise ParameterError(
                f"an estimate of {self.value} lies outside of its range {self.low} to {self.high}."
            )


def check_within(name: str, estimate: Estimate, most: float) -> None:
    """Check that the range of an estimate lies between 0 and `most`.

    Raises
    ------
    ParameterError
        If it does not; names the estimate and its range.
    """
    if not 0 <= estimate.low <= estimate.high <= most:
        rule = (
            "it must not be negative" if most == math.inf else f"it must lie between 0 and {most:g}"
        )
        raise ParameterError(
            name_part(name), f" has the range {estimate.low} to {estimate.high}; {rule}."
        )


@dataclass(frozen=True)
class RareForecast:
    """How well record moments would find the rarest class, tried on a stand-in.

    Attributes
    ----------
    place : int
        Index of that class.
    balanced_accuracy : Estimate
        Mean of the recalls of all classes, at the task's epsilon; a constant has one over the
        number of classes.
    recall : Estimate
        Share of new points of that class that the student finds.
    frontier : tuple of (float, Estimate, Estimate)
        Both at other epsilons, in rising order.
    n_private, n_scored : int
        Rows of that class that stood for private records, and on which recall was measured.

    Raises
    ------
    ParameterError
        If a range leaves 0 to 1, or a number is out of its range.

    Examples
    --------
    >>> half = sb.planning.Estimate(0.5, 0.4, 0.6)
    >>> found = sb.planning.RareForecast(1, half, half, ((1.0, half, half),), 80, 20)
    >>> found.recall.low
    0.4
    """

    place: int
    balanced_accuracy: Estimate
    recall: Estimate
    frontier: tuple[tuple[float, Estimate, Estimate], ...]
    n_private: int
    n_scored: int

    def __post_init__(self) -> None:
        check_count("place", self.place, minimum=0)
        check_count("n_private", self.n_private)
        check_count("n_scored", self.n_scored)
        check_within("balanced_accuracy", self.balanced_accuracy, 1.0)
        check_within("recall", self.recall, 1.0)
        for epsilon, balanced, recall in self.frontier:
            check_positive("epsilon", epsilon)
            check_within("balanced_accuracy", balanced, 1.0)
            check_within("recall", recall, 1.0)


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
        Rows of the stand-in that stood for private records and for public points.
    rare : RareForecast or None
        How well a rare class would be found, where the task says how frequent classes are or what
        decisions count them for.
    rare_share : float or None
        Share of the rarest class of the stand-in, where it is so small that accuracy is no figure.

    Raises
    ------
    ParameterError
        If a range leaves 0 to 1, or a number is out of its range.

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
    rare: RareForecast | None = None
    rare_share: float | None = None

    def __post_init__(self) -> None:
        if self.rare_share is not None:
            check_probability("rare_share", self.rare_share)
        check_within("student_accuracy", self.student_accuracy, 1.0)
        check_count("n_private", self.n_private)
        check_count("n_pool", self.n_pool)
        for epsilon, accuracy in self.frontier:
            check_positive("epsilon", epsilon)
            check_within("student_accuracy", accuracy, 1.0)
