"""Theorems about voting that pays for unstable queries, against enumeration, exact laws and
simulation."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from secretballot import theory
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import PrivacyBudget, SparseVectorEvent
from secretballot.privacy.accounting.sparse_vector import false_answer, laplace_above

BUDGET = PrivacyBudget(1.0, 1e-6)


def test_a_stable_distance_is_answered() -> None:
    """Laplace noise of scale 1 / epsilon on the distance, threshold log(1 / delta) / epsilon."""
    epsilon, delta, beta = 0.7, 1e-4, 0.02
    spare = theory.stable_distance(epsilon, delta, beta) - math.log(1 / delta) / epsilon
    assert math.exp(-spare * epsilon) / 2 <= beta
    assert laplace_above(-math.ceil(spare), 1 / epsilon) >= 1 - beta


def test_contested_questions_by_enumeration() -> None:
    """All ways in which 3 teachers make at most B mistakes each on 4 questions."""
    patterns = list(product((0, 1), repeat=4))
    for share, mistakes in product((1 / 3, 0.5), range(4)):
        rows = [row for row in patterns if sum(row) <= mistakes]
        worst = max(
            sum(sum(column) > share * 3 for column in zip(*teachers, strict=True))
            for teachers in product(rows, repeat=3)
        )
        assert worst <= theory.most_contested(mistakes, share)
    assert theory.most_contested(0) == 0
    assert theory.most_contested(7) == 20
    assert theory.most_contested(1, 0.5) == 1


def test_the_printed_number_of_mistakes_is_too_small_and_the_quantile_is_exact() -> None:
    m, p, beta, k = 1000, 0.05, 0.05, 100
    printed = theory.most_mistakes(m, p, beta, n_teachers=k, calibration="paper")
    assert binom.sf(math.floor(printed), m, p) == pytest.approx(0.0149, abs=2e-4)
    assert binom.sf(math.floor(printed), m, p) > beta / k
    exact = theory.most_mistakes(m, p, beta, n_teachers=k)
    assert binom.sf(exact, m, p) <= beta / k < binom.sf(exact - 1, m, p)


def _stream(
    votes: np.ndarray, k: int, event: SparseVectorEvent, rng: np.random.Generator
) -> tuple[int, np.ndarray]:
    """Return the number of queries asked, and which were answered, of a stream with continuous
    Laplace noise."""
    distance = np.maximum(0, np.ceil(np.abs(2 * votes - k) / 2) - 1)
    noise, threshold, stops = rng.laplace(scale=event.query_scale, size=len(votes)), 0.0, 0
    threshold = rng.laplace(scale=event.threshold_scale)
    answered = np.zeros(len(votes), dtype=bool)
    for i in range(len(votes)):
        answered[i] = distance[i] + noise[i] > event.threshold + threshold
        if not answered[i]:
            stops += 1
            if stops == event.max_unstable:
                return i + 1, answered
            if event.refresh:
                threshold = rng.laplace(scale=event.threshold_scale)
    return len(votes), answered


def test_the_stream_of_theorem_3_2_ends_and_keeps_its_rate() -> None:
    """Teachers that err with the full allowance, independently at each point or all at the same
    points."""
    m, alpha, beta = 400, 0.15, 0.1
    plan = theory.rate_sizes(m, alpha, beta, BUDGET, 1)
    event = theory.stability.tight_stream(1.0, 1e-6, plan.max_unstable)
    rng, k, failures = np.random.default_rng(1), plan.n_teachers, 0
    for run in range(60):
        if run % 2:
            wrong = np.where(rng.random(m) < plan.teacher_error, k, 0)
        else:  # half of the teachers err wherever one of them does
            wrong = np.where(rng.random(m) < plan.teacher_error, k // 2, 0)
        asked, answered = _stream(k - wrong, k, event, rng)
        failures += asked < m or np.sum(~answered | (wrong > k / 2)) > alpha * m
    assert failures <= 60 * beta
    assert not plan.vacuous


def test_teachers_needed_answer_a_lead_of_a_third() -> None:
    event = SparseVectorEvent(20.0, 40.0, 300, 5, refresh=True)
    m, beta = 500, 0.05
    k = theory.teachers_needed(event, m, beta)
    margin = math.ceil(k / 3)
    assert m * (1 - false_answer(event, math.ceil(margin / 2) - 1)) <= beta * (1 + 1e-6)
    fewer = k - 18
    assert m * (1 - false_answer(event, math.ceil(math.ceil(fewer / 3) / 2) - 1)) > beta


def test_printed_teachers_at_the_numbers_of_the_errata() -> None:
    """272 sqrt(T log(2 / delta)) / epsilon times the logarithm."""
    t, m, beta = 7, 300, 0.1
    logs = math.log(4 * m * t / 1e-6) * math.sqrt(t * math.log(2 / 1e-6))
    assert theory.printed_teachers(BUDGET, m, t, beta) == math.ceil(272 * logs)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, float("nan"), None])
def test_printed_teachers_want_whole_numbers_of_questions_and_abstentions(wrong) -> None:
    with pytest.raises(ParameterError, match="n_queries is"):
        theory.printed_teachers(BUDGET, wrong, max_unstable=2, beta=0.1)
    with pytest.raises(ParameterError, match="max_unstable is"):
        theory.printed_teachers(BUDGET, 10, max_unstable=wrong, beta=0.1)


def test_tight_teachers_are_fewer_than_printed() -> None:
    tight, paper = (
        theory.stream_sizes(1000, 0.01, 0.05, BUDGET, 1, calibration=c) for c in ("tight", "paper")
    )
    assert tight.n_records < paper.n_records / 3


@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_the_rate_is_flat_and_then_grows(gamma: float) -> None:
    n, d, epsilon = 10**6, 2, 0.5
    last = theory.best_misclassification_queries(n, epsilon, d, best_error=gamma)
    few, edge = (
        theory.misclassification_rate(n, max(1, int(m)), epsilon, d, best_error=gamma).value
        for m in (1, last)
    )
    ratio = d / (epsilon * n)
    assert few == edge == pytest.approx(3 * gamma + math.sqrt(ratio) if gamma else ratio)
    many = [
        theory.misclassification_rate(n, int(last * f), epsilon, d, best_error=gamma).value
        for f in (10, 100, 1000)
    ]
    assert np.all(np.diff(many) > 0)
    slope = math.log((many[2] - 3 * gamma) / (many[1] - 3 * gamma)) / math.log(10)
    assert slope == pytest.approx(1 / 3 if gamma else 1, abs=1e-3)


def test_the_rate_solves_the_circle_of_its_proof() -> None:
    """error = k V / n, k = sqrt(T) / epsilon, T = m error: the rate T / m is Theorem 3.4's
    beyond M."""
    n, m, d, epsilon = 10**6, 10**8, 3, 0.4
    t = 1.0
    for _ in range(200):
        t = m * d * math.sqrt(t) / (epsilon * n)
    assert t / m == pytest.approx(theory.misclassification_rate(n, m, epsilon, d).value, rel=1e-9)


def test_misclassification_is_vacuous_with_few_records() -> None:
    assert theory.misclassification_rate(10, 10**6, 1.0, 1).vacuous
    assert theory.misclassification_rate(10**9, 1, 1.0, 1, best_error=0.2).vacuous


def test_learner_plans_follow_their_proofs() -> None:
    m, plan = theory.learner_sizes(0.2, 0.04, PrivacyBudget(2.0, 1e-6), 1)
    bound = theory.student_excess(plan.max_unstable, m, 1, 0.02)
    assert bound.value <= 0.2
    m, printed = theory.learner_sizes(0.2, 0.04, BUDGET, 1, calibration="paper")
    assert printed.teacher_error == pytest.approx(0.2 / 15)
    with pytest.raises(ParameterError, match="beta up to alpha / 5"):
        theory.learner_sizes(0.2, 0.05, BUDGET, 1, calibration="paper")
    with pytest.raises(ParameterError, match="beta up to alpha / 5"):
        theory.agnostic_learner_sizes(0.2, 0.05, BUDGET, 1, 0.1, calibration="paper")


def test_voted_labels_err_no_more_than_three_times_the_teachers() -> None:
    """The worst law puts all errors on as few teachers as contest a point; with many teachers it
    attains the bound."""
    bound = theory.voted_label_error(0.02, 0.05, 1).value
    worst = [0.02 * k / (k // 3 + 1) for k in (3, 9, 99, 999)]
    assert max(worst) <= bound
    assert worst[-1] > 0.99 * bound
    assert theory.voted_label_error(
        0.01, 0.01, 4000, best_error=0.1, calibration="paper"
    ).value == pytest.approx(0.37)
    assert theory.voted_label_error(0.01, 0.05, 1, best_error=0.2).vacuous
    with pytest.raises(ParameterError, match="beta up to"):
        theory.voted_label_error(0.01, 0.05, 4000, calibration="paper")
    with pytest.raises(ParameterError, match=r"Claim 4\.1 asks for at least"):
        theory.voted_label_error(0.01, 0.01, 400, calibration="paper")


def test_the_agnostic_learner_keeps_seven_gamma_and_alpha() -> None:
    alpha, gamma = 0.4, 0.02
    m, plan = theory.agnostic_learner_sizes(alpha, 0.1, PrivacyBudget(2.0, 1e-6), 1, gamma)
    bound = gamma + 2 * plan.rate.value + 2 * theory.uniform_deviation(m, 1, 0.05).value
    assert bound <= 7 * gamma + alpha
    printed = theory.agnostic_learner_sizes(
        alpha, 0.02, PrivacyBudget(2.0, 1e-6), 1, gamma, calibration="paper"
    )[1]
    assert printed.n_records > 20 * plan.n_records


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.most_contested(3, 0.6),
        lambda: theory.most_contested(3, 0.0),
        lambda: theory.most_mistakes(10, 1.0, 0.1, n_teachers=3),
        lambda: theory.most_mistakes(10, math.nan, 0.1, n_teachers=3),
        lambda: theory.cutoff(10, 0.1, 0.1, n_teachers=3, calibration="loose"),
        lambda: theory.stable_distance(0.0, 1e-6, 0.1),
        lambda: theory.rate_sizes(20, 0.01, 0.1, BUDGET, 1),
        lambda: theory.stream_sizes(20, 0.01, 0.1, PrivacyBudget(1.0, 0.0), 1),
        lambda: theory.misclassification_rate(10, 10, 1.0, 1, best_error=0.5),
    ],
)
def test_out_of_range_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()
