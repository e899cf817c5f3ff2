"""student.onnx answers as its student, of rows and of cells; its bytes follow from values alone."""

import math
import pickle
from types import SimpleNamespace

import every_student
import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import secretballot as sb
from secretballot.bases import KernelBasis, TableBasis
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.publishing.release import _ONNX_OF_RAW_COLUMNS, _usage_of
from secretballot.report.raw_columns import RawRows, refuse_long_vocabularies
from secretballot.report.student_export import converted_student, student_bytes
from secretballot.report.student_load import OnnxStudent, load_student
from secretballot.runs.tables import RunInputs
from secretballot.students import MomentsStudent, RecordVotesStudent

POINTS = every_student.POINTS
STUDENTS = every_student.every()


def more_points(student, points):
    """Return the points, others around them, and where the student takes them missing numbers."""
    odd = [[value] * points.shape[1] for value in (np.nan, np.inf, -np.inf, 3e38, 0, -0.0)]
    if points.dtype == object:
        unseen = points[:20].copy()
        unseen[:, -1] = "nowhere"
        return np.vstack([points, np.array(odd, dtype=object), unseen])
    others = np.random.default_rng(5).normal(size=(3000, points.shape[1])) * 1.5
    takes_odd = hasattr(student, "basis") or isinstance(student, RecordVotesStudent)
    return np.vstack([points, others, 1e9 * points, *([odd] if takes_odd else [])])


@pytest.mark.parametrize("name", STUDENTS)
def test_every_student_answers_the_same_from_its_file(name):
    student, points = STUDENTS[name]
    loaded = OnnxStudent(student_bytes(student, X_public=points))
    rows = more_points(student, points)
    frame = pd.DataFrame(rows, columns=loaded.feature_names_in_) if rows.dtype == object else rows
    wanted, found = student.predict(rows), loaded.predict(frame)
    if getattr(student, "bounds", None) is not None:
        assert np.allclose(found, wanted, rtol=0, atol=1e-12)
    else:
        assert found.dtype == np.asarray(wanted).dtype
        assert np.array_equal(found, wanted)
        assert np.array_equal(loaded.classes_, student.classes_)
    assert hasattr(loaded, "predict_proba") == (
        hasattr(student, "predict_proba") and name != "labels alone"
    )
    if hasattr(loaded, "predict_proba"):
        apart = np.abs(loaded.predict_proba(frame) - student.predict_proba(rows)).max()
        exact = name.startswith(("moments", "landmarks", "ranked", "modes"))
        assert apart <= (0 if exact else 1e-9)
    assert np.array_equal(pickle.loads(pickle.dumps(loaded)).predict(frame), found)


def test_a_second_runtime_answers_alike():
    """The reference runtime of onnx, which does not take ensembles of trees of doubles."""
    seen = set()
    for student, points in STUDENTS.values():
        content, rows = student_bytes(student, X_public=points), points[:5]
        model = onnx.load_from_string(content)
        kinds = frozenset(node.op_type for node in model.graph.node)
        if kinds in seen or any(kind.startswith("TreeEnsemble") for kind in kinds):
            continue
        seen.add(kinds)
        first = InferenceSession(content)
        names = [(one.name, one.type == "tensor(string)") for one in first.get_inputs()]
        columns = [rows] if names[0][0] == "X" else np.split(rows, rows.shape[1], axis=1)
        feed = {
            name: column.astype(str).astype(object) if text else column.astype(np.float64)
            for (name, text), column in zip(names, columns, strict=True)
        }
        for one, other in zip(
            first.run(None, feed), ReferenceEvaluator(model).run(None, feed), strict=True
        ):
            if one.dtype.kind == "f":
                assert np.allclose(one, other, rtol=0, atol=1e-12)
            else:
                assert np.array_equal(one, other)
    assert len(seen) > 10


