"""Sessions at the price of their mechanism."""

from typing import Any

import secretballot as sb
from secretballot.core.mechanisms import Mechanism, SparseVector
from secretballot.core.types import VoteShape
from secretballot.learners.training.label_stream import LabelStream
from secretballot.privacy.accounting import epsilon_upper, teacher_shape


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


def session_of(
    teachers: sb.TrainedTeachers, plan: Any, ledger: sb.Ledger, **more: Any
) -> sb.LabelingSession:
    """Return a session on the terms of an aggregator."""
    return sb.LabelingSession(
        teachers,
        plan.core_mechanism(teachers.n_teachers),
        ledger,
        plan.budget,
        n_queries=plan.n_queries,
        confidence=plan.public.get("confidence"),
        **more,
    )


def stream_of(
    plan: Any, ledger: sb.Ledger, classes: Any, n_teachers: int, **more: Any
) -> LabelStream:
    """Return a stream on the terms of an aggregator."""
    return LabelStream(
        plan.core_mechanism(n_teachers),
        teacher_shape(plan.n_queries, len(classes), n_teachers),
        ledger,
        plan.budget,
        classes=classes,
        confidence=plan.public.get("confidence"),
        **{"request": "plan", **more},
    )
