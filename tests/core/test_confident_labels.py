"""Confident labels: what short runs really cost, and their price beside those of labels."""

import math

import numpy as np
import pytest

from exact_games.worlds import neighbouring_counts
from made_events import confident_event, counts_event
from secretballot.accounting import PrivacyBudget, delta_upper
from secretballot.exceptions import DataError
from secretballot.students.confirmed import predicted_votes

BUDGET = PrivacyBudget(1.0, 1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_difference_from_any_prediction_moves_by_one_vote_at_most(n_classes):
    here, there = neighbouring_counts(6, n_classes)
    rng = np.random.default_rng(0)
    for predicted in rng.dirichlet(np.ones(n_classes), 40):
        against = predicted_votes([predicted], (1, n_classes), 6)
        tops = [(votes - against).max(axis=1) for votes in (here, there)]
        assert np.abs(tops[0] - tops[1]).max() == 1


@pytest.mark.parametrize("n_classes", [2, 10])
def test_the_price_lies_between_two_that_dp_accounting_gives(n_classes):
    from dp_accounting.pld import privacy_loss_distribution

    event = confident_event(60.0, 20.0, 120, 40, n_classes)
    shifts = 40 * (1 if n_classes == 2 else 2)
    gaussian = privacy_loss_distribution.from_gaussian_mechanism
    threshold = gaussian(60.0 / math.sqrt(120), value_discretization_interval=1e-4)
    counts = gaussian(20.0 / math.sqrt(shifts), value_discretization_interval=1e-4)
    whole = threshold.compose(counts)
    for epsilon in (1.0, 2.0):
        above = whole.get_delta_for_epsilon(epsilon)
        found = delta_upper([event], epsilon)
        assert found < above * 1.02  # answers about the threshold tell less than the top itself
        assert found > 0
        # counts of both scales cost what the library says: the composition itself is the same
        both = delta_upper([counts_event(60.0, 120), counts_event(20.0, shifts)], epsilon)
        # but for the rounding, which costs a relative 2 / sigma^2 of sigma
        assert 0.999 * above < both < 1.2 * above


def test_predictions_that_do_not_fit_are_refused():
    for bad in (
        [[0.5, 0.5]],
        [[0.5, 0.6], [0, 0]],
        [[-0.1, 0.5], [0, 0]],
        [["a", "b"]] * 2,
        [[math.nan, 0.5], [0, 0]],
    ):
        with pytest.raises(DataError, match="predictions"):
            predicted_votes(bad, (2, 2), 8)
