"""Sessions at the price of their mechanism."""

import numpy as np

import secretballot as sb
from secretballot.accounting import epsilon_upper, teacher_shape
from secretballot.core.mechanisms import SparseVector, State
from secretballot.learners.session import LabelStream
from secretballot.released import labels_in
from secretballot.students.fitting import predicted_votes


def sparse(scale, threshold, most):
    return SparseVector(
        threshold_scale=scale, query_scale=scale, threshold=threshold, max_abstentions=most
    )


def price_of(mechanism, shape, delta=1e-6):
    return sb.PrivacyBudget(epsilon_upper((mechanism.event(shape),), delta), delta)


def session(teachers, mechanism, ledger, n_queries, *, delta=1e-6, **more):
    budget = price_of(mechanism, teachers.shape(n_queries), delta)
    return sb.LabelingSession(teachers, mechanism, ledger, budget, n_queries=n_queries, **more)


def session_of(teachers, terms, ledger, **more):
    return sb.LabelingSession(
        teachers, terms.mechanism, ledger, terms.budget, n_queries=terms.shape.n_queries, **more
    )


def stream_of(terms, ledger, classes, **more):
    """Return a stream that is asked with counts in the place of points."""

    def votes(counts):
        return sb.votes_of_counts(counts, classes=classes)

    about = {"request": "plan", **more}
    return LabelStream(terms, votes, ledger, classes=classes, **about)


def told_labels(terms, votes, noise, shares=None):
    """Return the labels that a mechanism gives all votes; -1 after a stop."""
    mechanism = terms.mechanism
    counts = np.asarray(votes).astype(np.int64)
    shape = teacher_shape(len(counts), counts.shape[1], int(counts[0].sum()))
    against = np.zeros_like(counts)
    if shares is not None:
        against = predicted_votes(shares, shape.n_teachers or 0)
    drawn, _ = mechanism.draw(shape, (counts, against), noise, State())
    labels = np.full(len(counts), -1)
    labels[: len(drawn)] = labels_in(mechanism, shape, drawn)[0]
    return labels


OF_FIT = {
    *("units", "unit_name", "request", "purpose", "dropped"),
    *("vault", "executor", "send_shards", "progress"),
}


def of_fit(settings):
    """Take out of settings what a fit is given, and return it."""
    return {name: settings.pop(name) for name in OF_FIT & set(settings)}


def in_rounds(*learners, strategy=None, round_size=None, **settings):
    """Return a PATEClassifier that asks in rounds."""
    rounds = sb.queries.InRounds(strategy or sb.queries.MarginSampling(), round_size)
    return sb.PATEClassifier(*learners, strategy=rounds, **settings)
