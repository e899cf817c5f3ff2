"""Pictures of rounds: as many marks as there are things, files small, the page whole in itself."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import GaussianEvent
from secretballot.publishing.release import write_release
from secretballot.released import ReleasedLabels
from secretballot.report.extras import MissingExtraError
from secretballot.report.pictures.style import Picture
from secretballot.report.release import folder as folder_room
from secretballot.report.release.page import render_page
from secretballot.report.rounds.captions import query_captions
from secretballot.report.rounds.pictures import draw_query_pictures
from secretballot.report.rounds.story import QueryStory, make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "disagreement"}


def tell(released: ReleasedLabels, X: Any, rounds: list[int], **more: Any) -> QueryStory:
    return make_story(X, released, STRATEGY, rounds, **more)


@functools.cache
def painted(picture: Picture) -> str:
    """Return the SVG of a picture, which is the same every time."""
    return picture.inline()


def marks(picture: Picture, gid: str) -> int:
    """Count the marks in the group of an SVG with that id."""
    text = painted(picture)
    start = text.find(f'id="{picture.name}-{gid}"')
    if start < 0:
        return 0
    depth, end = 1, start
    while depth:
        tag = re.compile(r"<g[ >]|</g>").search(text, end)
        assert tag is not None
        depth += -1 if tag[0] == "</g>" else 1
        end = tag.end()
    return text[start:end].count("<use ")


@pytest.fixture(name="plane")
def points_of_a_plane() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 2))


def test_the_map_has_one_mark_for_each_query(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld()
    inside = plane[:, 0] > 1
    picture = draw_query_pictures(tell(released, plane, [20, 10, 20], region=inside), released)[
        "map"
    ]
    early = np.arange(50) < 20
    for label in range(3):
        for name, chosen in (("early", early), ("late", ~early)):
            expected = int(((released.labels == label) & chosen).sum())
            # A look of its own takes a group for each class and half.
            assert marks(picture, f"asked-{label}-{name}") == expected
    assert marks(picture, "abstained") == int((~released.answered).sum())
    assert marks(picture, "pool") == 180 - 50
    assert marks(picture, "region") == int(inside.sum())
    text = picture.inline()
    for words in (
        "a, round 1",
        "a, rounds 2 to 3",
        "no answer",
        "not asked",
        "region of disagreement",
        "feature 2",
    ):
        assert f">{words}<" in text


def test_one_round_needs_no_early_and_late(make_binary: Make, plane: np.ndarray) -> None:
    released = make_binary()
    picture = draw_query_pictures(tell(released, plane, [60]), released)["map"]
    assert marks(picture, "asked-0-late") + marks(picture, "asked-1-late") == 60
    assert "round" not in re.sub(r"<[^>]*>", "", picture.inline())


def test_many_classes_share_a_look(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld(classes=[f"kind {n}" for n in range(10)])
    picture = draw_query_pictures(tell(released, plane, [25, 25]), released)["map"]
    counted = sum(
        marks(picture, f"asked-{kind}-{half}") for kind in range(8) for half in ("early", "late")
    )
    assert counted == int(released.answered.sum())
    assert "4 other classes, round 2" in picture.inline()


def test_a_large_release_is_thinned_and_says_so() -> None:
    rng = np.random.default_rng(8)
    X, queries = rng.normal(size=(40_000, 20)), rng.choice(40_000, 2000, replace=False)
    released = ReleasedLabels(queries, rng.integers(0, 2, 2000), ("<=50K", ">50K"), 250)
    story = tell(released, X, [400] * 5, agreement=[0.8, 0.9, 0.95, 0.97, 1.0], region=X[:, 0] > 0)
    pictures = draw_query_pictures(story, released)
    for picture in pictures.values():
        assert len(picture.svg()) < 300_000
    drawn = sum(
        marks(pictures["map"], f"asked-{kind}-{half}")
        for kind in (0, 1)
        for half in ("early", "late")
    )
    assert drawn == 600
    assert marks(pictures["map"], "pool") == 1500
    words = query_captions(story, released)["map"]
    assert "600 of those asked and 1,500 of the others are drawn" in words
    assert "principal components" in words
    assert len(json.dumps(story.to_json())) < 300_000


def test_the_curve_has_one_dot_for_each_round_with_a_student(
    make_binary: Make, plane: np.ndarray
) -> None:
    released = make_binary()
    story = tell(released, plane, [20, 20, 20], agreement=[None, 0.75, 1.0])
    picture = draw_query_pictures(story, released)["curve"]
    assert marks(picture, "rounds") == 2
    said = re.sub(r"<[^>]*>", " ", picture.inline())
    assert "queries released" in said
    assert "% of the pool" in said
    assert "is no accuracy" in query_captions(story, released)["curve"]
    assert "curve" not in draw_query_pictures(tell(released, plane, [60]), released)


def test_pictures_are_the_same_every_time(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld()
    story = tell(released, plane, [25, 25], agreement=[0.5, 1.0])
    for one, two in zip(
        *(draw_query_pictures(story, released).values() for _ in range(2)), strict=True
    ):
        assert one.svg() == two.svg()
        assert one.png() == two.png()
        assert one.png().startswith(b"\x89PNG")
        assert one.svg().startswith(b'<svg xmlns="http://www.w3.org/2000/svg" viewBox=')


def test_hostile_names_stay_text(make_withheld: Make, plane: np.ndarray) -> None:
    names = [
        "<script>alert(1)</script>",
        "$x^2$ & \u202e\x00 a very long name of a column that goes on",
    ]
    released = make_withheld(classes=['"><img src=x>', "", "$y$"])
    story = tell(released, pd.DataFrame(plane, columns=names), [50])
    for picture in draw_query_pictures(story, released).values():
        root = ElementTree.fromstring(picture.svg())
        assert not [node for node in root.iter() if node.tag.endswith(("script", "img"))]
        assert "".join(root.itertext()).count("alert(1)") == 1
        assert picture.png()


def test_the_page_shows_the_story_and_loads_nothing(make_withheld: Make, plane: np.ndarray) -> None:
    released = make_withheld(classes=("<script>alert(1)</script>", "b", "c"))
    story = tell(released, plane, [25, 25], agreement=[0.5, 1.0])
    text = render_page(released, story=story)
    for words in (
        "Which points were asked",
        "The public pool",
        "What further labels changed",
    ):
        assert words in text
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)|<script|<img", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) - len(set(ids)) == 0
    used = {one or two for one, two in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)}
    assert used <= set(ids)
    assert "Which points were asked" not in render_page(released)


def test_planned_and_used_stand_beside_the_pictures(make_binary: Make, plane: np.ndarray) -> None:
    mechanism = {
        "name": "gaussian",
        "sigma": 45.0,
        "n_queries": 100,
        "n_classes": 2,
        "release": "counts",
    }
    plan = {"planned": 100, "used": 60, "rounds": [30, 30], "strategy": STRATEGY, "left": "kept"}
    released = make_binary(events=[GaussianEvent(45.0, 100)], mechanism=mechanism, plan=plan)
    text = render_page(released, story=tell(released, plane, [30, 30]))
    assert text.count("Of 100 reserved queries, 60 were used, in 2 rounds") == 1


def test_the_folder_holds_the_story_and_its_pictures(
    tmp_path: Path, make_withheld: Make, plane: np.ndarray
) -> None:
    released = make_withheld()
    story = tell(released, plane, [25, 25], agreement=[0.5, 1.0])
    written = write_release(tmp_path / "release", released, story=story)
    pictures = {f"queries-{name}.{kind}" for name in ("map", "curve") for kind in ("svg", "png")}
    assert pictures | {"queries.json"} <= set(written.files)
    assert {entry.name for entry in written.path.iterdir()} == set(written.files)
    assert QueryStory.from_json(json.loads((written.path / "queries.json").read_text())) == story
    assert "queries-map.svg" in (written.path / "README.txt").read_text()
    assert "queries-map.svg" in (written.path / "report.html").read_text()


def test_a_folder_refuses_the_story_of_another_release(
    tmp_path: Path, make_withheld: Make, make_binary: Make, plane: np.ndarray
) -> None:
    story = tell(make_withheld(), plane, [50])
    with pytest.raises(DataError, match="other queries or answers"):
        write_release(tmp_path / "release", make_binary(), story=story)
    with pytest.raises(ParameterError, match="give a QueryStory"):
        write_release(tmp_path / "release", make_binary(), story={})  # type: ignore[arg-type]
    with pytest.raises(DataError, match="other queries or answers"):
        render_page(make_binary(), story=story)
    assert not list(tmp_path.iterdir())


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
    written = folder_room.write_files(tmp_path, released, story=tell(released, plane, [50]))
    assert "queries.json" in written.files
    assert {"queries-map.svg", "queries-map.png", "report.html"} <= set(written.left_out)
