"""Contracts that every registered mechanism keeps: its sensitivity, its event, its law, its
guards."""

import inspect

import numpy as np
import pytest

import secretballot.privacy.mechanisms as shelf
from made_events import (
    abstention_event,
    json_of,
    label_event,
    pure_event,
    sparse_event,
)
from secretballot.audit import (
    discrete_gaussian_distribution,
    frequency_p_value,
    neighbouring_counts,
    output_distribution,
)
from secretballot.core.noise import ExactNoise
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import (
    event_in,
)
from secretballot.privacy.mechanisms import (
    MECHANISMS,
    AbstentionTable,
    ExponentialMechanism,
    GaussianThreshold,
    Mechanism,
    SparseVector,
    StabilityQuantile,
    margin,
    stability,
)


def _highest(counts):
    return counts.max(axis=1)


# mechanism, number of classes, the integers that are noised as a function of counts, event of 7
# queries
EXAMPLES = {
    GaussianThreshold: (
        GaussianThreshold(3.0, 6),
        3,
        lambda c: _highest(c)[:, None],
        label_event(3.0, 7),
    ),
    SparseVector: (
        SparseVector(3.0, 6.0, 4, 2, True),
        3,
        lambda c: stability(c)[:, None],
        sparse_event(3.0, 6.0, 4, 2, True),
    ),
    AbstentionTable: (
        AbstentionTable(5.0, 0.5, 0.01, 2, 4),
        3,
        lambda c: stability(c)[:, None],
        abstention_event(5.0, 0.5, 0.01, 2),
    ),
    # the count of one class stands for one score
    ExponentialMechanism: (
        ExponentialMechanism(0.7, False),
        3,
        lambda c: c[:, :1],
        pure_event(0.7, 7),
    ),
    # pools of one point; larger ones in test_pool_estimates
    StabilityQuantile: (
        StabilityQuantile(0.1, 0.7),
        3,
        lambda c: stability(c)[:, None],
        pure_event(0.7, 7),
    ),
}
KINDS = pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)


def test_every_mechanism_of_the_shelf_is_registered_and_has_an_example():
    public = {
        thing
        for thing in vars(shelf).values()
        if inspect.isclass(thing) and issubclass(thing, Mechanism) and thing is not Mechanism
    }
    assert public == set(MECHANISMS) == set(EXAMPLES)


@KINDS
@pytest.mark.parametrize("n_teachers", [8, 9])
def test_declared_sensitivity_is_the_largest_move_between_neighbours(kind, n_teachers):
    mechanism, n_classes, statistic, _ = EXAMPLES[kind]
    counts, neighbours = neighbouring_counts(n_teachers, n_classes)
    moves = np.abs(statistic(counts) - statistic(neighbours))
    assert moves.sum(axis=1).max() == mechanism.l1_sensitivity
    assert (moves**2).sum(axis=1).max() == mechanism.squared_l2_sensitivity


@KINDS
def test_event_states_what_was_drawn_and_survives_json(kind):
    mechanism, _, _, event = EXAMPLES[kind]
    assert mechanism.event(7) == event
    assert event_in(json_of(mechanism.event(7))) == event


@KINDS
def test_event_refuses_no_queries(kind):
    mechanism = EXAMPLES[kind][0]
    for count in (0, -1, 1.5):
        with pytest.raises(ParameterError):
            mechanism.event(count)


@KINDS
@pytest.mark.parametrize("scale", [0.0, -2.0, float("nan"), float("inf"), 1e30, "1", None])
def test_noise_that_is_no_noise_is_refused(kind, scale):
    settings = dict(vars(EXAMPLES[kind][0]))
    for name in settings.keys() & {"sigma", "scale", "threshold_scale", "query_scale", "epsilon"}:
        with pytest.raises(ParameterError, match=name):
            kind(**{**settings, name: scale})


def test_other_parameters_out_of_range_are_refused():
    with pytest.raises(ParameterError, match="threshold"):
        GaussianThreshold(1.0, 2.5)
    with pytest.raises(ParameterError, match="threshold"):
        GaussianThreshold(1.0, True)
    with pytest.raises(ParameterError, match="threshold"):
        SparseVector(1.0, 1.0, -1, 1, True)
    with pytest.raises(ParameterError, match="max_below"):
        SparseVector(1.0, 1.0, 1, 0, True)
    with pytest.raises(ParameterError, match="refresh"):
        SparseVector(1.0, 1.0, 1, 1, 1)


def test_values_that_do_not_fit_are_refused():
    for values in (np.zeros(3), np.zeros((2, 2), dtype=int), np.array([2**41])):
        with pytest.raises(DataError):
            GaussianThreshold(3.0, 1).release(values, ExactNoise())


def test_unsigned_counts_do_not_wrap_around():
    counts = np.array([[200, 50], [50, 200]], dtype=np.uint8)
    np.testing.assert_array_equal(stability(counts), [74, 74])
    np.testing.assert_array_equal(margin(counts), [150, 150])


# -- laws of the outputs with the real noise
# -------------------------------------------------------------------------


def test_answers_drawn_have_the_enumerated_frequencies_and_no_other():
    trials, mechanism = 20_000, GaussianThreshold(4.0, 6)
    drawn = np.bincount(mechanism.release(np.ones(trials, dtype=int), ExactNoise()).astype(int))
    caught = []
    for factor in (1.0, 0.7, 1.3):
        law = discrete_gaussian_distribution(factor * 4.0, 1e-9)
        expected = output_distribution(mechanism.release, 1, law, n_outcomes=2)
        p_values = [
            frequency_p_value(int(k), trials, min(1.0, float(p)))
            for k, p in zip(drawn, expected, strict=True)
        ]
        caught.append(2 * min(p_values) < 1e-6)
    assert caught == [False, True, True]
