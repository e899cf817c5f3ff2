"""Every name of the theory room has a check that it can fail: a register, and the checks that no
other file has."""

import ast
import inspect
import math
from pathlib import Path

import numpy as np
import pytest

from secretballot import theory
from secretballot.privacy.accounting import PrivacyBudget, SparseVectorEvent
from secretballot.privacy.accounting.sparse_vector import false_answer
from secretballot.theory.stability import tight_stream

BUDGET = PrivacyBudget(1.0, 1e-6)
HERE = Path(__file__).parent

#: Against what every function is held, and by which test. "enumerated" and "exact law": no chance
#: left; "simulated": a bound that is violated more often than it may be fails; "proof": the steps
#: that it stands for, solved or inverted numerically, since constants that theorems hide leave
#: nothing that a simulation could violate.
CHECKS: dict[str, tuple[str, str]] = {
    "active_labels": ("simulated", "test_active_learning_of_thresholds_asks_for_so_few_labels"),
    "active_sizes": ("proof", "test_the_active_plan_is_the_least_consistent_one"),
    "active_stream_excess": (
        "simulated",
        "test_a_stream_of_active_queries_is_as_accurate_as_its_bound",
    ),
    "agnostic_learner_sizes": (
        "simulated",
        "test_a_student_of_the_agnostic_plan_keeps_its_promise",
    ),
    "agnostic_records": ("simulated", "test_the_risk_minimiser_is_accurate_at_the_agnostic_size"),
    "amplified": ("exact law", "test_amplification_on_a_pair_that_attains_it"),
    "best_misclassification_queries": ("proof", "test_the_rate_is_flat_and_then_grows"),
    "bootstrap_repeats": (
        "exact law",
        "test_bootstrap_repeats_the_printed_figure_is_false_at_a_tenth",
    ),
    "choice_error": ("exact law", "test_the_private_choice_errs_no_more_than_its_bound"),
    "choice_records": ("simulated", "test_the_private_choice_is_accurate_on_the_law"),
    "consistent_records": (
        "simulated",
        "test_consistent_thresholds_are_accurate_at_their_sample_size",
    ),
    "cutoff": ("exact law", "test_the_cutoff_is_three_exact_quantiles"),
    "disagreement_bound": ("exact law", "test_disagreement_of_one_classifier_lies_below_its_bound"),
    "disagreement_records": ("simulated", "test_disagreement_of_all_pairs_is_uniform_at_the_size"),
    "expected_label_accuracy": ("simulated", "test_expected_label_accuracy_is_the_mean_over_votes"),
    "gaussian_student_bound": ("simulated", "test_a_student_of_gaussian_labels_is_near"),
    "gaussian_student_excess": ("proof", "test_theorem_c5_has_the_rate_of_its_steps"),
    "gaussian_teachers": ("proof", "test_gaussian_teachers_is_the_printed_formula"),
    "gaussian_voting_disagreement": (
        "exact law",
        "test_gaussian_voting_differs_no_more_than_markov_allows",
    ),
    "high_margin_excess": (
        "simulated",
        "test_students_of_high_margins_err_no_more_than_theorems_12_and_13",
    ),
    "high_margin_sizes": ("simulated", "test_proposition_11_by_simulation"),
    "high_margin_share": ("enumerated", "test_definition_10_counts_low_margins"),
    "high_margin_voting_excess": (
        "simulated",
        "test_students_of_high_margins_err_no_more_than_theorems_12_and_13",
    ),
    "hoeffding_cutoff": ("exact law", "test_hoeffding_cutoff_holds_for_teachers_of_that_error"),
    "label_accuracy": ("enumerated", "test_label_accuracy_by_enumeration"),
    "labeler_sizes": ("exact law", "test_the_plan_of_the_labeler_keeps_its_budget"),
    "learner_sizes": ("simulated", "test_a_student_of_the_realizable_plan_keeps_its_promise"),
    "log_growth": ("enumerated", "test_growth_is_attained_by_sets_of_at_most_d_points"),
    "misclassification_rate": ("proof", "test_the_rate_solves_the_circle_of_its_proof"),
    "most_contested": ("enumerated", "test_contested_questions_by_enumeration"),
    "most_mistakes": (
        "exact law",
        "test_the_printed_number_of_mistakes_is_too_small_and_the_quantile_is_exact",
    ),
    "pair_cover_failure": ("simulated", "test_pairs_that_agree_on_enough_points_are_near"),
    "pair_cover_records": ("simulated", "test_pairs_that_agree_on_enough_points_are_near"),
    "passive_sizes": ("proof", "test_theorem_5_solves_the_circle_of_its_proof"),
    "printed_labeler_records": (
        "proof",
        "test_printed_numbers_of_records_reach_what_exact_steps_need",
    ),
    "printed_scale": ("proof", "test_printed_scale_gives_its_concentrated_privacy"),
    "printed_sigma": ("exact law", "test_printed_sigma_solves_its_equation_and_keeps_the_budget"),
    "printed_teachers": ("exact law", "test_printed_teachers_answer_a_lead_of_a_third"),
    "public_points": ("proof", "test_printed_public_points_cover_only_for_alpha_away_from_one"),
    "queries_needed": (
        "exact law",
        "test_printed_number_of_queries_fails_for_the_best_hypothesis_itself",
    ),
    "rate": ("proof", "test_rates_of_table_1_are_the_theorems_at_the_best_number_of_labels"),
    "rate_sizes": ("simulated", "test_the_stream_of_theorem_3_2_ends_and_keeps_its_rate"),
    "relabel_error": ("exact law", "test_relabelling_error_holds_by_the_exact_law"),
    "relabel_records": ("exact law", "test_relabelling_is_accurate_at_its_sample_size"),
    "relabelled_privacy": (
        "exact law",
        "test_one_record_moves_a_relabelling_by_no_more_than_the_constant",
    ),
    "render_rates": ("enumerated", "test_the_rendered_table_shows_every_entry"),
    "render_sample_sizes": ("enumerated", "test_the_table_has_a_line_for_each_row"),
    "sample_complexity": ("proof", "test_sample_complexity_inverts_the_rate"),
    "sample_sizes": ("enumerated", "test_rows_of_sample_sizes_are_those_of_their_functions"),
    "sampling_rate": ("proof", "test_sampling_rates_of_the_errata"),
    "semi_private_sizes": ("simulated", "test_the_semi_private_learner_is_accurate_at_its_plan"),
    "sparse_vector_student_error": ("proof", "test_theorem_c3_evaluates_to_its_terms"),
    "split_budget": ("enumerated", "test_the_split_is_the_best_of_all"),
    "stable_distance": ("exact law", "test_a_stable_distance_is_answered"),
    "stream_forecast": ("simulated", "test_the_forecast_of_a_stream_is_its_mean"),
    "stream_sizes": ("simulated", "test_a_stream_at_its_plan_answers_right_but_for_the_cutoff"),
    "student_excess": ("simulated", "test_a_student_of_labels_with_few_exceptions_is_near"),
    "teacher_disagreement": ("simulated", "test_every_teacher_is_as_near_as_its_bound"),
    "teachers_needed": ("exact law", "test_teachers_needed_answer_a_lead_of_a_third"),
    "tsybakov_excess": (
        "simulated",
        "test_risk_minimisers_under_tsybakov_noise_err_no_more_than_the_bound",
    ),
    "tsybakov_low_margin": ("simulated", "test_remark_14_falls_to_zero_unless_tau_is_zero"),
    "uniform_bound": ("simulated", "test_all_thresholds_lie_below_their_bound_at_once"),
    "uniform_deviation": ("simulated", "test_uniform_deviation_holds_for_thresholds"),
    "universal_sizes": ("proof", "test_the_universal_labeler_spends_what_was_asked"),
    "universal_records": ("proof", "test_printed_numbers_of_records_reach_what_exact_steps_need"),
    "voted_label_error": (
        "enumerated",
        "test_voted_labels_err_no_more_than_three_times_the_teachers",
    ),
    "voting_fails": (
        "simulated",
        "test_voting_fails_with_teachers_that_minimise_the_empirical_error",
    ),
    "voting_wins": ("enumerated", "test_errors_of_examples_by_enumeration"),
    "voting_wins_bound": ("exact law", "test_voting_fails_more_and_wins_more_with_more_teachers"),
}


