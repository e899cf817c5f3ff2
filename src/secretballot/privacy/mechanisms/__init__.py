"""One noisy step on integers each, with its sensitivity, neighbouring relation and event stated.

A mechanism knows votes and noise, never a budget: `event` says what was drawn, and the accountant
prices it.
"""

from secretballot.privacy.mechanisms.abstention_table import AbstentionTable, AbstentionTableRun
from secretballot.privacy.mechanisms.distance_to_instability import ABSTAINED, DistanceToInstability
from secretballot.privacy.mechanisms.mechanism import Mechanism
from secretballot.privacy.mechanisms.noisy_argmax import (
    GaussianNoisyArgmax,
    GaussianNoisyMajority,
    LaplaceNoisyArgmax,
    LaplaceNoisyMajority,
    majority,
)
from secretballot.privacy.mechanisms.noisy_count import (
    GaussianNoisyCount,
    GaussianNoisyHistogram,
    LaplaceNoisyCount,
    LaplaceNoisyHistogram,
)
from secretballot.privacy.mechanisms.noisy_table import GaussianNoisyTable
from secretballot.privacy.mechanisms.noisy_threshold import GaussianThreshold
from secretballot.privacy.mechanisms.sparse_vector import SparseVector, SparseVectorRun
from secretballot.privacy.mechanisms.stability import margin, plurality, stability
from secretballot.privacy.mechanisms.vote_quantile import VoteQuantile
from secretballot.privacy.mechanisms.vote_table import VoteTableMajority

__all__ = [
    "ABSTAINED",
    "MECHANISMS",
    "AbstentionTable",
    "AbstentionTableRun",
    "DistanceToInstability",
    "GaussianNoisyArgmax",
    "GaussianNoisyCount",
    "GaussianNoisyHistogram",
    "GaussianNoisyMajority",
    "GaussianNoisyTable",
    "GaussianThreshold",
    "LaplaceNoisyArgmax",
    "LaplaceNoisyCount",
    "LaplaceNoisyHistogram",
    "LaplaceNoisyMajority",
    "Mechanism",
    "SparseVector",
    "SparseVectorRun",
    "VoteQuantile",
    "VoteTableMajority",
    "majority",
    "margin",
    "plurality",
    "stability",
]

MECHANISMS: tuple[type[Mechanism], ...] = (
    GaussianNoisyCount,
    GaussianNoisyHistogram,
    GaussianNoisyTable,
    GaussianNoisyMajority,
    GaussianNoisyArgmax,
    LaplaceNoisyCount,
    LaplaceNoisyHistogram,
    LaplaceNoisyMajority,
    LaplaceNoisyArgmax,
    VoteTableMajority,
    GaussianThreshold,
    DistanceToInstability,
    SparseVector,
    AbstentionTable,
    VoteQuantile,
)
