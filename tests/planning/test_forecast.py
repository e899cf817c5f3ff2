"""Forecasts against the mechanisms themselves, run many times on the same simulated votes."""

import numpy as np
import pytest

from noisy_plans import confident, noisy, priced
from secretballot.accounting import PrivacyBudget, sparse_vector
from secretballot.core.losses import discrete_gaussian_pmf
from secretballot.planning.simulation.forecast import (
    RoughForecast,
    forecast,
    forecast_gaussian,
    forecast_interactive,
    right_chances,
    vote_accuracy,
)
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.planning.simulation.votes import VoteSample
from sessions import told_labels

BUDGET = PrivacyBudget(1.0, 1e-5)


def sample_votes(n_points: int, n_teachers: int, n_classes: int, seed: int = 0) -> VoteSample:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.7), size=n_points)
    counts = rng.multinomial(n_teachers, shares).astype(np.int64)
    truth = np.array([rng.choice(n_classes, p=p) for p in shares])
    return VoteSample(n_teachers, counts, truth)


@pytest.mark.parametrize("n_teachers", [10, 11])
@pytest.mark.parametrize("sigma", [0.3, 2.0, 25.0])
def test_two_classes_follow_the_definition_exactly(n_teachers: int, sigma: float) -> None:
    votes = np.arange(n_teachers + 1)
    counts = np.stack([n_teachers - votes, votes], axis=1)
    reach, pmf = discrete_gaussian_pmf(sigma)
    noise = np.arange(-reach, reach + 1)
    one = [pmf[2 * (v + noise) >= n_teachers].sum() for v in votes]
    for truth, expected in ((1, one), (0, 1 - np.array(one))):
        sample = VoteSample(n_teachers, counts, np.full(len(votes), truth))
        assert right_chances(sample, sigma) == pytest.approx(np.asarray(expected), abs=1e-12)


@pytest.mark.parametrize(("n_classes", "release"), [(2, "labels"), (3, "labels"), (6, "counts")])
def test_label_accuracy_is_what_the_mechanism_gives(n_classes: int, release: str) -> None:
    sample = sample_votes(300, 60, n_classes)
    terms = noisy(9.0, 300, n_classes=n_classes, release=release, budget=BUDGET, n_teachers=60)
    noise, repeats = SeededNoise(np.random.default_rng(1)), 150
    runs = [
        np.mean(told_labels(terms, sample.counts, noise) == sample.truth) for _ in range(repeats)
    ]
    told = forecast(sample, terms)
    error = 0.5 / np.sqrt(300 * repeats)
    assert abs(told.label_accuracy - np.mean(runs)) < 4 * error
    assert told.answered == told.answered_low == told.answered_high == 300


@pytest.mark.parametrize("sigma", [2.0, 30.0, 400.0])
@pytest.mark.parametrize(("n_classes", "release"), [(2, "counts"), (5, "labels")])
def test_rough_forecasts_are_near(sigma: float, n_classes: int, release: str) -> None:
    sample = sample_votes(500, 150, n_classes)
    rough = RoughForecast(sample).gaussian(sigma, 70, release)
    exact = forecast_gaussian(sample, sigma, 70, release)
    assert rough.label_accuracy == pytest.approx(exact.label_accuracy, abs=0.004)
    assert rough.information == pytest.approx(exact.information, rel=0.06, abs=0.1)


def test_a_stream_is_forecast_like_it_runs() -> None:
    sample = sample_votes(500, 1500, 3)
    terms = priced(sparse_vector(BUDGET, 500, max_abstentions=9), 500, 1500, 3, BUDGET)
    rng = np.random.default_rng(3)
    noise, answered, right = SeededNoise(rng), [], 0
    for _ in range(600):
        rows = rng.integers(500, size=500)
        labels = told_labels(terms, sample.counts[rows], noise)
        answered.append(int((labels >= 0).sum()))
        right += int((labels == sample.truth[rows]).sum())
    told = forecast(sample, terms)
    assert abs(told.answered - np.mean(answered)) < 4 * np.std(answered) / np.sqrt(600)
    assert told.label_accuracy == pytest.approx(right / sum(answered), abs=0.02)
    inside = np.mean(
        (np.array(answered) >= told.answered_low) & (np.array(answered) <= told.answered_high)
    )
    assert inside > 0.86


@pytest.mark.parametrize(("n_classes", "most"), [(2, 400), (3, 150)])
def test_confident_answers_are_forecast_like_they_come(n_classes: int, most: int) -> None:
    sample = sample_votes(600, 60, n_classes)
    terms = priced(confident(50, 9.0, 8.0, most), 600, 60, n_classes, BUDGET)
    outlook = forecast(sample, terms)
    noise, given, right = SeededNoise(np.random.default_rng(2)), [], []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(600)
        labels = told_labels(terms, sample.counts[order], noise)
        answered = labels >= 0
        given.append(int(answered.sum()))
        right.append(float((labels == sample.truth[order])[answered].mean()))
    assert outlook.answered == pytest.approx(np.mean(given), abs=4)
    assert outlook.answered_low - 2 <= np.quantile(given, 0.1)
    assert np.quantile(given, 0.9) <= outlook.answered_high + 2
    assert outlook.label_accuracy == pytest.approx(np.mean(right), abs=0.02)
    assert outlook.vote_accuracy == vote_accuracy(sample)


@pytest.mark.parametrize(("n_classes", "agreement"), [(2, 0.9), (3, 0.6)])
def test_corrections_are_forecast_for_a_student_of_known_agreement(
    n_classes: int, agreement: float
) -> None:
    sample = sample_votes(600, 60, n_classes)
    terms = priced(confident(18, 9.0, 8.0, 600), 600, 60, n_classes, BUDGET, confidence=0.9)
    outlook = forecast_interactive(sample, terms, agreement)
    ranked = np.argsort(sample.counts, axis=1, kind="stable")
    noise, given, right = SeededNoise(np.random.default_rng(2)), [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        says = np.where(rng.random(600) < agreement, ranked[:, -1], ranked[:, -2])
        shares = np.full((600, n_classes), (1 - agreement) / (n_classes - 1))
        shares[np.arange(600), says] = agreement
        shares[rng.permutation(600)[:30]] = 0.0  # the first round
        labels = told_labels(terms, sample.counts, noise, shares)
        answered = labels >= 0
        given.append(int(answered.sum()))
        right.append(float((labels == sample.truth)[answered].mean()))
    assert outlook.answered == pytest.approx(np.mean(given), abs=6)
    assert outlook.label_accuracy == pytest.approx(np.mean(right), abs=0.02)
