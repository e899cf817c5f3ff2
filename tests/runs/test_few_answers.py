"""What is said where hardly any query was answered: what would help, by the aggregator."""

import numpy as np
import pytest

from secretballot.released import ReleasedLabels
from secretballot.runs.progress import Watch, note_few_answers


class Listening(Watch):
    """Remember what was noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, *, private: bool) -> None:
        assert not private
        self.notes.append(text)


@pytest.mark.parametrize(
    ("name", "answered", "words"),
    [
        ("sparse-vector", 1, "--max-unstable"),
        ("confident", 1, "--threshold"),
        ("interactive", 1, None),
        ("confident", 5, None),
    ],
)
def test_the_advice_is_that_of_the_aggregator(name: str, answered: int, words: str | None) -> None:
    labels = np.where(np.arange(20) < answered, 1, -1)
    released = ReleasedLabels(
        np.arange(20), labels, ("no", "yes"), 9, certificate={"mechanism": {"name": name}}
    )
    watch = Listening()
    note_few_answers(released, watch)
    assert len(watch.notes) == (words is not None)
    assert all(words in note and f"Only {answered} of 20" in note for note in watch.notes if words)
