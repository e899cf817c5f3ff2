import numpy as np
import pytest
from scipy.stats import chisquare

from secretballot.planning.votes_forecast import SeededNoise

DRAWS = 100_000
ALPHA = 1e-6


def coins(seed=0):
    return SeededNoise(np.random.default_rng(seed))


def weights(law, scale, x):
    return np.exp(-np.abs(x) / scale if law == "discrete_laplace" else -((x / scale) ** 2) / 2)


def p_value(drawn, law, scale):
    """Of a chi-square test of the stated law, with cells of some hundred expected draws."""
    far = np.arange(-400, 401).astype(float)
    probability = weights(law, scale, far) / weights(law, scale, far).sum()
    kept = probability * len(drawn) > 200
    inside = np.array([(drawn == x).sum() for x in far[kept]])
    observed = np.append(inside, len(drawn) - inside.sum())
    expected = len(drawn) * np.append(probability[kept], 1 - probability[kept].sum())
    return chisquare(observed, expected).pvalue


@pytest.mark.parametrize("law", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.6, 7.3])
def test_draws_follow_the_stated_law_and_no_neighbouring_one(law, scale):
    drawn = getattr(coins(), law)(scale, DRAWS)
    assert drawn.dtype == np.int64
    assert p_value(drawn, law, scale) > ALPHA
    assert p_value(drawn, law, 1.1 * scale) < ALPHA
    assert p_value(drawn, law, 0.9 * scale) < ALPHA
    other = "discrete_gaussian" if law == "discrete_laplace" else "discrete_laplace"
    assert p_value(drawn, other, scale) < ALPHA


def test_seeded_uniform_integers_cover_their_range_evenly():
    drawn = coins(5).uniform_integers(3, DRAWS)
    assert chisquare(np.bincount(drawn, minlength=8)).pvalue > ALPHA
    assert coins(5).uniform_integers(53, 1000).max() > 2**52
    assert (coins(6).uniform_integers(53, 9) == coins(6).uniform_integers(53, 9)).all()
