"""Events as data, and filters on sequences of grants."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_events import (
    abstention_event,
    admits,
    class_event,
    confident_event,
    counts_event,
    label_event,
    pure_event,
    ranged_event,
    sampled_event,
    sparse_event,
    stable_event,
    table_event,
    totals_of,
)
from secretballot.accounting import (
    BasicFilter,
    Counts,
    PrivacyBudget,
    RenyiFilter,
    Totals,
    delta_upper,
    epsilon_upper,
    event_in,
)
from secretballot.accounting.abstention_table import table_weights
from secretballot.core.events import Event
from secretballot.core.losses import delta_of

EVENTS: list[Event] = [
    counts_event(20.0, 100),
    label_event(20.0, 40, 250),
    label_event(20.0, 40),
    class_event(10.0, 5),
    table_event(table_weights(250, 20.0, 0.004), 100, 250),
    table_event((2**51, 2**50), 3, 9),
    pure_event(0.1, 10),
    ranged_event(0.1, 40),
    stable_event(10.0, 150, 3),
    sparse_event(3.0, 3.0, 46, 1),
    sparse_event(36.2, 72.4, 1304, 50),
    abstention_event(18.2, 0.1434, 8e-10, 50),
]


@pytest.mark.parametrize(
    "event",
    [
        *EVENTS,
        confident_event(100.0, 20.0, 300, 50, 10),
        sampled_event(sparse_event(3.0, 5.0, 20, 2), 30, 400, "replace-one", 0.5),
    ],
    ids=repr,
)
def test_events_survive_json(event: Event) -> None:
    assert event_in(json.loads(json.dumps(event.model_dump(mode="json")))) == event


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_is_never_free_and_twice_costs_more(event: Event) -> None:
    once, twice = epsilon_upper([event], 1e-5), epsilon_upper([event, event], 1e-5)
    assert 0 < once < twice
    assert delta_upper([event], once) <= 1e-5
    assert epsilon_upper([event], 1 - 1e-9) == 0


def test_events_merge_as_their_counts_say() -> None:
    # a repetition dropped is the worst kind of defect: ten uses must not cost as much as one
    assert delta_upper([counts_event(20.0, 10)] * 10, 2.0) == pytest.approx(
        delta_upper([counts_event(20.0, 100)], 2.0), rel=1e-9
    )
    assert delta_upper([pure_event(0.1, 1)] * 10, 0.5) == pytest.approx(
        delta_upper([pure_event(0.1, 10)], 0.5), rel=1e-9
    )
    assert delta_upper([label_event(30.0, 10, 250)] * 4, 1.0) == pytest.approx(
        delta_upper([label_event(30.0, 40, 250)], 1.0), rel=1e-9
    )


def _grant(epsilon: float, delta: float) -> tuple[tuple[Event], PrivacyBudget]:
    return (EVENTS[0],), PrivacyBudget(epsilon, delta)


def test_basic_filter_reads_decimals() -> None:
    rule = BasicFilter(PrivacyBudget(1.0, 1e-5))
    spent = [_grant(0.1, 1e-6)] * 9
    assert admits(rule, spent, _grant(0.1, 1e-6))
    assert not admits(rule, spent, _grant(0.1000000001, 1e-6))
    assert not admits(rule, spent, _grant(0.1, 2e-6))
    totals = totals_of(rule, spent)
    assert rule.spent(totals) == (0.9, 9e-6)
    assert totals.minus(totals_of(rule, spent[:8])) == totals_of(rule, spent[:1])
    left = rule.left(totals)
    assert left == (0.1, 1e-6)
    assert admits(rule, spent, _grant(*left))
    assert rule.left(totals_of(rule, spent * 2)) == (0.0, 0.0)
    # the float nearest to what is left is read as more
    spent = [_grant(0.30000000000000004, 1e-6)]
    left = rule.left(totals_of(rule, spent))
    assert 0.6999 < left[0] < 0.7
    assert admits(rule, spent, _grant(*left))


@given(st.lists(st.floats(1e-3, 0.4), min_size=1, max_size=12))
def test_basic_filter_never_passes_the_budget(prices: list[float]) -> None:
    rule = BasicFilter(PrivacyBudget(1.0, 1e-5))
    spent = []
    for epsilon in prices:
        if admits(rule, spent, _grant(epsilon, 1e-7)):
            spent.append(_grant(epsilon, 1e-7))
    assert rule.spent(totals_of(rule, spent))[0] <= 1.0


def test_renyi_filter_keeps_the_promise_and_admits_more_small_releases() -> None:
    rule = RenyiFilter(PrivacyBudget(1.0, 1e-6))
    event = label_event(200.0, 20, 250)
    small = ((event,), PrivacyBudget(epsilon_upper([event], 1e-7), 1e-7))
    spent = []
    while admits(rule, spent, small):
        spent.append(small)
    assert delta_upper([event] * len(spent), 1.0) <= 1e-6
    assert len(spent) > 3 * int(1.0 / small[1].epsilon)
    assert rule.spent(totals_of(rule, spent))[0] <= 1.0
    assert not admits(rule, [], ((counts_event(1.0, 100),), PrivacyBudget(1.0, 1e-6)))


def test_renyi_filter_counts_failures_apart() -> None:
    rule = RenyiFilter(PrivacyBudget(1.0, 1e-6))
    # fails with probability 1e-6, more than the share kept for failures
    leaky = ((stable_event(1000.0, 13_000, 1),), PrivacyBudget(0.5, 1e-6))
    assert not admits(rule, [], leaky)
    assert rule.spent(Totals()) == (0.0, 0.0)
    assert 1e-6 < rule.spent(totals_of(rule, [leaky]))[1] < 1e-5
    certain = ((stable_event(1000.0, 0, 10**6),), PrivacyBudget(0.5, 1e-6))
    assert not admits(rule, [], certain)


def test_a_renyi_filter_keeps_nine_tenths_of_delta_for_the_conversion_at_its_order() -> None:
    rule = RenyiFilter(PrivacyBudget(1.0, 1e-6), 20.0)
    limit, order, epsilon = (np.array([one]) for one in (rule.divergence_limit, 20.0, 1.0))
    assert delta_of(limit, order, epsilon)[0] == pytest.approx(0.9e-6)
    releases = [((stable_event(20.0, 400, 1),), PrivacyBudget(0.1, 1e-8))] * 3
    totals = totals_of(rule, releases)
    share, failure = float(totals.loss) / rule.divergence_limit, float(totals.failure)
    assert rule.spent(totals) == pytest.approx((share, 0.9e-6 + failure))
    assert rule.left(totals) == pytest.approx((1 - share, 1e-7 - failure))
    assert rule.left(totals_of(rule, releases * 50)) == (0.0, 0.0)


def test_a_filter_admits_nothing_without_a_bound() -> None:
    rule = RenyiFilter(PrivacyBudget(1.0, 1e-6))
    unbounded = Counts.model_construct(sigma=math.nan, shifts=1)
    for event in (unbounded, abstention_event(1.001, 1e-9, 1e-12, 1)):
        assert not rule.admits(Totals(), (event,), PrivacyBudget(0.1, 1e-9))
    large = RenyiFilter(PrivacyBudget(1e12, 1e-6))
    assert not large.admits(Totals(), (unbounded,), PrivacyBudget(0.1, 1e-9))


@pytest.mark.parametrize("part", ["loss", "failure"])
def test_a_renyi_filter_rounds_sums_up_before_it_compares(part):
    price = PrivacyBudget(1.0, 1e-6)
    rule, event = RenyiFilter(price), (stable_event(40.0, 900, 1),)
    cost = rule.costs(event, price)
    assert cost.failure > Fraction(event[0].failure())
    limit = rule.divergence_limit if part == "loss" else rule.failure_limit
    for share, fits in ((1.0, False), (1 - 3e-10, True)):
        spent = Totals(1, **{part: Fraction(limit * share) - getattr(cost, part)})
        assert rule.admits(spent, event, price) is fits
