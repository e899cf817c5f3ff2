"""The release of record moments: its student made anew from certificate and public points."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from secretballot.exceptions import DataError, ParameterError
from secretballot.publishing.release import ReleaseJob, model_of_certificate, publish, write_release
from secretballot.released import ReleasedLabels
from secretballot_verify.__main__ import main as independent_verifier

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(200, 3)).round(2)
X = RNG.normal(size=(600, 3)).round(2)
CLASSES = ["no", "yes", "maybe"]
Y = np.array(CLASSES)[np.digitize(X[:, 0], [-0.5, 0.5])]


@pytest.fixture(scope="module")
def model():
    fresh = sb.RecordMomentsClassifier(epsilon=4.0, delta=1e-5)
    return fresh.fit(X, Y, X_public=POINTS, classes=CLASSES)


@pytest.mark.parametrize(
    "basis",
    ["auto", sb.bases.KernelBasis(n_landmarks=20, random_state=3), sb.bases.GraphBasis(n_modes=20)],
    ids=lambda basis: type(basis).__name__,
)
def test_the_model_comes_back_from_certificate_and_public_points(tmp_path, basis):
    model = sb.RecordMomentsClassifier(basis, epsilon=4.0, delta=1e-5)
    model.fit(X, Y, X_public=POINTS, classes=CLASSES)
    made = publish(tmp_path / "release", ReleaseJob(model.released_, "auto", POINTS))
    assert {"student.onnx", "report.html"} <= {*made.files}
    student = sb.load_student(tmp_path / "release" / "student.onnx")
    assert np.array_equal(student.predict_proba(X), model.predict_proba(X))
    assert sb.verify_certificate(tmp_path / "release").ok
    assert independent_verifier([str(tmp_path / "release")]) == 0
    labels = pd.read_csv(tmp_path / "release" / "labels.csv")
    assert labels["label"].tolist() == student.predict(POINTS).tolist()


def test_a_fitted_learner_publishes_its_own_student(tmp_path):
    terms = {"student": "forest", "random_state": 5, "epsilon": 4.0, "delta": 1e-5}
    model = sb.RecordMomentsClassifier(**terms)
    model.fit(X, Y, X_public=POINTS, classes=CLASSES)
    write_release(tmp_path / "release", model, X_public=POINTS)
    student = sb.load_student(tmp_path / "release" / "student.onnx")
    assert np.array_equal(student.predict(X), model.predict(X))
    stumps = sb.SemiPrivateClassifier(epsilon=4.0)
    stumps.fit(X, Y == "no", X_public=POINTS, classes=[False, True])
    write_release(tmp_path / "stumps", stumps, X_public=POINTS)
    student = sb.load_student(tmp_path / "stumps" / "student.onnx")
    assert np.array_equal(student.predict(X), stumps.predict(X))


def released_with(model, **changes):
    """Return what was released, with a certificate that has other public settings."""
    document = json.loads(json.dumps(model.released_.to_json()))
    document["certificate"]["public"] |= changes
    return ReleasedLabels.from_json(document)


@pytest.mark.parametrize(
    ("points", "changes", "words"),
    [
        (POINTS[::-1], {}, "do not give the basis"),
        (POINTS, {"weights": [[1, 2, 3]]}, "do not give the basis"),
        (POINTS, {"basis": {"name": "graph"}}, "does not know"),
        (POINTS, {"basis": {"name": "graph", "n_modes": "x", "n_nearest": 5}}, "does not know"),
        (POINTS, {"method": "votes"}, "holds no sums"),
    ],
)
def test_other_points_or_settings_are_refused(model, points, changes, words):
    with pytest.raises(DataError, match=words):
        model_of_certificate(released_with(model, **changes), points)


def test_a_refusal_leaves_no_folder(tmp_path, model):
    with pytest.raises(DataError, match="nothing that was paid for is lost"):
        publish(tmp_path / "release", ReleaseJob(model.released_, "auto", POINTS[:50]))
    assert not any(tmp_path.iterdir())


NAMES = ["cough", "=fever", "rash"]


@pytest.fixture(scope="module")
def number():
    fresh = sb.RecordMomentsRegressor(epsilon=4.0, delta=1e-5)
    return fresh.fit(X, 3 * X[:, 0], X_public=POINTS, bounds=(-4, 4.5))


@pytest.fixture(scope="module")
def several():
    fresh = sb.RecordMomentsClassifier(epsilon=4.0, delta=1e-5)
    return fresh.fit(X, (X > [0.0, 0.5, 1.0]).astype(int), X_public=POINTS, labels=NAMES)


def test_sums_without_labels_are_published_with_their_model(tmp_path, number, several):
    given = {"X_public": POINTS, "without": ("report",)}
    for model, more in ((number, {"X_public": POINTS}), (several, given)):
        folder = tmp_path / type(model).__name__
        write_release(folder, model.released_, student="auto", **more)
        assert not {"labels.csv", "answers.csv"} & {path.name for path in folder.iterdir()}
        assert sb.verify_certificate(folder).ok
        assert sb.verify_certificate(folder / "certificate.json").checks[-1].name == "files"
        assert independent_verifier([str(folder)]) == 0
        student = sb.load_student(folder / "student.onnx")
        assert np.array_equal(student.predict(X), model.predict(X))
        if model is several:
            assert np.array_equal(student.predict_proba(X), model.predict_proba(X))
    page = (tmp_path / "RecordMomentsRegressor" / "report.html").read_text()
    assert "What exceeds the noise" in page
    assert ">scales<" not in page  # thousands of integers, which the certificate holds
    assert "Which columns carry the model" in page
    # the same bytes again, and from the fitted student as well
    for place, student in enumerate(("auto", several.student_)):
        other = write_release(tmp_path / str(place), several.released_, student=student, **given)
        for path in folder.iterdir():
            assert path.read_bytes() == (other.path / path.name).read_bytes()


@pytest.mark.parametrize("student", ["tree", LogisticRegression()], ids=str)
def test_no_other_student_learns_from_sums_alone(tmp_path, several, student):
    with pytest.raises(DataError, match="No labels of one class each were released"):
        write_release(tmp_path / "r", several.released_, student=student, X_public=POINTS)
    with pytest.raises(ParameterError, match="X_public is missing"):
        write_release(tmp_path / "r", several.released_, student="auto")


def _beside(name, header):
    return lambda folder, _: (folder / name).write_text(f"{header}\n")


def _without_labels(part, **changes):
    """Return what takes labels.csv away and changes a part of the certificate."""

    def change(folder, document):
        (folder / "labels.csv").unlink()
        document[part] |= changes

    return change


def _classes_of_nothing(_, document):
    document["public"]["method"] = "record-moments"
    del document["public"]["bounds"]


def _smaller_promise(_, document):
    document["epsilon"] = document["price"]["epsilon"] = 2.0


NO_LABELS = _beside("labels.csv", "query,label,abstained")
FORGERIES = {
    "number": {
        "labels": NO_LABELS,
        "answers": _beside("answers.csv", "query,value"),
        "classes of nothing": _classes_of_nothing,
        "a sum less": lambda _, document: document["released"]["values"].pop(),
    },
    "several": {"labels": NO_LABELS, "a smaller promise": _smaller_promise},
    "model": {
        "no labels": _without_labels("public"),
        "of labels": _without_labels("public", method="record-moments-of-labels", labels=NAMES),
        "no classes": _without_labels("released", classes=[], queries=0, answered=0),
    },
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_both_verifiers_refuse_other_folders(refused_by_both, request, kind):
    refused_by_both(request.getfixturevalue(kind).released_, FORGERIES[kind])
