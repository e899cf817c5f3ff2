"""Classes of hypotheses that can be searched exactly: learner, dichotomies, version spaces.

Nothing here knows private data.
"""

from secretballot._validation import HYPOTHESES, check_choice
from secretballot.hypotheses.base import (
    Dichotomies,
    FiniteClass,
    Hypothesis,
    HypothesisClass,
    VersionSpace,
    check_hypotheses,
    disagreement_coefficient,
)
from secretballot.hypotheses.ranges import DecisionStumps, Intervals, Thresholds

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
