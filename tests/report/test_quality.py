"""What the page says of how good a release is: of released values and public points alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_forgeries import chosen, summed

from secretballot.released import ReleasedLabels
from secretballot.report.release.facts import Facts
from secretballot.report.release.words import sentences

Make = Callable[..., ReleasedLabels]
X = np.arange(180.0)[:, None]


def quality_points(released: ReleasedLabels, *student: Any) -> list[str]:
    return sentences("quality", Facts(released, *student))


class Fixed:
    """A student that says what it was told to, row by row of the pool."""

    def __init__(self, answers: list[Any]) -> None:
        self.answers = answers

    def predict(self, points: np.ndarray) -> np.ndarray:
        return np.array([self.answers[int(row)] for row in points[:, 0]])


def answers_of(released: ReleasedLabels, wrong: int) -> list[Any]:
    """Return the released label of every query, but another one at the first ones."""
    answers = [released.classes[0]] * 180
    for place, (query, label) in enumerate(zip(released.queries, released.labels, strict=True)):
        other = (label + 1) % released.n_classes
        answers[query] = released.classes[other if place < wrong else label]
    return answers


def test_agreement_with_the_released_labels_is_counted(make_binary: Make) -> None:
    released = make_binary()
    said = quality_points(released, Fixed(answers_of(released, wrong=7)), X)[-1]
    assert said.startswith(f"The student gives the released label at {len(released.queries) - 7:,}")
    assert "so this is not its accuracy" in said


@pytest.mark.parametrize("make", [chosen, summed])
def test_labels_of_the_model_itself_are_no_test_of_it(make: Callable[[], ReleasedLabels]) -> None:
    (said,) = quality_points(make(), Fixed(["a"] * 200), X)
    assert "the model's own predictions" in said
