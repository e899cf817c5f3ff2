"""Know before you spend: what a budget will buy, from public numbers and stand-in data alone.

Nothing here sees private data. What is measured is measured on data that may be shown to anyone: a labelled stand-in,
made-up data, or a guess.
"""

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

__all__ = [
    "Candidate",
    "Estimate",
    "Expected",
    "FrontierPoint",
    "Improvement",
    "Plan",
    "Setting",
    "Task",
]
