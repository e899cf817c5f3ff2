"""The release of every learner: confirmed by both verifiers, with a student that answers as the
learner's, and never taken once a forger has changed its files or its certificate."""

import copy
import functools
import io
import json
import pickle
import re
import shutil
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import secretballot as sb
import secretballot_verify as second
from made_certificates import files_in, reseal
from secretballot.exceptions import DataError, ParameterError
from secretballot.publishing.release import ReleaseJob, _model_of_certificate, publish
from secretballot.released import ReleasedLabels

RNG = np.random.default_rng(0)
POINTS, X = (RNG.normal(size=(n, 3)).round(2) for n in (200, 600))
CLASSES, NAMES, BOUNDS = ["no", "yes", "maybe"], ["a,b", "=c", "d"], (-4.0, 4.5)
Y = np.array(CLASSES)[np.digitize(X[:, 0], [-0.5, 0.5])]
TERMS = {"epsilon": 4.0, "delta": 1e-5}
N_VOTERS = 4711
VOTERS = np.random.default_rng(1).normal(size=(N_VOTERS, 3))


def of_classes(basis="auto", **settings):
    model = sb.RecordMomentsClassifier(basis, **TERMS, **settings)
    return model.fit(X, Y, X_public=POINTS, classes=CLASSES)


def of_a_number(learner=sb.RecordMomentsRegressor, points=POINTS, **settings):
    return learner(**TERMS, **settings).fit(X, 3 * X[:, 0], X_public=points, bounds=BOUNDS)


def of_labels(learner=sb.RecordMomentsClassifier, points=POINTS, **settings):
    named = (X > [0.0, 0.5, 1.0]).astype(int)
    return learner(**TERMS, **settings).fit(X, named, X_public=points, labels=NAMES)


def of_private_labels(n_classes):
    labels = (X[:, 0] + X[:, 1] > 0) + 2 * (X[:, 2] > 0) * (n_classes > 2)
    model = sb.RecordMomentsClassifier(**TERMS)
    return model.fit(X, labels, classes=range(n_classes), public_features=True)


def stumps():
    model = sb.SemiPrivateClassifier(epsilon=4.0)
    return model.fit(X, Y == "no", X_public=POINTS, classes=[False, True])


def record_votes():
    model = sb.RecordVotesClassifier(votes_per_record=6, relation="replace-one", **TERMS)
    return model.fit(VOTERS, VOTERS[:, 0] > 0, X_public=POINTS, classes=[False, True])


OF_VOTES = {"points": POINTS[:80], "n_teachers": 40}
NUMBER = functools.partial(of_a_number, sb.PATERegressor, **OF_VOTES)
SEVERAL = functools.partial(of_labels, sb.PATEClassifier, **OF_VOTES)
KERNEL, GRAPH = sb.bases.KernelBasis(n_landmarks=20, random_state=3), sb.bases.GraphBasis(20)
LEARNERS = {
    "moments": of_classes,
    "moments, landmarks": functools.partial(of_classes, KERNEL),
    "moments, modes": functools.partial(of_classes, GRAPH),
    "moments of a number": of_a_number,
    "moments of labels": of_labels,
    "private labels": functools.partial(of_private_labels, 2),
    "private labels, four classes": functools.partial(of_private_labels, 4),
    "forest": functools.partial(of_classes, student="forest", random_state=5),
    "stumps": stumps,
    "record votes": record_votes,
    "number": NUMBER,
    "number, quantile": functools.partial(NUMBER, mechanism="quantile", n_queries=5),
    "several": SEVERAL,
    "several, sets": functools.partial(SEVERAL, mechanism="sets:release=labels", n_queries=2),
    "several, capped": functools.partial(SEVERAL, mechanism="auto:most_named=1"),
}
#: What stands in words in a folder, by the beginning of a file's name.
SAID = {
    "moments of a number": {"report": ["What exceeds the noise", "Which columns carry the model"]},
    "private labels": {"README": ["not the private labels"]},
    "record votes": {"report": ["noise"]},
    "number": {
        "report": ["names a number at", "-4 to 4.5"],
        "model-card": ["A regressor that predicts a number from -4 to 4.5"],
        "README": ["answers.csv"],
    },
    "several": {
        "report": ["names the labels that it finds at"],
        "model-card": ["A classifier that predicts which of 3 labels"],
    },
}