def _tests() -> dict[str, str]:
    """Return the source of every test of this folder by its name."""
    found: dict[str, str] = {}
    for path in HERE.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if (
                isinstance(node, ast.FunctionDef)
                and node.name.startswith("test_")
                and "refused" not in node.name
            ):
                found[node.name] = ast.get_source_segment(text, node) or ""
    return found


def test_every_function_is_checked_by_a_test_that_calls_it() -> None:
    functions = {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    assert functions - set(CHECKS) == set(), (
        "without a check; write one that a wrong bound would fail"
    )
    assert set(CHECKS) - functions == set(), "no such function"
    tests = _tests()
    for name, (kind, test) in CHECKS.items():
        assert kind in ("enumerated", "exact law", "simulated", "proof"), name
        assert test in tests, f"{name}: there is no {test}"
        assert f"theory.{name}" in tests[test], f"{name}: {test} does not call it"
        assert "assert" in tests[test], f"{name}: {test} asserts nothing"


def test_what_is_no_function_is_given_back_by_one_or_is_a_constant() -> None:
    texts = "".join(_tests().values())
    for name in set(theory.__all__) - set(CHECKS):
        thing = getattr(theory, name)
        if not inspect.isclass(thing):
            assert name in texts or name in ("ALGORITHMS", "SETTINGS"), name
            continue
        given = [
            inspect.signature(getattr(theory, function)).return_annotation for function in CHECKS
        ]
        assert any(name in str(one) for one in given), f"no function returns {name}"


# Checks that no other file has


def _best_cuts(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return both ends of every interval of thresholds 1[x >= t] that fit the labels best."""
    order = np.argsort(x)
    ones = np.concatenate([[0], np.cumsum(labels[order])])
    mistakes = ones + (len(x) - np.arange(len(x) + 1)) - (ones[-1] - ones)
    edges = np.concatenate([[0.0], x[order], [1.0]])
    best = np.flatnonzero(mistakes == mistakes.min())
    return np.concatenate([edges[best], edges[best + 1]])


def _flipped_next_to_the_threshold(x: np.ndarray, count: int) -> np.ndarray:
    """Return labels 1[x >= 1/2] of which `count` are wrong where it hurts most: next to 1/2, on
    one side."""
    labels = x >= 0.5
    labels[np.argsort(np.where(labels, x, 2.0))[:count]] = False
    return labels


def test_all_thresholds_lie_below_their_bound_at_once() -> None:
    n, beta, runs, rng = 300, 0.1, 300, np.random.default_rng(1)
    cuts = np.linspace(0, 1, 401)
    bounds = np.array([theory.uniform_bound(k / n, n, 1, beta).value for k in range(n + 1)])
    broken = 0
    for _ in range(runs):
        x = np.sort(rng.random(n))
        between = np.abs(np.searchsorted(x, cuts) - np.searchsorted(x, 0.5))
        broken += bool((np.abs(cuts - 0.5) > bounds[between]).any())
    assert broken <= runs * beta
    assert not theory.uniform_bound(0.1, n, 1, beta).vacuous


@pytest.mark.parametrize(("tau", "eta"), [(1.0, 1.25), (0.5, 1.0)])
def test_risk_minimisers_under_tsybakov_noise_err_no_more_than_the_bound(
    tau: float, eta: float
) -> None:
    """Chance of 1 beyond 1/2 by .4 everywhere, or by the distance to 1/2; with the hidden
    constant taken as 1."""
    n, beta, runs, rng, failed = 500, 0.1, 200, np.random.default_rng(2), 0
    bound = theory.tsybakov_excess(n, 1, beta, tau, eta=eta)
    for _ in range(runs):
        x = rng.random(n)
        lean = 0.4 * np.sign(x - 0.5) if tau == 1 else x - 0.5
        away = np.abs(_best_cuts(x, rng.random(n) < 0.5 + lean) - 0.5).max()
        excess = 0.8 * away if tau == 1 else away**2
        assert away <= eta * excess**tau + 1e-12
        failed += excess > bound.value
    assert failed <= runs * beta
    assert not bound.vacuous


def test_the_risk_minimiser_is_accurate_at_the_agnostic_size() -> None:
    alpha, beta, noise, runs, rng, failed = 0.3, 0.2, 0.3, 60, np.random.default_rng(3), 0
    n = theory.agnostic_records(alpha, beta, 1)
    for _ in range(runs):
        x = rng.random(n)
        cuts = _best_cuts(x, (x >= 0.5) ^ (rng.random(n) < noise))
        failed += (1 - 2 * noise) * np.abs(cuts - 0.5).max() > alpha
    assert failed <= runs * beta


def test_every_teacher_is_as_near_as_its_bound() -> None:
    """The farthest of K thresholds from the best one, without noise and with; the hidden
    constant taken as 1."""
    k, shard, beta, runs, rng = 20, 100, 0.1, 100, np.random.default_rng(4)
    for noise in (0.0, 0.1):
        bound = theory.teacher_disagreement(k * shard, k, 1, beta, 1.0, eta=1 / (1 - 2 * noise))
        assert not bound.vacuous
        failed = 0
        for _ in range(runs):
            x = rng.random((k, shard))
            labels = (x >= 0.5) ^ (rng.random((k, shard)) < noise)
            failed += (
                max(np.abs(_best_cuts(*one) - 0.5).max() for one in zip(x, labels, strict=True))
                > bound.value
            )
        assert failed <= runs * beta


def test_a_stream_of_active_queries_is_as_accurate_as_its_bound() -> None:
    """Thresholds without noise: a point is asked where the labels so far leave it open; the
    worst one left counts."""
    m, beta, runs, truth, rng = 200, 0.1, 4000, 0.37, np.random.default_rng(5)
    low, high = np.zeros(runs), np.ones(runs)
    for x in rng.random((m, runs)):
        low = np.where((x > low) & (x < truth), x, low)
        high = np.where((x < high) & (x >= truth), x, high)
    worst = np.maximum(high - truth, truth - low)
    assert 0.5 * beta < np.mean(worst > theory.active_stream_excess(m, 2.0, 1, beta).value) <= beta


def test_a_student_of_the_realizable_plan_keeps_its_promise() -> None:
    alpha, beta, rng = 0.2, 0.1, np.random.default_rng(6)
    m, plan = theory.learner_sizes(alpha, beta, PrivacyBudget(2.0, 1e-6), 1)
    samples = [rng.random(m) for _ in range(60)]
    cuts = [_best_cuts(x, _flipped_next_to_the_threshold(x, plan.max_unstable)) for x in samples]
    assert np.mean([np.abs(cut - 0.5).max() > alpha for cut in cuts]) <= beta


def test_a_student_of_the_agnostic_plan_keeps_its_promise() -> None:
    alpha, beta, gamma, rng = 0.4, 0.1, 0.02, np.random.default_rng(7)
    m, plan = theory.agnostic_learner_sizes(alpha, beta, PrivacyBudget(2.0, 1e-6), 1, gamma)
    samples = [rng.random(m) for _ in range(20)]
    cuts = [_best_cuts(x, _flipped_next_to_the_threshold(x, plan.max_unstable)) for x in samples]
    errors = [gamma + (1 - 2 * gamma) * np.abs(cut - 0.5).max() for cut in cuts]
    assert np.mean(np.array(errors) > 7 * gamma + alpha) <= beta


def test_students_of_high_margins_err_no_more_than_theorems_12_and_13() -> None:
    """What infinitely many teachers say is 1[x >= 1/2]; T labels differ from it where it hurts
    most."""
    m, t, beta, rng = 3000, 60, 0.1, np.random.default_rng(8)
    bounds = (
        theory.high_margin_excess(t, m, 1, BUDGET, beta, approximation=0.0),
        theory.high_margin_voting_excess(t, m, 1, 3, BUDGET, beta),
    )
    samples = [rng.random(m) for _ in range(60)]
    away = [
        np.abs(_best_cuts(x, _flipped_next_to_the_threshold(x, t)) - 0.5).max() for x in samples
    ]
    for bound in bounds:
        assert not bound.vacuous
        assert np.mean(np.array(away) > bound.value) <= beta


def test_the_cutoff_is_three_exact_quantiles() -> None:
    """Teachers err independently; a third of them is wrong on fewer questions than three times
    the worst one's."""
    m, k, p, beta, runs, rng = 200, 30, 0.08, 0.1, 300, np.random.default_rng(9)
    t, failed = theory.cutoff(m, p, beta, n_teachers=k), 0
    for _ in range(runs):
        wrong = rng.random((k, m)) < p
        failed += (wrong.sum(axis=0) > k / 3).sum() > t - 1 or wrong.sum(axis=1).max() > (
            t - 1
        ) // 3
    assert failed <= runs * beta
    assert t == 3 * theory.most_mistakes(m, p, beta, n_teachers=k) + 1


def test_a_stream_at_its_plan_answers_right_but_for_the_cutoff() -> None:
    """The worst votes that the plan allows: no lead on T - 1 questions, a lead of just a third
    on all others."""
    m, beta, runs, rng, failed = 400, 0.1, 100, np.random.default_rng(10), 0
    plan = theory.stream_sizes(m, 0.01, beta, BUDGET, 1)
    event, k = tight_stream(BUDGET.epsilon, BUDGET.delta, plan.max_unstable), plan.n_teachers
    for _ in range(runs):
        distance = np.full(m, math.ceil((k - 2 * (k // 3)) / 2) - 1)
        distance[rng.permutation(m)[: plan.max_unstable - 1]] = 0
        noisy = distance + rng.laplace(scale=event.query_scale, size=m) - event.threshold
        thresholds = rng.laplace(scale=event.threshold_scale, size=m + 1)
        stops = 0
        for one in noisy:
            stops += one <= thresholds[stops if event.refresh else 0]
        failed += stops >= plan.max_unstable
    assert failed <= runs * beta


@pytest.mark.parametrize(("m", "t"), [(100, 3), (5000, 200)])
def test_printed_teachers_answer_a_lead_of_a_third(m: int, t: int) -> None:
    """By the exact law of the printed noise, at the halved distance too."""
    beta = 0.05
    k = theory.printed_teachers(BUDGET, m, t, beta)
    scale = math.sqrt(32 * t * math.log(2e6))
    event = SparseVectorEvent(
        scale, 2 * scale, math.ceil(2 * scale * math.log(2 * m / 1e-6)), t, refresh=True
    )
    assert m * (1 - false_answer(event, k // 3 - 1)) <= beta
    assert m * (1 - false_answer(event, math.ceil(k / 6) - 1)) <= beta


@pytest.mark.parametrize("tau", [0.5, 1.0])
def test_theorem_c5_has_the_rate_of_its_steps(tau: float) -> None:
    """Teachers' disagreement, Gaussian voting and the student, one after another, keep within
    logarithms of it."""
    ratios = []
    for n in (10**8, 10**12, 10**16):
        m, beta = round(n**0.5), 1 / n
        k, sigma = theory.gaussian_teachers(n, m, BUDGET), theory.printed_sigma(m, BUDGET)
        teachers = min(1.0, theory.teacher_disagreement(n, k, 1, beta, tau).value)
        labels = min(1.0, theory.gaussian_voting_disagreement(teachers, k, sigma, beta).value)
        student = theory.gaussian_student_bound(labels, m, 1, beta).value
        ratios.append(student / theory.gaussian_student_excess(n, m, 1, BUDGET.epsilon, tau).value)
    logs = [math.log(n) for n in (10**8, 10**12, 10**16)]
    slope = np.polyfit(logs, np.log(ratios), 1)[0]
    assert abs(slope) < 0.07
    assert min(ratios) > 1


@pytest.mark.parametrize(("alpha", "d", "m"), [(0.1, 1, 2000), (0.2, 5, 20_000)])
def test_printed_numbers_of_records_reach_what_exact_steps_need(
    alpha: float, d: int, m: int
) -> None:
    beta = 0.05
    need = theory.labeler_sizes(m, alpha, beta, BUDGET, d).n_records
    assert theory.printed_labeler_records(m, alpha, beta, BUDGET, d) >= need
    assert (
        theory.universal_records(alpha, beta, BUDGET, d)
        >= theory.universal_sizes(alpha, beta, BUDGET, d).n_records
    )


def test_rows_of_sample_sizes_are_those_of_their_functions() -> None:
    a, b, m, gamma = 0.5, 0.08, 400, 0.1
    rows = {
        row.construction: row
        for row in theory.sample_sizes(a, b, BUDGET, 1, m, best_error=gamma, constant=3.0)
    }
    assert rows["non-private, realizable"].tight == theory.consistent_records(a, b, 1)
    assert rows["non-private, realizable"].paper == theory.consistent_records(a, b, 1, "paper")
    assert rows["non-private, agnostic"].tight == theory.agnostic_records(a, b, 1)
    assert (
        rows["stability labeler, realizable"].tight
        == theory.rate_sizes(m, a, b, BUDGET, 1).n_records
    )
    assert (
        rows["private learner, realizable"].tight
        == theory.learner_sizes(a, b, BUDGET, 1)[1].n_records
    )
    assert rows["agnostic labeler"].paper == theory.printed_labeler_records(m, a, b, BUDGET, 1)
    chosen = theory.semi_private_sizes(a, b, BUDGET.epsilon, 1, calibration="paper", constant=3.0)
    assert rows["semi-private learner"].paper == chosen.n_records
    assert rows["universal labeler"].paper == theory.universal_records(a, b, BUDGET, 1)
