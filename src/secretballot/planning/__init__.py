"""Know before you spend: what a budget will bring, from public numbers and stand-in data alone.

Nothing here sees private data. What is measured is measured on data that may be shown to anyone: a
labelled stand-in.
"""

from secretballot.planning.plan_model import (
    Candidate,
    Estimate,
    MomentsForecast,
    Plan,
    Setting,
    Task,
    plan_text,
)

__all__ = ["Candidate", "Estimate", "MomentsForecast", "Plan", "Setting", "Task", "plan_text"]
