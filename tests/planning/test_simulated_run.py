from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from noisy_plans import confident, noisy, priced
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.core import releasing
from secretballot.core.mechanisms import NoisyVotes, plurality
from secretballot.exceptions import DataError
from secretballot.planning import Setting
from secretballot.planning.simulation import simulated_run
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.planning.simulation.simulated_run import SimulatedRun
from secretballot.queries import InRounds, strategy_by_name
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
    good = [
        simulated().run(setting, gaussian(5.0, 300, release), seed).student for seed in range(4)
    ]
    bad = [simulated().run(setting, gaussian(1e5, 300, release), seed).student for seed in range(4)]
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
    constant = (
        simulated(student=DummyClassifier(strategy="constant", constant=1))
        .run(setting, gaussian(1, 50), 0)
        .student
    )
    assert constant == simulated().y_test.mean()
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


CORRECTING = Setting(
    K, "interactive", "labels", 60, strategy="margin", threshold=25, max_answers=20
)


def interactive(most):
    return priced(confident(25, 9.0, 6.0, most), 60, K, budget=BUDGET, confidence=0.6)


class Drawn(SeededNoise):
    """The same integers in the same order for each scale, however many are asked at once: releases
    draw question by question, and a simulated run round by round."""

    exact = True  # as a release asks

    def __init__(self, rng=None):
        super().__init__(np.random.default_rng(7))
        self._ready = {}

    def discrete_gaussian(self, sigma, size):
        if sigma not in self._ready:
            self._ready[sigma] = super().discrete_gaussian(sigma, 1000).tolist()
        drawn, self._ready[sigma] = self._ready[sigma][:size], self._ready[sigma][size:]
        return np.array(drawn, dtype=np.int64)


@pytest.mark.parametrize(("strategy", "most"), [("margin", 60), ("cluster", 9)])
def test_interactive_runs_are_those_of_the_real_learner_under_the_same_noise(
    strategy, most, monkeypatch
):
    world, seed = simulated(150), 5
    world.sample.counts[::3] = 50  # so that some points are never clear
    monkeypatch.setattr(simulated_run, "SeededNoise", Drawn)
    setting = replace(CORRECTING, max_answers=most, strategy=strategy)
    found = world.run(setting, interactive(most), seed)
    rng = np.random.default_rng(seed)
    public = rng.permutation(150)
    noise = Drawn()
    monkeypatch.setattr(releasing, "noise_source", lambda: noise)
    pool, learner = world.points[public], LogisticRegression(max_iter=1000)
    run = sb.label_actively(
        sb.votes_of_counts(world.sample.counts[public], classes=[0, 1]),
        pool,
        confident(25, 9.0, 6.0, most),
        sb.Ledger.in_memory(dataset="simulated", budget=PrivacyBudget(1e3, 0.1)),
        PrivacyBudget(100.0, 1e-5),
        InRounds(strategy_by_name(strategy), confidence=0.6),
        n_queries=60,
        random_state=int(rng.integers(2**31)),
    )
    released = run.released
    assert found.answered == released.answered.sum()
    right = world.sample.truth[public][released.queries] == released.labels
    assert found.labels == right[released.answered].mean()
    student = sb.fit_student(learner, pool, released)
    assert found.student == (student.predict(world.X_test) == world.y_test).mean()
    assert (released.answered.sum() == 9) == (most == 9)
    # what was confirmed teaches too
    alone = sb.fit_student(learner, pool, replace(released, certificate={}))
    assert (alone.coef_ != student.coef_).any()
