"""Noise and keys of the tests: of the same distributions, from a stream that starts anew with every
test, so that a test that has passed passes again.

The library's own noise has no seed. A test of what noise does to a result fails once in so many
runs, however wide its margin; with a stream of its own it fails for a change alone, and fails
again when it is looked for. `SECRETBALLOT_TEST_SEED` is the number of the stream (0 if unset);
`os` takes the library's sampler and the operating system's entropy, as the tests in `REAL` always
do. Programs that tests start draw real noise, too.

The generators of a test's module and the global ones begin anew, too, so that what a test draws
does not depend on the tests before it in the same process.
"""

import functools
import hashlib
import math
import os
import random
import sys

import numpy as np
import pytest

from secretballot.core import noise

USUAL_SEED = "0"
SEED = os.environ.get("SECRETBALLOT_TEST_SEED", USUAL_SEED)
# the sampler itself; each of these tests states how often it fails, at most once in 10^9 runs
REAL = ("tests/core/test_noise.py", "tests/core/test_sampler_check.py")

draw_ready, entropy = noise._draw_ready, noise.secrets


def seed_of(name):
    """Return the seed of a name."""
    return hashlib.sha256(name.encode()).digest()


class SeededStream:
    """Stands for `secrets` and for the sampler in `secretballot.core.noise`."""

    def __init__(self, name):
        self._seed = seed_of(f"{SEED}:{name}")

    @functools.cached_property  # most tests draw nothing
    def _bits(self):
        return random.Random(self._seed)

    @functools.cached_property
    def _noise(self):
        return np.random.default_rng(list(self._seed))

    def token_bytes(self, size):
        return self._bits.randbytes(size)

    def randbits(self, bits):
        return self._bits.getrandbits(bits)

    def draw(self, distribution, scale, size):
        noise.ready_sampler()
        if distribution == "laplace":
            return self._laplace(scale, size)
        return self._gaussian(scale, size)

    def _laplace(self, scale, size):
        """Draw differences of two geometric numbers."""
        above, below = self._noise.geometric(-math.expm1(-1 / scale), size=(2, size))
        return np.asarray(above - below, dtype=np.int64)

    def _gaussian(self, sigma, size):
        """Draw by rejection (Canonne, Kamath, Steinke 2020, Algorithm 3), in floats."""
        scale, drawn = math.floor(sigma) + 1, np.empty(0, dtype=np.int64)
        while len(drawn) < size:
            tried = self._laplace(scale, 2 * (size - len(drawn)) + 8)
            gap = (np.abs(tried) - sigma**2 / scale) / sigma
            kept = self._noise.random(len(tried)) < np.exp(-(gap**2) / 2)
            drawn = np.concatenate([drawn, tried[kept]])
        return drawn[:size]


def start_stream(nodeid, name, module):
    """Let noise and keys come from the stream of this name, or from the library's own sources, and
    let the generators of a module and the global ones begin with it."""
    seed = seed_of(f"{nodeid}:{name}")
    random.seed(seed)
    np.random.seed(list(seed))  # noqa: NPY002 - what learners without a seed draw from
    for value in vars(module).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = np.random.default_rng(list(seed)).bit_generator.state
    if SEED == "os" or nodeid.startswith(REAL):
        noise._draw_ready, noise.secrets = draw_ready, entropy
        return
    stream = SeededStream(f"{nodeid}:{name}")
    noise._draw_ready, noise.secrets = stream.draw, stream


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Start a stream for each fixture: that of a module is set up before any of its tests, in
    whichever process."""
    if not fixturedef.func.__module__.startswith("_pytest."):
        module = sys.modules[fixturedef.func.__module__]
        start_stream(request.node.nodeid, fixturedef.argname, module)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Start a stream for each test."""
    start_stream(pyfuncitem.nodeid, "", pyfuncitem.module)
    return (yield)
