"""The sampler's own check: it passes what is right, names what is wrong, and its power is what
it says."""

from itertools import islice

import numpy as np
import pytest
from scipy.special import bdtr
from scipy.stats import binom

from secretballot.core import noise as room
from secretballot.core.noise import ExactNoise
from secretballot.core.sampler import (
    _ALARM,
    _FALSE_ALARM,
    _SAMPLES,
    Sample,
    _fits,
    _listed_distribution,
    _looked_at,
    _most_apart,
    first_failure,
)

IDS = [f"{sample.kind} {sample.scale:g}" for sample in _SAMPLES]
CHUNK = 1 << 14


def detection_probability(sample: Sample, other: np.ndarray) -> float:
    """Return a lower bound on the probability that draws of another distribution are refused: where
    it is farthest away, in one way to look at it.

    Parameters
    ----------
    sample : Sample
    other : ndarray of float64, shape (n_values,)
        Probabilities of the other distribution on the values that `_listed_distribution` returns.
    """
    values, law = _listed_distribution(sample.kind, sample.scale)
    counts = np.arange(sample.size + 1)
    best = 0.0
    for numbers, chances in islice(_looked_at(values, values, law, CHUNK), 4):
        expected, got = np.cumsum(chances), np.cumsum(np.bincount(numbers, other))
        place = np.argmax(np.abs(expected - got))
        apart = np.abs(counts / sample.size - expected[place])
        chance = np.diff(bdtr(counts, sample.size, min(got[place], 1.0)), prepend=0.0)
        best = max(best, float(chance[apart > _most_apart(sample.size)].sum()))
    return best


def rescaled(kind: str, scale: float, factor: float) -> np.ndarray:
    values, _ = _listed_distribution(kind, scale)
    wide = scale * factor
    weights = np.exp(-np.abs(values) / wide if kind == "laplace" else -(values**2) / (2 * wide**2))
    return weights / weights.sum()


def laplace_of_wrong_exp() -> np.ndarray:
    """Return the noise of OpenDP 0.14.0 at scale 3: it draws the event of probability exp(-2/3)
    with exp(-1/2)."""
    values, _ = _listed_distribution("laplace", 3.0)
    steps = np.array([0.0, -1 / 3, -1 / 2])
    weights = np.exp(steps[np.abs(values) % 3] - np.abs(values) // 3)
    return weights / weights.sum()


class Sampler:
    """A sampler of numpy's, as good as it needs to be, with one fault."""

    def __init__(self, factor: float = 1.0, fault: str = "") -> None:
        self.rng, self.factor, self.fault = np.random.default_rng(0), factor, fault

    def __call__(self, kind: str, scale: float, size: int) -> np.ndarray:
        if self.fault == "seeded":
            self.rng = np.random.default_rng(0)
        values, probabilities = _listed_distribution(kind, scale)
        if self.fault == "wrong exp" and (kind, scale) == ("laplace", 3.0):
            probabilities = laplace_of_wrong_exp()
        elif self.factor != 1:
            probabilities = rescaled(kind, scale, self.factor)
        drawn = self.rng.choice(values, size, p=probabilities)
        if self.fault.startswith("multiples") and scale > 100:  # whose tails and values hide it
            step = int(self.fault.split()[-1])
            drawn = drawn // step * step
        if self.fault == "one of many":
            drawn[:] = drawn[:1]
        if self.fault == "chunks" and size > CHUNK:
            drawn[CHUNK:] = drawn[: size - CHUNK]
        if self.fault == "halves" and size < CHUNK:
            drawn[size - size // 2 :] = drawn[: size // 2]
        if self.fault == "positive":
            drawn = np.abs(drawn)
        if self.fault == "no tails" and kind == "gaussian":
            drawn = np.clip(drawn, -int(2.3 * scale), int(2.3 * scale))
        return drawn[:-1] if self.fault == "short" else drawn


def test_the_installed_sampler_and_a_right_one_pass() -> None:
    # the check refuses a right sampler with probability at most FALSE_ALARM
    assert _FALSE_ALARM <= 1e-9
    source = ExactNoise()
    draws = {"laplace": source.discrete_laplace, "gaussian": source.discrete_gaussian}
    assert first_failure(lambda kind, *given: draws[kind](*given), room._CHUNK) is None
    assert first_failure(Sampler(), CHUNK) is None


@pytest.mark.parametrize(
    "fault",
    [
        *("seeded", "wrong exp", "multiples of 2", "multiples of 3", "one of many", "chunks"),
        *("halves", "positive", "no tails", "short", "scale 0.7", "scale 1.3"),
    ],
)
def test_every_fault_is_found(fault: str) -> None:
    factor = float(fault.split()[1]) if fault.startswith("scale") else 1.0
    found = first_failure(Sampler(factor, fault), CHUNK)
    assert found is not None
    assert len(found) < 200


@pytest.mark.parametrize("sample", _SAMPLES[:-1], ids=IDS[:-1])
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_noise_of_another_scale_is_refused_as_surely_as_stated(sample, factor) -> None:
    assert detection_probability(sample, rescaled(sample.kind, sample.scale, factor)) > 1 - 1e-5


@pytest.mark.parametrize("sample", _SAMPLES, ids=IDS)
def test_right_noise_is_hardly_ever_refused(sample) -> None:
    values, right = _listed_distribution(sample.kind, sample.scale)
    assert detection_probability(sample, right) < _FALSE_ALARM / len(_SAMPLES)
    tails = islice(_looked_at(values, values, right, CHUNK), 4, 6)
    for (_, chances), most in zip(tails, (0.05, 0.01), strict=True):
        assert most / 20 < chances[1] <= most


def test_the_count_of_one_of_two_outcomes_is_held_against_both_exact_tails() -> None:
    counts = np.arange(101)
    tails = np.minimum(binom.cdf(counts, 100, 0.3), binom.sf(counts - 1, 100, 0.3))
    found = [_fits(np.array([100 - n, n]), np.array([0.7, 0.3])) for n in counts]
    assert found == (2 * tails > _ALARM).tolist()
