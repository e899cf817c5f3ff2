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
from secretballot.hypotheses.intervals import Intervals
from secretballot.hypotheses.thresholds import Thresholds
from secretballot.privacy.accounting import GaussianEvent
from secretballot.publishing.release import write_release
from secretballot.released import ReleasedLabels
from secretballot.report.extras import MissingExtraError
from secretballot.report.pictures.style import Picture
from secretballot.report.release import folder as folder_room
from secretballot.report.release.page import render_page
from secretballot.report.rounds.captions import query_captions
from secretballot.report.rounds.pictures import (
    Segment,
    draw_query_pictures,
    line_view,
    region_sizes,
    space_segments,
)
from secretballot.report.rounds.story import QueryStory, make_story

Make = Callable[..., ReleasedLabels]
STRATEGY = {"name": "disagreement"}
UPDATES = [
    {"j": 2**power, "asked": power, "examined": 10, "in_region": 10 - power} for power in range(8)
]


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


def test_segments_of_a_line_are_drawn_and_named(make_binary: Make) -> None:
    released, X = make_binary(), np.linspace(0, 1, 180)[:, None]
    segments = [[None, 0.1], [0.25, 0.25], [0.4, 0.5], [0.9, None]]
    story = tell(released, X, [30, 30], explanation={"version_space": {"segments": segments}})
    ends = [(-np.inf, 0.1), (0.25, 0.25), (0.4, 0.5), (0.9, np.inf)]
    assert space_segments(story) == [Segment(low, high) for low, high in ends]
    picture = draw_query_pictures(story, released)["space"]
    assert picture.inline().count('id="space-segment"') == 4
    assert marks(picture, "pool") == 180
    assert marks(picture, "label-0") + marks(picture, "label-1") == 60
    words = query_captions(story, released)["space"]
    assert "up to 0.1, 0.25 to 0.25, 0.4 to 0.5 and 1 more" in words
    assert "how high they lie means nothing" in query_captions(story, released)["map"]


def test_thresholds_of_both_directions_have_a_row_each(make_binary: Make) -> None:
    released, X = make_binary(), np.linspace(0, 1, 180)[:, None]
    lines = [
        {"feature": 0, "direction": "up", "above": 0.4, "at_most": "inf", "segments": 3},
        {"feature": 0, "direction": "down", "above": "-inf", "at_most": 0.25, "segments": 1},
    ]
    story = tell(
        released,
        X,
        [30, 30],
        explanation={"version_space": {"class": "thresholds", "thresholds": lines}},
    )
    assert space_segments(story) == [
        Segment(0.4, np.inf, "up", 3),
        Segment(-np.inf, 0.25, "down", 1),
    ]
    picture = draw_query_pictures(story, released)["space"]
    assert painted(picture).count('id="space-segment"') == 2
    assert ">possible: yes above<" in painted(picture)
    assert ">possible: yes below<" in painted(picture)
    assert "from 0.4 on (in 3 pieces), up to 0.25" in query_captions(story, released)["space"]


def test_the_little_that_is_left_is_enlarged(make_binary: Make) -> None:
    released, X = make_binary(), np.linspace(0, 1, 180)[:, None]
    for ends, view in (
        ([0.5, 0.51], (0.46, 0.55)),
        ([0.5, 0.5], (0.495, 0.505)),
        ([0.2, 0.5], (-0.04, 1.04)),
    ):
        story = tell(released, X, [60], explanation={"version_space": {"segments": [ends]}})
        assert line_view(story, space_segments(story)) == pytest.approx(view)
        near = (X[:, 0] >= view[0]) & (X[:, 0] <= view[1])
        picture = draw_query_pictures(story, released)["space"]
        assert marks(picture, "pool") == int(near.sum())
        inside = int(near[released.queries].sum())
        assert marks(picture, "label-0") + marks(picture, "label-1") == inside
        words = query_captions(story, released)["space"]
        assert (f"{60 - inside} asked points further away" in words) == (inside < 60)


def test_both_ends_of_intervals_have_a_row_each(make_binary: Make) -> None:
    released, X = make_binary(), np.linspace(0, 1, 180)[:, None]
    space = Intervals().version_space().restrict(X[[20, 60, 110, 150]], [0, 1, 1, 0], 0.0)
    story = tell(released, X, [60], explanation={"version_space": space.describe()})
    lower, upper = space_segments(story)
    assert (lower.low, lower.high) == pytest.approx((X[20, 0], X[60, 0]))
    assert (upper.low, upper.high) == pytest.approx((X[110, 0], X[150, 0]))
    text = painted(draw_query_pictures(story, released)["space"])
    assert ">possible: lower end<" in text
    assert ">possible: upper end<" in text
    assert "upper end 0.614525 to 0.837989" in query_captions(story, released)["space"]


