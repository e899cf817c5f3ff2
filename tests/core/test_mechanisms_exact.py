"""The true delta(epsilon) of short runs, enumerated over all neighbouring votes and all adaptive
choices.

It must not exceed the price; where the price is exact, the price must not exceed it either; and
every classical way of breaking a mechanism must show as a delta above the price. Every kind of
mechanism has a run beside its laws in `test_mechanisms`; here are more worlds, and broken ones.
"""

import functools
import math

import numpy as np
import pytest

from exact_games.distributions import (
    discrete_gaussian_distribution,
    discrete_laplace_distribution,
    point_distribution,
)
from exact_games.games import adaptive_delta, shifted_delta
from exact_games.threshold_game import ThresholdGame, stream_queries
from exact_games.worlds import drawn_labels, neighbouring_counts, output_distribution
from made_events import pattern_of, sparse_event
from secretballot.accounting import PrivacyBudget, delta_upper, teacher_shape
from secretballot.core.mechanisms import NoisyVotes, StableValue, margin, stability

TAIL = 1e-12  # unlisted noise of the enumeration, charged to the true delta
LAWS = {"gaussian": discrete_gaussian_distribution, "laplace": discrete_laplace_distribution}


def steps_of(mechanism, law, n_teachers, n_classes=2, draws=1):
    """Outcome laws of one query on all neighbouring counts, both directions, from the
    mechanism's own code."""
    release = drawn_labels(mechanism, n_teachers, n_classes)
    outcomes = n_classes + isinstance(mechanism, StableValue)

    @functools.cache
    def told(*row):
        return output_distribution(release, row, law, draws=draws, n_outcomes=outcomes)

    pairs = zip(*neighbouring_counts(n_teachers, n_classes), strict=True)
    return [(told(*here.tolist()), told(*there.tolist())) for here, there in pairs]


def price(mechanism, epsilon, length, n_teachers=9, n_classes=2):
    return delta_upper([mechanism.event(teacher_shape(length, n_classes, n_teachers))], epsilon)


