"""Theorems of Liu et al. 2021 against closed forms, exact laws and simulated votes."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom, norm

import secretballot
from secretballot import theory
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import (
    GaussianEvent,
    PrivacyBudget,
    SparseVectorEvent,
    delta_upper,
)
from secretballot.privacy.accounting.sparse_vector import false_answer

BUDGET = PrivacyBudget(1.0, 1e-6)
TAUS = (0.1, 0.25, 0.5, 0.75, 1.0)


def test_the_room_is_reached_from_the_package() -> None:
    assert secretballot.theory is theory
    assert all(hasattr(theory, name) for name in theory.__all__)


# Noise as printed


@pytest.mark.parametrize("n_queries", [1, 50, 2000])
def test_printed_sigma_solves_its_equation_and_keeps_the_budget(n_queries: int) -> None:
    sigma = theory.printed_sigma(n_queries, BUDGET)
    spread = math.sqrt(2 * n_queries * math.log(1e6)) / sigma + n_queries / (2 * sigma**2)
    assert spread == pytest.approx(1.0)
    assert delta_upper([GaussianEvent(sigma, n_queries)], 1.0) < 1e-6
    assert sigma / math.sqrt(n_queries) == pytest.approx(5.35, abs=1e-3)


def test_printed_scale_gives_its_concentrated_privacy() -> None:
    scale = theory.printed_scale(50, BUDGET)
    rho = 2 * 50 / scale**2
    assert rho + 2 * math.sqrt(rho * math.log(2e6)) == pytest.approx(1.0)
    assert scale == pytest.approx(77.5, abs=0.05)


def test_gaussian_teachers_is_the_printed_formula() -> None:
    n, length = 10**5, 300
    log = math.log(1e6)
    printed = (
        6
        * math.sqrt(math.log(2 * n))
        * (math.sqrt(length * log) + math.sqrt(length * log + length))
    )
    assert theory.gaussian_teachers(n, length, BUDGET) == math.ceil(printed)


# Steps of the proofs


def test_gaussian_voting_differs_no_more_than_markov_allows() -> None:
    """Exact chance of a wrong label, for votes that are wrong together in the worst way."""
    k, sigma, beta = 200, 12.0, 0.01
    for against in (
        20,
        50,
        60,
        90,
        110,
        139,
        200,
    ):  # a share of the points has that many votes against, the others none
        share = 0.1
        mean = share * against / k
        exact = share * norm.cdf((against - k / 2) / sigma) + (1 - share) * norm.cdf(-k / 2 / sigma)
        assert exact <= theory.gaussian_voting_disagreement(mean, k, sigma, beta).value
    assert theory.gaussian_voting_disagreement(0.0, 50, 12.0, beta).vacuous
    n = 10**4
    k = theory.gaussian_teachers(n, 100, BUDGET)
    found = theory.gaussian_voting_disagreement(
        0.01, k, theory.printed_sigma(100, BUDGET), 1 / n
    ).value
    assert found <= 0.03 + 1 / n + 1e-12


def _worst_student(labels: np.ndarray, x: np.ndarray) -> float:
    """Return the disagreement with 1[x >= 1/2] of the threshold that fits best, the worst one
    among equals."""
    order = np.argsort(x)
    ones = np.concatenate([[0], np.cumsum(labels[order])])
    mistakes = ones + (len(x) - np.arange(len(x) + 1)) - (ones[-1] - ones)
    edges = np.concatenate([[0.0], x[order], [1.0]])
    best = np.flatnonzero(mistakes == mistakes.min())
    return float(np.maximum(np.abs(edges[best] - 0.5), np.abs(edges[best + 1] - 0.5)).max())


def test_a_student_of_labels_with_few_exceptions_is_near() -> None:
    """T labels are wrong where it hurts most: next to the threshold, on one side."""
    m, beta, rng = 400, 0.1, np.random.default_rng(2)
    for t in (0, 5, 40):
        failed = 0
        for _ in range(100):
            x = rng.random(m)
            labels = x >= 0.5
            above = np.argsort(np.where(labels, x, 2.0))[:t]
            labels[above] = False
            failed += _worst_student(labels, x) > theory.student_excess(t, m, 1, beta).value
        assert failed <= 100 * beta
    assert theory.student_excess(m, m, 1, beta).vacuous
    assert (
        theory.student_excess(0, m, 1, beta, n_voters=30).value
        > theory.student_excess(0, m, 1, beta).value
    )
    assert theory.student_excess(3, m, 2, beta, form="paper").value == pytest.approx(
        (12 + 5 * (2 + math.log(40))) / m
    )


def test_a_student_of_gaussian_labels_is_near() -> None:
    m, beta, wrong, rng = 500, 0.1, 0.05, np.random.default_rng(3)
    bound = theory.gaussian_student_bound(wrong, m, 1, beta).value
    failed = 0
    for _ in range(100):
        x = rng.random(m)
        labels = (x >= 0.5) ^ (np.abs(x - 0.5 - wrong / 2) < wrong / 2)
        failed += _worst_student(labels, x) > bound
    assert failed <= 100 * beta


def test_hoeffding_cutoff_holds_for_teachers_of_that_error() -> None:
    m, k, p, beta = 300, 40, 0.1, 0.1
    cutoff = theory.hoeffding_cutoff(p, m, k, beta)
    assert k * binom.sf(cutoff // 3, m, p) <= beta
    assert theory.cutoff(m, p, beta, n_teachers=k) <= cutoff


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


def test_theorem_c3_evaluates_to_its_terms() -> None:
    budget = PrivacyBudget(0.5, 1e-5)
    real = theory.sparse_vector_student_error(10**6, 1000, 2, budget).value
    assert real == pytest.approx(1000 * (2 / 5e5) ** 2 * math.log(1e5) + math.sqrt(2 / 1000))
    noisy = theory.sparse_vector_student_error(10**6, 1000, 2, budget, best_error=0.01).value
    assert noisy == pytest.approx(0.13 + 10 * (2 / 5e5) ** (2 / 3) + math.sqrt(2 / 1000))
    for gamma in (0.02, 1 / 25):
        big = theory.sparse_vector_student_error(10**15, 10**7, 1, budget, best_error=gamma)
        assert big.vacuous == (gamma > 1 / 26)


@pytest.mark.parametrize("tau", TAUS)
def test_theorem_5_solves_the_circle_of_its_proof(tau: float) -> None:
    """T = m (d K / n)^(tau / (2 - tau)) and K = sqrt(T) / epsilon, without logarithms; the risk
    is d / m + T / m."""
    n, m, d, epsilon = 10**8, 10**6, 2, 0.3
    t = 1e3
    for _ in range(4000):
        t = math.sqrt(t * m * (d * math.sqrt(t) / (epsilon * n)) ** (tau / (2 - tau)))
    plan = theory.passive_sizes(n, m, d, PrivacyBudget(epsilon, 1e-6), 0.05, tau)
    assert plan.max_unstable == max(1, math.ceil(t * (1 - 1e-9)))
    assert plan.excess.value == pytest.approx(d / m + t / m, rel=1e-6)


def test_remark_6_is_theorem_5_at_bounded_noise() -> None:
    plan = theory.passive_sizes(10**6, 10**4, 3, PrivacyBudget(0.5, 1e-6), 0.05, 1.0)
    assert plan.excess.value == pytest.approx(3 / 10**4 + 9 * 10**4 / (10**6 * 0.5) ** 2)
    logs = math.log(4 * 10**4 * plan.max_unstable / 1e-6) * math.sqrt(
        plan.max_unstable * math.log(2e6)
    )
    assert plan.n_teachers == math.ceil(136 * logs / 0.5)
    # more teachers than records
    assert theory.passive_sizes(1000, 100, 1, BUDGET, 0.05, 1.0).vacuous
    assert theory.passive_sizes(10**9, 10**5, 1, BUDGET, 0.05, 0.0).vacuous


def test_theorem_c5_evaluates_to_its_terms() -> None:
    value = theory.gaussian_student_excess(10**6, 400, 2, 0.5, 0.5).value
    assert value == pytest.approx(2 / 400 + (2 * 20 / 5e5) ** (1 / 3))
    assert theory.gaussian_student_excess(10**6, 400, 2, 0.5, 0.0).vacuous


def test_teachers_disagree_less_with_more_records() -> None:
    values = [theory.teacher_disagreement(n, 50, 2, 0.05, 0.5).value for n in (10**4, 10**5, 10**6)]
    assert np.all(np.diff(values) < 0)
    assert theory.teacher_disagreement(10**9, 50, 2, 0.05, 0.0).vacuous
    assert theory.teacher_disagreement(10**6, 50, 2, 0.05, 1.0, eta=3.0).value == pytest.approx(
        9 * theory.teacher_disagreement(10**6, 50, 2, 0.05, 1.0).value
    )


# High margins


def test_definition_10_counts_low_margins() -> None:
    margins = [0.0, 0.1, 0.1, 0.3, 0.5]
    assert theory.high_margin_share(margins, 0.1) == 0.6
    assert theory.high_margin_share(margins, 0.0) == 0.2
    shares = [theory.high_margin_share(margins, level) for level in np.linspace(0, 0.49, 50)]
    assert np.all(np.diff(shares) >= 0)
    with pytest.raises(DataError):
        theory.high_margin_share([0.6], 0.1)
    with pytest.raises(DataError):
        theory.high_margin_share([math.nan], 0.1)


def _printed_event(n_queries: int, max_unstable: int) -> SparseVectorEvent:
    scale = theory.printed_scale(max_unstable, BUDGET)
    threshold = math.ceil(3 * scale * math.log(2 * (n_queries + max_unstable) / 1e-6))
    return SparseVectorEvent(scale, 2 * scale, threshold, max_unstable, refresh=True)


def test_proposition_11_at_the_margin_that_its_proof_guarantees() -> None:
    """K Delta votes of margin: with the printed K they hardly ever pass, with the corrected K
    nearly always."""
    m, nu, margin, passed = 2000, 0.01, 0.45, {}
    for calibration in ("paper", "tight"):
        plan = theory.high_margin_sizes(m, nu, margin, BUDGET, 0.05, calibration=calibration)
        votes = math.ceil(plan.n_teachers * margin)
        passed[calibration] = false_answer(
            _printed_event(m, plan.max_unstable), math.ceil(votes / 2) - 1
        )
    assert passed["paper"] < 1e-3
    assert passed["tight"] > 1 - 1e-7


def test_proposition_11_by_simulation() -> None:
    """A share nu of points has no margin at all, the others just the margin; votes of
    independent teachers."""
    m, nu, margin, beta, rng = 300, 0.05, 0.3, 0.1, np.random.default_rng(5)
    plan = theory.high_margin_sizes(m, nu, margin, BUDGET, beta)
    event, k, failed = _printed_event(m, plan.max_unstable), plan.n_teachers, 0
    for _ in range(60):
        low = rng.random(m) < nu
        votes = rng.binomial(k, np.where(low, 0.5, 0.5 + margin))
        distance = np.maximum(0, np.ceil(np.abs(2 * votes - k) / 2) - 1)
        noise, thresholds = (
            rng.laplace(scale=event.query_scale, size=m),
            rng.laplace(scale=event.threshold_scale, size=m + 1),
        )
        stops, asked, good = 0, 0, 0
        while asked < m and stops < event.max_unstable:
            if distance[asked] + noise[asked] > event.threshold + thresholds[stops]:
                good += votes[asked] > k / 2
            else:
                stops += 1
            asked += 1
        failed += asked < m or good < m - plan.max_unstable
    assert failed <= 60 * beta
    assert (
        binom.sf(plan.max_unstable - 1, m, nu) <= beta / 3 < binom.sf(plan.max_unstable - 2, m, nu)
    )
    assert not plan.vacuous
    assert theory.high_margin_sizes(m, 1.0, margin, BUDGET, beta).vacuous


def test_theorems_12_and_13() -> None:
    t, m = 20, 5000
    excess = theory.high_margin_excess(t, m, 1, BUDGET, 0.05, approximation=0.02).value
    assert excess == pytest.approx(0.02 + 40 / m + 2 * theory.uniform_deviation(m, 1, 0.05).value)
    voting = theory.high_margin_voting_excess(t, m, 1, 10, BUDGET, 0.05)
    assert voting.value == theory.student_excess(t, m, 1, 0.05, n_voters=10).value
    assert theory.high_margin_voting_excess(t, m, 1, 10**4, BUDGET, 0.05).vacuous
    with pytest.raises(ParameterError, match="Theorem 12"):
        theory.high_margin_excess(t, m, 1, PrivacyBudget(20.0, 1e-6), 0.05, approximation=0.0)


def test_remark_14_falls_to_zero_unless_tau_is_zero() -> None:
    assert theory.tsybakov_low_margin(10**8, 100, 1, 1.0).value == pytest.approx(1e-6)
    assert theory.tsybakov_low_margin(10**8, 100, 1, 0.5).value == pytest.approx(1e-2)
    assert theory.tsybakov_low_margin(10**8, 100, 1, 0.0).vacuous
    # thresholds learnt from s points lie 1 / s apart: fewer than two thirds agree on a share of
    # about 1 / s
    rng, shard, k = np.random.default_rng(1), 100, 400
    x = np.sort(rng.random((k, shard)), axis=1)
    low = np.array([row[row < 0.5].max() for row in x])
    high = np.array([row[row >= 0.5].min() for row in x])
    cuts, points = (low + high) / 2, np.linspace(0, 1, 20001)
    agreement = np.searchsorted(np.sort(cuts), points, side="right") / k
    assert (
        theory.high_margin_share(np.abs(agreement - 0.5), 1 / 6)
        <= theory.tsybakov_low_margin(k * shard, k, 1, 1.0).value
    )


# Active queries


def test_active_labels_evaluate_to_lemma_d7() -> None:
    alpha, theta, d, beta, error = 0.01, 4.0, 3, 0.05, 0.02
    rounds = math.log(1 / alpha)
    value = theta * (4 + rounds) * (d * math.log(theta) + math.log(rounds / beta))
    assert theory.active_labels(alpha, theta, d, beta, best_error=error) == math.ceil(value)
    levels = []
    theory.active_labels(
        alpha, lambda level: levels.append(level) or 2.0, d, beta, best_error=error
    )  # type: ignore[func-returns-value]
    assert levels == [pytest.approx(0.03)]
    assert (
        theory.active_labels(1e-6, 2.0, 1, 0.05) < 2000 < theory.consistent_records(1e-6, 0.05, 1)
    )


def test_active_learning_of_thresholds_asks_for_so_few_labels() -> None:
    """Realizable thresholds, theta = 2: ask wherever the labels so far leave it open; count
    labels until alpha."""
    alpha, beta, rng, counts = 0.001, 0.1, np.random.default_rng(4), []
    for _ in range(200):
        low, high, asked = 0.0, 1.0, 0
        while high - low > alpha:
            x = rng.uniform(low, high)  # the next point of the stream that falls into the region
            low, high, asked = (x, high, asked + 1) if x < 0.37 else (low, x, asked + 1)
        counts.append(asked)
    assert np.quantile(counts, 1 - beta) <= theory.active_labels(alpha, 2.0, 1, beta)


def test_active_stream_excess() -> None:
    m, d, beta = 10**4, 2, 0.05
    value = theory.active_stream_excess(m, 3.0, d, beta, best_error=0.1).value
    inner = d * math.log(3) + math.log(20)
    assert value == pytest.approx(inner / m + math.sqrt(0.1 * inner / m))
    assert theory.active_stream_excess(m, 1.0, d, beta).value == pytest.approx(
        (d + math.log(20)) / m
    )


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_the_active_plan_is_the_least_consistent_one(tau: float) -> None:
    n, m, d, beta = 10**8, 10**5, 2, 0.05
    plan = theory.active_sizes(n, m, d, BUDGET, beta, tau, lambda level: min(4.0, 1 / level))
    alpha = plan.excess.value
    private = theory.teacher_disagreement(n, plan.n_teachers, d, beta, tau).value
    public = (d * math.log((m + n) / d) + math.log(2 / beta)) / m
    assert alpha == pytest.approx(max(private, public), rel=1e-2)
    rounds = math.log(1 / alpha)
    asked = 4 * (1 + rounds) * (d * math.log(4) + math.log(2 * rounds / beta))
    assert plan.n_queries == pytest.approx(asked, abs=1.01)
    assert plan.sigma == theory.printed_sigma(plan.n_queries, BUDGET)
    assert not plan.vacuous


def test_the_active_plan_refuses_what_theorem_15_does_not_cover() -> None:
    with pytest.raises(ParameterError, match="n_public is 20, fewer than"):
        theory.active_sizes(10**8, 20, 1, BUDGET, 0.05, 1.0, 2.0, label_constant=10)
    with pytest.raises(ParameterError, match="Theorem 15"):
        theory.active_sizes(10**8, 1000, 1, PrivacyBudget(14.0, 1e-6), 0.05, 1.0, 2.0)
    with pytest.raises(ParameterError, match="disagreement coefficient"):
        theory.active_sizes(10**8, 1000, 1, BUDGET, 0.05, 1.0, 0.5)
    assert theory.active_sizes(10**8, 10**5, 1, BUDGET, 0.05, 0.0, 2.0).vacuous


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
        lambda: theory.passive_sizes(100, 100, 1, BUDGET, 0.05, 2.0),
        lambda: theory.passive_sizes(100, 100, 1, BUDGET, 0.0, 1.0),
        lambda: theory.teacher_disagreement(10, 20, 1, 0.05, 1.0),
        lambda: theory.teacher_disagreement(100, 20, 1, 0.05, 1.0, eta=0.1),
        lambda: theory.gaussian_student_excess(100, 100, 1, math.inf, 0.5),
        lambda: theory.high_margin_sizes(100, 0.1, 0.5, BUDGET, 0.05),
        lambda: theory.high_margin_sizes(100, 0.1, 0.0, BUDGET, 0.05),
        lambda: theory.high_margin_sizes(100, 0.1, 0.2, PrivacyBudget(1.0, 0.0), 0.05),
        lambda: theory.active_labels(0.1, 2.0, 1, 0.05, best_error=0.6),
    ],
)
def test_out_of_range_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()
