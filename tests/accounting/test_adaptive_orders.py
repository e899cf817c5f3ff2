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
from secretballot.accounting import Event, delta_upper
from secretballot.core.streams import WHOLE, neighbours_keep

DEPTH = 3  # questions
LEFT_OUT = 1e-12  # of noise that is not listed
#: An outcome: the state after it, and its chances on both sides.
Outcome = tuple[Any, float, float]


def noise(power: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Integers, and their chances: of Laplace noise by the first power, of Gaussian by the
    second."""
    x = np.arange(-math.ceil(30 * scale) - 3, math.ceil(30 * scale) + 4)
    weight = np.exp(-(np.abs(x) ** power) / (power * scale**power))
    return x, weight / weight.sum()


def at_least(law: tuple[np.ndarray, np.ndarray], t: int) -> float:
    return float(law[1][law[0] >= t].sum())


@dataclass
class Votes:
    """Votes of so many teachers on two classes."""

    k: int

    def pairs(self) -> Iterator[tuple[int, int]]:
        for v in range(self.k):
            yield v, v + 1
            yield v + 1, v

    def label(self, v: int) -> int:
        return int(2 * v >= self.k)

    def distance(self, v: int) -> int:
        return max(0, math.ceil(abs(2 * v - self.k) / 2) - 1)

    def moves(self) -> set[tuple[int, int, bool]]:
        """Distances on both sides, and whether the label differs."""
        return {
            (self.distance(a), self.distance(b), self.label(a) != self.label(b))
            for a, b in self.pairs()
        }


class Steps:
    """So many steps, each with one of some pairs of distributions."""

    def __init__(self, event: Event, count: int, laws: list[tuple[Any, Any]]) -> None:
        self.event, self.start = event, count
        self.laws = {(tuple(map(float, p)), tuple(map(float, q))) for p, q in laws}

    def questions(self, left: int) -> Iterator[list[Outcome]]:
        if left:
            for p, q in self.laws:
                yield [(left - 1, *both) for both in zip(p, q, strict=True)]


class Stream:
    """Exact labels, some withheld; the state is what is left, and what is known of a threshold."""

    def __init__(self, event: Event, votes: Votes, count: int, answers: Any, hidden: Any) -> None:
        self.event, self.moves, self.answers = event, sorted(votes.moves()), answers
        self.hidden, self.start = hidden, (count, hidden, hidden)

    def questions(self, state: Any) -> Iterator[list[Outcome]]:
        left, p, q = state
        if not left:
            return
        for here, there, differs in self.moves:
            one, other = p * self.answers(here), q * self.answers(there)
            told, told_there = float(one.sum()), float(other.sum())
            after = left, one / max(told, 1e-300), other / max(told_there, 1e-300)
            fresh = left - 1, self.hidden, self.hidden
            silent = [(fresh, 1 - told, 1 - told_there)]
            if differs:  # a label that one side alone could have given
                yield [*silent, (after, told, 0.0), (after, 0.0, told_there)]
            else:
                yield [*silent, (after, told, told_there)]


def labels(rng: random.Random, votes: Votes, count: int) -> Steps:
    sigma = rng.choice([0.3, 0.6, 1.0, 2.0, 5.0])
    law, half = noise(2, sigma), -(-votes.k // 2)
    chances = {v: at_least(law, half - v) for v in range(votes.k + 1)}
    laws = [[(1 - chances[v], chances[v]) for v in pair] for pair in votes.pairs()]
    return Steps(label_event(sigma, count, rng.choice([None, votes.k])), count, laws)


def drawn_labels(rng: random.Random, votes: Votes, count: int) -> Steps:
    weights = [2**52 if votes.k % 2 == 0 else int(2**52 * rng.uniform(0.3, 0.99))]
    for _ in range(votes.k // 2):
        weights.append(max(1, int(weights[-1] * rng.uniform(0.05, 0.95))))
    minority = {v: weights[abs(2 * v - votes.k) // 2] / 2**53 for v in range(votes.k + 1)}
    one = {v: 1 - u if votes.label(v) else u for v, u in minority.items()}
    laws = [[(1 - one[v], one[v]) for v in pair] for pair in votes.pairs()]
    return Steps(table_event(tuple(weights), count, votes.k), count, laws)


def counts(rng: random.Random, votes: Votes, count: int) -> Steps:
    sigma = rng.choice([0.4, 0.6, 0.8])
    chance = noise(2, sigma)[1]
    here, there = np.append(chance, 0.0), np.append(0.0, chance)
    kept = here + there > 1e-14
    return Steps(counts_event(sigma, count), count, [(here[kept], there[kept])])


def parts(rng: random.Random, votes: Votes, count: int) -> Steps:
    loss = rng.choice([0.1, 0.5, 1.0, 2.0])
    p = 1 / (1 + math.exp(-loss))
    return Steps(pure_event(loss, count), count, [((p, 1 - p), (1 - p, p))])


def ranges(rng: random.Random, votes: Votes, count: int) -> Steps:
    length, laws = rng.choice([0.2, 0.5, 1.0, 2.0]), []
    for share in np.linspace(0.05, 0.95, 7):
        low, high = math.exp(-share * length), math.exp((1 - share) * length)
        q = (1 - low) / (high - low)
        laws += [((q * high, (1 - q) * low), (q, 1 - q)), ((q, 1 - q), (q * high, (1 - q) * low))]
    return Steps(ranged_event(length, count), count, laws)


def stability_tests(rng: random.Random, votes: Votes, count: int) -> Steps:
    scale, threshold = rng.choice([0.5, 1.0, 2.0]), rng.choice([0, 1, 2, 4])
    law = noise(1, scale)

    def told(v: int) -> list[float]:
        chance = at_least(law, threshold + 1 - votes.distance(v))
        return [1 - chance, *(chance * (votes.label(v) == label) for label in (0, 1))]

    event = stable_event(scale, threshold, count)
    return Steps(event, count, [(told(a), told(b)) for a, b in votes.pairs()])


def sparse(rng: random.Random, votes: Votes, count: int) -> Stream:
    scales = rng.choice([0.5, 1.0, 2.0]), rng.choice([0.5, 1.0, 2.0, 3.0])
    threshold = rng.choice([0, 1, 2, 3])
    (shifts, hidden), own = noise(1, scales[0]), noise(1, scales[1])

    def answers(distance: int) -> np.ndarray:
        return np.array([at_least(own, threshold + y + 1 - distance) for y in shifts.tolist()])

    known = {distance: answers(distance) for distance in range(votes.k)}
    event = sparse_event(*scales, threshold, count)
    return Stream(event, votes, count, known.__getitem__, hidden)


def withheld(rng: random.Random, votes: Votes, count: int) -> Stream:
    order, charge = rng.choice([1.5, 3.0, 8.0]), rng.choice([0.1, 0.5, 1.0, 2.0])
    tie = rng.choice([0.01, 0.1, 0.3])
    weights = [int(WHOLE * tie)]
    for _ in range(votes.k):  # as fast as the inequalities allow
        low, high = weights[-1], WHOLE - 1
        while high - low > WHOLE >> 40:
            middle = (low + high) // 2
            held = neighbours_keep(order, charge, weights[-1], middle)
            low, high = (middle, high) if held else (low, middle)
        weights.append(low)
    event = abstention_event(order, charge, tie, count)
    return Stream(event, votes, count, lambda d: np.array([weights[d] / WHOLE]), np.ones(1))


KINDS = [labels, drawn_labels, counts, parts, ranges, stability_tests, sparse, withheld]


def truth(asked: list[Any], states: tuple[Any, ...], depth: int, p: float, q: float) -> float:
    """Return the most that any strategy reaches with so many more questions: the mean of
    max(0, p - q), where the epsilon is in q."""
    best = max(0.0, p - q)
    if not depth or not q or not p:
        return best
    for i, one in enumerate(asked):
        for outcomes in one.questions(states[i]):
            found = sum(
                truth(asked, (*states[:i], after, *states[i + 1 :]), depth - 1, p * a, q * b)
                for after, a, b in outcomes
                if a > 0
            )
            best = max(best, found)
    return best


@functools.cache
def some(seed: int) -> tuple[list[Any], list[float], list[float]]:
    """Return some kinds of events, some epsilons, and the truth at each."""
    rng = random.Random(seed)
    votes, kinds = Votes(rng.randint(1, 4)), rng.sample(KINDS, 2)
    asked = [kind(rng, votes, rng.randint(1, 2)) for kind in kinds]
    epsilons = [0.0, rng.choice([0.05, 0.3, 1.0]), rng.uniform(1.0, 4.0)]
    start = tuple(one.start for one in asked)
    return asked, epsilons, [truth(asked, start, DEPTH, 1.0, math.exp(e)) for e in epsilons]


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
