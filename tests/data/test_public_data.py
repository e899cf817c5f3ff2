"""What benchmarks and tests rest on: reference data as published."""

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
from secretballot.data.schema import Schema


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
