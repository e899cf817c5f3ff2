"""The study of rates: fast teachers are the exact ones, plans scale as printed, and slopes and
memory work."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from samples import TsybakovThresholds
from secretballot.hypotheses import Thresholds

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def load(name: str) -> ModuleType:
    """Return a script of the folder, under the name by which the others import it."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


study = load("noise_rates")


class Recorded:
    """A generator that keeps what it has drawn, so that shards can be looked at."""

    def __init__(self, seed: int) -> None:
        self.rng, self.drawn = np.random.default_rng(seed), []

    def standard_exponential(self, shape: tuple[int, int]) -> np.ndarray:
        self.drawn.append(self.rng.standard_exponential(shape))
        return self.drawn[-1]

    def random(self, shape: tuple[int, int]) -> np.ndarray:
        self.drawn.append(self.rng.random(shape))
        return self.drawn[-1]


@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_teachers_are_the_exact_best_thresholds_of_their_shards(size: int) -> None:
    distribution = TsybakovThresholds(0.5, noise=0.1, left_margin=0.5)
    recorded = Recorded(size)
    found = study.best_thresholds(distribution, 50, size, recorded)
    gaps, coins = recorded.drawn
    x = np.cumsum(gaps, axis=1)[:, :-1] / gaps.sum(axis=1, keepdims=True)
    for row in range(50):
        labels = (coins[row] < distribution.probability(x[row])).astype(int)
        assert found[row] == pytest.approx(
            Thresholds().erm(x[row][:, None], labels).threshold, rel=1e-12
        )


@pytest.mark.parametrize("tau", [0.25, 0.5, 1.0])
def test_plans_scale_as_the_theorems_say(tau: float) -> None:
    def plan(learner: str, n: int, m: int = 0, epsilon: float = 1.0) -> object:
        return study.plan_of(
            study.Cell(learner, "even", tau, "n", n, m, epsilon), study.Constants(4, 100, 8)
        )

    small, large = plan("passive", 10_000), plan("passive", 1_000_000)
    assert large.labels / small.labels == pytest.approx(100 ** (2 * tau / (4 - tau)), rel=0.01)
    assert large.teachers / small.teachers == pytest.approx(
        np.sqrt(large.labels / small.labels), rel=0.02
    )
    # n and epsilon are one
    assert plan("passive", 10_000, epsilon=0.1).labels == plan("passive", 1000).labels
    small, large = plan("sparse vector", 10_000), plan("sparse vector", 1_000_000)
    assert large.labels / small.labels == pytest.approx(100 ** (tau / (2 - tau)), rel=0.01)
    assert abs(small.unstable - large.unstable) <= 1
    few, many = plan("active", 10_000), plan("active", 1_000_000)
    assert few.labels < many.labels < 3 * few.labels  # logarithms


def test_a_private_run_comes_through_the_door() -> None:
    for learner in ("passive", "active", "sparse vector"):
        cell = study.Cell(learner, "even", 1.0, "n", 20_000, 100, 2.0)
        plan = study.Plan(200, 50 if learner == "active" else 100, 100, 3, 0.5)
        disagreement, excess, *vote = study.one_run(cell, plan, 0)
        assert excess == pytest.approx(0.8 * disagreement)
        assert disagreement < 0.3
        assert vote[0] < 0.02
