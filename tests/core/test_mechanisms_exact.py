"""The true delta(epsilon) of short streams of a sparse vector, enumerated over all neighbouring
votes and all adaptive choices, and of broken ones, which must show as a delta above the price.

Every other kind of mechanism has its runs beside its laws in `test_mechanisms`.
"""

import math

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.games import Stream, delta_of_all_orders, hockey_stick, stream_moves
from made_events import pattern_of, sparse_event
from secretballot.accounting import delta_upper
from secretballot.core.mechanisms import margin, stability

TAIL = 1e-12  # unlisted noise of the enumeration


def test_the_printed_sigma_on_a_histogram_breaks_its_promise():
    # errata 3: delta(1) = 7.9e-6 where 1e-6 is promised, for the analytic sigma of the binary count
    log = math.log(1e6)
    printed = math.sqrt(1 / 2) * (math.sqrt(1 + log) + math.sqrt(log))
    pmf = np.pad(discrete_gaussian_distribution(printed, 1e-20).pmf, 1)
    moved = np.outer(np.roll(pmf, 1), np.roll(pmf, -1))  # two counts of one row
    assert hockey_stick(np.outer(pmf, pmf), moved, 1.0) == pytest.approx(7.9e-6, rel=0.02)


SPARSE = [
    sparse_event(threshold_scale, query_scale, threshold, max_below)
    for threshold_scale, query_scale, threshold in (
        *((2.0, 2.0, 3), (1.0, 2.0, 2), (3.0, 3.0, 8), (3.0, 1.5, 1)),
    )
    for max_below in (1, 2)
]


def printed(counts):
    return np.maximum(0, margin(counts) - 1)


def stream_epsilons(event):
    pattern = pattern_of(event)
    return 0.3, 1.0, pattern.epsilon * pattern.count


def true_delta(event, length, epsilon, n_teachers=7, labels=True, distance=stability, factor=1.0):
    """Return the truth, with a factor on all noise, 0 leaving none on the threshold."""
    noise = discrete_laplace_distribution((factor or 1.0) * event.query_scale)
    hidden = discrete_laplace_distribution((factor or 1e-3) * event.threshold_scale)
    # the comparison is strict: above needs at least one more than the noisy threshold
    needed = event.threshold + hidden.support + 1
    moves = {
        (here, there, labels and differs)
        for here, there, differs in stream_moves(n_teachers, distance=distance)
        if labels or here != there
    }
    chances = {at: noise.at_least(needed - at) for here, there, _ in moves for at in (here, there)}
    stream = Stream(event.abstentions, moves, chances.__getitem__, hidden.pmf)
    return delta_of_all_orders([stream], length, epsilon)


@pytest.mark.parametrize(
    ("event", "n_teachers"), [*((one, 7) for one in SPARSE), *((one, 6) for one in SPARSE[:2])]
)
def test_sparse_vector_stays_below_its_price_on_all_adaptive_streams(event, n_teachers):
    whole = stream_epsilons(event)[-1]
    for length in (1, 3):
        for epsilon in stream_epsilons(event):
            promised = delta_upper([event], epsilon)
            true = true_delta(event, length, epsilon, n_teachers)
            assert true <= promised + TAIL
            # at the pure bound nothing but a label that differs is left: 1 - (1 - p0)^T with fresh
            # threshold noise, whatever the length
            assert length == 1 or epsilon < whole or true >= 0.999 * promised
            alone = delta_upper([pattern_of(event)], epsilon)
            assert true_delta(event, length, epsilon, n_teachers, labels=False) <= alone + TAIL


def caught(event, promise, n_teachers=9, length=3, labels=True, **broken):
    """Return true delta over promised delta at the pure bound of `promise`, for the mechanism
    that really runs."""
    epsilon = stream_epsilons(promise)[-1]
    promised = delta_upper([promise if labels else pattern_of(promise)], epsilon)
    true = true_delta(event, length, epsilon, n_teachers, labels, **broken)
    return true / max(promised, TAIL * length)


def test_broken_sparse_vectors_are_caught():
    sound = sparse_event(2.0, 2.0, 3, 1)
    assert caught(sound, sound) <= 1 + 1e-9
    assert caught(sound, sound, labels=False) <= 1 + 1e-9
    for n_teachers in (8, 9):
        assert caught(sound, sound, n_teachers, length=4, distance=printed) > 1.05
        assert caught(sound, sound, n_teachers, distance=printed, labels=False) > 1e3
    one_more = sound.changed(abstentions=2)
    assert caught(one_more, sound) > 1.5
    assert caught(one_more, sound, length=4, labels=False) > 1e3
    assert caught(sound, sound, labels=False, factor=0.7) > 1e3
    assert caught(sound, sound, 3, length=6, labels=False, factor=0) > 1e3
    assert caught(sound.changed(threshold=2), sound) > 1.2
