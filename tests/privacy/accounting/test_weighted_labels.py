"""Labels of votes that count several times: brute force over all adaptive strategies, the corners
of the game, weights that fit a budget."""

import functools
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import (
    BudgetGroup,
    GaussianEvent,
    GroupedLabelEvent,
    GroupedVectorSumEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    PureEvent,
    VectorSumEvent,
    WeightedLabelEvent,
    calibrate_label_gaussian,
    calibrate_weighted_labels,
    dearer_group,
    delta_upper,
    epsilon_upper,
    event_from_json,
    largest_weight,
    price,
    renyi_divergence,
)
from secretballot.privacy.accounting import label_game as room
from secretballot.privacy.accounting.gaussian import discrete_gaussian_pmf

BUDGET = PrivacyBudget(1.0, 1e-6)


def _label_probability(votes: int, total: int, sigma: float) -> float:
    """P(2 (votes + noise) >= total), straight from the definition."""
    reach, pmf = discrete_gaussian_pmf(sigma)
    noise = np.arange(-reach, reach + 1)
    return float(pmf[2 * (votes + noise) >= total].sum())


def _pairs(weights: tuple[int, ...], mover: int, sigma: float) -> list[tuple[float, float]]:
    """Chances of label 1 before and after the vote of one teacher changes, whatever the others
    vote."""
    total = sum(weights)
    others = [weight for place, weight in enumerate(weights) if place != mover]
    found = set()
    for votes in itertools.product((0, 1), repeat=len(others)):
        rest = sum(vote * weight for vote, weight in zip(votes, others, strict=True))
        one = _label_probability(rest, total, sigma)
        other = _label_probability(rest + weights[mover], total, sigma)
        found |= {(one, other), (other, one), (one, one), (other, other)}
    return sorted(found)


def _true_delta(pairs: list[tuple[float, float]], queries: int, epsilon: float) -> float:
    """Largest hockey stick over all adaptive choices among pairs, by exact recursion."""

    @functools.cache
    def value(p: float, q: float, left: int) -> float:
        if left == 0:
            return max(0.0, p - math.exp(epsilon) * q)
        return max(
            value(p * a, q * b, left - 1) + value(p * (1 - a), q * (1 - b), left - 1)
            for a, b in pairs
        )

    return value(1.0, 1.0, queries)


@pytest.mark.parametrize(
    ("weights", "sigma"),
    [((2, 2, 5, 5), 6.0), ((1, 3, 3, 4, 7), 8.0), ((3, 3), 3.0), ((1, 10, 10), 12.0)],
)
def test_every_teacher_of_a_tiny_world_costs_at_most_its_weights_price(
    weights: tuple[int, ...], sigma: float
) -> None:
    for mover, queries, epsilon in itertools.product(range(len(weights)), (1, 2), (0.0, 0.3, 1.0)):
        truth = _true_delta(_pairs(weights, mover, sigma), queries, epsilon)
        event = WeightedLabelEvent(sigma, queries, weights[mover] ** 2)
        assert truth <= delta_upper([event], epsilon)


def test_three_labels_cost_at_most_their_price_and_a_lighter_ones_price_is_broken() -> None:
    weights, sigma = (2, 5, 5), 6.0
    truth = _true_delta(_pairs(weights, 1, sigma), 3, 0.5)
    assert truth <= delta_upper([WeightedLabelEvent(sigma, 3, 25)], 0.5)
    # a teacher whose vote counts for more than its group pays for
    assert truth > 2 * delta_upper([WeightedLabelEvent(sigma, 3, 4)], 0.5)


def test_the_game_is_sharp_where_every_vote_count_can_be_reached() -> None:
    weight, sigma, epsilon = 3, 9.0, 0.4
    pairs = [
        (
            _label_probability(0, 2 * (t - weight), sigma),
            _label_probability(weight, 2 * (t - weight), sigma),
        )
        for t in range(-40, 44)
    ]
    pairs += [(q, p) for p, q in pairs]
    for queries in (1, 2):
        truth = _true_delta(pairs, queries, epsilon)
        found = room.label_profile(sigma, queries, None, epsilon, 40, weight).delta(epsilon)
        assert truth <= found <= 1.02 * truth + 1e-9


@pytest.mark.parametrize(("sigma", "weight"), [(300.0, 7), (300.0, 100), (120.0, 120), (3.0, 2)])
def test_the_corners_lie_above_every_pair(sigma: float, weight: int) -> None:
    curve = room.vote_curve(sigma, None, weight)
    assert len(curve.p) < 900
    reach, pmf = discrete_gaussian_pmf(sigma)
    above = np.cumsum(pmf[::-1])[::-1]
    far = math.ceil(room.FAR * sigma) + weight - 1
    t = np.arange(1 + far, weight - 1 - far, -1)
    p, q = above[t + reach], above[t - weight + reach]
    # linear between the corners, as a polygon is
    polygon = np.interp(p, curve.p, curve.p + curve.gap)
    assert (polygon >= q * (1 - 1e-12) - 1e-15).all()
    assert np.abs(curve.rest + curve.p - 1).max() < 1e-12
    assert np.abs(curve.over + curve.p + curve.gap - 1).max() < 1e-12


