"""Noise laws written out: their mass, their tails, and agreement with an independent library."""

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.5, 100.0])
@pytest.mark.parametrize("law", [discrete_laplace_distribution, discrete_gaussian_distribution])
def test_mass_is_one_and_what_is_missing_is_stated(law, scale):
    listed = law(scale)
    assert listed.pmf.sum() + listed.missing == pytest.approx(1, abs=1e-13)
    assert 0 <= listed.missing < 1e-13
    np.testing.assert_allclose(listed.pmf, listed.pmf[::-1])
    assert listed.support[len(listed.pmf) // 2] == 0
    coarse = law(scale, 1e-3)
    assert coarse.missing == pytest.approx(1 - coarse.pmf.sum(), rel=1e-6, abs=1e-15)


def test_gaussian_has_its_variance_and_its_ratios():
    listed = discrete_gaussian_distribution(5.0)
    assert (listed.pmf @ listed.support**2) == pytest.approx(25, rel=1e-9)
    ratio = listed.pmf[1:] / listed.pmf[:-1]
    np.testing.assert_allclose(
        np.log(ratio), -(2 * listed.support[1:] - 1) / 50, rtol=1e-9, atol=1e-12
    )
