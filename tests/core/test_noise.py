"""Exact noise: its limits, and that nothing about it can be fixed beforehand; its laws are those of
the sampler's own check. Noise is real here: each test fails by chance with probability at most
1e-9."""

import inspect
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from secretballot.core import noise as room
from secretballot.core.noise import _MAX_SCALE, ExactNoise, entropy_bytes
from secretballot.exceptions import ParameterError

SCORES = np.array([1, 2])


@pytest.fixture(scope="module")
def source() -> ExactNoise:
    return ExactNoise()


@pytest.mark.parametrize("draw", ["discrete_laplace", "discrete_gaussian"])
def test_every_call_draws_anew(source, draw):
    # a generator that is seeded again at every call repeats itself; 64 draws agree by chance with
    # probability 2^-400
    first, second = getattr(source, draw)(50.0, 64), getattr(source, draw)(50.0, 64)
    again = getattr(ExactNoise(), draw)(50.0, 64)
    assert len({first.tobytes(), second.tobytes(), again.tobytes()}) == 3


def test_the_largest_scale_stays_far_inside_64_bits(source):
    # one of 1000 draws is 1024 scales away with probability 1000 exp(-1024)
    assert np.abs(source.discrete_laplace(_MAX_SCALE, 1000)).max() < 2**50


@pytest.mark.parametrize(
    ("draw", "of"),
    [
        *(("discrete_laplace", []), ("discrete_gaussian", [])),
        *(("exponential_index", [SCORES]), ("exponential_range", [SCORES, SCORES])),
    ],
)
@pytest.mark.parametrize(
    "scale", [0.0, -1.0, float("nan"), float("inf"), 2.0 * _MAX_SCALE, "3", True, None]
)
def test_a_scale_that_is_no_scale_is_refused(source, draw, of, scale):
    with pytest.raises(ParameterError, match=r"sigma|scale"):
        getattr(source, draw)(*of, scale, *([] if of else [3]))


def test_noise_cannot_be_seeded():
    assert not inspect.signature(ExactNoise).parameters
    for name, method in inspect.getmembers(ExactNoise, inspect.isfunction):
        assert not {"seed", "random_state", "rng"} & set(inspect.signature(method).parameters), name


def test_the_source_pickles_without_state(source):
    copy = pickle.loads(pickle.dumps(source))
    assert vars(copy) == {}
    assert copy.exact
    assert "OpenDP" in copy.description


def test_a_failing_sampler_stops_the_others_and_raises(source, monkeypatch):
    def broken(zeros):
        raise KeyboardInterrupt

    source.discrete_laplace(1.0, 1)
    monkeypatch.setattr(room, "_noise_measurement", lambda *_: broken)
    with pytest.raises(KeyboardInterrupt):
        source.discrete_laplace(1.0, 10 * room._CHUNK)


def test_entropy_bytes_differ_and_have_their_length():
    first, second = entropy_bytes(32), entropy_bytes(32)
    assert len(first) == len(second) == 32
    assert first != second
    with pytest.raises(ParameterError, match="n is 0"):
        entropy_bytes(0)


@pytest.mark.parametrize("bits", [1, 8, 53, 62])
def test_uniform_integers_are_the_upper_bits_of_fresh_bytes(source, monkeypatch, bits):
    given = []

    def random_bytes(size):
        given.append(bytes((7 * i * i + 131) % 256 for i in range(size)))
        return given[-1]

    monkeypatch.setattr(room, "secrets", SimpleNamespace(token_bytes=random_bytes))
    drawn = source.uniform_integers(bits, 5)
    words = [int.from_bytes(given[0][8 * i : 8 * i + 8], "little") for i in range(5)]
    assert drawn.dtype == np.int64
    assert drawn.tolist() == [word >> (64 - bits) for word in words]
    assert len(given) == 1


@pytest.mark.parametrize("bits", [0, 63])
def test_uniform_integers_out_of_range_are_refused(source, bits):
    with pytest.raises(ParameterError):
        source.uniform_integers(bits, 1)
