"""Theorems about relabelling, the semi-private learner and the universal labeler, against exact
laws."""

import math

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from secretballot import theory
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import PrivacyBudget, RelabelledSampleEvent, delta_upper
from secretballot.theory.stability import tight_stream

BUDGET = PrivacyBudget(1.0, 1e-6)


def test_relabelling_constants() -> None:
    epsilon, delta = theory.relabelled_privacy(BUDGET)
    assert math.exp(epsilon - 1) == pytest.approx((1 + math.sqrt(math.e)) ** 2)
    assert delta / 1e-6 == pytest.approx(7.0157, abs=1e-4)
    assert theory.relabelled_privacy(BUDGET, calibration="paper") == (
        4.0,
        pytest.approx(4 * math.e * 1e-6),
    )
    coming, _ = theory.relabelled_privacy(BUDGET, neighbours="add-remove")
    assert math.exp(coming - 1) == pytest.approx(1 + math.sqrt(math.e))


def test_one_record_moves_a_relabelling_by_no_more_than_the_constant() -> None:
    """The law of the labels of the shared points, on random families of labellings."""
    rng, worst = np.random.default_rng(2), 0.0
    for _ in range(400):
        shared = rng.integers(0, 2, size=(rng.integers(2, 7), 3))
        laws = []
        labels = rng.integers(0, 2, size=3)
        for _side in range(2):
            # 0, 1: one label; 2, 3: both are there
            own, label = rng.integers(0, 4, size=len(shared)), rng.integers(2)
            weight = np.zeros(len(shared))
            for value in (0, 1):
                there = (own == value) | (own >= 2)
                weight += there * np.exp(-((shared != labels).sum(axis=1) + (value != label)) / 2)
            laws.append(weight / weight.sum())
        worst = max(worst, float((laws[0] / laws[1]).max()))
    loss = theory.relabelled_privacy(BUDGET)[0] - 1
    assert 1.5 < worst <= math.exp(loss)


def test_amplification_on_a_pair_that_attains_it() -> None:
    """Randomised response about one record that is sampled with probability q."""
    epsilon, q = 2.0, 0.2
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    mixed = q * p + (1 - q) * (1 - p)
    whole, delta = theory.amplified(epsilon, 1e-5, q)
    assert math.log(mixed / (1 - p)) == pytest.approx(whole)
    assert delta == pytest.approx(2e-6)
    assert theory.amplified(epsilon, 1e-5, 1.0) == (pytest.approx(epsilon), 1e-5)


@pytest.mark.parametrize(("epsilon", "rate"), [(1.0, 0.0951), (2.0, 0.354)])
def test_sampling_rates_of_the_errata(epsilon: float, rate: float) -> None:
    found = theory.sampling_rate(epsilon, 1.0)
    assert found == pytest.approx(rate, rel=2e-3)
    relabelled, _ = theory.relabelled_privacy(PrivacyBudget(1.0, 1e-6))
    assert theory.amplified(relabelled, 1e-6, found)[0] == pytest.approx(epsilon)


def test_sampling_rate_reaches_all_records_and_survives_large_epsilon() -> None:
    assert theory.sampling_rate(2.95, 1.0) == 1.0
    assert theory.sampling_rate(900.0, 899.0) == pytest.approx(math.exp(1 - 1.948154), rel=1e-4)
    assert theory.sampling_rate(0.5, 1.0, calibration="paper") == pytest.approx(0.5 / 56)


def test_the_plan_of_the_labeler_keeps_its_budget() -> None:
    """The certified price of the whole stream at the planned n, without the closed forms that
    made the plan."""
    plan = theory.labeler_sizes(1500, 0.1, 0.05, BUDGET, 1)
    stream = tight_stream(plan.inner.epsilon, plan.inner.delta, plan.max_unstable)
    event = RelabelledSampleEvent(stream, plan.n_sampled, plan.n_records, "replace-one")
    assert delta_upper([event], 1.0) <= 1e-6
    assert plan.n_sampled >= plan.n_teachers * plan.shard
    assert plan.n_sampled >= theory.relabel_records(0.025, 0.01, 1)
    assert plan.max_unstable <= 0.025 * 1500


