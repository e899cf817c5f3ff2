"""The noisy vector sum is the exact sum plus discrete Gaussian noise, and keeps its promise."""

import numpy as np
import pytest
from scipy import stats

from secretballot.audit import ScriptedNoise
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import delta_upper
from secretballot.privacy.mechanisms import NoisyVectorSum


def test_the_release_is_the_sum_plus_the_noise() -> None:
    mechanism = NoisyVectorSum(sigma=10.0, bound=5, coordinates=3)
    released = mechanism.release(np.array([1, -2, 3]), ScriptedNoise([4, 0, -9]))
    assert released.tolist() == [5, -2, -6]
    assert released.dtype == np.int64


def test_what_noise_takes_too_far_is_cut_and_never_wraps_around() -> None:
    mechanism = NoisyVectorSum(sigma=10.0, bound=5, coordinates=2)
    largest = 2**53 - 1
    released = mechanism.release(np.array([2**62, -(2**62)]), ScriptedNoise([9, -9]))
    assert released.tolist() == [largest, -largest]


def test_replacing_a_unit_moves_a_sum_twice_as_far() -> None:
    one, two = (NoisyVectorSum(50.0, 5, 2, replaced) for replaced in (False, True))
    assert (one.squared_sensitivity, two.squared_sensitivity) == (25, 100)
    assert delta_upper([one.event(2)], 1.0) < delta_upper([two.event(2)], 1.0)


def test_noise_has_the_stated_scale_and_a_tenth_less_is_seen() -> None:
    sigma, size = 1234.5, 4000
    mechanism = NoisyVectorSum(sigma, 10, size)
    total = np.arange(size)
    z = (mechanism.release(total, ExactNoise()) - total) / sigma
    # two-sided at 1e-6: a false alarm once in a million runs
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], size)
    assert low < np.sum(z**2) < high
    assert abs(z.mean()) < 5 / np.sqrt(size)
    assert np.abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / np.sqrt(size)
    # power: with nine tenths of the noise the same test fires but once in ten thousand
    assert stats.chi2.cdf(low / 0.81, size) > 0.9999


@pytest.mark.parametrize(
    "total", [np.zeros(2, int), np.zeros((3, 1), int), np.zeros(3), np.array(["a", "b", "c"])]
)
def test_a_sum_of_another_shape_is_refused(total: np.ndarray) -> None:
    with pytest.raises(DataError, match="give 3 integers"):
        NoisyVectorSum(10.0, 5, 3).release(total, ScriptedNoise([0, 0, 0]))


@pytest.mark.parametrize(
    ("sigma", "bound", "coordinates"), [(0, 5, 3), (np.nan, 5, 3), (1.0, 0, 3), (1.0, 5, 0)]
)
def test_parameters_out_of_range_are_refused(sigma: float, bound: int, coordinates: int) -> None:
    with pytest.raises(ParameterError):
        NoisyVectorSum(sigma, bound, coordinates)