@functools.cache
def fitted(kind):
    return LEARNERS[kind]()


def points_of(kind):
    if kind.startswith("private labels"):
        return X
    return OF_VOTES["points"] if kind.startswith(("number", "several")) else POINTS


def released(folder, kind):
    """Write a release, whose student is made anew from what was released where it can be."""
    model = fitted(kind)
    without = () if kind in SAID else ("report",)
    given = {"X_public": points_of(kind), "without": without}
    if kind in ("forest", "stumps"):
        return sb.write_release(folder, model, **given).path
    anew = kind.startswith(("moments", "private labels", "number"))
    student = "auto" if anew else model.student_
    return sb.write_release(folder, model.released_, student=student, **given).path


def refused_by_second(folder):
    """Of the price of labels alone the second verifier knows bounds, and may leave it open."""
    found = [one for one in second.check_release(str(folder)) if one.verdict != second.CONFIRMED]
    events = json.loads((folder / "certificate.json").read_text())["events"]
    unsure = events[0]["kind"] in ("binary-labels", "class-labels")
    return [one for one in found if not unsure or one.name != "price"]


@pytest.mark.parametrize("kind", LEARNERS)
def test_both_verifiers_confirm_it_and_its_student_answers_as_the_learner(tmp_path, kind):
    model, folder = fitted(kind), released(tmp_path / "release", kind)
    assert sb.verify_certificate(folder).failures == ()
    assert refused_by_second(folder) == []
    student = sb.load_student(folder / "student.onnx")
    wanted, found = model.predict(X), student.predict(X)
    assert np.allclose(found, wanted) if "number" in kind else np.array_equal(found, wanted)
    if hasattr(model, "predict_proba") and kind not in ("forest", "stumps"):
        exact = kind.startswith(("moments", "private labels"))
        apart = np.abs(student.predict_proba(X) - model.predict_proba(X)).max()
        assert apart <= (0 if exact else 1e-9)
    if "number" in kind:
        far = student.predict(100 * X)
        assert BOUNDS[0] <= far.min() < far.max() <= BOUNDS[1]
    for beginning, words in SAID.get(kind, {}).items():
        (path,) = folder.glob(f"{beginning}*")
        said = " ".join(path.read_text().split())
        assert [one for one in words if one not in said] == []
    page = folder / "report.html"
    # integers by the thousand, which the certificate holds; shares of classes, where there are none
    assert not page.exists() or ">scales<" not in page.read_text()
    assert kind != "number" or "recall" not in page.read_text()


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_learner_that_is_restored_predicts_and_is_pickled_the_same(kind):
    model, file = fitted(kind), io.BytesIO()
    joblib.dump(model, file)
    kept = pickle.dumps(model)
    again = pickle.loads(kept), joblib.load(io.BytesIO(file.getvalue())), copy.deepcopy(model)
    for one in again:
        assert np.array_equal(one.predict(X), model.predict(X))
        assert one.certificate_ == model.certificate_
        assert one.get_params().keys() == model.get_params().keys()
        assert pickle.dumps(one) == pickle.dumps(model) == kept
    assert copy.copy(model).released_ is model.released_


