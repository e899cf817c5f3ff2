"""Relabelling: its law against the definition, what it refuses, and that secret samples are
drawn as they must be."""

import itertools
from collections import Counter

import numpy as np
import pytest

from exact_games.statistics import frequency_p_value
from secretballot import relabel
from secretballot.hypotheses import DecisionStumps, Intervals, Thresholds
from secretballot.learners import labelers as secret_sample
from secretballot.learners.labelers import _sample_in_random_order, _sample_independently

ALPHA = 1e-6
DRAWS = 700


def defined_law(hypotheses, X, y, et):
    """Weight exp(-et mistakes / 2) of every distinct labelling, from the hypotheses alone."""
    labellings = {tuple(h.predict(X).tolist()) for h in hypotheses.dichotomies(X)}
    weights = {labels: np.exp(-et / 2 * np.sum(np.array(labels) != y)) for labels in labellings}
    total = sum(weights.values())
    return {labels: weight / total for labels, weight in weights.items()}


def drawn(hypotheses, X, y, et):
    return Counter(
        tuple(relabel(X, y, hypotheses, relabel_epsilon=et).tolist()) for _ in range(DRAWS)
    )


LINE = np.array([[0.0], [2.0], [2.0], [5.0], [7.0]])


@pytest.mark.parametrize("et", [2.5])
@pytest.mark.parametrize(
    ("hypotheses", "X"),
    [
        (Thresholds(), LINE),
        (Thresholds("either"), LINE),
        (Intervals(), LINE),
        (DecisionStumps(2), np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [1.0, 1.0], [4.0, 0.0]])),
    ],
    ids=["up", "either", "intervals", "stumps"],
)
def test_labels_are_drawn_by_the_stated_law(hypotheses, X, et):
    y = np.array([0, 1, 0, 1, 0])
    law, found = defined_law(hypotheses, X, y, et), drawn(hypotheses, X, y, et)
    assert set(found) <= set(law)
    worst = min(frequency_p_value(found[labels], DRAWS, chance) for labels, chance in law.items())
    assert worst > ALPHA / len(law)


def test_samples_come_in_every_order_alike():
    found = Counter(tuple(_sample_in_random_order(4, 2).tolist()) for _ in range(6_000))
    orders = list(itertools.permutations(range(4), 2))
    assert set(found) == set(orders)
    assert min(frequency_p_value(found[order], 6_000, 1 / 12) for order in orders) > ALPHA / 12
    assert sorted(_sample_in_random_order(500, 500).tolist()) == list(range(500))


def test_equal_keys_are_drawn_again(monkeypatch):
    words = [np.array([7, 7, 1], dtype=np.uint64), np.array([3, 9, 1], dtype=np.uint64)]
    monkeypatch.setattr(secret_sample, "_random_words", lambda n: words.pop(0))
    assert _sample_in_random_order(3, 2).tolist() == [2, 0]
    assert not words


def test_independent_samples_take_each_record_at_the_rate():
    rows = _sample_independently(40_000, 3, 10)
    assert frequency_p_value(len(rows), 40_000, 0.3) > ALPHA
    assert (np.diff(rows) > 0).all()
    both = sum(np.isin([0, 1], _sample_independently(2, 1, 2)).all() for _ in range(4000))
    assert frequency_p_value(both, 4000, 0.25) > ALPHA
    assert _sample_independently(5, 10**6, 10**6).tolist() == [0, 1, 2, 3, 4]


def test_the_rate_is_never_above_the_stated_one(monkeypatch):
    third = 2**64 // 3
    monkeypatch.setattr(
        secret_sample,
        "_random_words",
        lambda n: np.array([0, third - 1, third, third + 1], dtype=np.uint64),
    )
    assert _sample_independently(4, 1, 3).tolist() == [0, 1]
