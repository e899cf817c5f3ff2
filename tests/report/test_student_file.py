"""student.onnx answers as the student does, whatever it is, and its bytes follow from the student's
values alone."""

import pickle

import every_student
import numpy as np
import onnx
import pandas as pd
import pytest
from onnx.reference import ReferenceEvaluator
from onnxruntime import InferenceSession
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import secretballot as sb
from secretballot.exceptions import DataError
from secretballot.report.student.export import converted_student, student_bytes
from secretballot.report.student.load import OnnxStudent, load_student
from secretballot.students import MomentsStudent

POINTS = every_student.POINTS
STUDENTS = every_student.every()


class OwnStudent(ClassifierMixin, BaseEstimator):
    """A student that nobody else knows."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def more_points(student, points):
    """Return the points, others around them, and where the student takes them missing numbers."""
    if points.dtype == object:
        odd = [[value] * points.shape[1] for value in (np.nan, np.inf, -np.inf, 3e38, 0, -0.0)]
        unseen = points[:20].copy()
        unseen[:, -1] = "nowhere"
        return np.vstack([points, np.array(odd, dtype=object), unseen])
    others = np.random.default_rng(5).normal(size=(3000, points.shape[1])) * 1.5
    found = np.vstack([points, others, 1e9 * points])
    if hasattr(student, "basis") or hasattr(student, "basis_"):
        odd = [[value] * points.shape[1] for value in (np.nan, np.inf, -np.inf, 3e38, 0, -0.0)]
        found = np.vstack([found, odd])
    return found


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
    again = pickle.loads(pickle.dumps(loaded))
    assert np.array_equal(again.predict(frame), found)


def test_a_second_runtime_answers_alike():
    """The reference runtime of onnx, which does not take ensembles of trees of doubles."""
    seen = set()
    for student, points in STUDENTS.values():
        content, rows = student_bytes(student, X_public=points), points[:20]
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
        OwnStudent(),
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
