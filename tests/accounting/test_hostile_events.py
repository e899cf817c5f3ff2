"""Events from a stranger: each gets a price or a sentence, in bounded time, and adding events never
helps."""

import itertools
import math
import random
import time

import numpy as np
import pytest
from mpmath import mp, mpf

from made_events import (
    abstention_event,
    class_event,
    confident_event,
    counts_event,
    label_event,
    pure_event,
    ranged_event,
    sampled_event,
    sparse_event,
    stable_event,
    sums_event,
    table_event,
)
from secretballot.accounting import BinaryLabels, delta_upper, epsilon_upper
from secretballot.core.events import Event, Stream
from secretballot.core.losses import ORDERS, delta_of, largest_moments
from secretballot.core.price import round_up
from secretballot.core.streams import WHOLE, false_answer, laplace_above, neighbours_keep

SECONDS = 20.0  # of this process's own time; some 3 are measured at most

SCALES = (1e-6, 1e-3, 0.0021, 0.1, 0.25, 0.3, 1.0, 3.9, 4.0, 30.0, 1e3, 1e4, 2e5, 1e6, 3.1e9, 1e12)
COUNTS = (1, 2, 3, 10, 500, 5000, 20_000, 10**6, 10**9, 10**12)
TEACHERS = (None, 1, 2, 250, 10**12)
LOSSES = (5e-324, 1e-300, 1e-9, 0.1, 1.0, 50.0, 1e4, 1e12)
EPSILONS = (1e-9, 0.01, 0.1, 1.0, 3.0, 20.0, 26.0, 1e3, 1e4)


def _stream(rng: random.Random) -> Stream:
    if rng.random() < 0.4:
        return abstention_event(
            rng.choice([*ORDERS[30:290:20].tolist(), 1 + 2.0**-10, 2.0**13]),
            rng.choice([2.0**-44, 1e-6, 0.01, 1.0, 64.0]),
            rng.choice([2.0**-56, 1e-12, 1e-6, 0.01, 0.5]),
            rng.choice(COUNTS),
        )
    threshold = rng.choice([0, 1, 1000, 10**6, 10**15, rng.randint(0, 5000)])
    return sparse_event(rng.choice(SCALES), rng.choice(SCALES), threshold, rng.choice(COUNTS))


def _table(rng: random.Random) -> BinaryLabels:
    """A table of any length, of chances that fall slowly, fast, at once or hardly at all."""
    length, half = rng.choice([1, 2, 3, 30, 300, 10_000]), 2**52
    falls = [rng.choice([0.0, 1e-17, 1e-12, 1e-3, 0.1, 2.0]) for _ in range(length)]
    logs = itertools.accumulate(rng.choice([fall, 0.0, falls[0]]) for fall in falls)
    weights = [max(1, int(half * math.exp(-min(log, 50.0)))) for log in logs]
    weights = [min(half - 1, weight) for weight in weights]
    if rng.random() < 0.5:
        return table_event((half, *weights[1:], 1)[: max(2, length)], rng.choice(COUNTS), 2 * 10**4)
    return table_event(tuple(weights), rng.choice(COUNTS), 2 * 10**4 + 1)


def _event(rng: random.Random) -> Event:
    match rng.randrange(12):
        case 10:
            return ranged_event(rng.choice(LOSSES), rng.choice(COUNTS))
        case 11:
            asked, teachers = rng.choice(COUNTS), rng.choice(TEACHERS)
            counted = asked, rng.randint(1, asked), rng.choice([2, 3])
            threshold = None if teachers is None else rng.randint(1, teachers)
            noise = rng.choice(SCALES), rng.choice(SCALES)
            return confident_event(*noise, *counted, threshold, teachers)
        case 9:
            return class_event(rng.choice(SCALES), min(rng.choice(COUNTS), 10**11))
        case 0:
            return counts_event(rng.choice(SCALES), rng.choice(COUNTS))
        case 1:
            return label_event(rng.choice(SCALES), rng.choice(COUNTS), rng.choice(TEACHERS))
        case 2:
            return pure_event(rng.choice(LOSSES), rng.choice(COUNTS))
        case 3:
            return stable_event(
                rng.choice(SCALES), rng.choice([0, 1, 1000, 10**15]), rng.choice(COUNTS)
            )
        case 4:
            return _stream(rng)
        case 6:
            return _table(rng)
        case 5:
            squared = rng.choice([1, 2, 100, 2**40, 2**53 - 1])
            drawn = rng.choice(SCALES), squared, rng.choice(COUNTS), rng.choice(COUNTS)
            return sums_event(*drawn)
    out_of = rng.choice(COUNTS)
    relation = rng.choice(["replace-one", "add-remove"])
    loss = rng.choice([2.0**-20, 0.1, 1.0, 100.0])
    return sampled_event(_stream(rng), rng.randint(1, out_of), out_of, relation, loss)


def _events(rng: random.Random) -> list[Event]:
    """One event, as often as may be: what a stranger's certificate may hold."""
    return [_event(rng)] * rng.choice([1, 1, 2, 30, 1000])


def _timed_price(events: list[Event], epsilon: float) -> float:
    start = time.process_time()
    found = delta_upper(events, epsilon)
    assert time.process_time() - start < SECONDS
    assert 0 <= found <= 1
    return found


