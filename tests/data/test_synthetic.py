"""Made-up labels with Massart noise: the concept is the best classifier, and its error is what
was asked."""

import numpy as np
import pytest

from secretballot.data import synthetic_massart
from secretballot.exceptions import ParameterError

POINTS = np.random.default_rng(0).random((100_000, 1))


def above(X: np.ndarray) -> np.ndarray:
    return X[:, 0] >= 0.3


def test_without_noise_the_concept_is_the_label() -> None:
    sample = synthetic_massart(POINTS, above, seed=0)
    assert np.array_equal(sample.y, above(POINTS))
    assert sample.bayes_error == 0
    assert np.array_equal(sample.probability, sample.y)


def test_noise_is_the_bayes_error_and_excess_error_is_known() -> None:
    sample = synthetic_massart(POINTS, above, noise=0.2, seed=1)
    assert sample.bayes_error == 0.2
    assert np.mean(sample.y != above(POINTS)) == pytest.approx(0.2, abs=0.005)
    assert np.array_equal(sample.probability > 0.5, above(POINTS))
    other = POINTS[:, 0] >= 0.4  # differs on a tenth of the points
    assert np.mean(sample.y != other) == pytest.approx(0.2 + (1 - 2 * 0.2) * 0.1, abs=0.006)
    assert np.minimum(sample.probability, 1 - sample.probability) == pytest.approx(0.2)


@pytest.mark.parametrize("noise", [0.5, -0.1, float("nan")])
def test_impossible_noise_is_refused(noise: float) -> None:
    with pytest.raises(ParameterError, match="noise"):
        synthetic_massart(POINTS, above, noise=noise, seed=0)