def test_the_version_space_of_our_thresholds_is_drawn(make_binary: Make) -> None:
    released, X = make_binary(), np.linspace(0, 1, 180)[:, None]
    space = Thresholds().version_space().restrict(X[[40, 90]], [0, 1], 0.0)
    story = tell(released, X, [60], explanation={"version_space": space.describe()})
    (segment,) = space_segments(story)
    assert (segment.low, segment.high) == pytest.approx((X[40, 0], X[90, 0]))


@pytest.mark.parametrize(
    "space",
    [
        None,
        "x",
        {},
        {"segments": 3},
        {"segments": [[1]]},
        {"segments": [[0, "b"]]},
        {"segments": [[0, True]]},
        {"thresholds": ["x"]},
        {"thresholds": [{"above": 1, "at_most": 0}]},
        {"thresholds": [{"at_most": 0}]},
    ],
)
def test_other_version_spaces_are_not_drawn_as_segments(
    make_binary: Make, plane: np.ndarray, space: Any
) -> None:
    released = make_binary()
    story = tell(released, plane[:, :1], [60], explanation={"version_space": space})
    assert space_segments(story) == []
    assert "space" not in draw_query_pictures(story, released)


def test_a_segment_in_the_plane_is_none(make_binary: Make, plane: np.ndarray) -> None:
    assert (
        space_segments(
            tell(make_binary(), plane, [60], explanation={"version_space": {"segments": [[0, 1]]}})
        )
        == []
    )


def test_the_region_is_drawn_with_its_uncertainty(make_binary: Make, plane: np.ndarray) -> None:
    released = make_binary()
    story = tell(released, plane, [60], explanation={"updates": UPDATES})
    seen, sizes = region_sizes(story)
    assert seen.tolist() == [2.0**power for power in range(8)]
    assert sizes[:, 1].tolist() == pytest.approx([100 - 10 * power for power in range(8)])
    # Wilson's interval of 5 in 10, from its definition: the shares p with |p - 0.5| <= z sqrt(p (1
    # - p) / 10).
    grid = np.linspace(0, 1, 200_001)
    inside = grid[np.abs(grid - 0.5) <= 1.959964 * np.sqrt(grid * (1 - grid) / 10)]
    assert sizes[5, [0, 2]] / 100 == pytest.approx([inside[0], inside[-1]], abs=1e-5)
    assert np.all((sizes >= 0) & (sizes <= 100))
    picture = draw_query_pictures(story, released)["region"]
    assert marks(picture, "updates") == 8
    assert "95 % intervals" in query_captions(story, released)["region"]


def test_a_region_that_was_looked_at_whole_has_no_uncertainty(
    make_binary: Make, plane: np.ndarray
) -> None:
    exact = [
        {"j": 0, "examined": 180, "in_region": 90},
        {"j": 4, "region": 45},
        {"j": 9, "region": 0.1},
    ]
    story = tell(make_binary(), plane, [60], explanation={"updates": exact})
    assert region_sizes(story)[1].tolist() == [[50, 50, 50], [25, 25, 25], [10, 10, 10]]
    assert "95 %" not in query_captions(story, make_binary())["region"]


@pytest.mark.parametrize(
    "updates",
    [
        "x",
        ["x"],
        [{}],
        [{"j": -1, "region": 0.5}],
        [{"j": 1, "region": 999}],
        [{"j": "1", "region": 0.5}],
        [{"j": 1, "examined": 0, "in_region": 0}],
        [{"j": 1, "examined": 2, "in_region": 3}],
    ],
)
def test_updates_that_tell_no_size_are_not_drawn(
    make_binary: Make, plane: np.ndarray, updates: Any
) -> None:
    released = make_binary()
    story = tell(released, plane, [60], explanation={"updates": updates})
    assert "region" not in draw_query_pictures(story, released)


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
    story = tell(released, plane, [25, 25], agreement=[0.5, 1.0], explanation={"updates": UPDATES})
    text = render_page(released, story=story)
    for words in (
        "Which points were asked",
        "The public pool",
        "What further labels changed",
        "The region of disagreement",
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
    story = tell(released, plane, [25, 25], agreement=[0.5, 1.0], explanation={"updates": UPDATES})
    written = write_release(tmp_path / "release", released, story=story)
    pictures = {
        f"queries-{name}.{kind}" for name in ("map", "curve", "region") for kind in ("svg", "png")
    }
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
