"""Release folders of numbers, and of several labels, that teachers voted for."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
import secretballot_verify as second

RNG = np.random.default_rng(0)
X, POINTS = (RNG.normal(size=(n, 3)).round(2) for n in (600, 80))
NAMES = ["a,b", "=c", "d"]
BUDGET = sb.PrivacyBudget(4.0, 1e-5)


def number(**settings):
    model = sb.PATERegressor(n_teachers=40, epsilon=BUDGET.epsilon, delta=BUDGET.delta, **settings)
    return model.fit(X, 3 * X[:, 0], X_public=POINTS, bounds=(-4.0, 4.5))


def several(**settings):
    model = sb.PATEClassifier(n_teachers=40, epsilon=BUDGET.epsilon, delta=BUDGET.delta, **settings)
    return model.fit(X, (X > [0.0, 0.5, 1.0]).astype(int), X_public=POINTS, labels=NAMES)


def confirmed(folder):
    """Return whether both verifiers find the folder in order."""
    outcome = sb.verify_certificate(folder)
    assert outcome.ok, outcome.failures
    found = second.check_release(str(folder))
    # of the price of labels alone the second verifier knows bounds, and may leave it open
    labels = json.loads((folder / "certificate.json").read_text())["events"][0]["kind"]
    for one in found:
        unsure = one.name == "price" and labels in ("binary-labels", "class-labels")
        assert one.verdict == second.CONFIRMED or (unsure and one.verdict == second.UNDECIDED), one
    return True


@pytest.mark.parametrize("settings", [{}, {"mechanism": "quantile", "n_queries": 5}], ids=str)
def test_a_number_is_released_with_its_student(tmp_path, settings):
    model = number(**settings)
    made = sb.write_release(tmp_path / "release", model.released_, student="auto", X_public=POINTS)
    assert confirmed(made.path)
    answers = pd.read_csv(made.path / "answers.csv", dtype=str)  # Python reads numbers exactly
    assert [*map(int, answers["query"])] == model.released_.rows.tolist()
    assert [*map(float, answers["value"])] == model.released_.values[:, 0].tolist()
    student = sb.load_student(made.path / "student.onnx")
    assert np.allclose(student.predict(X), model.predict(X))
    assert -4.0 <= student.predict(100 * X).min() < student.predict(100 * X).max() <= 4.5
    page, card = ((made.path / name).read_text() for name in ("report.html", "model-card.md"))
    assert "names a number at" in page
    assert "-4 to 4.5" in page
    assert "recall" not in page
    assert "A regressor that predicts a number from -4 to 4.5" in card
    assert "answers.csv" in (made.path / "README.txt").read_text()


@pytest.mark.parametrize(
    "settings",
    [{}, {"mechanism": "sets:release=labels", "n_queries": 2}, {"mechanism": "auto:most_named=1"}],
    ids=str,
)
def test_several_labels_are_released_with_their_students(tmp_path, settings):
    model = several(**settings)
    made = sb.write_release(
        tmp_path / "release",
        model.released_,
        student=model.student_,
        X_public=POINTS,
        without=() if not settings else ("report",),
    )
    assert confirmed(made.path)
    answers = pd.read_csv(made.path / "answers.csv")
    assert [*answers.columns[:4]] == ["query", *NAMES]
    drawn = model.released_.answers
    counted = [name for name in answers.columns if name.startswith("noisy_count[")]
    assert (answers[counted or NAMES].to_numpy() == drawn).all()
    student = sb.load_student(made.path / "student.onnx")
    assert (student.predict(X) == model.predict(X)).all()
    assert np.allclose(student.predict_proba(X), model.predict_proba(X), atol=1e-9)
    if not settings:
        assert "names the labels that it finds at" in (made.path / "report.html").read_text()
        card = (made.path / "model-card.md").read_text()
        assert "A classifier that predicts which of 3 labels" in card


def _changed_answers(pattern, other):
    """Return what changes the first place in answers.csv that looks so."""

    def change(folder, _):
        path = folder / "answers.csv"
        path.write_bytes(re.sub(pattern, other, path.read_bytes(), count=1))

    return change


def _labels(folder, _):
    (folder / "labels.csv").write_text("query,label,abstained\n")


FORGERIES = {
    "another value": _changed_answers(rb",[-\d.e]+\n", b",1.25\n"),
    "another spelling": _changed_answers(rb"\n", b"\r\n"),
    "labels beside": _labels,
    "labels instead": lambda *given: (_labels(*given), (given[0] / "answers.csv").unlink()),
    "fewer answers": lambda _, d: [d["released"][name].pop() for name in ("values", "rows")],
}


def test_both_verifiers_refuse_other_answers(refused_by_both):
    refused_by_both(number().released_, FORGERIES)


def test_labels_that_are_too_many_for_sets_are_refused_before_sets_are_listed(refused_by_both):
    many = {"ballot": "sets", "labels": [f"l{k}" for k in range(5000)]}
    refused_by_both(
        several().released_, {"many": lambda _, document: document["public"].update(many)}
    )
