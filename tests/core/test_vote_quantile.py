"""Drawn quantiles: their losses on all small worlds, and the price of bounded ranges."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from made_events import ranged_event
from secretballot.accounting import PrivacyBudget, calibrate_pure, delta_upper
from secretballot.accounting.calibration import calibrate_bounded_range
from secretballot.core.mechanisms import rank_distances


def all_votes(n_teachers, n_positions):
    return itertools.product(range(n_positions), repeat=n_teachers)


def distances_of(votes, rank, n_positions):
    return rank_distances(np.bincount(votes, minlength=n_positions)[None], rank)[0]


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


@pytest.mark.parametrize(("n_teachers", "rank", "n_positions"), [(4, 2, 3), (5, 3, 3), (3, 1, 4)])
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


def test_the_calibration_uses_the_budget_and_lies_between_parts_and_what_is_possible():
    for budget, draws in ((PrivacyBudget(1.0, 1e-6), 30), (PrivacyBudget(0.5, 0.0), 7)):
        length = calibrate_bounded_range(budget, draws)
        assert delta_upper([ranged_event(length, draws)], budget.epsilon) <= budget.delta
        parts = calibrate_pure(budget, draws)
        # randomised response of half the length has that range
        assert parts * (1 - 1e-9) <= length <= 2 * parts
        if budget.delta:
            more = ranged_event(1.01 * length, draws)
            assert delta_upper([more], budget.epsilon) > budget.delta
        assert not budget.delta or length > 1.5 * parts