def test_answers_are_beside_the_certificate_where_points_were_answered(tmp_path):
    path = released(tmp_path / "moments", "moments")
    labels = pd.read_csv(path / "labels.csv")
    assert labels["label"].tolist() == fitted("moments").predict(POINTS).tolist()
    path = released(tmp_path / "number", "number")
    answers = pd.read_csv(path / "answers.csv", dtype=str)  # Python reads numbers exactly
    told = fitted("number").released_
    assert [*map(int, answers["query"])] == told.rows.tolist()
    assert [*map(float, answers["value"])] == told.values[:, 0].tolist()
    for kind in ("several", "several, sets", "several, capped"):
        answers = pd.read_csv(released(tmp_path / kind, kind) / "answers.csv")
        assert [*answers.columns[:4]] == ["query", *NAMES]
        counted = [name for name in answers.columns if name.startswith("noisy_count[")]
        assert (answers[counted or NAMES].to_numpy() == fitted(kind).released_.answers).all()
    for kind in ("moments of a number", "moments of labels"):
        folder = released(tmp_path / kind, kind)
        assert not {"labels.csv", "answers.csv"} & {one.name for one in folder.iterdir()}
        assert sb.verify_certificate(folder / "certificate.json").checks[-1].name == "files"


def test_how_many_records_voted_stands_nowhere_in_words(tmp_path):
    folder = released(tmp_path / "release", "record votes")
    names = ("README.txt", "report.html", "certificate.json")
    # but for the estimate by the noisy counts, which may happen to be right
    told = [re.sub(r"noise:\s+[\d,]+", "", (folder / name).read_text()) for name in names]
    numbers = "|".join(f"{number}|{number:,}" for number in (N_VOTERS, 6 * N_VOTERS))
    assert not any(re.search(rf"\b({numbers})\b", text) for text in told)


def test_a_student_that_was_made_anew_gives_the_same_bytes(tmp_path):
    model, given = fitted("moments of labels"), {"X_public": POINTS, "without": ("report",)}
    folder = released(tmp_path / "first", "moments of labels")
    other = sb.write_release(tmp_path / "r", model.released_, student=model.student_, **given).path
    for path in folder.iterdir():
        assert path.read_bytes() == (other / path.name).read_bytes()


@pytest.mark.parametrize(
    ("points", "changes", "words"),
    [
        (POINTS[::-1], {}, "do not give the basis"),
        (POINTS, {"weights": [[1, 2, 3]]}, "do not give the basis"),
        (POINTS, {"basis": {"name": "graph"}}, "does not know"),
        (POINTS, {"basis": {"name": "graph", "n_modes": "x", "n_nearest": 5}}, "does not know"),
    ],
)
def test_other_points_or_settings_are_refused(points, changes, words):
    document = json.loads(json.dumps(fitted("moments").released_.to_json()))
    document["certificate"]["public"] |= changes
    with pytest.raises(DataError, match=words):
        _model_of_certificate(ReleasedLabels.from_json(document), points)


def test_a_refusal_leaves_no_folder(tmp_path):
    job = ReleaseJob(fitted("moments").released_, "auto", POINTS[:50])
    with pytest.raises(DataError, match="nothing that was paid for is lost"):
        publish(tmp_path / "release", job)
    told = fitted("moments of labels").released_
    for student in ("tree", LogisticRegression()):
        with pytest.raises(DataError, match="No labels of one class each were released"):
            sb.write_release(tmp_path / "r", told, student=student, X_public=POINTS)
    with pytest.raises(ParameterError, match="X_public is missing"):
        sb.write_release(tmp_path / "r", told, student="auto")
    assert not any(tmp_path.iterdir())


def _beside(name, header):
    return lambda folder, _: (folder / name).write_text(f"{header}\n")


def _changed(part, **changes):
    """Return what changes a part of the certificate."""
    return lambda _, document: document[part].update(changes)


def _without_labels(part, **changes):
    """Return what takes labels.csv away, too."""

    def change(folder, document):
        (folder / "labels.csv").unlink()
        document[part] |= changes

    return change


def _changed_answers(pattern, other):
    """Return what changes the first place in answers.csv that looks so."""

    def change(folder, _):
        path = folder / "answers.csv"
        path.write_bytes(re.sub(pattern, other, path.read_bytes(), count=1))

    return change


def _classes_of_nothing(_, document):
    document["public"]["method"] = "record-moments"
    del document["public"]["bounds"]


def _half_the_price(_, document):
    document["epsilon"] = document["price"]["epsilon"] = 2.0


