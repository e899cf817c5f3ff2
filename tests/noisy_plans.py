"""Mechanisms with the shape of their votes and a price, as releases and sessions take them."""

import numpy as np

import secretballot as sb
from secretballot.accounting import PrivacyBudget, noisy_votes, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import ConfidentLabels, NoisyVotes
from secretballot.core.price import epsilon_upper
from secretballot.releasing import release_labels


def priced(mechanism, n_queries, n_teachers, n_classes=2, budget=None, delta=1e-6, confidence=None):
    """Return a mechanism with a budget, or at the price of this delta."""
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    if budget is None:
        budget = PrivacyBudget(epsilon_upper([mechanism.event(shape)], delta), delta)
    public = {"method": "votes"} | ({} if confidence is None else {"confidence": confidence})
    return Terms(mechanism, shape, budget, public)


def noisy(scale, n_queries, *, n_teachers, n_classes=2, budget=None, delta=1e-6, **kind):
    """Return noise of this scale; without a budget at the price of this delta."""
    return priced(NoisyVotes(scale=scale, **kind), n_queries, n_teachers, n_classes, budget, delta)


def calibrated(budget, n_queries, *, n_teachers, n_classes=2, **kind):
    """Return the least noise that keeps a budget."""
    shape = teacher_shape(n_queries, n_classes, n_teachers)
    return Terms(noisy_votes(budget, shape, **kind), shape, budget)


def confident(threshold, threshold_sigma, sigma, max_answers):
    return ConfidentLabels(
        threshold=threshold, threshold_sigma=threshold_sigma, sigma=sigma, max_answers=max_answers
    )


def released(votes, terms, ledger, **more):
    """Return a release on these terms; interactive ones contradict a student that predicts
    nothing."""
    if terms.confidence is None:
        return sb.release(votes, terms.mechanism, ledger, terms.budget, **more)
    rows = np.arange(terms.shape.n_queries)
    return release_labels(terms, votes, ledger, classes=votes.classes, rows=rows, **more)
