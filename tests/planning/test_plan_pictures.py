"""Pictures of plans: as many marks as there are things, axes named, and nothing that fails at
the edges."""

import re
from xml.etree import ElementTree

import pytest
from made_plan import BEST, made_plan

from secretballot.planning.plan.model import FrontierPoint, Plan
from secretballot.planning.plan.pictures import (
    draw_plan_pictures,
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
