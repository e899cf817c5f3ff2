"""Figures of what the printed algorithms really promise: each variant breaks, and by how much."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from secretballot.accounting import PrivacyBudget, calibrate_gaussian
from secretballot.accounting.calibration import _gaussian_delta
from secretballot.core.losses import discrete_gaussian_pmf


@pytest.mark.parametrize(("teachers", "figure"), [(10, 3.5e-3), (250, 4.7e-3)])
def test_a_secret_even_split_moves_two_teachers(teachers: int, figure: float) -> None:
    """Errata 4: teachers vote 1 iff their part is pristine, with q records; one record less
    spoils one part or two."""
    q, epsilon = 20, 1.0
    one = (q + 1) / (teachers * q + 1)
    reach, law = discrete_gaussian_pmf(calibrate_gaussian(PrivacyBudget(epsilon, 1e-6), 1))
    pad = np.zeros(2)
    with_all = np.concatenate([pad, law])
    less_one, less_two = np.concatenate([pad[:1], law, pad[:1]]), np.concatenate([law, pad])
    other = one * less_one + (1 - one) * less_two
    delta = max(
        float(np.maximum(0, with_all - math.e**epsilon * other).sum()),
        float(np.maximum(0, other - math.e**epsilon * with_all).sum()),
    )
    assert reach > 10
    assert delta == pytest.approx(figure, rel=0.1)


def test_a_smaller_epsilon_at_a_stopping_time_is_false() -> None:
    """Errata 5: claiming, at a cleverly chosen time j <= 20, the epsilon of j queries keeps
    seven times the delta."""
    queries, mu, delta = 20, 0.2367, 1e-6
    step = mu / math.sqrt(queries)
    h = step / 40
    loss = h * np.arange(-400, 2400)
    kernel_at = h * np.arange(-320, 321)
    kernel = np.exp(-((kernel_at - step**2 / 2) ** 2) / (2 * step**2))
    kernel /= kernel.sum()

    def gain(j: int) -> np.ndarray:
        epsilon = brentq(lambda at: _gaussian_delta(at, step * math.sqrt(j)) - delta, 0, 10)
        return np.maximum(0.0, -np.expm1(epsilon - loss))

    value = gain(queries)
    for j in range(queries - 1, 0, -1):
        ahead = np.convolve(np.pad(value, 320, mode="edge"), kernel[::-1], mode="valid")
        value = np.maximum(gain(j), ahead)
    start = np.convolve(np.pad(value, 320, mode="edge"), kernel[::-1], mode="valid")
    assert float(start[400]) == pytest.approx(7.4e-6, rel=0.1)
