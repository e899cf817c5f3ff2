"""Contracts that every registered mechanism keeps: its sensitivity, its event, its law, its
guards."""

import inspect

import numpy as np
import pytest

import secretballot.privacy.mechanisms as shelf
from made_events import (
    json_of,
    pure_event,
)
from secretballot.audit import (
    neighbouring_counts,
)
from secretballot.core.mechanisms import margin, stability
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import (
    event_in,
)
from secretballot.privacy.mechanisms import (
    MECHANISMS,
    ExponentialMechanism,
    Mechanism,
    StabilityQuantile,
)


def _highest(counts):
    return counts.max(axis=1)


# mechanism, number of classes, the integers that are noised as a function of counts, event of 7
# queries
EXAMPLES = {
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


def test_unsigned_counts_do_not_wrap_around():
    counts = np.array([[200, 50], [50, 200]], dtype=np.uint8)
    np.testing.assert_array_equal(stability(counts), [74, 74])
    np.testing.assert_array_equal(margin(counts), [150, 150])
