"""Table 1 of Liu et al. 2021 against the theorems behind it, and voting in numbers."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from secretballot import theory
from secretballot.exceptions import ParameterError


def _best_over_public(risk):
    """Return the least value of risk(m) over real m."""
    found = minimize_scalar(
        lambda log: math.log(risk(math.exp(log))), bounds=(0.0, 80.0), method="bounded"
    )
    return math.exp(found.fun)


@pytest.mark.parametrize("tau", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("algorithm", ["gaussian", "sparse-vector"])
def test_rates_of_table_1_are_the_theorems_at_the_best_number_of_labels(algorithm, tau):
    """The printed (2 - tau) / 2 for Gaussian voting fails here at every tau below 1."""

    def best(n, d):
        if algorithm == "gaussian":
            return _best_over_public(lambda m: d / m + (d * math.sqrt(m) / n) ** (tau / (2 - tau)))
        return _best_over_public(lambda m: d / m + (m * d * d / (n * n)) ** (tau / (4 - 3 * tau)))

    found = theory.rate(algorithm, "tsybakov", tau)
    slope = math.log(best(1e14, 1) / best(1e12, 1)) / math.log(100)
    assert slope == pytest.approx(-found.records, abs=2e-3)
    in_d = math.log(best(1e14, 100) / best(1e14, 1)) / math.log(100)
    assert in_d == pytest.approx(found.records * found.dimension, abs=2e-3)
    if algorithm == "gaussian" and tau < 1:
        assert abs(slope + (2 - tau) / 2) > 0.1


def test_sample_complexity_inverts_the_rate():
    for algorithm, setting, tau in (
        ("gaussian", "realizable", None),
        ("gaussian", "tsybakov", 0.5),
        ("sparse-vector", "tsybakov", 0.75),
        ("active", "tsybakov", 1.0),
        ("sparse-vector-2018", "agnostic", None),
    ):
        need = theory.sample_complexity(algorithm, setting, 0.01, 3, 0.5, tau=tau, theta=4.0)
        found, (n, m) = theory.rate(algorithm, setting, tau), map(int, need)

        def excess(n, m, found=found):
            ratio = 3**found.dimension * 4.0**found.coefficient / (0.5 * n)
            return max(ratio**found.records, (3 / m) ** found.public)

        assert excess(n, m) <= 0.01 * (1 + 1e-9)
        for fewer in ((int(0.9 * n), m), (n, int(0.9 * m))):
            assert excess(*fewer) > 0.01


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.rate("gaussian", "tsybakov"),
        lambda: theory.rate("gaussian", "tsybakov", 1.2),
        lambda: theory.rate("gaussian", "tsybakov", -0.1),
        lambda: theory.rate("sparse-vector-2018", "tsybakov", math.nan),
        lambda: theory.rate("gaussian", "realizable", 1.0),
        lambda: theory.rate("laplace", "realizable"),
        lambda: theory.sample_complexity("gaussian", "realizable", 1.0, 1, 1.0),
    ],
)
def test_out_of_range_is_refused(call):
    with pytest.raises(ParameterError):
        call()


def test_the_gallery_prints_the_table():
    page = Path(__file__).parents[2] / "docs" / "gallery.md"
    assert theory.render_rates() in page.read_text("utf-8")


def test_voting_fails_with_teachers_that_minimise_the_empirical_error():
    """Example 8 run as it stands: every teacher fits its own shard; ties are broken by a fair
    coin."""
    rng, k, size, class_ = np.random.default_rng(2), 2001, 6, np.array(theory.FAILING_CLASS)
    shards = rng.integers(4, size=(k, size))
    errors = (class_[:, shards] != 1).sum(axis=2).T + rng.random((k, 3)) / 2
    votes = class_[errors.argmin(axis=1)]
    example = theory.voting_fails()
    assert votes.mean(axis=0) == pytest.approx(example.agreement, abs=0.04)
    assert (votes.mean(axis=0) < 0.5).mean() == 0.75
    assert [(h != np.ones(4)).mean() for h in class_] == [0.5] * 3
    assert example.best_error == example.teacher_error == 0.5
