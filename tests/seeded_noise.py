"""Noise and keys of the tests: of the same distributions, from a stream that starts anew with every
test, so that a test that has passed passes again.

The library's own noise has no seed. A test of what noise does to a result fails once in so many
runs, however wide its margin; with a stream of its own it fails for a change alone, and fails
again when it is looked for. `SECRETBALLOT_TEST_SEED` is the number of the stream (0 if unset);
`os` takes the library's sampler and the operating system's entropy, as the tests in `REAL` always
do. Programs that tests start draw real noise, too.
"""

import hashlib
import math
import os
import random
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from secretballot._typing import IntArray
from secretballot.privacy import noise

USUAL_SEED = "0"
SEED = os.environ.get("SECRETBALLOT_TEST_SEED", USUAL_SEED)
# the sampler and what is built on it, and what promises that two runs differ
REAL = ("tests/privacy/", "tests/audit/")

draw_ready, entropy = noise._draw_ready, noise.secrets


class SeededStream:
    """Stands for `secrets` and for the sampler in `secretballot.privacy.noise`."""

    def __init__(self, name: str) -> None:
        seed = hashlib.sha256(f"{SEED}:{name}".encode()).digest()
        self._bits = random.Random(seed)
        self._noise = np.random.default_rng(list(seed))

    def token_bytes(self, size: int) -> bytes:
        return self._bits.randbytes(size)

    def randbits(self, bits: int) -> int:
        return self._bits.getrandbits(bits)

    def draw(self, distribution: str, scale: float, size: int) -> IntArray:
        noise.ready_sampler()
        if distribution == "laplace":
            return self._laplace(scale, size)
        return self._gaussian(scale, size)

    def _laplace(self, scale: float, size: int) -> IntArray:
        """Draw differences of two geometric numbers."""
        above, below = self._noise.geometric(-math.expm1(-1 / scale), size=(2, size))
        return np.asarray(above - below, dtype=np.int64)

    def _gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw by rejection (Canonne, Kamath, Steinke 2020, Algorithm 3), in floats."""
        scale, drawn = math.floor(sigma) + 1, np.empty(0, dtype=np.int64)
        while len(drawn) < size:
            tried = self._laplace(scale, 2 * (size - len(drawn)) + 8)
            gap = (np.abs(tried) - sigma**2 / scale) / sigma
            kept = self._noise.random(len(tried)) < np.exp(-(gap**2) / 2)
            drawn = np.concatenate([drawn, tried[kept]])
        return drawn[:size]


def start_stream(nodeid: str, name: str) -> None:
    """Let noise and keys come from the stream of this name, or from the library's own sources."""
    if SEED == "os" or nodeid.startswith(REAL):
        noise._draw_ready, noise.secrets = draw_ready, entropy
        return
    stream = SeededStream(f"{nodeid}:{name}")
    noise._draw_ready, noise.secrets = stream.draw, stream  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Start a stream for each fixture: that of a module is set up before any of its tests, in
    whichever process."""
    start_stream(request.node.nodeid, fixturedef.argname)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Start a stream for each test."""
    start_stream(pyfuncitem.nodeid, "")
    return (yield)