@pytest.mark.parametrize(
    ("noise", "scale"),
    [*(("gaussian", s) for s in (0.6, 1.5, 4.0, 9.0)), *(("laplace", s) for s in (0.7, 2.0, 5.0))],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_counts_cost_exactly_their_price(noise, scale, n_classes):
    mechanism, law = NoisyVotes(noise=noise, scale=scale, release="counts"), LAWS[noise](scale)
    for length in (1, 3, 6):
        # two counts of a row move where there are more than two classes: sqrt 2, not 1
        shifts = (n_classes - 1) * length
        whole = shifts / scale
        for epsilon in (0.0, 0.3, 1.0, 3.0) if noise == "gaussian" else (0.0, 0.3 * whole):
            true = shifted_delta(law, shifts, epsilon)
            promised = price(mechanism, epsilon, length, n_classes=n_classes)
            assert true <= promised * (1 + 1e-9) + TAIL
            assert true < 1e-9 or true >= 0.99 * promised
        if noise == "laplace":
            assert shifted_delta(LAWS[noise](0.7 * scale), shifts, whole) > 1e-3
            assert price(mechanism, whole * (1 + 1e-12), length, n_classes=n_classes) == 0


def test_the_printed_sigma_on_a_histogram_breaks_its_promise():
    # errata 3: delta(1) = 7.9e-6 where 1e-6 is promised, for the analytic sigma of the binary count
    budget = PrivacyBudget(1.0, 1e-6)
    log = math.log(1 / budget.delta)
    printed = math.sqrt(1 / 2) * (math.sqrt(budget.epsilon + log) + math.sqrt(log)) / budget.epsilon
    assert shifted_delta(
        discrete_gaussian_distribution(printed, 1e-20), 2, budget.epsilon
    ) == pytest.approx(7.9e-6, rel=0.02)


@pytest.mark.parametrize(
    ("scale", "n_teachers", "n_classes", "draws"),
    [(2.0, 9, 2, 1), (2.0, 8, 2, 1), (1.0, 5, 3, 3)],
    ids=["odd", "even", "three counts"],
)
def test_laplace_votes_keep_their_pure_epsilon_and_it_is_nearly_attained(
    scale, n_teachers, n_classes, draws
):
    mechanism = NoisyVotes(noise="laplace", scale=scale)
    law = discrete_laplace_distribution(scale, 1e-13 if draws < 3 else 1e-11)
    steps = steps_of(mechanism, law, n_teachers, n_classes, draws)
    pure = (n_classes - 1) / scale
    # unlisted noise counts as lost: a little mass per step and draw
    slack = 2 * draws * law.missing + TAIL
    assert adaptive_delta(steps, 1, pure) <= slack
    # of several counts it is more than 1 / scale, and less than twice that only by how far apart
    # the votes are
    assert 0.85 * pure < max(np.log(p / q).max() for p, q in steps) <= pure * (1 + 1e-9)
    for length in (1, 2):
        for epsilon in (0.3 * pure, pure):
            promised = price(mechanism, epsilon, length, n_teachers, n_classes)
            assert adaptive_delta(steps, length, epsilon) <= promised + length * slack


SPARSE = [
    sparse_event(threshold_scale, query_scale, threshold, max_below)
    for threshold_scale, query_scale, threshold in (
        (2.0, 2.0, 3),
        (1.0, 2.0, 2),
        (3.0, 3.0, 8),
        (3.0, 1.5, 1),
    )
    for max_below in (1, 2)
]


def printed(counts):
    return np.maximum(0, margin(counts) - 1)


def stream_epsilons(mechanism):
    pattern = pattern_of(mechanism)
    return 0.3, 1.0, pattern.epsilon * pattern.count


@pytest.mark.parametrize(
    ("mechanism", "n_teachers"), [*((one, 7) for one in SPARSE), *((one, 6) for one in SPARSE[:2])]
)
def test_sparse_vector_stays_below_its_price_on_all_adaptive_streams(mechanism, n_teachers):
    game = ThresholdGame(mechanism, stream_queries(n_teachers))
    pattern = ThresholdGame(mechanism, stream_queries(n_teachers), labels=False)
    whole = stream_epsilons(mechanism)[-1]
    for length in (1, 2, 4):
        for epsilon in stream_epsilons(mechanism):
            promised = delta_upper([mechanism], epsilon)
            true = game.delta(length, epsilon)
            assert true <= promised + TAIL
            # at the pure bound nothing but a label that differs is left: 1 - (1 - p0)^T with fresh
            # threshold noise, whatever the length
            assert length == 1 or epsilon < whole or true >= 0.999 * promised
            alone = delta_upper([pattern_of(mechanism)], epsilon)
            assert pattern.delta(length, epsilon) <= alone + TAIL


def caught(mechanism, promise, n_teachers=9, length=4, labels=True, distance=stability, **laws):
    """Return true delta over promised delta at the pure bound of `promise`, for the mechanism
    that really runs."""
    epsilon = stream_epsilons(promise)[-1]
    event = promise if labels else pattern_of(promise)
    game = ThresholdGame(
        mechanism, stream_queries(n_teachers, distance=distance), labels=labels, **laws
    )
    return game.delta(length, epsilon) / max(delta_upper([event], epsilon), TAIL * length)


def test_broken_sparse_vectors_are_caught():
    sound = sparse_event(2.0, 2.0, 3, 1)
    assert caught(sound, sound) <= 1 + 1e-9
    assert caught(sound, sound, labels=False) <= 1 + 1e-9
    for n_teachers in (8, 9):
        assert caught(sound, sound, n_teachers, distance=printed) > 1.05
        assert caught(sound, sound, n_teachers, distance=printed, labels=False) > 1e3
    one_more = sound.changed(abstentions=2)
    assert caught(one_more, sound) > 1.5
    assert caught(one_more, sound, labels=False) > 1e3
    no_threshold_noise = {"threshold_distribution": point_distribution()}
    assert caught(sound, sound, length=6, labels=False, **no_threshold_noise) > 1e3
    less = discrete_laplace_distribution(1.4)
    both = {"threshold_distribution": less, "query_distribution": less}
    assert caught(sound, sound, labels=False, **both) > 1e3
    assert caught(sound.changed(threshold=2), sound) > 1.2
