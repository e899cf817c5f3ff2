"""What benchmarks and tests rest on: reference data as published, and samples of known laws."""

import hashlib

import numpy as np
import pytest

from public_data import (
    ADULT_CLASSES,
    ADULT_SCHEMA,
    ADULT_TARGET,
    adult,
    adult_votes,
    mnist,
    mnist_votes,
)
from reference_data import reference
from samples import TsybakovThresholds, synthetic_massart
from secretballot.data.schema import Schema

LAWS = [
    TsybakovThresholds(0.25, 0.3, 0.2, 0.1, 0.5),
    TsybakovThresholds(0.5),
    TsybakovThresholds(0.8, 0.6, 2.0, 0.2, 0.25),
    TsybakovThresholds(1.0, 0.3, 0.2, 0.1, 0.5),
]
# middles of a million cells: sums over them are integrals to about six digits
GRID = (np.arange(1_000_000) + 0.5) / 1_000_000


def test_adult_is_as_published_and_its_schema_has_every_cell_but_the_unknown_ones():
    frames = reference(adult)
    assert [frame.shape for frame in frames] == [(32561, 15), (16281, 15)]
    assert [(frame[ADULT_TARGET] == ">50K").sum() for frame in frames] == [7841, 3846]
    for frame in frames:
        assert set(frame[ADULT_TARGET]) == set(ADULT_CLASSES)
        for name, spec in ADULT_SCHEMA["columns"].items():
            if spec == "numeric":
                assert frame[name].dtype == np.int64
            else:
                assert set(frame[name]) <= {*spec, "?"}
    schema = Schema.from_json(ADULT_SCHEMA, public=frames.test.drop(columns=ADULT_TARGET))
    assert schema.classes == ADULT_CLASSES
    assert not schema.encoding(frames.train.head(100)).unreadable


def test_images_and_vote_files_are_the_published_ones():
    split, digits = reference(mnist), reference(mnist_votes)
    assert split.y_test[:3].tolist() == [7, 2, 1]
    header = np.array([2051, 60000, 28, 28], dtype=">u4").tobytes()
    digest = hashlib.md5(header + split.X_train.tobytes(), usedforsecurity=False).hexdigest()
    assert digest == "6bbc9ace898e44ae57da46a324031adb"
    rich = reference(adult).test[ADULT_TARGET] == ADULT_CLASSES[1]
    for votes, shape, truth, right in (
        (digits, (9000, 10), split.y_test[:9000], 0.9437),
        (reference(adult_votes), (16281, 2), rich, 0.8440),
    ):
        assert votes.shape == shape
        assert (votes.sum(axis=1) == 250).all()
        assert np.mean(votes.argmax(axis=1) == truth) == pytest.approx(right, abs=5e-5)


def test_massart_noise_is_the_bayes_error_and_excess_error_is_known():
    points = np.random.default_rng(0).random((100_000, 1))
    above, other = points[:, 0] >= 0.3, points[:, 0] >= 0.4
    sample = synthetic_massart(points, lambda X: X[:, 0] >= 0.3, noise=0.2, seed=1)
    assert np.mean(sample.y != above) == pytest.approx(0.2, abs=0.005)
    assert np.mean(sample.y != other) == pytest.approx(0.2 + (1 - 2 * 0.2) * 0.1, abs=0.006)
    assert np.array_equal(sample.probability > 0.5, above)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"tau {law.tau}")
def test_excess_error_is_the_integral_of_the_margin_and_has_the_exponent_of_the_law(law):
    probability = law.probability(GRID)
    least = np.minimum(probability, 1 - probability).mean()
    assert law.bayes_error == pytest.approx(least, abs=1e-6)
    for threshold in (-np.inf, 0.1, 0.29, 0.55, 1.0):
        says_one = threshold <= GRID
        error = np.where(says_one, 1 - probability, probability).mean()
        assert law.excess(threshold) == pytest.approx(error - law.bayes_error, abs=2e-6)
        apart = np.mean(says_one != (law.threshold <= GRID))
        assert law.disagreement(threshold) == pytest.approx(apart, abs=2e-6)
    near = law.threshold + np.geomspace(1e-9, 1e-3, 100) * [[-1], [1]]
    thresholds = np.append(np.linspace(0, 1, 2001), near)
    excess, apart = law.excess(thresholds), law.disagreement(thresholds)
    assert (apart <= law.eta * excess**law.tau * (1 + 1e-6)).all()
    close = law.threshold - np.array([1e-4, 1e-8])
    ratio = law.disagreement(close) / law.excess(close) ** (law.tau + 0.01)
    assert ratio[1] > 1.09 * ratio[0]  # without bound: a larger exponent needs an infinite factor
