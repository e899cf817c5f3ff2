"""One noisy step on integers each, with its sensitivity, neighbouring relation and event stated.

A mechanism knows votes and noise, never a budget: `event` says what was drawn, and the accountant
prices it.
"""

from secretballot.core.mechanisms import ABSTAINED
from secretballot.privacy.mechanisms.abstention_table import AbstentionTable, AbstentionTableRun
from secretballot.privacy.mechanisms.error_level import (
    QuantileSlack,
    answerable_fraction,
    choose_max_unstable,
    quantile_slack,
)
from secretballot.privacy.mechanisms.exponential_mechanism import ExponentialMechanism
from secretballot.privacy.mechanisms.mechanism import Mechanism
from secretballot.privacy.mechanisms.noisy_threshold import GaussianThreshold
from secretballot.privacy.mechanisms.noisy_vector_sum import NoisyVectorSum
from secretballot.privacy.mechanisms.pool_estimates import (
    StabilityQuantile,
    stability_quantile,
)
from secretballot.privacy.mechanisms.sparse_vector import SparseVector, SparseVectorRun
from secretballot.privacy.mechanisms.stability import margin, plurality, stability

__all__ = [
    "ABSTAINED",
    "MECHANISMS",
    "AbstentionTable",
    "AbstentionTableRun",
    "ExponentialMechanism",
    "GaussianThreshold",
    "Mechanism",
    "NoisyVectorSum",
    "QuantileSlack",
    "SparseVector",
    "SparseVectorRun",
    "StabilityQuantile",
    "answerable_fraction",
    "choose_max_unstable",
    "margin",
    "plurality",
    "quantile_slack",
    "stability",
    "stability_quantile",
]

MECHANISMS: tuple[type[Mechanism], ...] = (
    GaussianThreshold,
    SparseVector,
    AbstentionTable,
    ExponentialMechanism,
    StabilityQuantile,
)
