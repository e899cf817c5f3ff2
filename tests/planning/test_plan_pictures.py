"""Pictures of plans: as many marks as there are things, axes named, and nothing that fails at
the edges."""

from xml.etree import ElementTree

from made_plan import made_plan

from secretballot.planning.plan.pictures import draw_plan_pictures


def marks(text: str, gid: str) -> int:
    """Count the marks in the groups of an SVG with that id."""
    root = ElementTree.fromstring(f'<root xmlns:xlink="x">{text}</root>')
    groups = [element for element in root.iter() if element.get("id", "").endswith(gid)]
    return sum(element.tag.endswith("use") for group in groups for element in group.iter())


def test_every_picture_has_both_kinds_of_file() -> None:
    pictures = draw_plan_pictures(made_plan())
    assert list(pictures) == ["frontier", "candidates", "teachers"]
    for name, picture in pictures.items():
        assert picture.name == name
        assert picture.png().startswith(b"\x89PNG")
        assert ElementTree.fromstring(picture.svg()).tag.endswith("svg")
        assert picture.svg() == picture.svg()