def test_a_weight_of_one_is_a_label_and_a_finer_lattice_changes_little() -> None:
    for epsilon in (0.2, 1.0):
        plain = delta_upper([LabelGaussianEvent(20.0, 30)], epsilon)
        assert delta_upper([WeightedLabelEvent(20.0, 30, 1)], epsilon) == plain
        fine = delta_upper([WeightedLabelEvent(2000.0, 30, 10_000)], epsilon)
        assert fine == pytest.approx(plain, rel=0.02)
    order = renyi_divergence(WeightedLabelEvent(2000.0, 30, 10_000), 8.0)
    assert order == pytest.approx(renyi_divergence(LabelGaussianEvent(20.0, 30), 8.0), rel=1e-3)
    assert order < renyi_divergence(WeightedLabelEvent(2000.0, 30, 10_000).counts, 8.0)


def test_counts_of_weighted_votes_agree_with_the_continuous_gaussian() -> None:
    accounting = pytest.importorskip("dp_accounting")
    for sigma, weight, shifts in ((700.0, 33, 40), (2000.0, 100, 90)):
        event = VectorSumEvent(sigma, weight**2, 1, shifts)
        noise = sigma / weight / math.sqrt(shifts)
        other = accounting.get_epsilon_gaussian(noise, 1e-6)
        assert epsilon_upper([event], 1e-6) == pytest.approx(other, rel=1e-5)


def test_many_labels_go_in_blocks_and_other_events_beside_them_count_counts() -> None:
    long = WeightedLabelEvent(20_000.0, 3000, 10_000)
    assert price([long], epsilon=1.0).method == "weighted-label-game"
    assert delta_upper([long], 1.0) < 0.2 * delta_upper([long.counts], 1.0)
    label = WeightedLabelEvent(2000.0, 30, 10_000)
    beside: list[PureEvent | GaussianEvent] = [PureEvent(0.1, 1), GaussianEvent(30.0, 2)]
    for one in beside:
        assert delta_upper([label, one], 1.0) <= delta_upper([label.counts, one], 1.0)
        assert delta_upper([label, one], 1.0) > delta_upper([label], 1.0)
    other = replace(label, sigma=2500.0)
    assert delta_upper([label, other], 1.0) <= delta_upper([label.counts, other.counts], 1.0)
    # a vote heavier than the noise has no game
    loud = WeightedLabelEvent(50.0, 1, 10_000)
    assert delta_upper([loud], 5.0) == delta_upper([loud.counts], 5.0)


def test_what_is_calibrated_was_priced() -> None:
    sigma = calibrate_weighted_labels(BUDGET, 40, 100)
    event = WeightedLabelEvent(sigma, 40, 10_000)
    assert delta_upper([event], 1.0) <= 1e-6
    assert sigma == pytest.approx(100 * calibrate_label_gaussian(BUDGET, 40), rel=1e-3)
    assert largest_weight(BUDGET, event) == 100
    for epsilon in (0.05, 0.5):
        found = largest_weight(PrivacyBudget(epsilon, 1e-6), event)
        own = [replace(event, squared_sensitivity=w**2) for w in (found, found + 1)]
        assert delta_upper([own[0]], epsilon) <= 1e-6 < delta_upper([own[1]], epsilon)
    assert largest_weight(PrivacyBudget(1e-4, 1e-9), event) == 0
    with pytest.raises(ParameterError, match="delta is 0"):
        largest_weight(PrivacyBudget(1.0, 0.0), event)
    with pytest.raises(ParameterError, match="weight"):
        calibrate_weighted_labels(BUDGET, 40, 0)


def test_a_group_that_costs_more_than_it_is_promised_is_found() -> None:
    strict = BudgetGroup("strict", 25**2, 0.3, 1e-6)
    event = GroupedLabelEvent(2200.0, 40, 10_000, (strict, BudgetGroup("open", 10_000, 1.0, 1e-6)))
    assert dearer_group([event]) is None
    assert event.of_group("strict") == WeightedLabelEvent(2200.0, 40, 625)
    assert event.of_group("nobody") == WeightedLabelEvent(2200.0, 40, 10_000)
    heavy = replace(event, groups=(replace(strict, squared_sensitivity=50**2),))
    found = dearer_group([heavy])
    assert found is not None
    assert found.name == "strict"


@pytest.mark.parametrize(
    "changed",
    [
        {"squared_sensitivity": 101},
        {"squared_sensitivity": 0},
        {"squared_sensitivity": 10**20},
        {"squared_sensitivity": 100.0},
        {"queries": 0},
        {"groups": []},
        {"groups": [{"name": "a", "squared_sensitivity": 3, "epsilon": 1.0, "delta": 1e-6}]},
        {"groups": [{"name": "a", "squared_sensitivity": 121, "epsilon": 1.0, "delta": 1e-6}]},
        {"n_teachers": 9},
    ],
)
def test_no_other_numbers_are_such_an_event(changed: dict[str, object]) -> None:
    group = BudgetGroup("a", 25, 0.5, 1e-6)
    event = GroupedLabelEvent(800.0, 9, 100, (group,))
    assert event_from_json(event.to_json()) == event
    with pytest.raises(ParameterError):
        event_from_json(event.to_json() | changed)


def test_counts_in_groups_are_vector_sums() -> None:
    group = BudgetGroup("a", 2 * 25, 0.5, 1e-6)
    event = GroupedVectorSumEvent(800.0, 200, 3, 9, (group,))
    assert event.of_group("a") == VectorSumEvent(800.0, 50, 3, 9)
