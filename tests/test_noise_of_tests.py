"""The tests' own noise: the same for a name, another for another, of the stated distributions."""

import random

import numpy as np
import pytest

from secretballot.core import noise
from seeded_noise import SEED, SeededStream, draw_ready, entropy, start_stream

RNG = np.random.default_rng(0)


def test_the_generators_of_a_module_and_the_global_ones_begin_anew(request):
    drawn = []
    for _ in range(2):  # as the test begins, and as it would begin after others
        drawn.append((RNG.random(), random.random(), np.random.rand()))  # noqa: NPY002
        start_stream(request.node.nodeid, "", request.module)
    assert drawn[0] == drawn[1]


@pytest.mark.skipif(SEED == "os", reason="the library's own sampler was asked for")
def test_a_test_draws_from_its_own_stream():
    assert noise._draw_ready is not draw_ready
    assert noise.secrets is not entropy
    drawn = noise.ExactNoise().discrete_gaussian(40.0, 6)
    here = "tests/test_noise_of_tests.py::test_a_test_draws_from_its_own_stream"
    assert (drawn == SeededStream(f"{here}:").draw("gaussian", 40.0, 6)).all()
