"""Simulated runs, votes of more teachers than were counted, and the noise of both."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.dummy import DummyClassifier

from noisy_plans import noisy
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import DataError
from secretballot.planning import Setting
from secretballot.planning.stand_in import simulated_run
from secretballot.planning.votes_forecast import SeededNoise, VoteSample, drawn_votes
from secretballot.students import NoisyCountsClassifier

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
K = 100


def simulated(n_points=400, student=None):
    """Points with votes of 90 of 100 teachers for the true class."""
    data = synthetic_two_class(n_points + 1000, n_features=3, bayes_error=0.1, seed=0)
    truth, rest = data.y[:n_points], data.X[n_points:]
    for_one = np.where(truth == 1, 90, 10)
    sample = VoteSample(K, np.stack([K - for_one, for_one], axis=1), truth)
    scored = rest, data.y[n_points:]
    about = {"n_public": 10_000, "student": student}
    return lambda *run: simulated_run(data.X[:n_points], sample, scored, *run, **about).student


def gaussian(sigma, n, release="labels"):
    return noisy(sigma, n, release=release, budget=BUDGET, n_teachers=K)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_little_noise_teaches_and_much_noise_does_not(release):
    setting, world = Setting(K, "gaussian", release, 300), simulated()
    good, bad = (
        [world(setting, gaussian(sigma, 300, release), seed) for seed in range(4)]
        for sigma in (5.0, 1e5)
    )
    assert min(good) > 0.87
    assert abs(np.mean(bad) - 0.5) < 0.25
    assert np.mean(bad) < np.mean(good) - 0.1


def test_the_given_student_is_used():
    setting = Setting(K, "gaussian", "labels", 50)
    constant, other = (
        simulated(student=DummyClassifier(strategy="constant", constant=one)) for one in (1, 0)
    )
    scores = [one(setting, gaussian(1, 50), 0) for one in (constant, other)]
    assert sum(scores) == pytest.approx(1.0)
    with pytest.raises(DataError, match="release counts"):
        simulated(student=NoisyCountsClassifier())(setting, gaussian(1, 50), 0)


@pytest.mark.parametrize("strategy", ["margin", "cluster"])
def test_walks_learn(strategy):
    setting = Setting(K, "gaussian", "labels", 30, strategy=strategy)
    assert simulated(200)(setting, gaussian(5.0, 30), 0) > 0.8


POINTS = 20_000


def law(seed, centre=0.8, spread=0.9):
    """True class and share of right votes of many points, Phi of a normal law."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, POINTS), ndtr(centre + spread * rng.normal(size=POINTS)), rng


def two_sided(right, truth):
    return np.where(
        (truth == 1)[:, None], np.stack([1 - right, right], 1), np.stack([right, 1 - right], 1)
    )


def summary(votes, truth):
    share = votes[np.arange(len(truth)), truth] / votes.sum(axis=1)
    margin = np.abs(2 * share - 1)
    return np.array([(share > 0.5).mean(), share.mean(), margin.mean(), margin.std()])


@pytest.mark.parametrize(("n_counted", "K"), [(10, 401), (100, 51)])
def test_votes_of_more_or_fewer_teachers_have_the_right_margins(n_counted, K):
    truth, right, rng = law(0)
    real = summary(rng.multinomial(K, two_sided(right, truth)), truth)
    counts = rng.multinomial(n_counted, two_sided(right, truth))
    drawn = drawn_votes(K, counts, truth, rng)
    assert (drawn.sum(axis=1) == K).all()
    assert summary(drawn, truth) == pytest.approx(real, abs=0.012)


@pytest.mark.parametrize("law", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.6, 7.3])
def test_seeded_draws_follow_the_stated_law(law, scale):
    drawn, x = (
        getattr(SeededNoise(np.random.default_rng(0)), law)(scale, 100_000),
        np.arange(-90, 91),
    )
    assert drawn.dtype == np.int64
    weights = np.exp(-np.abs(x) / scale if law == "discrete_laplace" else -((x / scale) ** 2) / 2)
    found = np.array([(drawn == one).mean() for one in x])
    # the one law at the larger scale differs from the other by 0.014
    assert np.abs(found - weights / weights.sum()).max() < 0.006


def test_seeded_uniform_integers_cover_their_range_evenly():
    drawn = SeededNoise(np.random.default_rng(5)).uniform_integers(3, 80_000)
    assert np.bincount(drawn) == pytest.approx(np.full(8, 10_000), rel=0.05)
