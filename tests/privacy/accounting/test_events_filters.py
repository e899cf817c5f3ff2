"""Events as data, and filters on sequences of grants."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import (
    BinaryLabels,
    BoundedRange,
    ClassLabels,
    Counts,
    Event,
    GaussianChances,
    Grant,
    PrivacyBudget,
    Pure,
    SparseStream,
    StableTests,
    TableChances,
    TableStream,
    delta_upper,
    epsilon_upper,
    event_in,
    filter_for,
    price,
    renyi_divergence,
)
from secretballot.privacy.accounting.table_weights import table_weights

EVENTS: list[Event] = [
    Counts(sigma=20.0, shifts=100),
    BinaryLabels(chances=GaussianChances(sigma=58.5, n_teachers=250), queries=299),
    BinaryLabels(chances=GaussianChances(sigma=58.5), queries=299),
    ClassLabels(sigma=64.4, queries=155),
    BinaryLabels(
        chances=TableChances(weights=table_weights(250, 20.0, 0.004), n_teachers=250), queries=100
    ),
    BinaryLabels(chances=TableChances(weights=(2**51, 2**50), n_teachers=9), queries=3),
    Pure(epsilon=0.1, count=10),
    BoundedRange(epsilon=0.1, count=40),
    StableTests(scale=10.0, threshold=150, count=3),
    SparseStream(threshold_scale=3.0, query_scale=3.0, threshold=46, abstentions=1, refresh=True),
    SparseStream(
        threshold_scale=36.2, query_scale=72.4, threshold=1304, abstentions=50, refresh=False
    ),
    TableStream(order=18.2, charge=0.1434, false_answer=8e-10, abstentions=50),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_survive_json(event: Event) -> None:
    assert event_in(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_is_never_free_and_twice_costs_more(event: Event) -> None:
    once, twice = epsilon_upper([event], 1e-5), epsilon_upper([event, event], 1e-5)
    assert 0 < once < twice
    assert delta_upper([event], once) <= 1e-5


def test_events_merge_as_their_counts_say() -> None:
    # a repetition dropped is the worst kind of defect: ten uses must not cost as much as one
    assert delta_upper([Counts(sigma=20.0, shifts=10)] * 10, 2.0) == pytest.approx(
        delta_upper([Counts(sigma=20.0, shifts=100)], 2.0), rel=1e-9
    )
    assert delta_upper([Pure(epsilon=0.1, count=1)] * 10, 0.5) == pytest.approx(
        delta_upper([Pure(epsilon=0.1, count=10)], 0.5), rel=1e-9
    )
    assert delta_upper(
        [BinaryLabels(chances=GaussianChances(sigma=30.0, n_teachers=250), queries=10)] * 4, 1.0
    ) == pytest.approx(
        delta_upper(
            [BinaryLabels(chances=GaussianChances(sigma=30.0, n_teachers=250), queries=40)], 1.0
        ),
        rel=1e-9,
    )


@pytest.mark.parametrize(
    "broken",
    [
        {"event": "gauss", "version": 1, "sigma": 1.0, "shifts": 1},
        {"event": "gaussian", "version": 2, "sigma": 1.0, "shifts": 1},
        {"event": "gaussian", "version": True, "sigma": 1.0, "shifts": 1},
        {"event": "gaussian", "version": 1, "sigma": 1.0},
        {"event": "gaussian", "version": 1, "sigma": 1.0, "shifts": 1, "extra": 0},
        {"event": "gaussian", "version": 1, "sigma": float("nan"), "shifts": 1},
        {"event": "gaussian", "version": 1, "sigma": "1", "shifts": 1},
        {"event": "gaussian", "version": 1, "sigma": 1.0, "shifts": 0},
        {"event": "gaussian", "version": 1, "sigma": 1.0, "shifts": 1.5},
        {
            "event": "sparse-vector",
            "version": 1,
            "threshold_scale": 1,
            "query_scale": 1,
            "threshold": 1,
        }
        | {"max_unstable": 1, "refresh": 1},
        [],
        None,
    ],
)
def test_broken_events_are_refused(broken: object) -> None:
    with pytest.raises(ParameterError):
        event_in(broken)  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [[], ["gaussian"], [None]])
def test_price_refuses_what_is_no_list_of_events(events: list[object]) -> None:
    with pytest.raises(ParameterError):
        delta_upper(events, 1.0)  # type: ignore[arg-type]


def test_price_needs_exactly_one_side() -> None:
    for arguments in (
        {},
        {"epsilon": 1.0, "delta": 1e-6},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"delta": math.nan},
    ):
        with pytest.raises(ParameterError):
            price(EVENTS[:1], **arguments)


def _grant(epsilon: float, delta: float, event: Event = EVENTS[0]) -> Grant:
    return Grant((event,), epsilon, delta)


def test_basic_filter_reads_decimals() -> None:
    rule = filter_for("basic", PrivacyBudget(1.0, 1e-5))
    spent = [_grant(0.1, 1e-6)] * 9
    assert rule.admits(spent, _grant(0.1, 1e-6))
    assert not rule.admits(spent, _grant(0.1000000001, 1e-6))
    assert not rule.admits(spent, _grant(0.1, 2e-6))
    assert rule.spent(spent) == (0.9, 9e-6)
    left = rule.remaining(spent)
    assert left == pytest.approx((0.1, 1e-6))
    assert rule.admits(spent, _grant(*left))


@given(st.lists(st.floats(1e-3, 0.4), min_size=1, max_size=12))
def test_basic_filter_never_passes_the_budget(prices: list[float]) -> None:
    rule = filter_for("basic", PrivacyBudget(1.0, 1e-5))
    spent: list[Grant] = []
    for epsilon in prices:
        if rule.admits(spent, _grant(epsilon, 1e-7)):
            spent.append(_grant(epsilon, 1e-7))
    assert rule.spent(spent)[0] <= 1.0


def test_renyi_filter_keeps_the_promise_and_admits_more_small_releases() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    rule = filter_for("renyi", budget)
    event = BinaryLabels(chances=GaussianChances(sigma=200.0, n_teachers=250), queries=20)
    small = Grant((event,), epsilon_upper([event], 1e-7), 1e-7)
    spent: list[Grant] = []
    while rule.admits(spent, small):
        spent.append(small)
    assert delta_upper([event] * len(spent), 1.0) <= 1e-6
    assert len(spent) > 3 * int(1.0 / small.epsilon)
    assert rule.spent(spent)[0] <= 1.0
    assert not rule.admits([], Grant((Counts(sigma=1.0, shifts=100),), 1.0, 1e-6))


def test_renyi_filter_counts_failures_apart() -> None:
    rule = filter_for("renyi", PrivacyBudget(1.0, 1e-6))
    # fails with probability 1e-6, more than the share kept for failures
    leaky = StableTests(scale=1000.0, threshold=13_000, count=1)
    assert not rule.admits([], Grant((leaky,), 0.5, 1e-6))


def test_renyi_filter_remembers_its_order() -> None:
    budget = PrivacyBudget(1.0, 1e-6)
    rule = filter_for("renyi", budget)
    assert rule.order is not None
    again = filter_for("renyi", budget, rule.order)
    assert again.order == rule.order
    assert renyi_divergence(EVENTS[0], rule.order) > 0


@pytest.mark.parametrize(("name", "delta"), [("best", 1e-6), ("renyi", 0.0)])
def test_unknown_or_impossible_filters_are_refused(name: str, delta: float) -> None:
    with pytest.raises(ParameterError):
        filter_for(name, PrivacyBudget(1.0, delta))
