"""The tests' own noise: the same for a name, another for another, of the stated distributions."""

import random

import numpy as np
import pytest
from scipy import stats

from secretballot.core import noise
from seeded_noise import SEED, SeededStream, draw_ready, entropy, start_stream

RNG = np.random.default_rng(0)


def test_the_generators_of_a_module_and_the_global_ones_begin_anew(request):
    drawn = []
    for _ in range(2):  # as the test begins, and as it would begin after others
        drawn.append((RNG.random(), random.random(), np.random.rand()))  # noqa: NPY002
        start_stream(request.node.nodeid, "", request.module)
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.4, 3.0, 57.3])
def test_a_stream_has_the_distribution_of_the_library_s_sampler(kind, scale):
    values = np.arange(-int(40 * scale) - 5, int(40 * scale) + 6)
    exponent = np.abs(values) / scale if kind == "laplace" else (values / scale) ** 2 / 2
    weights = np.exp(-exponent)
    pmf = weights / weights.sum()
    n = 200_000
    drawn = SeededStream("a test").draw(kind, scale, n)
    assert (drawn.dtype, drawn.shape) == (np.int64, (n,))
    counts = np.bincount(drawn - values[0], minlength=len(values))
    # numbers that are drawn ten times or more; all others count with the first of them
    likely = np.flatnonzero(n * pmf >= 10)
    observed, expected = counts[likely], n * pmf[likely]
    observed[0] += n - observed.sum()
    expected[0] += n - expected.sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-6
    assert abs(drawn.astype(float).std() / np.sqrt((pmf * values**2).sum()) - 1) < 0.01


@pytest.mark.skipif(SEED == "os", reason="the library's own sampler was asked for")
def test_a_test_draws_from_its_own_stream():
    assert noise._draw_ready is not draw_ready
    assert noise.secrets is not entropy
    drawn = noise.ExactNoise().discrete_gaussian(40.0, 6)
    here = "tests/test_noise_of_tests.py::test_a_test_draws_from_its_own_stream"
    assert (drawn == SeededStream(f"{here}:").draw("gaussian", 40.0, 6)).all()
