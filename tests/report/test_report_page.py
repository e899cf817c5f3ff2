"""The page, and the curator's words on it: whole in itself, escaped, right in its numbers."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from made_releases import binary, chosen, summed, tallied, withheld
from sklearn.linear_model import LogisticRegression

import secretballot_verify as second
from made_certificates import ACCOUNT, failed, renewed, reseal
from secretballot.exceptions import CertificateError
from secretballot.publishing.page import Facts, _say, _sentences, render_page
from secretballot.publishing.release import write_release
from secretballot.report.certificate import with_about
from secretballot.report.metrics import (
    _metrics_of,
    _wilson_interval,
    metrics_of_student,
    paired_difference,
)
from secretballot.report.verification import verify_certificate
from secretballot.report.wording import at_most_text, percent_text

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

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.tags = []
        self.said = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said += data


@pytest.fixture(name="X_public")
def public_points():
    return np.random.default_rng(3).normal(size=(180, 3))


def test_the_page_is_well_formed_and_loads_nothing(released, X_public):
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


def test_the_page_says_what_matters():
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


def test_hostile_names_stay_text():
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


@pytest.mark.parametrize("make", [chosen, summed])
def test_labels_of_the_model_itself_are_no_test_of_it(make):
    (said,) = _sentences("quality", Facts(make()))
    assert "the model's own predictions" in said


SAID = {"title": "Stays in the wards", "controller": "The trust", "contact": "office@example.org"}


@pytest.mark.parametrize(
    "about",
    [{}, [], None, {"colour": "red"}, {**SAID, "note": "x"}]
    + [{"title": bad} for bad in ("", "  ", "two\nlines", "\x1b[31m", 3, None, ["x"])],
    ids=repr,
)
def test_words_that_cannot_be_are_refused_by_both(make_folder, about):
    folder = make_folder(binary())
    reseal(folder, lambda document: document.update(about=about))
    assert failed(folder) == {"fields"}
    assert second.exit_code(second.check_release(str(folder))) == 4
    if about not in ({}, [], None):
        with pytest.raises(CertificateError, match=r"field about(\.[a-z]+)? is"):
            with_about(binary().certificate, about)


def test_they_are_written_with_the_files_and_change_nothing_that_was_paid(tmp_path):
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


def test_hostile_words_stay_text_everywhere(tmp_path):
    released = binary()
    plan = {"planned": 60, "used": 60, "rounds": [25, 25, 10], "left": "none"}
    words = {"purpose": HOSTILE[0], "plan": plan | {"strategy": {"name": HOSTILE[0]}}}
    released = replace(released, certificate=renewed(released.certificate, **words))
    X = np.random.default_rng(0).normal(size=(180, 3))
    student = LogisticRegression().fit(X[released.queries], released.label_values)
    about = dict(zip(SAID, (*HOSTILE[1:3], HOSTILE[0]), strict=True))
    folder = write_release(tmp_path / "r", released, student=student, X_public=X, about=about).path
    page = Page((folder / "report.html").read_text())
    for text in (*HOSTILE[:3], f"60 were used, in 3 rounds, by the strategy {HOSTILE[0]}"):
        assert text in page.said
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
def test_large_epsilons_come_with_a_caution(epsilon, begins, sure):
    certificate = binary().certificate | {"epsilon": epsilon}
    words = _say("caution", certificate)
    assert words.startswith(begins)
    assert sure in words
    assert bool(words) == bool(begins)


def test_the_total_of_the_account_is_said_where_it_is_more():
    certificate = binary().certificate
    assert certificate["composition"]["spent_after"]["epsilon"] > certificate["epsilon"]
    spent = certificate["composition"]["spent_after"]
    assert f"cost ε = {spent['epsilon']:g} and δ =" in _say("total", certificate)
    account = certificate["composition"] | {
        "spent_after": {name: certificate[name] for name in ("epsilon", "delta")}
    }
    assert _say("total", certificate | {"composition": account}) == ""


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
def test_what_is_said_to_be_at_most_is_never_less(say_it, value, text):
    assert say_it(value) == text
    assert float(text.split()[0]) >= value


TRUTH = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
ANSWERS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 0, 0])


def test_shares_are_those_counted_by_hand():
    found = _metrics_of(TRUTH, ANSWERS, ["a", "b", "c"])
    assert found.accuracy == pytest.approx(0.7)
    assert found.confusion == ((5, 1, 0), (1, 2, 0), (1, 0, 0))
    assert [one.recall for one in found.classes] == pytest.approx([5 / 6, 2 / 3, 0])
    assert [one.precision for one in found.classes[:2]] == pytest.approx([5 / 7, 2 / 3])
    assert found.classes[2].precision is None  # nobody answered it
    assert found.balanced_accuracy == pytest.approx((5 / 6 + 2 / 3) / 3)
    assert (found.majority, found.majority_accuracy) == ("a", 0.6)
    assert found.auc is None
    assert found.calibration is None


def test_area_and_calibration_of_two_classes():
    truth = np.array([0, 0, 1, 1])
    second = np.array([0.1, 0.6, 0.4, 0.9])
    answers = (second > 0.5).astype(int)
    found = _metrics_of(truth, answers, ["no", "yes"], np.column_stack([1 - second, second]))
    assert found.auc == pytest.approx(0.75)  # of the four pairs three are in order
    assert found.calibration is not None
    assert found.calibration.said == pytest.approx((0.9 + 0.6 + 0.6 + 0.9) / 4)
    assert found.calibration.brier == pytest.approx((0.01 + 0.36 + 0.36 + 0.01) / 4)
    # 0.6 is said twice and never right, 0.9 twice and always right
    assert found.calibration.error == pytest.approx((2 * 0.6 + 2 * 0.1) / 4)


def test_wilson_interval_has_the_known_values():
    # Newcombe 1998, table I, method 3
    for found, low, high in (
        (_wilson_interval(81, 263), 0.2553, 0.3662),
        (_wilson_interval(0, 20), 0.0, 0.1611),
    ):
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert _wilson_interval(7, 7).high == 1.0


def test_intervals_of_differences_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [150, 50])
    held, held_balanced = 0, 0
    for _ in range(1000):
        first = rng.random(200) < np.where(truth == 0, 0.9, 0.4)
        # right where the first is, mostly: the pairs are far from independent
        second = np.where(rng.random(200) < 0.8, first, rng.random(200) < 0.5)
        expected = np.where(truth == 0, 0.9 - (0.8 * 0.9 + 0.1), 0.4 - (0.8 * 0.4 + 0.1))
        plain = paired_difference(first, second).interval
        balanced = paired_difference(first, second, truth).interval
        held += plain.low <= expected.mean() <= plain.high
        held_balanced += balanced.low <= np.mean([0.08, -0.02]) <= balanced.high
    assert 930 <= held <= 985
    assert 930 <= held_balanced <= 995


def test_a_student_is_measured_by_declared_classes_it_may_not_all_know():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    student = LogisticRegression().fit(X, ["a", "a", "c", "c"])
    found = metrics_of_student(student, X, np.array([0, 1, 2, 2]), ["a", "b", "c"])
    assert found.accuracy == 0.75
    assert found.auc is not None
    assert found.classes[1].recall == 0
    assert json.loads(json.dumps(found.to_json()))["confusion"] == [[1, 0, 0], [1, 0, 0], [0, 0, 2]]
