"""What a run lost by its votes, published: bounds above the truth, smoothness on all small votes,
the true delta on the lattice, prices computed otherwise, refusals."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate
from secretballot.runs.diagnosis.vote_dependent import gaussian_curve

import secretballot as sb
from secretballot import verify_release as second
from secretballot.aggregation import GaussianAggregator
from secretballot.aggregation.vote_loss import UNITS_PER_NAT, VoteLoss
from secretballot.audit.distributions import discrete_gaussian_distribution
from secretballot.audit.worlds import all_counts
from secretballot.door import publish_vote_loss
from secretballot.door.vote_loss import PublishedLoss
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.privacy.accounting import (
    PrivacyBudget,
    SmoothGaussianEvent,
    calibrate_smooth_gaussian,
    delta_upper,
    epsilon_upper,
    event_from_json,
    renyi_divergence,
)
from secretballot.privacy.accounting.likely_outcome import likely_outcome_renyi
from secretballot.privacy.accounting.renyi import ORDERS
from secretballot.privacy.accounting.smooth_gaussian import LOG_STEP, smooth_renyi_at
from secretballot.report.certificate.build import certificate_digest

BUDGET = PrivacyBudget(1.0, 1e-6)
EVENT = SmoothGaussianEvent(8.0, 20, 400.0)


def run_of(n_classes: int, sigma: float = 4.0, **settings: Any) -> GaussianAggregator:
    return GaussianAggregator(
        sigma, n_queries=500, n_classes=n_classes, release="labels", delta=1e-6, **settings
    )


def account(**settings: Any) -> sb.Ledger:
    return sb.Ledger.in_memory(**{"dataset": "x", "budget": BUDGET, **settings})


def test_the_bound_is_that_of_the_diagnosis() -> None:
    log_q = np.array([-0.1, -1.0, -5.0, -20.0, -100.0, -900.0])
    for sigma in (10.0, 40.0):
        for place in (120, 180, 200):
            curve = gaussian_curve(log_q, sigma)[:, place]
            own = likely_outcome_renyi(log_q, sigma, ORDERS[place])
            assert own == pytest.approx(curve, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("n_classes", "n_teachers"), [(2, 41), (3, 24)])
def test_the_effective_lead_bounds_the_chance_of_another_label(
    n_classes: int, n_teachers: int
) -> None:
    # exact tails of the discrete noise, of one count of two or of the difference of two
    sigma = 4.0
    noise = discrete_gaussian_distribution(sigma, 1e-15)
    one = noise.pmf
    pair = np.convolve(one, one)
    centre = len(pair) // 2
    loss = VoteLoss(run_of(n_classes, sigma), n_teachers, 5.0, 10)
    counts = all_counts(n_teachers, n_classes)
    at = loss.positions(counts)
    for votes, position in zip(counts, at, strict=True):
        ordered = np.sort(votes)[::-1]
        if n_classes == 2:
            least = math.ceil((ordered[0] - ordered[1]) / 2)
            wrong = one[-noise.low + least :].sum() if least <= -noise.low else 0.0
        else:
            wrong = sum(pair[centre + int(ordered[0] - x) :].sum() for x in ordered[1:])
        # the table's chance at that position
        lead = (position + loss._lowest_position) / 8
        stated = (n_classes - 1) * 0.5 * math.erfc(lead / loss._votes_per_lead / math.sqrt(2))
        assert stated >= wrong * (1 - 1e-12)


def neighbours_of(votes: tuple[int, ...]) -> Any:
    for give, take in itertools.permutations(range(len(votes)), 2):
        if votes[give]:
            other = list(votes)
            other[give] -= 1
            other[take] += 1
            yield tuple(other)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_vote_moves_value_and_scale_as_stated_at_all_votes_of_a_small_world(
    n_classes: int,
) -> None:
    teachers, steps = 30, 12
    loss = VoteLoss(run_of(n_classes, 4.0), teachers, 3.0, steps)
    counts = all_counts(teachers, n_classes)
    at = dict(zip(map(tuple, counts.tolist()), loss.positions(counts).tolist(), strict=True))
    found = {
        votes: (loss.value(np.array([p])), loss.log_sensitivity(np.array([p])))
        for votes, p in at.items()
    }
    most_moved, largest_ratio, nearest = 0, 0.0, 0.0
    for votes, (value, smooth) in found.items():
        for other in neighbours_of(votes):
            there, other_smooth = found[other]
            most_moved = max(most_moved, abs(at[votes] - at[other]))
            # within the sensitivity of both
            assert abs(value - there) <= math.exp(min(smooth, other_smooth)) * (1 + 1e-12)
            largest_ratio = max(largest_ratio, abs(smooth - other_smooth))
            if smooth > -math.inf:
                nearest = max(nearest, abs(value - there) / math.exp(smooth))
            moved = abs(
                loss.scale_number(np.array([at[votes]]), 8.0)
                - loss.scale_number(np.array([at[other]]), 8.0)
            )
            assert moved <= steps
    assert most_moved <= loss.moved
    assert largest_ratio <= (steps - 1) * LOG_STEP + 1e-12
    # neither is far from what is needed
    assert nearest > 0.5
    assert most_moved >= 15


def test_queries_add_up_and_their_sensitivities_too() -> None:
    loss = VoteLoss(run_of(3, 5.0), 40, 4.0, 15)
    rng = np.random.default_rng(0)
    counts = rng.multinomial(40, [0.7, 0.2, 0.1], size=30)
    at = loss.positions(counts)
    assert loss.value(at) == sum(loss.value(at[i : i + 1]) for i in range(30))
    for _ in range(200):
        moved = []
        for votes in counts.tolist():
            others = [*neighbours_of(tuple(votes)), tuple(votes)]
            moved.append(others[rng.integers(len(others))])
        there = loss.positions(np.array(moved))
        change = abs(loss.value(at) - loss.value(there))
        both = loss.log_sensitivity(at), loss.log_sensitivity(there)
        assert change <= math.exp(min(both))
        assert abs(both[0] - both[1]) <= 14 * LOG_STEP + 1e-12


def divergence_of_normals(order: float, mean: float, one: float, two: float) -> float:
    """Return the Renyi divergence of N(0, one^2) from N(mean, two^2) by integration."""

    def log_density(x: float, centre: float, scale: float) -> float:
        return -((x - centre) ** 2) / (2 * scale**2) - math.log(scale * math.sqrt(2 * math.pi))

    def weight(x: float) -> float:
        return math.exp(order * log_density(x, 0.0, one) + (1 - order) * log_density(x, mean, two))

    total, _ = integrate.quad(weight, -60 * one, 60 * one, limit=400)
    return math.log(total) / (order - 1)


def test_the_divergence_bounds_all_pairs_of_scales_and_means_by_integration() -> None:
    ratio, steps = 3.0, 60
    for order in (1.5, 3.0, 6.0):
        bound = float(smooth_renyi_at(np.array([order]), ratio, steps, 1e9)[0])
        worst = 0.0
        for t in np.linspace(-steps * LOG_STEP, steps * LOG_STEP, 9):
            other = math.exp(t)
            for share in (0.0, 0.5, 1.0):
                mean = share * min(1.0, other) / ratio
                worst = max(worst, divergence_of_normals(order, mean, 1.0, other))
        assert worst <= bound * (1 + 1e-6)
        assert worst > 0.7 * bound


def lattice_pair(sigma: float, other: float, shift: int) -> tuple[np.ndarray, np.ndarray]:
    reach = int(14 * max(sigma, other)) + shift
    x = np.arange(-reach, reach + 1, dtype=float)
    p, q = np.exp(-(x**2) / (2 * sigma**2)), np.exp(-((x - shift) ** 2) / (2 * other**2))
    return p / p.sum(), q / q.sum()


@pytest.mark.parametrize("epsilon", [0.4, 0.8])
def test_the_price_is_above_the_true_delta_of_what_is_drawn(epsilon: float) -> None:
    # the scale's own noise is far away: only the number itself is told
    event = SmoothGaussianEvent(6.0, 40, 1e6)
    price = delta_upper([event], epsilon)
    true, least = 0.0, 1000.0
    for t in (-40, 0, 40):
        other = least * math.exp(t * LOG_STEP)
        shift = int(min(least, other) / 6.0)
        for p, q in (lattice_pair(least, other, shift), lattice_pair(other, least, shift)):
            true = max(true, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    assert 0.01 * price < true <= price
    # noise of the local sensitivity alone, whose scale jumps, is caught
    p, q = lattice_pair(1.5 * least, least, int(least / 6))
    assert np.maximum(p - math.exp(epsilon) * q, 0).sum() > price


def test_noise_by_the_sensitivity_of_these_votes_alone_would_break_the_promise() -> None:
    # where votes are unanimous, nothing moves next door, and two votes away everything may
    loss = VoteLoss(run_of(2, 4.0), 200, 20.0, 12)
    leads = np.arange(0, 201, 2)
    counts = np.column_stack([(200 - leads) // 2, (200 + leads) // 2])
    local = loss.changes[loss.positions(counts)].astype(float)
    smooth = np.array([loss.log_sensitivity(loss.positions(row[None])) for row in counts])
    jumps = np.abs(np.diff(np.log(local[local > 0])))
    assert jumps.max() > 20 * 11 * LOG_STEP
    assert np.abs(np.diff(smooth)).max() <= 11 * LOG_STEP + 1e-12


def test_the_event_is_priced_alike_by_both_verifiers_and_is_never_free() -> None:
    for event, epsilon in ((EVENT, 1.0), (SmoothGaussianEvent(30.0, 8, 300.0), 0.5)):
        assert event_from_json(event.to_json()) == event
        theirs = delta_upper([event], epsilon)
        own = second.price_events([event.to_json()], epsilon)
        assert 0.9 * theirs <= own.upper <= theirs * (1 + 1e-6)
        assert 0 < epsilon_upper([event], 1e-6) < epsilon_upper([event, event], 1e-6)
    # beside other events it is not taken for silence
    gaussian = sb.privacy.accounting.GaussianEvent(40.0, 100)
    assert delta_upper([gaussian, EVENT], 1.0) > delta_upper([EVENT], 1.0)
    assert delta_upper([gaussian, EVENT], 1.0) > delta_upper([gaussian], 1.0)
    assert renyi_divergence(EVENT, 1e4) == math.inf
    assert not sb.privacy.accounting.filter_for("renyi", BUDGET, 1000.0).admits(
        [], sb.privacy.accounting.Grant((EVENT,), 1.0, 1e-6)
    )


def test_the_calibration_fits_and_less_noise_does_not() -> None:
    event = calibrate_smooth_gaussian(BUDGET, 20, 400.0)
    assert delta_upper([event], 1.0) <= 1e-6
    less = SmoothGaussianEvent(0.98 * event.noise_ratio, 20, 400.0)
    assert delta_upper([less], 1.0) > 1e-6
    with pytest.raises(ParameterError, match="fewer steps"):
        calibrate_smooth_gaussian(PrivacyBudget(0.1, 1e-6), 100, 400.0)
    with pytest.raises(ParameterError, match="delta"):
        calibrate_smooth_gaussian(PrivacyBudget(1.0, 0.0), 20, 400.0)


VOTES = np.random.default_rng(1).multinomial(250, [0.8, 0.15, 0.05], size=120)


def test_what_is_told_is_near_the_truth_paid_once_and_stored() -> None:
    cast, run, ledger = sb.VoteCounts.from_counts(VOTES), run_of(3, 40.0), account()
    told = publish_vote_loss(cast, run, ledger, order=8.0, budget=BUDGET, request="q")
    assert ledger.spent().epsilon == pytest.approx(1.0)
    loss = VoteLoss(run, 250, 8.0, 20)
    at = loss.positions(VOTES)
    truth = loss.value(at) / UNITS_PER_NAT
    # below the price for any votes, which is a / sigma^2 for each query
    assert 0 < truth < 0.7 * 120 * 8.0 / 1600
    spread = told.event.noise_ratio * math.exp(loss.log_sensitivity(at)) / UNITS_PER_NAT
    assert abs(told.value - truth) < 6.5 * spread * 1.02
    assert 0.07 * spread < told.spread < 14 * spread  # 6.5 deviations of the scale's own noise
    assert told.epsilon_at(1e-6, 2.0) == pytest.approx(told.epsilon_at(1e-6) + 2 * told.spread)
    again = publish_vote_loss(cast, run, ledger, order=8.0, budget=BUDGET, request="q")
    assert again == told
    with pytest.raises(ParameterError, match="another question"):
        publish_vote_loss(cast, run, ledger, order=9.0, budget=BUDGET, request="q")
    with pytest.raises(BudgetError):
        publish_vote_loss(cast, run, ledger, order=8.0, budget=BUDGET)
    assert "no promise" in told.words()


def test_drawn_numbers_have_the_stated_spread_and_half_of_it_is_caught() -> None:
    cast, run = sb.VoteCounts.from_counts(VOTES), run_of(3, 40.0)
    loss = VoteLoss(run, 250, 8.0, 20)
    at, draws = loss.positions(VOTES), []
    for _ in range(60):
        told = publish_vote_loss(cast, run, account(), order=8.0, budget=BUDGET)
        draws.append((told.outcome, told.scale_number))
    event = told.event
    sigma = event.noise_ratio * math.exp(loss.scale_number(at, event.noise_ratio) * LOG_STEP)
    value = np.array([outcome for outcome, _ in draws]) - loss.value(at)
    numbers = np.array([number for _, number in draws]) - loss.scale_number(at, event.noise_ratio)
    for found, scale in ((value, sigma), (numbers, event.scale_sigma)):
        # chi-squared of 60 draws: outside of this range once in a million
        assert 0.33 < (found.astype(float) ** 2).mean() / scale**2 < 2.2
        assert abs(found.mean()) < 5 * scale / math.sqrt(60)


CONFIDENT = sb.ConfidentAggregator(200, 90.0, 40.0, 120, max_answers=50, n_classes=3, delta=1e-6)
COUNTS = GaussianAggregator(40.0, n_queries=120, n_classes=3, release="counts", delta=1e-6)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"aggregator": CONFIDENT}, "threshold"),
        ({"aggregator": COUNTS}, "labels alone"),
        ({"aggregator": run_of(3, 2.0)}, "sigma"),
        ({"aggregator": run_of(2, 40.0, n_teachers=250)}, "classes"),
        ({"order": 1.0}, "order"),
        ({"order": math.nan}, "order"),
        ({"order": 1e308}, "order"),
        ({"order": "8"}, "order"),
        ({"steps": 1}, "steps"),
        ({"steps": 500}, "fewer steps"),
        ({"budget": None}, "budget"),
        ({"budget": PrivacyBudget(1.0, 0.0)}, "delta"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_what_cannot_be_is_refused_and_nothing_is_spent(change: dict[str, Any], words: str) -> None:
    ledger = account()
    terms = {"aggregator": run_of(3, 40.0), "order": 8.0, "budget": BUDGET, **change}
    aggregator = terms.pop("aggregator")
    with pytest.raises(ParameterError, match=words):
        publish_vote_loss(sb.VoteCounts.from_counts(VOTES), aggregator, ledger, **terms)
    assert ledger.spent().epsilon == 0


def test_an_order_is_a_float_whatever_number_was_given() -> None:
    one, other = (VoteLoss(run_of(3, 40.0), 50, order, 20) for order in (2.5, Fraction(5, 2)))
    assert type(other.order) is float
    assert (one.losses == other.losses).all()


def test_a_scale_hidden_by_any_noise_can_be_told() -> None:
    event = SmoothGaussianEvent(8.0, 20, 1e12)
    told = PublishedLoss({"order": 8.0}, 5, 10**13, event, BUDGET, "record", "add-remove", {})
    assert math.isfinite(told.spread)
    assert math.isfinite(told.epsilon_at(1e-5))
    assert "no promise" in told.words()


def test_another_relation_is_refused() -> None:
    with pytest.raises(LedgerError):
        publish_vote_loss(
            sb.VoteCounts.from_counts(VOTES),
            run_of(3, 40.0),
            account(),
            order=8.0,
            budget=BUDGET,
            declaration={"unit": "record", "neighbours": "replace-one"},
        )


def test_no_certificate_takes_what_depends_on_votes() -> None:
    cast, run = sb.VoteCounts.from_counts(VOTES), run_of(3, 40.0)
    told = publish_vote_loss(cast, run, account(), order=8.0, budget=BUDGET)
    with pytest.raises(ParameterError, match="no promise"):
        GaussianAggregator(40.0, n_queries=120, n_classes=3, budget=told)  # type: ignore[arg-type]
    answering = GaussianAggregator(40.0, n_queries=120, n_classes=3, delta=1e-6)
    ledger = account(budget=answering.budget)
    certificate = sb.release(cast, answering, ledger).certificate
    assert sb.verify_certificate(certificate).ok
    # neither its event in the place of the run's, nor its epsilon in the place of the promise
    for forged in (
        certificate | {"events": [told.event.to_json()]},
        certificate | {"epsilon": 0.5 * certificate["epsilon"]},
    ):
        forged["digest"] = certificate_digest(forged)
        assert not sb.verify_certificate(forged).ok
        with pytest.raises(second.WrongError):
            second.check_mechanism(forged)
