import numpy as np
import pytest
from scipy.stats import chisquare

from secretballot.exceptions import ParameterError
from secretballot.planning.simulation.seeded_noise import SeededNoise

DRAWS = 200_000
ALPHA = 1e-6


def coins(seed=0):
    return SeededNoise(np.random.default_rng(seed))


def weights(law, scale, x):
    return (
        np.exp(-np.abs(x) / scale)
        if law == "discrete_laplace"
        else np.exp(-(x**2) / (2 * scale**2))
    )


def p_value(drawn, law, scale):
    """Of a chi-square test of the stated law, with cells of at least some hundred expected
    draws."""
    far = np.arange(-400, 401).astype(float)
    probability = weights(law, scale, far) / weights(law, scale, far).sum()
    kept = probability * len(drawn) > 200
    inside = np.array([(drawn == x).sum() for x in far[kept]])
    observed = np.append(inside, len(drawn) - inside.sum())
    expected = len(drawn) * np.append(probability[kept], 1 - probability[kept].sum())
    return chisquare(observed, expected).pvalue


@pytest.mark.parametrize("law", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.6, 1.0, 2.5, 7.3])
def test_draws_follow_the_stated_law_and_no_neighbouring_one(law, scale):
    drawn = getattr(coins(), law)(scale, DRAWS)
    assert drawn.dtype == np.int64
    assert p_value(drawn, law, scale) > ALPHA
    assert p_value(drawn, law, 1.1 * scale) < ALPHA
    assert p_value(drawn, law, 0.9 * scale) < ALPHA
    other = "discrete_gaussian" if law == "discrete_laplace" else "discrete_laplace"
    assert p_value(drawn, other, scale) < ALPHA


@pytest.mark.parametrize("scale", [1e3, 1e7])
def test_moments_at_large_scales(scale):
    laplace, gaussian = (
        coins(1).discrete_laplace(scale, DRAWS),
        coins(2).discrete_gaussian(scale, DRAWS),
    )
    for drawn, variance, kurtosis in ((laplace, 2 * scale**2, 6), (gaussian, scale**2, 3)):
        values = drawn / np.sqrt(variance)
        assert abs(values.mean()) < 6 / np.sqrt(DRAWS)
        assert abs(values.var() - 1) < 6 * np.sqrt((kurtosis - 1) / DRAWS)
        assert abs((values**4).mean() / kurtosis - 1) < 0.15


def test_the_same_seed_draws_the_same_noise():
    assert (coins(3).discrete_gaussian(4.0, 50) == coins(3).discrete_gaussian(4.0, 50)).all()
    assert (coins(3).discrete_gaussian(4.0, 50) != coins(4).discrete_gaussian(4.0, 50)).any()


def test_it_never_claims_to_be_exact():
    assert coins().exact is False
    assert "protects nothing" in coins().description


def test_no_draws_are_no_draws():
    assert coins().discrete_laplace(2.0, 0).shape == coins().discrete_gaussian(2.0, 0).shape == (0,)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_scales_are_refused(scale):
    with pytest.raises(ParameterError, match="scale is"):
        coins().discrete_laplace(scale, 3)
    with pytest.raises(ParameterError, match="sigma is"):
        coins().discrete_gaussian(scale, 3)


def test_seeded_uniform_integers_cover_their_range_evenly():
    drawn = coins(5).uniform_integers(3, DRAWS)
    assert chisquare(np.bincount(drawn, minlength=8)).pvalue > ALPHA
    assert coins(5).uniform_integers(53, 1000).max() > 2**52
    assert (coins(6).uniform_integers(53, 9) == coins(6).uniform_integers(53, 9)).all()
