"""The story of rounds: told from public things, the same after JSON, refused where it does not
fit."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.story import QueryStory, check_story, make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "margin", "batch": 20}


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 2))


@pytest.fixture
def story(make_withheld: Make, X_public: np.ndarray) -> QueryStory:
    explanation = {"updates": [{"j": np.int64(1), "region": 1.0}]}
    return make_story(
        X_public,
        make_withheld(),
        STRATEGY,
        [20, 30],
        explanation,
        agreement=[0.9, 1.0],
        region=X_public[:, 0] > 0,
    )


def changed(story: QueryStory, **fields: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(story.to_json()))
    return document | fields


def test_a_story_comes_back_from_json(story: QueryStory) -> None:
    document = json.loads(json.dumps(story.to_json()))
    back = QueryStory.from_json(document)
    assert back == story
    assert back.to_json() == story.to_json()
    assert np.array_equal(back.positions, story.positions)
    assert back.region is not None
    assert back.region.dtype == bool
    assert back != QueryStory.from_json(document | {"n_points": 181})
    assert story != "story"
    assert "50 queries in 2 rounds, of 180 public points" in repr(story)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": "other"}, "queries.json"),
        ({"more": 1}, "misses or adds fields: more"),
        ({"rounds": [{"asked": [0]}]}, "Round 1 must hold"),
        ({"rounds": [{"asked": [0], "answered": 2, "agreement": None}]}, "2 answers to 1"),
        ({"rounds": [{"asked": [0, 0], "answered": 1, "agreement": None}]}, "twice"),
        ({"rounds": [{"asked": [999], "answered": 1, "agreement": None}]}, "no position"),
        ({"rows": [[0]]}, "list of integers"),
        ({"rows": list(range(179, -1, -1))}, "ascend"),
        ({"n_points": 100}, "between 0 and 99"),
        ({"positions": [[0.0, 0.0]]}, r"shape \(180, 2\)"),
        ({"positions": [[0.0, float("nan")]] * 180}, "nan or infinity"),
        ({"projected": "t-SNE"}, "as is, principal components"),
    ],
)
def test_a_document_that_does_not_fit_is_refused(
    story: QueryStory, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises((DataError, ParameterError), match=words) as caught:
        QueryStory.from_json(changed(story, **fields))
    assert "\n" not in str(caught.value)


def test_a_story_of_another_release_is_refused(
    story: QueryStory, make_withheld: Make, make_binary: Make
) -> None:
    with pytest.raises(ParameterError, match="give a QueryStory"):
        check_story(story.to_json(), make_withheld())  # type: ignore[arg-type]
    one = make_withheld()
    flipped = np.where(np.arange(50) == 0, -1 - one.labels, one.labels).clip(-1, 1)
    for other in (
        make_binary(),
        ReleasedLabels(one.queries[::-1], one.labels, one.classes, 250),
        ReleasedLabels(
            one.queries, flipped if flipped[0] != one.labels[0] else -flipped, one.classes, 250
        ),
    ):
        with pytest.raises(DataError, match="other queries or answers"):
            check_story(story, other)


def test_a_story_that_denies_the_plan_is_refused(story: QueryStory, make_withheld: Make) -> None:
    plan = {"planned": 80, "used": 50, "rounds": [20, 30], "strategy": STRATEGY, "left": "kept"}
    check_story(story, make_withheld(n_queries=80, plan=plan))
    for change in ({"rounds": [25, 25]}, {"strategy": {"name": "passive"}}):
        with pytest.raises(DataError, match="other rounds or another strategy"):
            check_story(story, make_withheld(n_queries=80, plan=plan | change))
