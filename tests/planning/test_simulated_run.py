import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from noisy_plans import noisy
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import DataError
from secretballot.planning import Setting
from secretballot.planning.stand_in import SimulatedRun
from secretballot.planning.votes_forecast import VoteSample
from secretballot.students import NoisyCountsClassifier

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
K = 100


def simulated(n_points=400, student=None):
    """Points with votes of 90 of 100 teachers for the true class."""
    data = synthetic_two_class(n_points + 1000, n_features=3, bayes_error=0.1, seed=0)
    truth, rest = data.y[:n_points], data.X[n_points:]
    for_one = np.where(truth == 1, 90, 10)
    sample = VoteSample(K, np.stack([K - for_one, for_one], axis=1), truth)
    return SimulatedRun(data.X[:n_points], sample, rest, data.y[n_points:], 10_000, student)


def gaussian(sigma, n, release="labels"):
    return noisy(sigma, n, release=release, budget=BUDGET, n_teachers=K)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_little_noise_teaches_and_much_noise_does_not(release):
    setting, world = Setting(K, "gaussian", release, 300), simulated()
    good, bad = (
        [world.run(setting, gaussian(sigma, 300, release), seed).student for seed in range(4)]
        for sigma in (5.0, 1e5)
    )
    assert min(good) > 0.87
    assert abs(np.mean(bad) - 0.5) < 0.25
    assert np.mean(bad) < np.mean(good) - 0.1


def test_the_given_student_is_used():
    setting = Setting(K, "gaussian", "labels", 50)
    constant = simulated(student=DummyClassifier(strategy="constant", constant=1))
    score = constant.run(setting, gaussian(1, 50), 0).student
    assert score == constant.y_test.mean()
    with pytest.raises(DataError, match="release counts"):
        simulated(student=NoisyCountsClassifier()).run(setting, gaussian(1, 50), 0)


@pytest.mark.parametrize("strategy", ["margin", "cluster", "disagreement"])
def test_walks_learn(strategy):
    setting = Setting(K, "gaussian", "labels", 60, strategy=strategy)
    assert simulated(200).run(setting, gaussian(5.0, 60), 0).student > 0.85
