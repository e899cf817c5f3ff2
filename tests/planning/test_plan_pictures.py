"""Pictures of plans: as many marks as there are things, axes named, and nothing that fails at
the edges."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from made_plan import BEST, WEIGHED, candidate, made_plan

from secretballot.planning.plan.model import FrontierPoint, Plan, Setting
from secretballot.planning.plan.pictures import (
    draw_candidates,
    draw_frontier,
    draw_plan_pictures,
    draw_teachers,
)
from secretballot.report.pictures.style import Picture


def marks(text: str, gid: str) -> int:
    """Count the marks in the groups of an SVG with that id."""
    root = ElementTree.fromstring(f'<root xmlns:xlink="x">{text}</root>')
    groups = [element for element in root.iter() if element.get("id", "").endswith(gid)]
    return sum(element.tag.endswith("use") for group in groups for element in group.iter())


def letters(picture: Picture) -> str:
    return " ".join(re.findall(r">([^<>]+)</text>", picture.inline()))


def test_every_picture_has_both_kinds_of_file() -> None:
    pictures = draw_plan_pictures(made_plan())
    assert list(pictures) == ["frontier", "candidates", "teachers"]
    for name, picture in pictures.items():
        assert picture.name == name
        assert picture.png().startswith(b"\x89PNG")
        assert ElementTree.fromstring(picture.svg()).tag.endswith("svg")
        assert picture.svg() == picture.svg()


def test_the_frontier_names_its_axes_and_marks_what_is_useless() -> None:
    picture = draw_frontier(made_plan())
    text = letters(picture)
    for part in (
        "epsilon of the release (nats)",
        "accuracy on new points (%)",
        "most frequent class alone",
        "nothing useful",
        "this plan",
    ):
        assert part in text
    assert marks(picture.inline(), "useless") == 1
    assert marks(picture.inline(), "recommended") == 1
    assert "nothing useful" not in letters(
        draw_frontier(made_plan(frontier=(FrontierPoint(1.0, BEST),)))
    )


def test_every_candidate_has_a_mark_of_its_recipe() -> None:
    picture = draw_candidates(made_plan())
    text = picture.inline()
    assert [marks(text, f"recipe-{number}") for number in range(5)] == [2, 1, 1, 1, 0]
    for part in (
        "queries asked (l)",
        "teachers (K)",
        "accuracy of the student (%)",
        "noisy counts",
        "sparse vector",
    ):
        assert part in letters(picture)


def test_teachers_are_those_of_the_recommended_recipe() -> None:
    worse = candidate(Setting(50, "gaussian", "counts", 500), vote=0.9, label=0.6, student=0.5)
    # the better of two with 50 teachers is drawn
    picture = draw_teachers(made_plan(evaluated=(*WEIGHED, worse)))
    assert marks(picture.inline(), "vote") == 2
    assert marks(picture.inline(), "labels") == 2
    assert "teachers (K); noisy counts" in letters(picture)


@pytest.mark.parametrize(
    "plan",
    [
        made_plan(evaluated=(BEST,), frontier=()),
        made_plan(evaluated=(BEST,), frontier=(FrontierPoint(0.1, None),), constant=0.999),
        made_plan(
            evaluated=(BEST,),
            frontier=tuple(FrontierPoint(10.0**power, BEST) for power in range(-4, 5)),
        ),
    ],
    ids=("one candidate", "nothing useful", "many powers of ten"),
)
def test_bare_plans_are_drawn_too(plan: Plan) -> None:
    for picture in draw_plan_pictures(plan).values():
        assert picture.png()
        assert "this plan" in letters(picture)


def test_words_stay_within_the_picture() -> None:
    """The legend of many recipes, and long ticks, neither leave the picture nor cover each
    other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    many = [
        candidate(Setting(10**power, "gaussian", "labels", 10**power, strategy=name), 0.9, 0.8, 0.7)
        for power, name in enumerate(
            ("passive", "margin", "committee", "disagreement", "k-center", "entropy"), 1
        )
    ]
    for picture in draw_plan_pictures(made_plan(evaluated=(BEST, *many))).values():
        figure = Figure(figsize=(5.0, picture.height), layout="constrained")
        axes = figure.add_subplot()
        picture.paint(axes)
        FigureCanvasAgg(figure).draw()
        boxes = [text.get_window_extent() for text in figure.legends[0].get_texts()]
        assert all(
            box.x0 >= 0 and box.x1 <= 500 and box.y0 >= 0 and box.y1 <= 100 * picture.height
            for box in boxes
        )
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [
                tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high
            ]
            ticks = [label.get_window_extent() for label in shown]
            assert len(ticks) >= 2
            assert not any(a.overlaps(b) for a, b in pairwise(ticks))