@pytest.mark.parametrize("classes", [2, 3])
def test_boosting_sends_missing_numbers_where_the_student_does(classes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.where(np.isnan(X[:, 0]), classes - 1, (X[:, 1] > 0).astype(int))
    student = HistGradientBoostingClassifier(max_iter=20).fit(X, y)
    loaded = converted_student(student)
    assert np.array_equal(loaded.predict(X), student.predict(X))
    assert np.allclose(loaded.predict_proba(X), student.predict_proba(X), rtol=0, atol=1e-12)


def test_nothing_in_the_file_tells_of_its_making():
    for name in ("logistic 2", "forest 3", "moments 2"):
        model = onnx.load_from_string(converted_student(STUDENTS[name][0]).content)
        assert (model.producer_name, model.producer_version, model.doc_string) == ("", "", "")
        names = [output for node in model.graph.node for output in node.output]
        assert all(name.startswith(("v", "label", "probabilities")) for name in names)
        assert not any(node.name or node.doc_string for node in model.graph.node)


def test_how_often_a_student_was_asked_is_not_told():
    student = KNeighborsClassifier(algorithm="kd_tree").fit(POINTS, POINTS[:, 0] > 0)
    before = converted_student(student).content
    student.predict(POINTS)
    assert converted_student(student).content == before


@pytest.mark.parametrize(
    "student",
    [
        SVC(),
        KNeighborsClassifier(metric="manhattan"),
        KNeighborsClassifier(weights="distance"),
        HistGradientBoostingClassifier(categorical_features=[0], max_iter=2),
    ],
    ids=lambda student: type(student).__name__,
)
def test_what_does_not_convert_is_refused(student):
    X = np.column_stack([np.arange(150) % 3, POINTS[:, 1:]])
    with pytest.raises(DataError, match=r"does not convert to ONNX \(.*\)\.$"):
        converted_student(student.fit(X, X[:, 1] > 0))


def test_a_student_that_was_read_is_written_as_it_was(tmp_path):
    loaded = converted_student(LogisticRegression().fit(POINTS, POINTS[:, 0] > 0))
    assert student_bytes(loaded) == loaded.content
    (tmp_path / "student.onnx").write_bytes(loaded.content)
    assert sb.load_student(tmp_path / "student.onnx").content == loaded.content


def test_sums_that_doubles_round_still_answer_alike():
    student, points = every_student.moments(2, texts=False)
    large = MomentsStudent(student.basis, student.weights * 2**20, student.classes)
    loaded = converted_student(large)
    assert np.allclose(loaded.predict_proba(points), large.predict_proba(points), atol=1e-5)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"x" * 1000, pickle.dumps(3)])
def test_other_files_are_no_students(tmp_path, content):
    (tmp_path / "student.onnx").write_bytes(content)
    with pytest.raises(DataError, match=r"student\.onnx is no student: it "):
        load_student(tmp_path / "student.onnx")


def test_a_table_without_a_column_is_refused():
    student, table = STUDENTS["moments 2"]
    loaded = OnnxStudent(converted_student(student).content)
    frame = pd.DataFrame(table, columns=loaded.feature_names_in_).iloc[:, 1:]
    with pytest.raises(DataError, match="The table lacks the columns 0"):
        loaded.predict(frame)


