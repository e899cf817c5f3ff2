"""Which public point to ask next. Sees public points and released labels only."""

from collections.abc import Callable
from dataclasses import dataclass, field

from secretballot._typing import Json, Names
from secretballot._validation import check_choice, named
from secretballot.queries.base import CheckedSelector, PublicPool, QuerySelector, QueryStrategy
from secretballot.queries.disagreement import DisagreementSampling
from secretballot.queries.uncertainty import (
    ClusterSampling,
    CommitteeSampling,
    EntropySampling,
    MarginSampling,
    PassiveSampling,
)

__all__ = [
    "CheckedSelector",
    "ClusterSampling",
    "CommitteeSampling",
    "DisagreementSampling",
    "EntropySampling",
    "InRounds",
    "MarginSampling",
    "PassiveSampling",
    "PublicPool",
    "QuerySelector",
    "QueryStrategy",
    "rounds_of",
    "strategy_by_name",
]

_STRATEGIES: dict[str, Callable[[], QueryStrategy]] = {
    "passive": PassiveSampling,
    "disagreement": DisagreementSampling,
    "margin": MarginSampling,
    "entropy": EntropySampling,
    "committee": CommitteeSampling,
    "cluster": ClusterSampling,
}


def strategy_by_name(name: str) -> QueryStrategy:
    """Return the strategy of that name with its default settings.

    Parameters
    ----------
    name : {"passive", "disagreement", "margin", "entropy", "committee", "cluster"}
        "disagreement" is the form for any learner, with a logistic regression.

    Raises
    ------
    ParameterError
        If there is no strategy of that name.
    """
    return _STRATEGIES[check_choice("strategy", name, tuple(_STRATEGIES))]()


@dataclass(frozen=True, eq=False)
class InRounds:
    """Settings of queries that are asked in rounds.

    Parameters
    ----------
    strategy : QueryStrategy, optional
        How to choose; `MarginSampling` by default.
    round_size : int, optional
        Queries per round; a twentieth of all by default. The strategy learns from the answers
        between rounds.

    Examples
    --------
    >>> sb.queries.InRounds(round_size=20).strategy.describe()["name"]
    'margin'
    """

    strategy: QueryStrategy = field(default_factory=MarginSampling)
    round_size: int | None = None


_SETTINGS: dict[str, Names] = {
    name: () if name == "passive" else ("round_size",) for name in _STRATEGIES
}


def rounds_of(strategy: object) -> InRounds | None:
    """Return how a strategy asks in rounds; None of "passive", which asks at once.

    Parameters
    ----------
    strategy : str, QueryStrategy or InRounds
        A text is a name, with a setting or without: "margin:round_size=20".

    Raises
    ------
    ParameterError
        If it is no strategy.
    """
    if isinstance(strategy, InRounds):
        return strategy
    if isinstance(strategy, QueryStrategy):
        return InRounds(strategy)
    name, own = named("strategy", strategy, _SETTINGS)
    more: Json = dict(own)
    return None if name == "passive" else InRounds(strategy_by_name(name), **more)
