"""One noisy step on integers each, with its sensitivity, neighbouring relation and event stated.

A mechanism knows votes and noise, never a budget: `event` says what was drawn, and the accountant
prices it.
"""

from secretballot.privacy.mechanisms.error_level import (
    QuantileSlack,
    answerable_fraction,
    choose_max_unstable,
    quantile_slack,
)
from secretballot.privacy.mechanisms.exponential_mechanism import ExponentialMechanism
from secretballot.privacy.mechanisms.mechanism import Mechanism
from secretballot.privacy.mechanisms.noisy_vector_sum import NoisyVectorSum
from secretballot.privacy.mechanisms.pool_estimates import (
    StabilityQuantile,
    stability_quantile,
)

__all__ = [
    "MECHANISMS",
    "ExponentialMechanism",
    "Mechanism",
    "NoisyVectorSum",
    "QuantileSlack",
    "StabilityQuantile",
    "answerable_fraction",
    "choose_max_unstable",
    "quantile_slack",
    "stability_quantile",
]

MECHANISMS: tuple[type[Mechanism], ...] = (
    ExponentialMechanism,
    StabilityQuantile,
)