def _half_the_sensitivity(part):
    """Return what states it so in the event alone, or in the shape alone."""

    def change(_, document):
        own = document["events"][0] if part == "event" else document["shape"]
        own["squared_sensitivity"] //= 4

    return change


LABELS = _beside("labels.csv", "query,label,abstained")
ROUNDS = {"planned": 200, "used": 200, "rounds": [200], "strategy": {"name": "margin"}}
FORGERIES = {
    "moments": {
        "no labels": _without_labels("public"),
        "of labels": _without_labels("public", method="record-moments-of-labels", labels=NAMES),
        "no classes": _without_labels("released", classes=[], queries=0, answered=0),
    },
    "moments of a number": {
        "labels": LABELS,
        "answers": _beside("answers.csv", "query,value"),
        "classes of nothing": _classes_of_nothing,
        "a sum less": lambda _, document: document["released"]["values"].pop(),
        "bounds turned": _changed("public", bounds=[5.0, -5.0]),
        "one bound": _changed("public", bounds=[0.0]),
        "classes": _changed("public", n_classes=2),
        "answered": _changed("released", queries=3, answered=3),
    },
    "moments of labels": {
        "labels": LABELS,
        "a smaller promise": _half_the_price,
        **{
            f"names {place}": _changed("public", labels=names)
            for place, names in enumerate((["d"] * 3, [*NAMES, "e"], [], [1, 2, 3]))
        },
        "a number": _changed("public", method="record-moments-of-a-number"),
        "weights of a stage less": lambda _, own: [own["public"]["weights"].pop() for _ in "12"],
        "classes": _changed("released", classes=[0, 1]),
    },
    "private labels": {
        "of records": lambda _, document: document.update(unit="record"),
        "who come and go": lambda _, document: document.update(relation="add-remove"),
        "a weight of marks": _changed("public", mark_weight=5),
        "marks": _changed("public", marks=["uncovered"]),
        "half the sensitivity": _half_the_sensitivity("shape"),
        "half the sensitivity, in its price": _half_the_sensitivity("event"),
    },
    "record votes": {
        "fewer points than votes": _changed("shape", n_queries=5),
        "by user": lambda _, document: document.update(unit="user", unit_column="patient"),
        "labels": lambda _, document: document.update(unit="label"),
        "not all answered": _changed("released", answered=199),
        "rounds": lambda _, document: document.update(plan=ROUNDS | {"left": "none"}),
        "one of two terms": lambda _, document: document["public"].pop("expected_uncovered"),
        "no votes of uncovered ones": lambda _, document: document["released"].pop("values"),
        "votes beyond the noise": _changed("released", values=[[-(10**6)]]),
    },
    "number": {
        "another value": _changed_answers(rb",[-\d.e]+\n", b",1.25\n"),
        "another spelling": _changed_answers(rb"\n", b"\r\n"),
        "labels beside": LABELS,
        "labels instead": lambda *given: (LABELS(*given), (given[0] / "answers.csv").unlink()),
        "fewer answers": lambda _, d: [d["released"][name].pop() for name in ("values", "rows")],
    },
    # refused before sets are listed
    "several": {
        "labels too many for sets": _changed(
            "public", ballot="sets", labels=[f"l{k}" for k in range(5000)]
        )
    },
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_neither_verifier_takes_a_folder_that_a_forger_changed(tmp_path, kind):
    """Whatever lies in the folder is listed, so that the digests alone refuse nothing."""
    given = {"student": None, "without": ["report", "student"]}
    genuine = sb.write_release(tmp_path / "release", fitted(kind).released_, **given).path
    assert second.exit_code(second.check_release(str(genuine))) == 0
    for name, forge in FORGERIES[kind].items():
        folder = Path(shutil.copytree(genuine, tmp_path / name))

        def change(document, forge=forge, folder=folder):
            forge(folder, document)
            document["files"] = files_in(folder)

        reseal(folder, change)
        assert not sb.verify_certificate(folder).ok, name
        assert second.exit_code(second.check_release(str(folder))) == 4, name
