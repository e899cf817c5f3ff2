import hashlib

import numpy as np
import pytest

from reference_data import reference
from secretballot.data import (
    ADULT_CLASSES,
    ADULT_SCHEMA,
    ADULT_TARGET,
    adult,
    adult_votes,
    mnist,
    mnist_votes,
)
from secretballot.data.schema import Schema


@pytest.fixture(scope="module")
def adult_frames():
    return reference(adult)


def test_adult_has_the_known_shape_and_classes(adult_frames):
    assert adult_frames.train.shape == (32561, 15)
    assert adult_frames.test.shape == (16281, 15)
    assert (adult_frames.train[ADULT_TARGET] == ">50K").sum() == 7841
    assert (adult_frames.test[ADULT_TARGET] == ">50K").sum() == 3846
    for frame in adult_frames:
        assert set(frame[ADULT_TARGET]) == set(ADULT_CLASSES)


def test_adult_schema_covers_every_cell_but_the_unknown_ones(adult_frames):
    for frame in adult_frames:
        for name, spec in ADULT_SCHEMA["columns"].items():
            if spec == "numeric":
                assert frame[name].dtype == np.int64
            else:
                assert set(frame[name]) <= {*spec, "?"}


def test_adult_schema_encodes_by_public_rows(adult_frames):
    schema = Schema.from_json(ADULT_SCHEMA, public=adult_frames.test.drop(columns=ADULT_TARGET))
    assert schema.classes == ADULT_CLASSES
    encoding = schema.encoding(adult_frames.train.head(100))
    assert encoding.matrix.shape[0] == 100
    assert not encoding.unreadable


def test_mnist_images_are_the_published_ones():
    split = reference(mnist)
    assert split.X_train.shape == (60000, 784)
    assert split.X_test.shape == (10000, 784)
    assert split.y_test[:3].tolist() == [7, 2, 1]
    header = np.array([2051, 60000, 28, 28], dtype=">u4").tobytes()
    digest = hashlib.md5(header + split.X_train.tobytes(), usedforsecurity=False).hexdigest()
    assert digest == "6bbc9ace898e44ae57da46a324031adb"


def test_vote_files_agree_with_the_labels_as_published():
    digits = reference(mnist_votes)
    assert digits.shape == (9000, 10)
    assert (digits.sum(axis=1) == 250).all()
    assert np.mean(digits.argmax(axis=1) == reference(mnist).y_test[:9000]) == pytest.approx(
        0.9437, abs=5e-5
    )
    incomes = reference(adult_votes)
    assert incomes.shape == (16281, 2)
    rich = reference(adult).test[ADULT_TARGET] == ADULT_CLASSES[1]
    assert np.mean(incomes.argmax(axis=1) == rich) == pytest.approx(0.8440, abs=5e-5)