@pytest.mark.parametrize(
    "seed",
    [
        *(*range(4), *range(5, 12)),
        *(pytest.param(s, marks=pytest.mark.slow) for s in (4, *range(12, 60), *range(1000, 1700))),
    ],
)
def test_hostile_events_are_priced_in_bounded_time_and_more_of_them_cost_more(seed: int) -> None:
    rng = random.Random(seed)
    events, epsilon = _events(rng), rng.choice(EPSILONS)
    once = _timed_price(events, epsilon)
    more = [*events, *_events(rng)]
    rng.shuffle(more)
    # grids follow the events, so the last digits may move
    assert _timed_price(more, epsilon) >= once * (1 - 1e-9)


@pytest.mark.parametrize(
    "events",
    [
        [label_event(1e12, 2, 10**12)],  # once an array over all vote counts
        [sampled_event(sparse_event(20.0, 30.0, 1000, 500), 30, 400, "replace-one")],
        pytest.param([class_event(2000.0, 100)], marks=pytest.mark.slow, id="ClassLabels-2000"),
        pytest.param([class_event(300.0, 100)], marks=pytest.mark.slow, id="ClassLabels-300"),
        [class_event(30.0, 60)],
        [label_event(1e4, 100, 250)],  # once a second
        [sparse_event(20.0 + 0.01 * i, 30.0, 1000, 500) for i in range(20)],
        [counts_event(1e5, 500), pure_event(1e-4, 190_000)],
        [counts_event(1e5, 500), *[pure_event(1e-3 * 2**i, 1) for i in range(17)]],
        [label_event(200.0, 10**12, None), pure_event(0.01, 1000)],
        [abstention_event(10.0 + 0.01 * i, 0.1, 1e-9, 10) for i in range(60)],
        [abstention_event(2.0**13, 64.0, 0.5, 10**12)],
        [sums_event(4.0, 2**53 - 1, 1, 1)],
    ],
    ids=lambda events: f"{type(events[0]).__name__}-{len(events)}",
)
def test_events_that_once_took_minutes_take_seconds(events: list[Event]) -> None:
    once = _timed_price(events, 1.0)
    assert once > 0
    assert _timed_price([*events, counts_event(1e6, 1)], 1.0) >= once * (1 - 1e-9)


@pytest.mark.parametrize("sigma", [4.0, 1e3, 3.1e9, 1e12])
@pytest.mark.parametrize("epsilon", [1e-12, 1.0, 25.0, 1e4])
def test_noise_of_any_scale_has_a_price_at_every_epsilon(sigma: float, epsilon: float) -> None:
    for shifts in (1, 10**6, 10**12):
        assert 0 < delta_upper([counts_event(sigma, shifts)], epsilon) <= 1
    assert 0 < delta_upper([label_event(sigma, 1)], epsilon) <= 1


def _exact_tail(n: int, one: float, other: float) -> mpf:
    """P(X + Y >= n) for discrete Laplace X, Y, summed term by term."""
    a, b = mp.exp(-1 / mpf(one)), mp.exp(-1 / mpf(other))

    def mass(r: mpf, k: int) -> mpf:
        return (1 - r) / (1 + r) * r ** abs(k)

    def above(r: mpf, k: int) -> mpf:
        return r**k / (1 + r) if k >= 1 else 1 - r ** (1 - k) / (1 + r)

    return sum((mass(a, k) * above(b, n - k) for k in range(-60, 61 + n)), mpf(0))


@pytest.mark.parametrize(
    ("scales", "threshold"),
    [
        *(((0.0021, 0.0021), 0), ((0.0021, 0.001), 0), ((0.001, 0.0012), 0), ((0.01, 0.02), 2)),
        ((0.3, 0.2), 5),
    ],
)
def test_failures_under_little_noise_stay_above_the_truth(
    scales: tuple[float, float], threshold: int
) -> None:
    with mp.workdps(400):
        truth = _exact_tail(threshold + 1, *scales)
        event = sparse_event(*scales, threshold, 1)
        found = false_answer(event)
        assert found > 0
        assert round_up(event.failure()) >= truth
        assert found >= truth * (1 - mpf(10) ** -9)
        if truth > 1e-300:
            assert found <= truth * (1 + mpf(10) ** -9)


def test_what_is_no_number_bounds_nothing() -> None:
    nan, orders = np.array([math.nan, 1.0]), np.array([2.0, 3.0])
    assert not delta_of(nan, orders, np.array([1.0]))[0] <= 1
    assert not largest_moments(np.full((2, 1), 0.5), nan[:1, None], orders)[0] < math.inf
    assert round_up(math.nan) == round_up(laplace_above(3, math.nan)) == math.inf


def test_no_tail_is_ever_nothing() -> None:
    assert laplace_above(10, 1e-3) > 0
    assert math.isclose(delta_upper([pure_event(1e12, 1)], 1.0), 1.0)
    assert false_answer(sparse_event(1e-6, 1e-6, 10**15, 1)) > 0
    assert 0 < epsilon_upper([pure_event(1e-320, 3)], 1e-300) < 1e-290  # once without an end


def test_weights_whose_power_is_far_above_the_whole_do_not_keep_an_inequality() -> None:
    assert not neighbours_keep(2.0**13, 64.0, WHOLE - 1, 1)
