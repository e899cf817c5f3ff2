"""What the curator says of a release: checked by both verifiers, escaped on every page, and never
part of what was paid for."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_releases import binary
from sklearn.linear_model import LogisticRegression
from test_report_page import HOSTILE, Page

import secretballot_verify as second
from made_certificates import failed, renewed, reseal
from secretballot.exceptions import CertificateError
from secretballot.publishing.page import say
from secretballot.publishing.release import write_release
from secretballot.report.certificate.build import with_about
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.wording import at_most_text, percent_text

SAID = {"title": "Stays in the wards", "controller": "The trust", "contact": "office@example.org"}


@pytest.mark.parametrize(
    "about",
    [{}, [], None, {"colour": "red"}, {**SAID, "note": "x"}]
    + [{"title": bad} for bad in ("", "  ", "two\nlines", "\x1b[31m", 3, None, ["x"])],
    ids=repr,
)
def test_words_that_cannot_be_are_refused_by_both(
    make_folder: Callable[..., Path], about: Any
) -> None:
    folder = make_folder(binary())
    reseal(folder, lambda document: document.update(about=about))
    assert failed(folder) == {"fields"}
    assert second.exit_code(second.check_release(str(folder))) == 4
    if about not in ({}, [], None):
        with pytest.raises(CertificateError, match=r"field about(\.[a-z]+)? is"):
            with_about(binary().certificate, about)


def test_they_are_written_with_the_files_and_change_nothing_that_was_paid(tmp_path: Path) -> None:
    released = binary()
    made = write_release(tmp_path / "named", released, about=SAID, without=("report",))
    plain = write_release(tmp_path / "plain", released, without=("report",))
    assert made.certificate["about"] == SAID
    assert "about" not in plain.certificate
    own = {"about", "files", "digest"}
    assert {k: v for k, v in made.certificate.items() if k not in own} == {
        k: v for k, v in plain.certificate.items() if k not in own
    }
    for folder in ("named", "plain"):
        assert verify_certificate(tmp_path / folder).ok
        labels = (tmp_path / folder / "labels.csv").read_bytes()
        assert labels == (tmp_path / "plain" / "labels.csv").read_bytes()
    with pytest.raises(CertificateError, match=r"about\.name is unknown"):
        write_release(tmp_path / "refused", released, about={"name": "x"})
    assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if text.isprintable() and text])
def test_hostile_words_stay_text_everywhere(tmp_path: Path, hostile: str) -> None:
    released = binary()
    released = replace(released, certificate=renewed(released.certificate, purpose=hostile))
    X = np.random.default_rng(0).normal(size=(180, 3))
    student = LogisticRegression().fit(X[released.queries], released.label_values)
    about = dict.fromkeys(SAID, hostile)
    folder = write_release(tmp_path / "r", released, student=student, X_public=X, about=about).path
    text = (folder / "report.html").read_text()
    assert hostile not in text or "<" not in hostile
    page = Page(text)
    assert page.said.count(hostile) == 5  # the title of the window, and four places
    assert not {"script", "img"} & {tag for tag, _ in page.tags}
    card = (folder / "model-card.md").read_text()
    assert "<script" not in card.replace("\\<", "")
    assert "<img" not in card.replace("\\<", "")


@pytest.mark.parametrize(
    ("epsilon", "begins", "sure"),
    [
        (5.0, "", ""),
        (5.5, "Caution: an epsilon above 5 is a weak guarantee.", "99.6 % sure"),
        (12.0, "Caution: an epsilon above 10 is hardly any guarantee.", "99.9994 % sure"),
    ],
)
def test_large_epsilons_come_with_a_caution(epsilon: float, begins: str, sure: str) -> None:
    certificate = binary().certificate | {"epsilon": epsilon}
    words = say("caution", certificate)
    assert words.startswith(begins)
    assert sure in words
    assert bool(words) == bool(begins)


def test_the_total_of_the_account_is_said_where_it_is_more() -> None:
    certificate = binary().certificate
    assert certificate["composition"]["spent_after"]["epsilon"] > certificate["epsilon"]
    spent = certificate["composition"]["spent_after"]
    assert f"cost ε = {spent['epsilon']:g} and δ =" in say("total", certificate)
    account = certificate["composition"] | {
        "spent_after": {name: certificate[name] for name in ("epsilon", "delta")}
    }
    assert say("total", certificate | {"composition": account}) == ""


@pytest.mark.parametrize(
    ("say_it", "value", "text"),
    [
        (percent_text, 73.1059, "73.2 %"),
        (percent_text, 100 - 1e-6, "99.999999 %"),
        (percent_text, 100.0, "100 %"),
        (at_most_text, math.e, "2.72"),
        (at_most_text, math.exp(20), "4.9e+08"),
        (at_most_text, 0.0123456, "0.0124"),
    ],
)
def test_what_is_said_to_be_at_most_is_never_less(say_it: Any, value: float, text: str) -> None:
    assert say_it(value) == text
    assert float(text.split()[0]) >= value
