"""Noisy votes with a number of queries and a price, as releases and sessions take them."""

from typing import Any

from secretballot.accounting import PrivacyBudget, teacher_shape
from secretballot.aggregation import NoisyVoting
from secretballot.core.mechanisms import NoisyVotes, TableLabels
from secretballot.core.price import epsilon_upper


def noisy(
    scale: float,
    n_queries: int,
    *,
    n_teachers: int,
    n_classes: int = 2,
    budget: PrivacyBudget | None = None,
    delta: float = 1e-6,
    **kind: Any,
) -> NoisyVoting:
    """Return noise of this scale; without a budget at the price of this delta."""
    return priced(NoisyVotes(scale=scale, **kind), n_queries, n_teachers, n_classes, budget, delta)


def priced(
    mechanism: NoisyVotes | TableLabels,
    n_queries: int,
    n_teachers: int,
    n_classes: int = 2,
    budget: PrivacyBudget | None = None,
    delta: float = 1e-6,
) -> NoisyVoting:
    """Return a mechanism with a budget, or at the price of this delta."""
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    if budget is None:
        budget = PrivacyBudget(epsilon_upper([mechanism.event(shape)], delta), delta)
    return NoisyVoting.of(mechanism, shape, budget)


def calibrated(
    budget: PrivacyBudget, n_queries: int, *, n_teachers: int, n_classes: int = 2, **kind: Any
) -> NoisyVoting:
    """Return the least noise that keeps a budget."""
    return NoisyVoting.calibrate(
        budget, n_queries, n_teachers=n_teachers, n_classes=n_classes, **kind
    )
