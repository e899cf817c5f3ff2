"""Draws and events are those of the mechanisms and aggregators that they replace, on the same
noise. This file goes with them."""

import numpy as np
import pytest

from secretballot.core import events
from secretballot.core.mechanisms import (
    ExponentialChoice,
    NoisySums,
    StabilityQuantile,
    State,
    range_of,
)
from secretballot.core.types import Guarantee, ScoreShape, SumShape, VoteShape
from secretballot.privacy import mechanisms as old

RECORD = Guarantee(unit="record", relation="add-remove")
REPLACED = Guarantee(unit="record", relation="replace-one")
ROWS, K = 60, 9


class RecordedNoise:
    """Seeded numbers in the order in which they are asked for, and what was asked for."""

    exact, description = False, "for a test"

    def __init__(self, seed):
        self.rng, self.asked = np.random.default_rng(seed), []

    def drawn(self, low, high, size, *asked):
        self.asked.append((*asked, size))
        return self.rng.integers(low, high, size)

    def discrete_laplace(self, scale, size):
        return self.drawn(-4, 5, size, "laplace", scale)

    def discrete_gaussian(self, sigma, size):
        return self.drawn(-4, 5, size, "gaussian", sigma)

    def uniform_integers(self, bits, size):
        return self.drawn(0, 2**bits, size, bits)

    def exponential_index(self, scores, scale):
        return int(self.drawn(0, len(scores), 1, scores.tolist(), scale)[0])

    def exponential_range(self, starts, ends, scale):
        first, last = sorted(self.drawn(0, len(starts), 2, starts.tolist(), ends.tolist(), scale))
        return None if first == 0 else (int(first), int(last))


def shape(n_classes, **more):
    fields = {"guarantee": RECORD, "n_queries": ROWS, "n_teachers": K, "moved": ROWS}
    return VoteShape(**{**fields, "n_classes": n_classes, **more})


VOTES = {
    "stability": (
        StabilityQuantile(epsilon=0.3, fraction=0.2),
        shape(3),
        (
            lambda votes, noise: old.StabilityQuantile(0.2, 0.3).release(votes, noise),
            events.Pure(epsilon=0.3, count=1),
        ),
    ),
}


@pytest.mark.parametrize("name", VOTES)
def test_votes(name):
    mechanism, terms, (draw, event) = VOTES[name]
    assert mechanism.event(terms) == event
    for seed in range(25):
        votes = np.random.default_rng(seed).multinomial(
            K, (s := np.arange(1, terms.n_classes + 1)) / s.sum(), ROWS
        )
        noises = RecordedNoise(seed), RecordedNoise(seed)
        found, _ = mechanism.draw(terms, (votes, np.zeros_like(votes)), noises[0], State())
        assert found.dtype == np.int64
        assert found.ravel().tolist() == np.ravel(draw(votes, noises[1])).tolist()
        assert noises[0].asked == noises[1].asked


def test_sums_of_stages():
    terms = SumShape(guarantee=REPLACED, coordinates=3, squared_sensitivity=100)
    mechanism, before = NoisySums(sigmas=(7.0, 7.0)), old.NoisyVectorSum(7.0, 5, 3, replaced=True)
    for seed, sums in enumerate(([1, -2, 3], [2**62, -(2**62), 0], [2**53, 5, -(2**53)])):
        state, noises = State(), (RecordedNoise(seed), RecordedNoise(seed))
        for _ in range(2):
            found, state = mechanism.draw(terms, (np.array(sums),), noises[0], state)
            assert found[0].tolist() == before.release(np.array(sums), noises[1]).tolist()
    one, two = NoisySums(sigmas=(7.0,)).event(terms), mechanism.event(terms)
    assert one == before.event(1)
    at = np.array([2.0, 30.0])
    assert two.renyi(at) == pytest.approx(before.event(2).renyi(at), rel=1e-15)
    epsilon = np.array([0.1, 1.0])
    same = before.event(2).losses().delta(epsilon)
    assert two.losses().delta(epsilon) == pytest.approx(same, rel=1e-12)


@pytest.mark.parametrize("guarantee", [RECORD, REPLACED])
def test_choices(guarantee):
    mechanism, terms = ExponentialChoice(epsilon=0.3), ScoreShape(guarantee=guarantee)
    before = old.ExponentialMechanism(0.3, monotone=guarantee == RECORD)
    for seed in range(20):
        scores = np.random.default_rng(seed).integers(-9, 9, (2, 12))
        noises = RecordedNoise(seed), RecordedNoise(seed)
        found, state = mechanism.draw(terms, scores[:1], noises[0], State())
        assert found.tolist() == [[before.release(scores[0], noises[1])]]
        found, _ = mechanism.draw(terms, scores, noises[0], State())
        assert range_of(int(found[0, 0])) == before.release_range(*scores, noises[1])
        assert noises[0].asked == noises[1].asked
        assert state == State(1)
