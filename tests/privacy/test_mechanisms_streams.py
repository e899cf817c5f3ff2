"""The sparse vector's code, draw by draw: against a plain one, against its exact law, and what
it must never do."""

import copy
import pickle

import numpy as np
import pytest

from made_events import pure_event
from secretballot.audit import outcomes_p_value, stream_law
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError
from secretballot.privacy.mechanisms import SparseVector
from secretballot.privacy.mechanisms import sparse_vector as room


class LogbookNoise:
    """Draw from a seeded generator and write down what was asked for, in order."""

    exact = False
    description = "for a test"

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.thresholds, self.queries = [], []

    def discrete_laplace(self, scale, size):
        drawn = self._rng.integers(-6, 7, size)
        (self.thresholds if size == 1 and scale == 1.5 else self.queries).extend(drawn.tolist())
        return drawn

    def discrete_gaussian(self, sigma, size):
        raise AssertionError("the sparse vector draws Laplace noise")


def plain_stream(values, thresholds, queries, mechanism):
    """The algorithm as the papers write it, one query at a time, on given noise."""
    thresholds, answers, below = list(thresholds), [], 0
    noisy_threshold = mechanism.threshold + thresholds.pop(0)
    for value, noise in zip(values, queries, strict=False):
        if value + noise > noisy_threshold:
            answers.append(True)
            continue
        answers.append(False)
        below += 1
        if below >= mechanism.max_below:
            break
        noisy_threshold = mechanism.threshold + thresholds.pop(0)
    return answers, thresholds


@pytest.mark.parametrize("max_below", [1, 2, 7, 1000])
@pytest.mark.parametrize("block", [3, 1 << 14])
def test_the_code_agrees_with_the_plain_algorithm_on_every_draw(monkeypatch, max_below, block):
    monkeypatch.setattr(room, "_BLOCK", block)
    monkeypatch.setattr(room, "_FIRST_LOOK", 4)
    rng = np.random.default_rng(max_below)
    for seed in range(60):
        mechanism = SparseVector(1.5, 3.0, 2, max_below)
        values = rng.integers(0, 12, rng.integers(1, 60))
        noise = LogbookNoise(seed)
        drawn = mechanism.release(values, noise).tolist()
        expected, unused = plain_stream(values, noise.thresholds, noise.queries, mechanism)
        assert drawn == expected
        # no threshold noise but what the algorithm asks for, and never a query's noise used twice
        assert unused == []
        assert len(noise.queries) >= len(drawn)


def test_blocks_and_single_questions_answer_alike():
    mechanism = SparseVector(1.5, 3.0, 2, 5)
    values = np.random.default_rng(0).integers(0, 12, 80)
    for seed in range(40):
        noise = LogbookNoise(seed)
        run = mechanism.start(noise)
        one_by_one = []
        for value in values:
            one_by_one += run.test(np.array([value])).tolist()
        expected, _ = plain_stream(values, noise.thresholds, noise.queries, mechanism)
        assert one_by_one == expected
        assert run.n_below == expected.count(False)


@pytest.mark.parametrize("max_below", [1, 3])
def test_it_stops_at_the_last_allowed_below_and_never_answers_after(max_below):
    mechanism = SparseVector(2.0, 2.0, 1000, max_below)
    run = mechanism.start(ExactNoise())
    assert run.test(np.zeros(50, dtype=int)).tolist() == [False] * max_below
    assert run.stopped
    for _ in range(3):
        assert run.test(np.full(10, 10**6)).tolist() == []
    assert run.n_below == max_below


def test_the_comparison_is_strict():
    class Silence(LogbookNoise):
        def discrete_laplace(self, scale, size):
            return np.zeros(size, dtype=np.int64)

    mechanism = SparseVector(1.5, 3.0, 5, 9)
    assert mechanism.release(np.array([4, 5, 6]), Silence(0)).tolist() == [False, False, True]


def test_drawn_streams_follow_their_exact_law_and_no_other():
    values, trials = np.array([7, 1, 7, 0, 7]), 8000
    mechanism = SparseVector(2.0, 3.0, 2, 2)
    drawn = [tuple(mechanism.release(values, ExactNoise()).tolist()) for _ in range(trials)]
    assert abs(sum(stream_law(mechanism, values).values()) - 1) < 1e-10
    assert outcomes_p_value(drawn, stream_law(mechanism, values)) > 1e-6
    broken = {
        "0.7 times the query noise": SparseVector(2.0, 2.1, 2, 2),
        "1.3 times the query noise": SparseVector(2.0, 3.9, 2, 2),
        "half the threshold noise": SparseVector(1.0, 3.0, 2, 2),
        "one more below": SparseVector(2.0, 3.0, 2, 3),
        "no strict comparison": SparseVector(2.0, 3.0, 1, 2),
    }
    missed = [
        what
        for what, other in broken.items()
        if outcomes_p_value(drawn, stream_law(other, values)) > 1e-6
    ]
    assert missed == []


def test_a_repeated_query_gets_fresh_noise():
    run = SparseVector(0.01, 20.0, 5, 10**6).start(ExactNoise())
    answers = run.test(np.full(400, 5))
    assert 50 < answers.sum() < 350


def test_first_query_is_above_with_the_stated_probability():
    mechanism = SparseVector(2.0, 4.0, 6, 3)
    for value in (0, 5, 6, 7, 15):
        law = stream_law(mechanism, np.array([value]))
        np.testing.assert_allclose(mechanism.above_probability(value), law[(True,)], rtol=1e-9)


def test_the_pattern_alone_costs_pure_epsilon():
    assert SparseVector(2.0, 4.0, 6, 3).pattern_event() == pure_event(1.0, 3)


def test_a_run_hides_its_noisy_threshold_and_is_not_copied():
    run = SparseVector(1e6, 1.0, 5, 3).start(ExactNoise())
    assert str(run._noisy_threshold) not in repr(run)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="secret"):
            copied(run)


def test_values_that_do_not_fit_are_refused_before_anything_is_drawn():
    run = SparseVector(1.0, 1.0, 5, 3).start(ExactNoise())
    with pytest.raises(DataError):
        run.test(np.array([0.5]))
    assert run.test(np.array([], dtype=int)).tolist() == []
    assert run.n_below == 0


def test_long_stable_streams_are_walked_in_seconds():
    run = SparseVector(2.0, 2.0, 10, 50).start(LongNoise())
    assert run.test(np.full(2_000_000, 100)).all()


class LongNoise(LogbookNoise):
    def __init__(self):
        super().__init__(0)

    def discrete_laplace(self, scale, size):
        return np.zeros(size, dtype=np.int64)