def table(rows, seed):
    """Return a table whose column names are those that a graph has for itself, too."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, rows).astype(float),
            "ward": rng.choice(["north", "south", "7"], rows),
            "X": rng.normal(size=rows).round(3),
            "label": rng.choice([1, 2, 3], rows).astype(float),
            "v0": rng.exponential(size=rows) * 1e6,
        }
    )
    frame.loc[::9, "age"] = np.nan
    return frame


PUBLIC = table(200, 0)
SCHEMA = Schema.infer(PUBLIC)


def rows_of(frame):
    return RawRows({name: frame[name].tolist() for name in frame}, SCHEMA.encode(frame))


def student_of(schema, public, basis=None, n_classes=2):
    """Return a model of moments of the columns of a schema."""
    fitted = (basis or TableBasis()).fit(schema.encode(public))
    shape = (fitted.n_directions_ + 1, 1 if n_classes == 2 else n_classes)
    weights = np.random.default_rng(1).integers(-(2**18), 2**18, size=shape)
    return MomentsStudent(fitted, weights, ["no", "yes", "unknown"][:n_classes])


def same(loaded, student, schema, frame):
    """Demand the student's answers from raw cells, digit by digit, and from encoded ones."""
    X = schema.encode(frame)
    assert (loaded.predict(frame) == student.predict(X)).all()
    assert (loaded.predict(X) == student.predict(X)).all()
    assert (loaded.predict_proba(frame) == student.predict_proba(X)).all()
    assert len(set(loaded.predict(frame).tolist())) == len(student.classes_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("basis", [TableBasis(n_bins=8), KernelBasis(n_directions=20)])
def test_a_model_of_moments_says_the_same_of_raw_cells_digit_by_digit(basis, n_classes):
    student = student_of(SCHEMA, PUBLIC, basis, n_classes)
    content = student_bytes(student, schema=SCHEMA.to_json(), rows=rows_of(PUBLIC))
    other = table(500, 3)
    # cells that are the odd ones of the encoding
    other.loc[0, "age"], other.loc[1, "X"], other.loc[2, "v0"] = math.inf, -1e31, 1e30
    other.loc[3, "ward"], other.loc[4, "ward"] = "east", ""
    same(OnnxStudent(content), student, SCHEMA, other)
    session = onnxruntime.InferenceSession(content)
    # a column of the name of an output keeps it
    assert [one.name for one in session.get_outputs()] == ["label_", "probabilities"]


def test_vectors_are_read_as_by_the_package():
    rng = np.random.default_rng(5)
    public = pd.DataFrame(
        {"scan": [str(row.tolist()) for row in rng.normal(size=(200, 6))], "age": range(200)}
    )
    schema = Schema.from_json({"columns": {"scan": "vector", "age": "numeric"}}, public=public)
    student = student_of(schema, public, KernelBasis(n_directions=10, scaled=False))
    loaded = converted_student(student, schema.to_json())
    vectors, ages = rng.normal(size=(300, 6)), rng.integers(0, 300, 300).astype(float)
    # what the package takes as a vector of which nothing is known
    vectors[0, 2], vectors[1], vectors[2, 0], vectors[3, 5] = np.nan, np.nan, 2e30, -np.inf
    frame = pd.DataFrame({"scan": list(vectors), "age": ages})
    assert (schema.encode(frame)[:4, :6] == 0).all()
    same(loaded, student, schema, frame)
    same(loaded, student, schema, public)  # of texts


def test_a_file_that_says_otherwise_is_not_written():
    rows = rows_of(PUBLIC)
    # the cells of other rows than those that were encoded
    wrong = RawRows({name: cells[::-1] for name, cells in rows.cells.items()}, rows.X)
    with pytest.raises(DataError, match=r"differs from the student on \d+ of 200 public points"):
        student_bytes(student_of(SCHEMA, PUBLIC), schema=SCHEMA.to_json(), rows=wrong)


KINDS = {
    "moment": {"kind": "date", "parts": ["hour", "weekday", "month", "day"]},
    "day": {"kind": "date", "parts": ["day", "month", "weekday"], "format": "day-first"},
    "american": {"kind": "date", "parts": ["hour"], "format": "month-first"},
    "compact": {"kind": "date", "parts": [], "format": "compact"},
    "named": {"kind": "date", "parts": ["month"], "format": "day-name"},
    "spoken": {"kind": "date", "parts": ["day"], "format": "name-day"},
    "flag": "boolean",
    "ward": "categorical",
    "note": {"kind": "text", "words": ["pain", "fever", "café", "strasse", "none"]},
    "letter": {"kind": "text", "words": ["pain", "fever", "some"]},
}
NOTES = ("some pain", "no PAIN, but Fever!", "CAFÉ", "cafe\u0301", "Straße", "none", "", "na")
NOTES = (*NOTES, "pains fever-ish", "ill_pain", "a\nfever")


def kinds_table(rows, seed):
    """Return the texts of a table that has columns of every kind that a graph can encode."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(-4 * 10**9, 4 * 10**9, rows)  # 1843 to 2096
    seconds[: rows // 10] = rng.integers(-6 * 10**10, 2 * 10**11, rows // 10)  # 68 to 8307
    times = seconds.astype("datetime64[s]").tolist()
    zones = rng.choice(["", "Z", "+02:00", " -0530"], rows)
    frame = pd.DataFrame(
        {
            "moment": [
                f"{one.isoformat(' ')}{zone}" for one, zone in zip(times, zones, strict=True)
            ],
            "day": [f"{one.day:02}.{one.month:02}.{one.year:04}" for one in times],
            "american": [
                f"{one.month}/{one.day}/{one.year:04} {one.hour % 12 or 12}:{one.minute:02} "
                f"{'pm' if one.hour > 11 else 'A.M.'}"
                for one in times
            ],
            "compact": [f"{one.year:04}{one.month:02}{one.day:02}" for one in times],
            "named": [f"{one.day}. {one:%B} {one.year:04}" for one in times],
            "spoken": [f"{one:%b} {one.day}, {one.year:04} {one.hour}:00" for one in times],
            "flag": rng.choice(["true", "FALSE", "False", "x", ""], rows),
            "ward": rng.choice(["north", "south"], rows),
            "note": rng.choice(NOTES, rows),
            "letter": rng.choice(NOTES, rows),
        }
    )
    frame.loc[::11, "moment"] = ""
    odd = ["29.02.2020", "29.02.2021", "31.04.2000", "2020-02", "0000-01-01", "1.1.2020 24:00"]
    odd += ["1.1.2020 7:5", "2020-01-02T03:04:05.678", "1/2-2020", "1.13.2020", "1.1.2020 13:00 pm"]
    frame.loc[: len(odd) - 1, "day"] = odd
    return frame


def raw_rows_of(schema, public):
    """Return the raw rows of a run with this public table."""
    return RunInputs.raw_rows.fget(SimpleNamespace(schema=schema, public=public))


KINDS_PUBLIC = kinds_table(200, 5)
KINDS_SCHEMA = Schema.from_json({"columns": KINDS}, public=KINDS_PUBLIC)


def test_dates_texts_and_truth_values_are_read_as_by_the_package():
    document, schema = KINDS_SCHEMA.to_json(), KINDS_SCHEMA
    student = student_of(schema, KINDS_PUBLIC)
    content = student_bytes(student, schema=document, rows=raw_rows_of(schema, KINDS_PUBLIC))
    same(OnnxStudent(content), student, schema, kinds_table(150, 6))
    session = onnxruntime.InferenceSession(content)
    types = {one.name: one.type for one in session.get_inputs()}
    assert types == dict.fromkeys(KINDS, "tensor(string)")


def test_the_code_of_the_readme_reads_a_file_of_every_kind(tmp_path, monkeypatch):
    """A colleague with onnxruntime alone, with dates as they write them, day first."""
    student, schema = student_of(KINDS_SCHEMA, KINDS_PUBLIC), KINDS_SCHEMA
    (tmp_path / "release").mkdir()
    content = student_bytes(student, schema=schema.to_json())
    (tmp_path / "release" / "student.onnx").write_bytes(content)
    frame = kinds_table(200, 7)
    frame.to_csv(tmp_path / "new.csv", index=False)
    usage = _usage_of({"student.onnx": _ONNX_OF_RAW_COLUMNS}, schema.to_json())
    monkeypatch.chdir(tmp_path / "release")
    found = {}
    exec("\n".join(usage["runtime_alone"]), found)
    X = schema.encode(frame)
    assert found["answers"]["label"].tolist() == student.predict(X).tolist()
    assert (found["answers"]["probabilities"] == student.predict_proba(X)).all()
    assert "secretballot" not in "".join(usage["runtime_alone"])


def test_more_words_than_a_graph_looks_for_are_refused():
    words = [f"w{number}" for number in range(2001)]
    with pytest.raises(DataError, match="Column 'note' lists 2,001 words"):
        refuse_long_vocabularies({"columns": {"note": {"kind": "text", "words": words}}})
