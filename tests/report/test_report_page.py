"""The page: whole in itself, escaped, right in its numbers, with pictures that say what they
show."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from made_releases import binary, chosen, summed, tallied, withheld
from sklearn.linear_model import LogisticRegression

from made_certificates import ACCOUNT, renewed
from secretballot.publishing.page import Facts, render_page, sentences
from secretballot.released import ReleasedLabels

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "a&b;&lt;",
    "$x^2$ \\frac",
    "\u202eback\x00",
    "",
]
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Reads a page strictly: tags close in order, and everything seen is kept."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 3))


def test_the_page_is_well_formed_and_loads_nothing(
    released: ReleasedLabels, X_public: np.ndarray
) -> None:
    answered = released.answered
    student = LogisticRegression().fit(X_public[released.queries[answered]], released.label_values)
    text = render_page(released, student=student, X_public=X_public)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & {
        tag for tag, _ in page.tags
    }
    for _, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "xlink:href", "action", "data", "srcset"):
                assert value is not None
                assert value.startswith("#")
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", text)


def test_the_page_says_what_matters() -> None:
    page = Page(render_page(binary()))
    said = " ".join(page.said.split())
    for words in (
        "ε = 1 and δ = 1e-5",
        "one in 100,000",
        "registry-2026",
        "patient_id",
        "adding or removing one person",
        "sigma 32, shifts 60",
        "What was not protected",
        "one standard deviation of the noise, 32 votes",
        "earlier releases 0.5",
        "this release 1",
        "No student was trained",
    ):
        assert words in said, words


def test_hostile_names_stay_text() -> None:
    hostile = HOSTILE[0]
    account = {"dataset": hostile, "unit": "user", "relation": "add-remove", "durable": False}
    composition = ACCOUNT | account
    declaration = {"unit": "user", "unit_column": HOSTILE[1], "assumptions": [HOSTILE[0]]}
    changes = {"composition": composition, "declaration": declaration, "purpose": HOSTILE[1]}
    for released in (
        binary(classes=HOSTILE[:2], **changes),
        tallied(classes=HOSTILE, **changes),
        withheld(classes=HOSTILE, **changes),
    ):
        text = render_page(released)
        page = Page(text)
        assert not {"script", "img"} & {tag for tag, _ in page.tags}
        assert "<script>alert(1)</script>" in page.said
        assert "\x00" not in text
        assert "\u202e" not in text
        text.encode("utf-8")


def test_the_page_says_how_a_plan_was_used() -> None:
    released = binary()
    plan = {"planned": 60, "used": 60, "rounds": [25, 25, 10], "left": "none"}
    plan |= {"strategy": {"name": HOSTILE[0]}}
    certificate = renewed(released.certificate | {"plan": plan})
    page = Page(render_page(replace(released, certificate=certificate)))
    assert "script" not in {tag for tag, _ in page.tags}
    assert "60 were used, in 3 rounds, by the strategy <script>alert(1)" in page.said


@pytest.mark.parametrize("make", [chosen, summed])
def test_labels_of_the_model_itself_are_no_test_of_it(make: Callable[[], ReleasedLabels]) -> None:
    (said,) = sentences("quality", Facts(make()))
    assert "the model's own predictions" in said
