"""The contract of every calibration: what it returns keeps the budget, wastes little, and moves
with the budget."""

import math

import pytest

from made_events import counts_event
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_gaussian,
    calibrate_label_gaussian,
    delta_upper,
)
from secretballot.exceptions import ParameterError


def test_a_budget_that_no_noise_keeps_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="No noise fits"):
        calibrate_gaussian(PrivacyBudget(1e-13, 1e-300), 10**12)
    with pytest.raises(ParameterError, match="No noise fits"):
        calibrate_label_gaussian(PrivacyBudget(1e-13, 1e-300), 10**12)


def test_so_large_a_budget_that_the_least_noise_fits() -> None:
    sigma = calibrate_gaussian(PrivacyBudget(1e12, 0.1), 1)
    assert delta_upper([counts_event(sigma, 1)], 1e12) <= 0.1
    assert math.isfinite(sigma)
