"""Forecasts against exact chances, and against streams of the mechanisms themselves."""

import numpy as np
import pytest

from noisy_plans import confident, noisy, priced
from secretballot.accounting import PrivacyBudget
from secretballot.core.losses import discrete_gaussian_pmf
from secretballot.planning.votes_forecast import SeededNoise, VoteSample, forecast, vote_accuracy
from sessions import told_labels

BUDGET = PrivacyBudget(1.0, 1e-5)


def sample_votes(n_points, n_teachers, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.7), size=n_points)
    counts = rng.multinomial(n_teachers, shares).astype(np.int64)
    truth = np.array([rng.choice(n_classes, p=p) for p in shares])
    return VoteSample(n_teachers, counts, truth)


@pytest.mark.parametrize(("n_teachers", "sigma"), [(10, 0.3), (11, 25.0)])
def test_labels_of_two_classes_are_right_as_often_as_the_definition_says(n_teachers, sigma):
    sample = sample_votes(500, n_teachers, 2)
    reach, pmf = discrete_gaussian_pmf(sigma)
    noise = np.arange(-reach, reach + 1)
    one = np.array([pmf[2 * (v + noise) >= n_teachers].sum() for v in sample.counts[:, 1]])
    exact = np.where(sample.truth == 1, one, 1 - one).mean()
    found = forecast(sample, noisy(sigma, 70, budget=BUDGET, n_teachers=n_teachers))
    assert found.label_accuracy == pytest.approx(exact, abs=4 * 0.5 / np.sqrt(10_000))
    assert found.answered == 70
    assert found.vote_accuracy == vote_accuracy(sample)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_information_lies_between_that_of_a_guess_and_that_of_the_truth(release):
    truth = np.arange(300) % 3
    sample = VoteSample(60, 60 * np.eye(3, dtype=np.int64)[truth], truth)
    told = [
        forecast(
            sample, noisy(scale, 50, n_classes=3, release=release, budget=BUDGET, n_teachers=60)
        ).information
        for scale in (0.3, 60.0, 1e6)
    ]
    assert told[0] == pytest.approx(50, rel=1e-3)
    assert 5 < told[1] < 40
    assert told[2] < 0.1


def test_confident_answers_are_forecast_like_they_come():
    sample = sample_votes(600, 60, 3)
    terms = priced(confident(50, 9.0, 8.0, 150), 600, 60, 3, BUDGET)
    outlook = forecast(sample, terms)
    noise, given, right = SeededNoise(np.random.default_rng(2)), [], []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(600)
        labels = told_labels(terms, sample.counts[order], noise)
        answered = labels >= 0
        given.append(int(answered.sum()))
        right.append(float((labels == sample.truth[order])[answered].mean()))
    assert outlook.answered == pytest.approx(np.mean(given), abs=12)
    assert outlook.label_accuracy == pytest.approx(np.mean(right), abs=0.04)
