"""Table 1 of Liu et al. 2021 against the theorems behind it."""

import math

import pytest
from scipy.optimize import minimize_scalar

from secretballot import theory
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import ParameterError

BUDGET = PrivacyBudget(1.0, 1e-6)
TAUS = (0.1, 0.25, 0.5, 0.75, 1.0)


# Theorems 5, C.3, C.5 as rates


def _best_over_public(risk) -> float:  # type: ignore[no-untyped-def]
    """Return the least value of risk(m) over real m."""
    found = minimize_scalar(
        lambda log: math.log(risk(math.exp(log))), bounds=(0.0, 80.0), method="bounded"
    )
    return math.exp(found.fun)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("algorithm", ["gaussian", "sparse-vector"])
def test_rates_of_table_1_are_the_theorems_at_the_best_number_of_labels(
    algorithm: str, tau: float
) -> None:
    """The printed (2 - tau) / 2 for Gaussian voting fails here at every tau below 1."""

    def best(n: float, d: float) -> float:
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


@pytest.mark.parametrize("gamma", [0.0, 0.01])
def test_rates_of_2018_are_theorem_c3_at_the_best_number_of_labels(gamma: float) -> None:
    def best(n: float, d: float) -> float:
        if gamma == 0:
            return _best_over_public(lambda m: m * (d / n) ** 2 + math.sqrt(d / m))
        return _best_over_public(lambda m: m ** (1 / 3) * (d / n) ** (2 / 3) + math.sqrt(d / m))

    found = theory.rate("sparse-vector-2018", "agnostic" if gamma else "realizable")
    assert math.log10(best(1e13, 1) / best(1e12, 1)) == pytest.approx(-found.records, abs=1e-3)
    assert math.log10(best(1e13, 10) / best(1e13, 1)) == pytest.approx(
        found.records * found.dimension, abs=1e-3
    )


# Table 1


def test_table_1_at_its_corners() -> None:
    for algorithm in ("gaussian", "sparse-vector", "active"):
        real, bounded = (
            theory.rate(algorithm, "realizable"),
            theory.rate(algorithm, "tsybakov", 1.0),
        )
        assert real.records == bounded.records
        assert theory.rate(algorithm, "tsybakov", 0.0).vacuous
        assert theory.rate(algorithm, "agnostic").vacuous
    assert theory.rate("gaussian", "realizable").records == pytest.approx(2 / 3)
    assert theory.rate("active", "realizable").coefficient == 0.5
    assert theory.rate("sparse-vector-2018", "agnostic").best_factor == 13


@pytest.mark.parametrize("tau", TAUS)
def test_the_sparse_vector_and_active_queries_beat_gaussian_voting(tau: float) -> None:
    slow, fast = (
        theory.rate("gaussian", "tsybakov", tau),
        theory.rate("sparse-vector", "tsybakov", tau),
    )
    assert fast.records > slow.records
    assert theory.rate("active", "tsybakov", tau).records == fast.records


def test_sample_complexity_inverts_the_rate() -> None:
    for algorithm, setting, tau in (
        ("gaussian", "realizable", None),
        ("gaussian", "tsybakov", 0.5),
        ("sparse-vector", "tsybakov", 0.75),
        ("active", "tsybakov", 1.0),
        ("sparse-vector-2018", "agnostic", None),
    ):
        need = theory.sample_complexity(
            algorithm, setting, 0.01, 3, 0.5, tau=tau, theta=4.0, constant=2.0
        )
        found = theory.rate(algorithm, setting, tau)

        def excess(n: float, m: float, found: theory.Rate = found) -> float:
            return found.excess(int(n), int(m), 3, 0.5, theta=4.0, constant=2.0).value

        assert excess(need.n_records, need.n_public) <= 0.01 * (1 + 1e-9)
        assert excess(0.9 * need.n_records, need.n_public) > 0.01
        assert excess(need.n_records, 0.9 * need.n_public) > 0.01


def test_remark_6_improves_on_2018() -> None:
    new, old = (
        theory.sample_complexity(a, "realizable", 0.01, 2, 1.0)
        for a in ("sparse-vector", "sparse-vector-2018")
    )
    assert new.n_records == math.ceil(2**1.5 / 0.01)
    assert new.n_public == 200
    assert old.n_records == math.ceil((2 / 0.01) ** 1.5)
    assert old.n_public == 2 / 0.01**2


def test_no_sample_is_enough_where_voting_can_fail() -> None:
    need = theory.sample_complexity("sparse-vector", "agnostic", 0.1, 1, 1.0)
    assert need.vacuous
    assert "Example 8" in need.remark
    assert theory.sample_complexity("gaussian", "tsybakov", 0.1, 1, 1.0, tau=0.0).vacuous
    with pytest.raises(ParameterError, match="no rate"):
        theory.rate("active", "agnostic").excess(100, 100, 1, 1.0)
    assert (
        "beyond 13 times"
        in theory.sample_complexity("sparse-vector-2018", "agnostic", 0.1, 1, 1.0).remark
    )


def test_the_rendered_table_shows_every_entry() -> None:
    lines = theory.render_rates((0.5,)).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        "| realizable",
        "| tsybakov, tau = 0.5",
        "| agnostic",
        "| agnostic-voting",
    ]
    assert "(d^3/2 / (n epsilon))^(2/7)" in lines[3]
    assert "(d^3/2 theta^1/2 / (n epsilon))^(1/3)" in lines[3]
    assert "13 best + max((d^3/2 / (n epsilon))^(2/5), sqrt(d / m))" in lines[4]


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
def test_out_of_range_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()
