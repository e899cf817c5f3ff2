"""Which public point to ask next. Sees public points and released labels only."""

from secretballot.queries.base import PublicPool, QuerySelector, QueryStrategy
from secretballot.queries.disagreement import DisagreementSampling
from secretballot.queries.passive import PassiveSampling
from secretballot.queries.proposals import CheckedSelector, check_proposal

__all__ = [
    "CheckedSelector",
    "DisagreementSampling",
    "PassiveSampling",
    "PublicPool",
    "QuerySelector",
    "QueryStrategy",
    "check_proposal",
]
