"""Sessions at the price of their mechanism."""

from typing import Any

import secretballot as sb
from secretballot.core.mechanisms import Mechanism, SparseVector
from secretballot.core.types import VoteShape
from secretballot.privacy.accounting import epsilon_upper


def sparse(scale: float, threshold: int, most: int) -> SparseVector:
    return SparseVector(
        threshold_scale=scale, query_scale=scale, threshold=threshold, max_abstentions=most
    )


def price_of(mechanism: Mechanism, shape: VoteShape, delta: float = 1e-6) -> sb.PrivacyBudget:
    return sb.PrivacyBudget(epsilon_upper((mechanism.event(shape),), delta), delta)


def session(
    teachers: sb.TrainedTeachers,
    mechanism: Mechanism,
    ledger: sb.Ledger,
    n_queries: int,
    *,
    delta: float = 1e-6,
    **more: Any,
) -> sb.LabelingSession:
    budget = price_of(mechanism, teachers.shape(n_queries), delta)
    return sb.LabelingSession(teachers, mechanism, ledger, budget, n_queries=n_queries, **more)
