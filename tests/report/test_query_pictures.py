"""The story of rounds, told from public things, and its pictures; names stay text in both."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels
from secretballot.report.extras import MissingExtraError
from secretballot.report.release import folder as folder_room
from secretballot.report.release.page import render_page
from secretballot.report.rounds.pictures import draw_query_pictures
from secretballot.report.rounds.story import QueryStory, make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "disagreement"}


def tell(
    released: ReleasedLabels, X: Any, rounds: list[int], agreement: list[float | None]
) -> QueryStory:
    return make_story(X, released, STRATEGY, rounds, {}, agreement)


@pytest.fixture(name="plane")
def points_of_a_plane() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 2))


def test_hostile_names_stay_text(make_withheld: Make, plane: np.ndarray) -> None:
    names = [
        "<script>alert(1)</script>",
        "$x^2$ & \u202e\x00 a very long name of a column that goes on",
    ]
    released = make_withheld(classes=['"><img src=x>', "", "$y$"])
    story = tell(released, pd.DataFrame(plane, columns=names), [50], [None])
    for picture in draw_query_pictures(story, released).values():
        root = ElementTree.fromstring(picture.svg())
        assert not [node for node in root.iter() if node.tag.endswith(("script", "img"))]
        assert "".join(root.itertext()).count("alert(1)") == 1
        assert picture.png()


def test_the_page_shows_the_story_and_loads_nothing(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld(classes=("<script>alert(1)</script>", "b", "c"))
    story = tell(released, plane, [25, 25], [0.5, 1.0])
    text = render_page(released, story=story)
    for words in ("Which points were asked", "The public pool", "What further labels changed"):
        assert words in text
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)|<script|<img", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) - len(set(ids)) == 0
    used = {one or two for one, two in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)}
    assert used <= set(ids)
    assert "Which points were asked" not in render_page(released)


def test_the_folder_holds_the_story_and_its_pictures(
    tmp_path: Path, make_withheld: Make, plane: np.ndarray
) -> None:
    released = make_withheld()
    story = tell(released, plane, [25, 25], [0.5, 1.0])
    written = folder_room.write_files(tmp_path, released, story=story)
    pictures = {f"queries-{name}.{kind}" for name in ("map", "curve") for kind in ("svg", "png")}
    assert pictures | {"queries.json"} <= set(written.files)
    assert {entry.name for entry in tmp_path.iterdir()} == set(written.files)
    assert json.loads((tmp_path / "queries.json").read_text()) == story.to_json()
    assert "queries-map.svg" in (tmp_path / "README.txt").read_text()
    assert "queries-map.svg" in (tmp_path / "report.html").read_text()


def test_without_matplotlib_the_story_is_still_written(
    tmp_path: Path, make_withheld: Make, plane: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise MissingExtraError(
            "matplotlib is not installed; install it with: pip install 'secretballot[report]'."
        )

    monkeypatch.setattr("secretballot.report.pictures.style.require_extra", missing)
    monkeypatch.setattr(folder_room, "render_page", missing)
    released = make_withheld()
    written = folder_room.write_files(tmp_path, released, story=tell(released, plane, [50], [None]))
    assert "queries.json" in written.files
    assert {"queries-map.svg", "queries-map.png", "report.html"} <= set(written.left_out)


def test_a_story_tells_rounds_in_order(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld()
    explanation = {"updates": [{"j": np.int64(1), "seen": np.array([0.5])}]}
    story = make_story(plane, released, STRATEGY, [20, 30], explanation, [None, 1.0])
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
    assert document["positions"] == [[x, y] for x, y in plane.round(5).tolist()]


def test_a_pool_without_the_rows_that_were_asked_is_refused(
    make_withheld: Make, plane: np.ndarray
) -> None:
    with pytest.raises(DataError, match="Row 147 was asked of a public pool of 100 rows"):
        make_story(plane[:100], make_withheld(), STRATEGY, [50], {}, [None])
