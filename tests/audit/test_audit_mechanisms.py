"""The standing set of mechanisms: true ones pass, plants are caught, and every mechanism has its
line."""

import inspect
import re

import pytest

from made_events import sparse_event
from secretballot.accounting import teacher_shape
from secretballot.audit import MechanismsAudit, audit_mechanisms
from secretballot.audit.distributions import discrete_laplace_distribution
from secretballot.audit.mechanisms_audit import (
    _all_games,
    _counts_attack,
    _label_attack,
    _sampler_test,
    _sampler_tests,
    _stream_attack,
)
from secretballot.core.mechanisms import (
    NoisyVotes,
    StabilityQuantile,
    StableValue,
    TableLabels,
    VoteQuantiles,
)
from secretballot.core.noise import ExactNoise


def test_a_sound_mechanism_passes_and_the_attack_says_what_it_would_catch():
    found = _label_attack("majority", NoisyVotes(scale=2.0), 9, 4)()
    assert found.passed
    assert found.caught >= 0.9
    assert 0.97 * found.allowed < found.found <= found.allowed


def test_a_price_that_is_too_small_is_found():
    # three counts, priced as two
    found = _counts_attack("counts", teacher_shape(2, 2, 9), shifts=3)()
    assert not found.passed
    assert found.found > found.allowed
    assert "FAILED" in MechanismsAudit((found,)).text()


def test_outcomes_of_a_stream_catch_what_its_labels_hide():
    stream = sparse_event(2.0, 2.0, 3, 1, True)
    assert _stream_attack("with labels", stream, 2)().passed
    found = _stream_attack("alone", stream, 2, labels=False)()
    assert found.passed
    assert found.caught >= 0.5


def test_a_sampler_with_less_noise_than_it_says_is_found():
    noise = ExactNoise()
    sound = _sampler_test(
        "sound", noise.discrete_laplace, discrete_laplace_distribution, 3.0, 4000
    )()
    assert sound.passed
    assert sound.caught is not None
    weak = _sampler_test(
        "weak",
        lambda s, n: noise.discrete_laplace(0.7 * s, n),
        discrete_laplace_distribution,
        3.0,
        4000,
    )()
    assert not weak.passed


def test_every_mechanism_is_played():
    source = re.sub(r"\s", "", inspect.getsource(_all_games))
    kinds = (NoisyVotes, TableLabels, StableValue, VoteQuantiles, StabilityQuantile)
    assert all(f"{kind.__name__}(" in source for kind in kinds)
    assert len(_sampler_tests(1000)) == 7


@pytest.mark.slow
def test_the_standing_set_passes():
    told = []
    found = audit_mechanisms(progress=lambda done, total: told.append((done, total)))
    assert found.passed
    assert told[-1] == (len(found.findings),) * 2
