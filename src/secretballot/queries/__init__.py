"""Which public point to ask next. Sees public points and released labels only."""

from secretballot._validation import STRATEGIES
from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.queries.coverage import ClusterSampling, KCenterSampling
from secretballot.queries.disagreement import DisagreementSampling
from secretballot.queries.names import strategy_by_name
from secretballot.queries.passive import PassiveSampling
from secretballot.queries.proposals import CheckedSelector, InRounds, check_proposal
from secretballot.queries.uncertainty import CommitteeSampling, EntropySampling, MarginSampling

__all__ = [
    "STRATEGIES",
    "CheckedSelector",
    "ClusterSampling",
    "CommitteeSampling",
    "DisagreementSampling",
    "EntropySampling",
    "InRounds",
    "KCenterSampling",
    "MarginSampling",
    "PassiveSampling",
    "PublicPool",
    "QuerySelector",
    "QueryStrategy",
    "check_proposal",
    "strategy_by_name",
]
