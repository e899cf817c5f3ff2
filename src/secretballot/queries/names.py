"""Strategies by name, for the command line."""

from collections.abc import Callable

from secretballot._validation import STRATEGIES, StrategyName, check_choice
from secretballot.queries.base import QueryStrategy
from secretballot.queries.coverage import ClusterSampling, KCenterSampling
from secretballot.queries.disagreement import DisagreementSampling
from secretballot.queries.passive import PassiveSampling
from secretballot.queries.uncertainty import CommitteeSampling, EntropySampling, MarginSampling

_BUILDERS: dict[StrategyName, Callable[[], QueryStrategy]] = {
    "passive": PassiveSampling,
    "disagreement": DisagreementSampling,
    "margin": MarginSampling,
    "entropy": EntropySampling,
    "committee": CommitteeSampling,
    "k-center": KCenterSampling,
    "cluster": ClusterSampling,
}


def strategy_by_name(name: str) -> QueryStrategy:
    """Return the strategy of that name with its default settings.

    Parameters
    ----------
    name : {"passive", "disagreement", "margin", "entropy", "committee", "k-center", "cluster"}
        "disagreement" is the form for any learner, with a logistic regression.

    Raises
    ------
    ParameterError
        If there is no strategy of that name.
    """
    return _BUILDERS[check_choice("strategy", name, STRATEGIES)]()
