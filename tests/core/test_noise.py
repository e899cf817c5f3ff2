"""Exact noise: its laws, its limits, and that nothing about it can be fixed beforehand.

Noise is real here: each test fails by chance with probability at most 1e-9.
"""

import inspect
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from exact_games.distributions import discrete_gaussian_distribution, discrete_laplace_distribution
from exact_games.statistics import sample_p_value
from secretballot.core import noise as room
from secretballot.core.noise import MAX_SCALE, ExactNoise, entropy_bytes
from secretballot.exceptions import ParameterError

# P-values are exact: a right sampler is below with probability 1e-10. Of a wrong one the count of
# one cell alone is below, but with a probability that is 0 in double precision.
ALPHA = 1e-10
SCORES = np.array([1, 2])
LAWS = {
    "discrete_laplace": discrete_laplace_distribution,
    "discrete_gaussian": discrete_gaussian_distribution,
}


@pytest.fixture(scope="module")
def source() -> ExactNoise:
    return ExactNoise()


@pytest.mark.parametrize("draw", LAWS)
@pytest.mark.parametrize("scale", [0.4, 3.0, 53.37])
def test_draws_follow_their_law_and_no_law_of_another_scale(source, draw, scale):
    sample = getattr(source, draw)(scale, 12_000)
    assert sample.dtype == np.int64
    assert sample.shape == (12_000,)
    assert sample_p_value(sample, LAWS[draw](scale)) > ALPHA
    for wrong in (0.7, 1.3):
        assert sample_p_value(sample, LAWS[draw](wrong * scale)) < ALPHA


@pytest.mark.parametrize("draw", LAWS)
def test_every_call_draws_anew(source, draw):
    # a generator that is seeded again at every call repeats itself; 64 draws agree by chance with
    # probability 2^-400
    first, second = getattr(source, draw)(50.0, 64), getattr(source, draw)(50.0, 64)
    again = getattr(ExactNoise(), draw)(50.0, 64)
    assert len({first.tobytes(), second.tobytes(), again.tobytes()}) == 3


def test_chunks_drawn_in_threads_do_not_repeat_each_other(source):
    size = 2 * room._CHUNK + 1017
    sample = source.discrete_laplace(1e6, size)
    assert len(sample) == size
    chunks = [
        sample[start : start + 1000].tobytes() for start in range(0, size - 1000, room._CHUNK)
    ]
    assert len(set(chunks)) == len(chunks)
    # neighbours in the stream are independent: their signs agree half of the time, and 10
    # deviations are exceeded with probability 2e-23
    agree = int((np.sign(sample[1:]) == np.sign(sample[:-1])).sum())
    assert abs(agree / (size - 1) - 0.5) < 5 / np.sqrt(size)


def test_the_largest_scale_stays_far_inside_64_bits(source):
    # one of 1000 draws is 1024 scales away with probability 1000 exp(-1024)
    assert np.abs(source.discrete_laplace(MAX_SCALE, 1000)).max() < 2**50


@pytest.mark.parametrize(
    ("draw", "of"),
    [
        *(("discrete_laplace", []), ("discrete_gaussian", [])),
        *(("exponential_index", [SCORES]), ("exponential_range", [SCORES, SCORES])),
    ],
)
@pytest.mark.parametrize(
    "scale", [0.0, -1.0, float("nan"), float("inf"), 2.0 * MAX_SCALE, "3", True, None]
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
