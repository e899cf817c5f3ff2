"""The exponential mechanism and drawn quantiles: losses on all neighbouring scores and votes, the
ways to break them, and the price of bounded ranges."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from exact_games.games import adaptive_delta
from secretballot.accounting import BoundedRange, delta_upper
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import ExponentialChoice, State, _rank_distances
from secretballot.core.types import ScoreShape
from secretballot.teachers.votes import guarantee_of

SCORES = [np.array(row) for row in itertools.product(range(4), repeat=3)]
BOTH_WAYS = [np.array(move) for move in itertools.product((-1, 0, 1), repeat=3)]
ONE_WAY = [np.array(move) for move in itertools.product((0, 1), repeat=3)]
PAIRS = [("add-remove", ONE_WAY), ("replace-one", BOTH_WAYS)]


def law(scores, relation, epsilon=1.0, factor=1.0):
    """Return the chances of all candidates, by the scores and the scale that noise is asked for."""
    asked = []
    noise = SimpleNamespace(exponential_index=lambda *given: asked.append(given) or 0)
    shape = ScoreShape(guarantee=guarantee_of("record", relation))
    ExponentialChoice(epsilon=epsilon).draw(shape, (scores,), noise, State())
    ((given, scale),) = asked
    weights = np.exp((given - given.max()) / (factor * scale))
    return weights / weights.sum()


def width(relation, scores, move, sizes=1, epsilon=1.0):
    """Return the length of the interval that holds the losses of two neighbours, where each
    candidate stands for so many equal ones: it holds 0 as well, so no loss is larger."""
    here, there = (
        law(np.repeat(table, sizes), relation, epsilon) for table in (scores, scores + move)
    )
    return np.ptp(np.log(here / there))


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize(("relation", "moves"), PAIRS)
def test_losses_of_neighbours_lie_in_an_interval_of_length_epsilon(epsilon, relation, moves):
    worst = max(width(relation, s, move, 1, epsilon) for s in SCORES[::3] for move in moves)
    assert worst == pytest.approx(epsilon, rel=1e-12)
    # the law of counts of errors is the paper's: Nandi, Bassily 2020, algorithm 7
    errors = np.array([3, 0, 10])
    weights = np.exp(-epsilon * errors / 2)
    np.testing.assert_allclose(law(-errors, "replace-one", epsilon), weights / weights.sum())


@pytest.mark.parametrize(("relation", "moves"), PAIRS)
def test_two_choices_cost_their_price_and_less_noise_is_caught(relation, moves):
    event = BoundedRange(epsilon=0.9, count=2)
    for factor, epsilon in itertools.product((1.0, 0.95), (0.3, 1.8)):
        steps = []
        for scores in (np.array([0, 0, 0]), np.array([0, 5, 9]), np.array([0, 30, 60])):
            for move in moves:
                pair = [law(one, relation, 0.9, factor) for one in (scores, scores + move)]
                steps += [pair, pair[::-1]]
        true = adaptive_delta(steps, 2, epsilon)
        assert (true <= delta_upper([event], epsilon) + 1e-11) == (factor == 1 or epsilon == 0.3)


def test_what_moves_both_ways_or_by_two_loses_twice_epsilon():
    # errata 6: a mistake of one record moves to another, so scores move both ways
    assert max(width("add-remove", s, move) for s in SCORES[::3] for move in BOTH_WAYS) > 1.5
    assert width("add-remove", np.zeros(2, int), np.array([1, -1]), np.array([1, 2000])) > 1.99
    assert max(width("replace-one", s, 2 * move) for s in SCORES[::3] for move in BOTH_WAYS) > 1.5


def test_the_scale_is_that_of_opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    for moved in (1, 2):
        space = (
            dp.vector_domain(dp.atom_domain(T=int)),
            dp.linf_distance(T=int, monotonic=moved == 1),
        )
        scale = least_quotient(moved, 0.3)
        assert dp.m.make_noisy_max(*space, dp.max_divergence(), scale=scale).map(
            1
        ) == pytest.approx(0.3)


def all_votes(n_teachers, n_positions):
    return itertools.product(range(n_positions), repeat=n_teachers)


def distances_of(votes, rank, n_positions):
    return _rank_distances(np.bincount(votes, minlength=n_positions)[None], rank)[0]


def laws(rank, n_positions, n_teachers, scale):
    """Return all pairs of laws at votes that differ in one teacher, as fractions."""
    found = {}
    for votes in all_votes(n_teachers, n_positions):
        distances = distances_of(votes, rank, n_positions)
        weights = [Fraction(math.exp(-d / scale)) for d in distances.tolist()]
        found[votes] = [weight / sum(weights) for weight in weights]
    for votes, law in found.items():
        for teacher, other in itertools.product(range(n_teachers), range(n_positions)):
            changed = (*votes[:teacher], other, *votes[teacher + 1 :])
            if changed > votes:
                yield law, found[changed]


WORLDS = [(4, 2, 3), (5, 3, 3), (3, 1, 4)]


@pytest.mark.parametrize(("n_teachers", "rank", "n_positions"), WORLDS)
def test_a_distance_is_how_many_votes_must_change(n_teachers, rank, n_positions):
    every = np.array(list(all_votes(n_teachers, n_positions)))
    places = np.sort(every, axis=1)[:, rank - 1]
    for votes in every:
        changed = (every != votes).sum(axis=1)
        least = [changed[places == place].min() for place in range(n_positions)]
        assert distances_of(votes, rank, n_positions).tolist() == least


@pytest.mark.parametrize(("n_teachers", "rank", "n_positions"), WORLDS)
def test_losses_lie_in_an_interval_of_the_stated_length_that_holds_zero(
    n_teachers, rank, n_positions
):
    widest = 0.0
    for here, there in laws(rank, n_positions, n_teachers, 2 / 0.8):
        losses = [math.log(p / q) for p, q in zip(here, there, strict=True)]
        assert min(losses) <= 1e-12
        assert max(losses) >= -1e-12
        widest = max(widest, max(losses) - min(losses))
    # attained, so a shorter one would be false
    assert widest == pytest.approx(0.8, rel=1e-9)
