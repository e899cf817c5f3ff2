"""Contracts that every registered mechanism keeps: its sensitivity, its event, its law, its
guards."""

import inspect

import numpy as np
import pytest

import secretballot.privacy.mechanisms as shelf
from made_events import (
    abstention_event,
    class_event,
    counts_event,
    json_of,
    label_event,
    pure_event,
    ranged_event,
    sparse_event,
    stable_event,
    table_event,
)
from secretballot.audit import (
    discrete_gaussian_distribution,
    discrete_laplace_distribution,
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
    DistanceToInstability,
    GaussianNoisyArgmax,
    GaussianNoisyCount,
    GaussianNoisyHistogram,
    GaussianNoisyMajority,
    GaussianNoisyTable,
    GaussianThreshold,
    LaplaceNoisyArgmax,
    LaplaceNoisyCount,
    LaplaceNoisyHistogram,
    LaplaceNoisyMajority,
    Mechanism,
    SparseVector,
    VoteQuantile,
    VoteTableMajority,
    margin,
    stability,
)


def _highest(counts):
    return counts.max(axis=1)


# mechanism, number of classes, the integers that are noised as a function of counts, event of 7
# queries
EXAMPLES = {
    GaussianNoisyCount: (GaussianNoisyCount(3.0), 2, lambda c: c[:, 1:], counts_event(3.0, 7)),
    GaussianNoisyHistogram: (
        GaussianNoisyHistogram(3.0, 3),
        3,
        lambda c: c,
        counts_event(3.0, 14),
    ),
    # one teacher that takes its vote elsewhere moves two cells of a row
    GaussianNoisyTable: (GaussianNoisyTable(3.0, 2), 3, lambda c: c, counts_event(3.0, 14)),
    GaussianNoisyMajority: (
        GaussianNoisyMajority(3.0, 9),
        2,
        lambda c: c[:, 1:],
        label_event(3.0, 7, 9),
    ),
    GaussianNoisyArgmax: (GaussianNoisyArgmax(3.0, 3), 3, lambda c: c, class_event(3.0, 7)),
    LaplaceNoisyMajority: (
        LaplaceNoisyMajority(3.0, 9),
        2,
        lambda c: c[:, 1:],
        pure_event(1 / 3, 7),
    ),
    LaplaceNoisyCount: (LaplaceNoisyCount(3.0), 2, lambda c: c[:, 1:], pure_event(1 / 3, 7)),
    LaplaceNoisyHistogram: (
        LaplaceNoisyHistogram(3.0, 3),
        3,
        lambda c: c,
        pure_event(1 / 3, 14),
    ),
    LaplaceNoisyArgmax: (LaplaceNoisyArgmax(3.0, 3), 3, lambda c: c, pure_event(1 / 3, 14)),
    VoteTableMajority: (
        VoteTableMajority((2**51, 2**50), 9),
        2,
        lambda c: c[:, 1:],
        table_event((2**51, 2**50), 7, 9),
    ),
    GaussianThreshold: (
        GaussianThreshold(3.0, 6),
        3,
        lambda c: _highest(c)[:, None],
        label_event(3.0, 7),
    ),
    DistanceToInstability: (
        DistanceToInstability(3.0, 4),
        3,
        lambda c: stability(c)[:, None],
        stable_event(3.0, 4, 7),
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
    # counts of votes for four positions; the distance of one of them
    VoteQuantile: (
        VoteQuantile(0.7, 4, 4),
        4,
        lambda c: np.array(
            [[VoteQuantile(0.7, 4, 4).distances(np.repeat(np.arange(4), row))[1]] for row in c]
        ),
        ranged_event(0.7, 7),
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
    with pytest.raises(ParameterError, match="n_classes"):
        GaussianNoisyArgmax(1.0, 1)
    with pytest.raises(ParameterError, match="n_teachers"):
        GaussianNoisyMajority(1.0, 0)
    with pytest.raises(ParameterError, match="threshold"):
        GaussianThreshold(1.0, 2.5)
    with pytest.raises(ParameterError, match="threshold"):
        GaussianThreshold(1.0, True)
    with pytest.raises(ParameterError, match="threshold"):
        DistanceToInstability(1.0, -1)
    with pytest.raises(ParameterError, match="threshold"):
        SparseVector(1.0, 1.0, -1, 1, True)
    with pytest.raises(ParameterError, match="max_below"):
        SparseVector(1.0, 1.0, 1, 0, True)
    with pytest.raises(ParameterError, match="refresh"):
        SparseVector(1.0, 1.0, 1, 1, 1)


@pytest.mark.parametrize(
    "counts",
    [
        np.zeros((2, 3)),
        np.zeros(4, dtype=int),
        np.zeros((2, 5), dtype=int),
        np.array([[1, -1, 3]]),
        np.array([[1, 2**41, 3]]),
    ],
)
def test_counts_that_do_not_fit_are_refused_without_naming_a_vote(counts):
    for mechanism in (
        GaussianNoisyArgmax(3.0, 3),
        GaussianNoisyHistogram(3.0, 3),
        LaplaceNoisyArgmax(3.0, 3),
    ):
        with pytest.raises(DataError) as caught:
            mechanism.release(counts, ExactNoise())
        assert str(2**41) not in str(caught.value)


def test_values_that_do_not_fit_are_refused():
    for values in (np.zeros(3), np.zeros((2, 2), dtype=int), np.array([2**41])):
        with pytest.raises(DataError):
            GaussianThreshold(3.0, 1).release(values, ExactNoise())
    with pytest.raises(DataError, match="one for each"):
        DistanceToInstability(3.0, 1).release(np.array([1, 2]), np.array([1]), ExactNoise())


def test_unsigned_counts_do_not_wrap_around():
    counts = np.array([[200, 50], [50, 200]], dtype=np.uint8)
    np.testing.assert_array_equal(stability(counts), [74, 74])
    np.testing.assert_array_equal(margin(counts), [150, 150])


# -- laws of the outputs with the real noise
# -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "query", "law", "draws"),
    [
        (GaussianNoisyMajority(4.0, 9), [1, 8], discrete_gaussian_distribution, 1),
        (LaplaceNoisyMajority(4.0, 8), [1, 7], discrete_laplace_distribution, 1),
        (GaussianNoisyArgmax(2.0, 3), [4, 3, 2], discrete_gaussian_distribution, 3),
        (LaplaceNoisyArgmax(1.0, 3), [4, 3, 2], discrete_laplace_distribution, 3),
        (GaussianThreshold(4.0, 6), 1, discrete_gaussian_distribution, 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Mechanism) else "",
)
def test_labels_drawn_have_the_enumerated_frequencies_and_no_other(mechanism, query, law, draws):
    trials = 20_000
    scale = getattr(mechanism, "sigma", None) or mechanism.scale
    n_outcomes = 3 if draws == 3 else 2
    tiled = np.tile(np.asarray(query), (trials,) + (1,) * np.ndim(query))
    drawn = np.bincount(
        np.asarray(mechanism.release(tiled, ExactNoise())).astype(int), minlength=n_outcomes
    )
    caught = []
    for factor in (1.0, 0.7, 1.3):
        expected = output_distribution(
            mechanism.release, query, law(factor * scale, 1e-9), draws=draws, n_outcomes=n_outcomes
        )
        p_value = min(
            frequency_p_value(int(k), trials, min(1.0, float(p)))
            for k, p in zip(drawn, expected, strict=True)
        )
        caught.append(p_value * n_outcomes < 1e-6)
    assert caught == [False, True, True]


def test_noisy_counts_are_counts_plus_noise_on_each():
    counts = np.tile([40, 60, 20], (5000, 1))
    released = GaussianNoisyHistogram(10.0, 3).release(counts, ExactNoise())
    assert released.shape == counts.shape
    noise = released - counts
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.08
    np.testing.assert_allclose(noise.std(axis=0), 10, rtol=0.08)
    single = GaussianNoisyCount(10.0).release(counts[:, :2], ExactNoise())
    assert single.shape == (5000,)
    assert abs(single.mean() - 60) < 1


def test_one_query_asked_twice_gets_fresh_noise():
    counts = np.tile([125, 125], (400, 1))
    labels = GaussianNoisyMajority(50.0, 250).release(counts, ExactNoise())
    assert 100 < labels.sum() < 300


# -- distance to instability
# -----------------------------------------------------------------------------------------


def test_distance_to_instability_answers_exactly_or_abstains():
    test = DistanceToInstability(2.0, 10)
    released = test.release(np.array([0, 100]), np.array([3, 1]), ExactNoise())
    assert released.tolist() == [-1, 1]


def test_utility_bound_of_the_distance_test_holds_and_is_near():
    test = DistanceToInstability(5.0, 70)
    for beta in (0.3, 0.01, 1e-6):
        distance = test.stable_distance(beta)
        assert 1 - test.answer_probability(distance) <= beta
        # one factor 1 + e^(-1/scale) < 2 is lost, worth log 2 scales
        assert 1 - test.answer_probability(distance - 5) > beta
    with pytest.raises(ParameterError, match="beta"):
        test.stable_distance(0.0)


def test_answer_probability_is_the_enumerated_one():
    test, law = DistanceToInstability(3.0, 6), discrete_laplace_distribution(3.0)
    for distance in (0, 5, 6, 7, 20):
        np.testing.assert_allclose(
            test.answer_probability(distance), law.at_least(7 - distance), rtol=1e-9
        )
