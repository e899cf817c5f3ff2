from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from noisy_plans import noisy, priced
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.core.mechanisms import NoisyVotes, plurality
from secretballot.exceptions import DataError
from secretballot.planning import Setting
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.simulated_run import SimulatedRun
from secretballot.students import NoisyCountsClassifier
from sessions import sparse

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
K = 100


class Listening(NoisyVotes):
    """Remember what was asked; labels are the exact pluralities."""

    asked: ClassVar[list[Any]] = []

    def _draw(self, shape, opened, noise, state):
        self.asked.append(np.array(opened[0]))
        return plurality(opened[0])[:, None], state


def listening(n):
    Listening.asked.clear()
    return priced(Listening(scale=1.0), n, K, budget=BUDGET)


def simulated(n_points=400, n_public=10_000, student=None, marked=False):
    """Points with votes of 90 of 100 teachers for the true class; `marked`: with different votes
    at every point."""
    data = synthetic_two_class(n_points + 1000, n_features=3, bayes_error=0.1, seed=0)
    truth = data.y[:n_points]
    for_one = np.where(truth == 1, 90, 10) if not marked else np.arange(n_points)
    counts = np.stack([(n_points if marked else K) - for_one, for_one], axis=1)
    sample = VoteSample(int(counts[0].sum()), counts, truth)
    return SimulatedRun(
        data.X[:n_points], sample, data.X[n_points:], data.y[n_points:], n_public, student
    )


def gaussian(sigma, n, release="labels"):
    return noisy(sigma, n, release=release, budget=BUDGET, n_teachers=K)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_little_noise_teaches_and_much_noise_does_not(release):
    setting = Setting(K, "gaussian", release, 300)
    good, bad = (
        [simulated().run(setting, gaussian(sigma, 300, release), seed).student for seed in range(4)]
        for sigma in (5.0, 1e5)
    )
    assert min(good) > 0.87
    assert abs(np.mean(bad) - 0.5) < 0.25
    assert np.mean(bad) < np.mean(good) - 0.1


def test_passive_runs_ask_distinct_points_of_a_public_pool_of_the_size_imitated():
    terms = listening(120)
    simulated(400, n_public=150, marked=True).run(Setting(400, "gaussian", "labels", 120), terms, 0)
    (asked,) = Listening.asked
    assert len(np.unique(asked[:, 1])) == len(asked) == 120


def test_the_given_student_is_used():
    setting = Setting(K, "gaussian", "labels", 50)
    constant = simulated(student=DummyClassifier(strategy="constant", constant=1))
    score = constant.run(setting, gaussian(1, 50), 0).student
    assert score == constant.y_test.mean()
    with pytest.raises(DataError, match="release counts"):
        simulated(student=NoisyCountsClassifier()).run(setting, gaussian(1, 50), 0)


def test_a_sparse_vector_that_stops_at_once_leaves_a_constant_student():
    never = priced(sparse(1.0, 1000, 1), 100, K, budget=BUDGET)
    score = simulated().run(Setting(K, "sparse-vector", "labels", 100, 1), never, 0).student
    assert score == (simulated().y_test == 0).mean()


@pytest.mark.parametrize("strategy", ["margin", "cluster", "disagreement"])
def test_walks_learn(strategy):
    setting = Setting(K, "gaussian", "labels", 60, strategy=strategy)
    assert simulated(200).run(setting, gaussian(5.0, 60), 0).student > 0.85
