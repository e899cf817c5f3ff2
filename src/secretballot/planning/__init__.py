"""Know before you spend: what a budget will bring, from public numbers and stand-in data alone.

Nothing here sees private data. What is measured is measured on data that may be shown to anyone: a
labelled stand-in, synthetic data, or a guess.
"""

from secretballot.planning.plan.estimates import Estimate, MomentsForecast, RareForecast
from secretballot.planning.plan.model import (
    Candidate,
    Expected,
    FrontierPoint,
    Improvement,
    Plan,
    Setting,
    Task,
)
from secretballot.planning.plan.text import plan_text
from secretballot.planning.search.best_setting import make_plan
from secretballot.planning.simulation.curve import CurveModel, LearningCurve

__all__ = [
    "Candidate",
    "CurveModel",
    "Estimate",
    "Expected",
    "FrontierPoint",
    "Improvement",
    "LearningCurve",
    "MomentsForecast",
    "Plan",
    "RareForecast",
    "Setting",
    "Task",
    "make_plan",
    "plan_text",
]
