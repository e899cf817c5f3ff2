"""Know before you spend: what a budget will buy, from public numbers and stand-in data alone.

Nothing here sees private data. What is measured is measured on data that may be shown to anyone: a labelled stand-in,
made-up data, or a guess.
"""

from secretballot.planning.curve import CurveModel, LearningCurve
from secretballot.planning.plan import (
    Candidate,
    Estimate,
    Expected,
    FrontierPoint,
    Improvement,
    Plan,
    Setting,
    Task,
)
from secretballot.planning.search import make_plan

__all__ = [
    "Candidate",
    "CurveModel",
    "Estimate",
    "Expected",
    "FrontierPoint",
    "Improvement",
    "LearningCurve",
    "Plan",
    "Setting",
    "Task",
    "make_plan",
]
