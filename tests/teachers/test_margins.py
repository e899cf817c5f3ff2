"""Margins of votes and the Tsybakov condition against their definitions."""

import itertools

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from ensembles import ensemble_of
from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers.votes import tsybakov_fit, vote_margins


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_those_of_the_definition(n_classes):
    ways = itertools.product(range(6), repeat=n_classes)
    counts = np.array([way for way in ways if sum(way) == 5])
    ranked = [sorted(row, reverse=True) for row in counts.tolist()]
    assert vote_margins(counts).tolist() == [row[0] - row[1] for row in ranked]


def test_an_ensemble_has_the_margins_of_its_votes():
    X, y = np.zeros((6, 1)), np.array([0, 0, 1, 1, 1, 0])
    made = ensemble_of(DummyClassifier(), X, y, np.arange(6) % 5, n_teachers=5, n_classes=3)
    points = np.zeros((2, 1))
    counts = made.vote_counts(points)._unseal()[0]
    assert made.margins(points).tolist() == vote_margins(counts).tolist()


@pytest.mark.parametrize("tau", [0.3, 0.75])
def test_the_exponent_of_a_known_tail_is_found(tau):
    """P(|2 r - 1| <= t) = t^a with a = tau / (1 - tau)."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(12):
        margins = rng.random(3000) ** ((1 - tau) / tau) / 2
        side = rng.choice([-1, 1], size=3000)
        fit = tsybakov_fit(0.5 + side * margins)
        found.append(fit.tau)
        assert fit.n_tail == 300
    assert np.mean(found) == pytest.approx(tau, abs=0.02)


def test_bounded_noise_has_tau_one():
    fit = tsybakov_fit(np.repeat([0.4, 0.6], 200))
    assert (fit.tau, fit.massart) == (1.0, pytest.approx(0.1))
    assert fit.eta == pytest.approx(5.0)  # one over twice the margin
    # flipping the hundredth at 0.1 disagrees on 0.01 for an excess error of 0.002
    rare = tsybakov_fit(np.repeat([0.6, 0.9], [20, 1980]))
    assert (rare.tau, rare.n_tail, rare.eta) == (1.0, 20, pytest.approx(5.0))
    assert tsybakov_fit(np.full(400, 0.5)).tau == 0.0
    # one half, but for rounding
    assert tsybakov_fit(np.repeat(np.nextafter(0.5, [0, 1]), 200)).tau == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: tsybakov_fit(np.linspace(0, 1, 199)),
        lambda: tsybakov_fit(np.full(300, 1.7771)),
        lambda: tsybakov_fit(np.full(300, np.nan)),
        lambda: tsybakov_fit(np.linspace(0, 1, 300), tail=1.0),
    ],
)
def test_a_regression_function_that_does_not_fit_is_refused(call):
    with pytest.raises((DataError, ParameterError)) as caught:
        call()
    assert "7771" not in str(caught.value)
