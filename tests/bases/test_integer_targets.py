"""Models of numbers between 0 and 1 in integers: near the real ones, each row by itself."""

import numpy as np
import pytest
from scipy.special import expit

from secretballot.bases.integer_model import (
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    with_constant,
)
from secretballot.bases.rotation import UNIT

RNG = np.random.default_rng(0)
POINTS = with_constant(np.rint(RNG.normal(0, 0.5, (200, 4)) * UNIT).astype(np.int64))
POINTS[0, :-1] = LARGEST_COORDINATE
POINTS[1, :-1] = -LARGEST_COORDINATE
WEIGHTS = RNG.normal(0, 1, (5, 3))


def test_they_are_near_the_functions_that_they_stand_for() -> None:
    linear = POINTS / UNIT @ WEIGHTS
    line = IntegerLine.of(WEIGHTS).predictions(POINTS) / PROBABILITY_UNIT
    assert np.abs(line - np.clip(0.5 + linear, 0, 1)).max() < 5e-4
    assert set(line[:2].ravel()) <= {0.0, 1.0}
    labels = IntegerLabels.of(WEIGHTS).predictions(POINTS) / PROBABILITY_UNIT
    assert np.abs(labels - expit(linear)).max() < 1e-3


def test_each_label_is_predicted_as_one_of_two_classes_is() -> None:
    model = IntegerLabels.of(WEIGHTS)
    for k in range(3):
        alone = IntegerModel(model.weights[:, [k]]).probabilities(POINTS)
        assert (model.predictions(POINTS)[:, k] == alone[:, 1]).all()


@pytest.mark.parametrize("kind", [IntegerLine, IntegerLabels])
def test_a_row_is_predicted_alike_whatever_stands_around_it(kind: type) -> None:
    model = kind.of(WEIGHTS)
    whole = model.predictions(POINTS)
    alone = [model.predictions(POINTS[[i]])[0] for i in range(len(POINTS))]
    assert (np.array(alone) == whole).all()
    assert whole.min() >= 0
    assert whole.max() <= PROBABILITY_UNIT
