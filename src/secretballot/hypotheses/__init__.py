"""Classes of hypotheses that can be searched exactly: learner, dichotomies, version spaces.

Nothing here knows private data.
"""

from secretballot.hypotheses.base import Dichotomies, Hypothesis, HypothesisClass, VersionSpace
from secretballot.hypotheses.coefficient import DisagreementCoefficient, disagreement_coefficient
from secretballot.hypotheses.cuts import DecisionStumps, Thresholds
from secretballot.hypotheses.finite import FiniteClass
from secretballot.hypotheses.intervals import Intervals

__all__ = [
    "DecisionStumps",
    "Dichotomies",
    "DisagreementCoefficient",
    "FiniteClass",
    "Hypothesis",
    "HypothesisClass",
    "Intervals",
    "Thresholds",
    "VersionSpace",
    "disagreement_coefficient",
]
