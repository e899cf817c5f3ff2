"""The story of rounds: told from public things, as JSON values."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.story import make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "margin", "batch": 20}


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 2))


def test_a_story_tells_rounds_in_order(make_withheld: Make, X_public: np.ndarray) -> None:
    released = make_withheld()
    explanation = {"updates": [{"j": np.int64(1), "seen": np.array([0.5])}]}
    story = make_story(X_public, released, STRATEGY, [20, 30], explanation, [None, 1.0])
    assert story.asked.tolist() == released.queries.tolist()
    assert story.round_of.tolist() == [0] * 20 + [1] * 30
    document = json.loads(json.dumps(story.to_json(), allow_nan=False))
    assert document == story.to_json()
    assert document["strategy"] == STRATEGY
    assert document["explanation"] == {"updates": [{"j": 1, "seen": [0.5]}]}
    assert [
        (len(one["asked"]), one["answered"], one["agreement"]) for one in document["rounds"]
    ] == [
        (20, int(released.answered[:20].sum()), None),
        (30, int(released.answered[20:].sum()), 1.0),
    ]
    assert document["positions"] == [[x, y] for x, y in X_public.round(5).tolist()]


def test_a_pool_without_the_rows_that_were_asked_is_refused(
    make_withheld: Make, X_public: np.ndarray
) -> None:
    with pytest.raises(DataError, match="Row 147 was asked of a public pool of 100 rows"):
        make_story(X_public[:100], make_withheld(), STRATEGY, [50], {}, [None])
