"""Several kinds of events on the votes of a few teachers, asked in every order that may depend on
what was told: the truth is enumerated over all strategies, hidden thresholds included."""

import functools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import Asked, Steps, Stream, delta_of_all_orders, stream_moves
from made_events import (
    abstention_event,
    counts_event,
    label_event,
    pure_event,
    ranged_event,
    sparse_event,
    stable_event,
    table_event,
)
from secretballot.accounting import delta_upper
from secretballot.core.events import Event
from secretballot.core.streams import WHOLE, neighbours_keep

DEPTH = 3  # questions
LEFT_OUT = 1e-12  # of noise that is not listed


def pairs(k: int) -> Iterator[tuple[int, int]]:
    """Yield how many of k teachers vote 1, on both sides."""
    for v in range(k):
        yield v, v + 1
        yield v + 1, v


@dataclass
class Kind:
    """An event, and what may be asked under it."""

    event: Event
    asked: Asked


def labels(rng: random.Random, k: int, count: int) -> Kind:
    sigma = rng.choice([0.3, 0.6, 1.0, 2.0, 5.0])
    law, half = discrete_gaussian_distribution(sigma), -(-k // 2)
    chances = {v: float(law.at_least(half - v)) for v in range(k + 1)}
    laws = [[(1 - chances[v], chances[v]) for v in pair] for pair in pairs(k)]
    return Kind(label_event(sigma, count, rng.choice([None, k])), Steps(count, laws))


def drawn_labels(rng: random.Random, k: int, count: int) -> Kind:
    weights = [2**52 if k % 2 == 0 else int(2**52 * rng.uniform(0.3, 0.99))]
    for _ in range(k // 2):
        weights.append(max(1, int(weights[-1] * rng.uniform(0.05, 0.95))))
    minority = {v: weights[abs(2 * v - k) // 2] / 2**53 for v in range(k + 1)}
    one = {v: 1 - u if 2 * v >= k else u for v, u in minority.items()}
    laws = [[(1 - one[v], one[v]) for v in pair] for pair in pairs(k)]
    return Kind(table_event(tuple(weights), count, k), Steps(count, laws))


def counts(rng: random.Random, k: int, count: int) -> Kind:
    sigma = rng.choice([0.4, 0.6, 0.8])
    chance = discrete_gaussian_distribution(sigma).pmf
    here, there = np.append(chance, 0.0), np.append(0.0, chance)
    kept = here + there > 1e-14
    return Kind(counts_event(sigma, count), Steps(count, [(here[kept], there[kept])]))


def parts(rng: random.Random, k: int, count: int) -> Kind:
    loss = rng.choice([0.1, 0.5, 1.0, 2.0])
    p = 1 / (1 + math.exp(-loss))
    return Kind(pure_event(loss, count), Steps(count, [((p, 1 - p), (1 - p, p))]))


def ranges(rng: random.Random, k: int, count: int) -> Kind:
    length, laws = rng.choice([0.2, 0.5, 1.0, 2.0]), []
    for share in np.linspace(0.05, 0.95, 7):
        low, high = math.exp(-share * length), math.exp((1 - share) * length)
        q = (1 - low) / (high - low)
        laws += [((q * high, (1 - q) * low), (q, 1 - q)), ((q, 1 - q), (q * high, (1 - q) * low))]
    return Kind(ranged_event(length, count), Steps(count, laws))


def stability_tests(rng: random.Random, k: int, count: int) -> Kind:
    scale, threshold = rng.choice([0.5, 1.0, 2.0]), rng.choice([0, 1, 2, 4])
    law = discrete_laplace_distribution(scale)

    def told(v: int) -> list[float]:
        distance = max(0, math.ceil(abs(2 * v - k) / 2) - 1)
        chance = float(law.at_least(threshold + 1 - distance))
        return [1 - chance, *(chance * ((2 * v >= k) == label) for label in (0, 1))]

    event = stable_event(scale, threshold, count)
    return Kind(event, Steps(count, [(told(a), told(b)) for a, b in pairs(k)]))


def sparse(rng: random.Random, k: int, count: int) -> Kind:
    scales = rng.choice([0.5, 1.0, 2.0]), rng.choice([0.5, 1.0, 2.0, 3.0])
    threshold = rng.choice([0, 1, 2, 3])
    hidden, own = map(discrete_laplace_distribution, scales)
    needed = threshold + hidden.support + 1
    known = {distance: own.at_least(needed - distance) for distance in range(k)}
    stream = Stream(count, stream_moves(k), known.__getitem__, hidden.pmf)
    return Kind(sparse_event(*scales, threshold, count), stream)


def withheld(rng: random.Random, k: int, count: int) -> Kind:
    order, charge = rng.choice([1.5, 3.0, 8.0]), rng.choice([0.1, 0.5, 1.0, 2.0])
    tie = rng.choice([0.01, 0.1, 0.3])
    weights = [int(WHOLE * tie)]
    for _ in range(k):  # as fast as the inequalities allow
        low, high = weights[-1], WHOLE - 1
        while high - low > WHOLE >> 40:
            middle = (low + high) // 2
            held = neighbours_keep(order, charge, weights[-1], middle)
            low, high = (middle, high) if held else (low, middle)
        weights.append(low)
    event = abstention_event(order, charge, tie, count)
    told = {d: np.array([weight / WHOLE]) for d, weight in enumerate(weights)}
    return Kind(event, Stream(count, stream_moves(k), told.__getitem__, np.ones(1)))


KINDS = [labels, drawn_labels, counts, parts, ranges, stability_tests, sparse, withheld]


@functools.cache
def some(seed: int) -> tuple[list[Any], list[float], list[float]]:
    """Return some kinds of events, some epsilons, and the truth at each."""
    rng = random.Random(seed)
    k, kinds = rng.randint(1, 4), rng.sample(KINDS, 2)
    asked = [kind(rng, k, rng.randint(1, 2)) for kind in kinds]
    epsilons = [0.0, rng.choice([0.05, 0.3, 1.0]), rng.uniform(1.0, 4.0)]
    games = [one.asked for one in asked]
    return asked, epsilons, [delta_of_all_orders(games, DEPTH, e) for e in epsilons]


SEEDS = range(48)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_of_questions_tells_more_than_the_price(seed: int) -> None:
    asked, epsilons, truths = some(seed)
    events = [one.event for one in asked]
    for epsilon, true in zip(epsilons, truths, strict=True):
        assert true <= delta_upper(events, epsilon) + LEFT_OUT
        # nor by what divergences bound alone
        order = np.array([2.5])
        divergence = sum(float(one.renyi(order)[0]) for one in events)
        failed = sum(one.failure() for one in events)
        by_order = math.exp(1.5 * (divergence - epsilon)) * 0.6**2.5 / 1.5 + failed
        assert true <= by_order + LEFT_OUT


def test_orders_tell_enough_to_see_an_event_that_is_priced_as_silence() -> None:
    seen = set()
    for seed in SEEDS:
        asked, epsilons, truths = some(seed)
        for own, other in (asked, asked[::-1]):
            prices = [delta_upper([other.event], epsilon) for epsilon in epsilons]
            if any(true > price + LEFT_OUT for true, price in zip(truths, prices, strict=True)):
                seen.add(type(own.event).__name__)
    assert len(seen) == len(KINDS) - 1  # labels of both kinds are one event