def test_bootstrap_repeats_the_printed_figure_is_false_at_a_tenth() -> None:
    n = 10_000
    printed, exact = (theory.bootstrap_repeats(n, 0.1, calibration=c) for c in ("paper", "tight"))
    assert binom.sf(math.floor(printed), n, 1 / n) > 0.05
    assert binom.sf(exact, n, 1 / n) <= 0.05
    assert [theory.bootstrap_repeats(n, d) for d in (1e-2, 1e-3, 1e-6)] == [4, 6, 9]


def _threshold_errors(
    rng: np.random.Generator, n: int, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return mistakes on the sample and true errors of the n + 1 labellings by 1[x >= t], truth
    at 1/2."""
    x = np.sort(rng.random(n))
    y = (x >= 0.5) ^ (rng.random(n) < noise)
    mistakes = (
        np.concatenate([[0], np.cumsum(y)])
        + (n - np.arange(n + 1))
        - (y.sum() - np.concatenate([[0], np.cumsum(y)]))
    )
    edges = np.concatenate([[0.0], x, [1.0]])
    cuts = (edges[:-1] + edges[1:]) / 2
    return mistakes, noise + (1 - 2 * noise) * np.abs(cuts - 0.5)


def test_relabelling_error_holds_by_the_exact_law() -> None:
    rng, beta, n = np.random.default_rng(4), 0.1, 300
    allowed = theory.relabel_error(n, 1, beta) * n
    for noise in (0.0, 0.2, 0.4):
        mistakes, _ = _threshold_errors(rng, n, noise)
        law = softmax(-mistakes / 2)
        assert law[mistakes > mistakes.min() + allowed].sum() <= beta
    # worst of all: one labelling without a mistake, and all others just beyond what is allowed
    law = softmax(-np.concatenate([[0.0], np.full(n, math.floor(allowed) + 1)]) / 2)
    assert 0.3 * beta < law[1:].sum() <= beta


@pytest.mark.parametrize("calibration", ["paper", "tight"])
def test_relabelling_is_accurate_at_its_sample_size(calibration: str) -> None:
    alpha, beta, rng = 0.5, 0.1, np.random.default_rng(8)
    n = theory.relabel_records(alpha, beta, 1, calibration=calibration)
    failed = []
    for _ in range(40):
        mistakes, errors = _threshold_errors(rng, n, 0.2)
        best = errors[mistakes.argmin()]
        failed.append(softmax(-mistakes / 2)[errors > best + alpha].sum())
    assert np.mean(failed) <= beta


def test_relabelling_size_is_the_smallest() -> None:
    n = theory.relabel_records(0.2, 0.1, 3)

    def error(n: int) -> float:
        return theory.relabel_error(n, 3, 0.05) + 2 * theory.uniform_deviation(n, 3, 0.05).value

    assert error(n) <= 0.2 < error(n - 1)


def test_claim_3_6_falls_short_of_its_own_proof_unless_alpha_is_small() -> None:
    def proof(n: int, alpha: float, d: int) -> float:
        return math.log(2) + 2 * d * math.log(math.e * n / d) - n * alpha**2 / 8

    beta = 0.05
    for alpha, d, enough in (
        (0.1, 1, True),
        (0.1, 20, False),
        (0.02, 20, False),
        (0.002, 20, True),
    ):
        printed = theory.disagreement_records(alpha, beta, d, calibration="paper")
        assert (proof(printed, alpha, d) <= math.log(beta)) == enough
    assert theory.disagreement_records(0.1, beta, 20) > theory.disagreement_records(
        0.1, beta, 20, calibration="paper"
    )


def test_disagreement_of_all_pairs_is_uniform_at_the_size() -> None:
    """Thresholds: the disagreement of a pair is the law of an interval."""
    alpha, beta, rng = 0.3, 0.1, np.random.default_rng(6)
    for calibration in ("tight", "paper"):
        n, worst = theory.disagreement_records(alpha, beta, 1, calibration=calibration), []
        for _ in range(30):
            gap = np.searchsorted(np.sort(rng.random(n)), np.linspace(0, 1, 501)) / n - np.linspace(
                0, 1, 501
            )
            worst.append(gap.max() - gap.min())
        assert np.mean(np.array(worst) > alpha) <= beta


def test_printed_number_of_queries_fails_for_the_best_hypothesis_itself() -> None:
    """With gamma far above alpha, even the best hypothesis errs on more than gamma + alpha of so
    few queries."""
    alpha, beta, gamma = 0.001, 0.05, 0.25
    printed, ours = (
        theory.queries_needed(alpha, beta, best_error=gamma, calibration=c)
        for c in ("paper", "tight")
    )
    assert binom.sf(math.floor(printed * (gamma + alpha)), printed, gamma) > 4 * beta
    assert binom.sf(math.floor(ours * (gamma + alpha / 2)), ours, gamma) <= beta
    assert theory.queries_needed(alpha, beta) == 1
    with pytest.raises(ParameterError, match="n_queries is 100"):
        theory.labeler_sizes(100, 0.05, 0.05, BUDGET, 1, best_error=0.2)


def test_public_points_at_the_numbers_of_the_errata() -> None:
    assert [theory.public_points(0.1, 0.05, d) for d in (1, 2, 3, 4)] == [1696, 2433, 3170, 3906]
    assert theory.public_points(0.1, 0.05, 1, calibration="tight") < 1696 / 3


def test_printed_public_points_cover_only_for_alpha_away_from_one() -> None:
    good, bad = theory.public_points(0.1, 0.05, 3), theory.public_points(0.97, 0.5, 30)
    assert theory.pair_cover_failure(good, 0.1, 3) <= 0.05
    assert theory.pair_cover_failure(bad, 0.97, 30) == 1


@pytest.mark.parametrize(("neighbours", "weight"), [("replace-one", 0.5), ("add-remove", 1.0)])
def test_the_private_choice_errs_no_more_than_its_bound(neighbours: str, weight: float) -> None:
    """Exact law; the worst case is one good candidate among many that are just worse than
    allowed."""
    n, epsilon, beta, count = 500, 0.3, 0.05, 1000
    allowed = theory.choice_error(n, epsilon, math.log(count), beta, neighbours=neighbours) * n
    assert 1 < allowed < n
    law = softmax(
        -epsilon * weight * np.concatenate([[0.0], np.full(count - 1, math.floor(allowed) + 1)])
    )
    assert 0.3 * beta < law[1:].sum() <= beta


@pytest.mark.parametrize("epsilon", [0.5, 100.0])
def test_the_private_choice_is_accurate_on_the_law(epsilon: float) -> None:
    """Candidates are coins of known error; the chance of a bad choice is averaged over samples."""
    alpha, beta, rng = 0.2, 0.1, np.random.default_rng(9)
    errors = np.concatenate([[0.4], np.full(40, 0.4 + alpha + 0.001)])
    n = theory.choice_records(alpha, beta, epsilon, math.log(len(errors)))
    mistakes = rng.binomial(n, errors, size=(200, len(errors)))
    assert softmax(-epsilon * mistakes / 2, axis=1)[:, 1:].sum(axis=1).mean() <= beta
    assert theory.choice_records(alpha, beta, epsilon, math.log(41), neighbours="add-remove") <= n


def test_the_semi_private_learner_is_accurate_at_its_plan() -> None:
    """Thresholds, end to end, by the exact law of the choice among those that the public points
    tell apart."""
    alpha, beta, epsilon, noise, rng = 0.3, 0.2, 1.0, 0.1, np.random.default_rng(10)
    plan = theory.semi_private_sizes(alpha, beta, epsilon, 1)
    assert plan.log_candidates == pytest.approx(math.log(plan.n_public + 1))
    assert theory.pair_cover_failure(plan.n_public, alpha / 4, 1) <= beta / 4
    assert plan.n_records == theory.choice_records(
        3 * alpha / 4, 3 * beta / 4, epsilon, plan.log_candidates
    )
    failed = []
    for _ in range(40):
        edges = np.concatenate([[0.0], np.sort(rng.random(plan.n_public)), [1.0]])
        cuts = rng.uniform(edges[:-1], edges[1:])
        x = rng.random(plan.n_records)
        y = (x >= 0.5) ^ (rng.random(plan.n_records) < noise)
        mistakes = ((x[:, None] >= cuts) != y[:, None]).sum(axis=0)
        excess = (1 - 2 * noise) * np.abs(cuts - 0.5)
        failed.append(softmax(-epsilon * mistakes / 2)[excess > alpha].sum())
    assert np.mean(failed) <= beta


def test_more_public_points_help_the_cover_and_too_few_are_refused() -> None:
    few = theory.semi_private_sizes(0.1, 0.05, 1.0, 1)
    many = theory.semi_private_sizes(0.1, 0.05, 1.0, 1, n_public=50 * few.n_public)
    assert many.n_records < few.n_records
    with pytest.raises(ParameterError, match="public points"):
        theory.semi_private_sizes(0.1, 0.05, 1.0, 1, n_public=20)


def test_the_split_is_the_best_of_all() -> None:
    epsilon, a, b, f = 1.0, 5.0, 2.0, 0.3
    found = theory.split_budget(epsilon, a, b, f)
    assert found.first + found.rest == pytest.approx(epsilon)
    first = np.linspace(0.001, 0.999, 9999)
    error = f * a / first + (1 - f) * b / (epsilon - first)
    assert first[error.argmin()] == pytest.approx(found.first, abs=1e-3)
    assert found.rest / found.first == pytest.approx(math.sqrt(b * (1 - f) / (a * f)))
    assert theory.split_budget(epsilon, a, b, 0.0).first == 0
    assert theory.split_budget(epsilon, a, b, 1.0).rest == 0


def test_the_universal_labeler_spends_what_was_asked() -> None:
    plan = theory.universal_sizes(0.2, 0.1, BUDGET, 1)
    assert plan.split.first + plan.split.rest == pytest.approx(1.0)
    assert plan.split.rest >= 0.01
    alone = theory.labeler_sizes(plan.n_first, 0.2, 0.05, PrivacyBudget(plan.split.first, 1e-6), 1)
    assert plan.n_records >= alone.n_records
    assert theory.universal_records(0.2, 0.1, BUDGET, 1) > plan.n_records
    with pytest.raises(ParameterError, match=r"Theorem 4\.1"):
        theory.universal_records(0.2, 0.1, PrivacyBudget(1.5, 1e-6), 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.amplified(1.0, 1e-6, 1.5),
        lambda: theory.amplified(1.0, 1e-6, math.nan),
        lambda: theory.sampling_rate(1.0, 2.0, calibration="paper"),
        lambda: theory.sampling_rate(1.5, 1.0, calibration="paper"),
        lambda: theory.relabelled_privacy(BUDGET, neighbours="swap"),
        lambda: theory.relabel_records(1.0, 0.1, 1),
        lambda: theory.queries_needed(0.1, 0.1, best_error=0.5),
        lambda: theory.printed_labeler_records(10, 0.1, 0.1, BUDGET, 1),
        lambda: theory.split_budget(1.0, 1.0, 1.0, 1.1),
        lambda: theory.choice_error(10, math.nan, 1.0, 0.1),
    ],
)
def test_out_of_range_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()
