"""Mechanisms with the shape of their votes and a price, as releases and sessions take them."""

from typing import Any

import numpy as np

import secretballot as sb
from secretballot.accounting import PrivacyBudget, noisy_votes, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import ConfidentLabels, Mechanism, NoisyVotes
from secretballot.core.price import epsilon_upper
from secretballot.releasing import release_labels


def priced(
    mechanism: Mechanism,
    n_queries: int,
    n_teachers: int,
    n_classes: int = 2,
    budget: PrivacyBudget | None = None,
    delta: float = 1e-6,
    confidence: float | None = None,
) -> Terms:
    """Return a mechanism with a budget, or at the price of this delta."""
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    if budget is None:
        budget = PrivacyBudget(epsilon_upper([mechanism.event(shape)], delta), delta)
    public = {"method": "votes"} | ({} if confidence is None else {"confidence": confidence})
    return Terms(mechanism, shape, budget, public)


def noisy(
    scale: float,
    n_queries: int,
    *,
    n_teachers: int,
    n_classes: int = 2,
    budget: PrivacyBudget | None = None,
    delta: float = 1e-6,
    **kind: Any,
) -> Terms:
    """Return noise of this scale; without a budget at the price of this delta."""
    return priced(NoisyVotes(scale=scale, **kind), n_queries, n_teachers, n_classes, budget, delta)


def calibrated(
    budget: PrivacyBudget, n_queries: int, *, n_teachers: int, n_classes: int = 2, **kind: Any
) -> Terms:
    """Return the least noise that keeps a budget."""
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    return Terms(noisy_votes(budget, shape, **kind), shape, budget)


def confident(
    threshold: int, threshold_sigma: float, sigma: float, max_answers: int
) -> ConfidentLabels:
    return ConfidentLabels(
        threshold=threshold, threshold_sigma=threshold_sigma, sigma=sigma, max_answers=max_answers
    )


def released(votes: sb.Votes, terms: Terms, ledger: sb.Ledger, **more: Any) -> sb.ReleasedLabels:
    """Return a release on these terms; interactive ones contradict a student that predicts
    nothing."""
    if terms.confidence is None:
        return sb.release(votes, terms.mechanism, ledger, terms.budget, **more)
    rows = np.arange(terms.shape.n_queries)
    return release_labels(terms, votes, ledger, classes=votes.classes, rows=rows, **more)
