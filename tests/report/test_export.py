"""Students go out and come back alike, and no file makes a reader run what it does not trust."""

import pickle
from pathlib import Path
from typing import Any

import every_student
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from secretballot.bases import KernelBasis
from secretballot.exceptions import DataError
from secretballot.released import ReleasedLabels
from secretballot.report.student.export import dump_onnx, dump_student, load_student
from secretballot.report.student.moments_graph import moments_graph
from secretballot.students import MomentsStudent, NoisyCountsClassifier, fit_student

STUDENTS = [
    LogisticRegression(),
    RidgeClassifier(),
    GaussianNB(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    DecisionTreeClassifier(max_depth=4),
    RandomForestClassifier(4, max_depth=4),
    GradientBoostingClassifier(n_estimators=4),
    AdaBoostClassifier(n_estimators=4),
    KNeighborsClassifier(),
]


class OwnStudent(ClassifierMixin, BaseEstimator):
    """A student that nobody else knows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "OwnStudent":
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(1).normal(size=(150, 4))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


def counts_student(
    kernel: str, n_classes: int, as_text: bool
) -> tuple[np.ndarray, NoisyCountsClassifier]:
    """Return public points and our own student, fitted to counts released on them."""
    X = np.random.default_rng(2).normal(size=(90, 3)).astype(np.float32)
    classes = ["a", "b", "c"][:n_classes] if as_text else [4, 5, 6][:n_classes]
    counts = np.round(25 + 15 * np.tanh(X[:, :n_classes])).astype(int)
    if n_classes == 2:
        counts = counts[:, 0]
    labels = (2 * counts >= 50).astype(int) if n_classes == 2 else counts.argmax(axis=1)
    released = ReleasedLabels(np.arange(90), labels, tuple(classes), 50, 4.0, counts)
    return X, fit_student(
        NoisyCountsClassifier(kernel, n_landmarks=40), X, released, random_state=0
    )


@pytest.mark.parametrize(
    ("kernel", "n_classes", "as_text"),
    [("linear", 2, True), ("linear", 3, False), ("gaussian", 2, False), ("gaussian", 3, True)],
)
def test_our_own_student_goes_out_both_ways(
    tmp_path: Path, kernel: str, n_classes: int, as_text: bool
) -> None:
    X, student = counts_student(kernel, n_classes, as_text)
    assert student.kernel_ == kernel
    assert dump_student(student, tmp_path / "student.skops") == ()
    assert np.array_equal(
        load_student(tmp_path / "student.skops").predict_proba(X), student.predict_proba(X)
    )
    runtime = pytest.importorskip("onnxruntime")
    dump_onnx(student, tmp_path / "student.onnx", X)
    session = runtime.InferenceSession(
        (tmp_path / "student.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    label, shares = session.run(None, {"X": X})
    assert label.tolist() == student.predict(X).tolist()
    assert np.allclose(shares, student.predict_shares(X), rtol=0, atol=1e-9)


MOMENTS = {
    "two classes": lambda: every_student.moments(2, texts=False),
    "three classes": lambda: every_student.moments(3, texts=False),
    "landmarks": lambda: (every_student.landmarks(), every_student.POINTS),
    "landmarks in one scale": lambda: (every_student.landmarks(scaled=False), every_student.POINTS),
    "ranked landmarks": lambda: (every_student.landmarks(ranked=True), every_student.POINTS),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_a_model_of_moments_goes_out_digit_by_digit(tmp_path: Path, name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    student, table = MOMENTS[name]()
    dump_onnx(student, tmp_path / "student.onnx", table)
    session = runtime.InferenceSession(
        (tmp_path / "student.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    odd = [[value] * table.shape[1] for value in (np.nan, np.inf, -np.inf, 3e38, -3e38, 0, -0.0)]
    points = np.vstack([table, table + 1e-3, 1e9 * table, odd]).astype(np.float32)
    label, shares = session.run(None, {"X": points})
    assert np.array_equal(shares, student.predict_proba(points))
    assert label.tolist() == student.predict(points).tolist()
    assert len(set(label)) == len(student.classes_)


RECORD_VOTES = {
    "two classes": lambda: every_student.record_votes(2),
    "three classes": lambda: every_student.record_votes(3),
    "landmarks": lambda: every_student.record_votes(2, KernelBasis(n_landmarks=20)),
}


@pytest.mark.parametrize("name", RECORD_VOTES)
def test_a_student_of_votes_of_records_goes_out_with_its_labels_and_probabilities(
    tmp_path: Path, name: str
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    student, points = RECORD_VOTES[name](), every_student.POINTS
    dump_onnx(student, tmp_path / "student.onnx", points)
    session = runtime.InferenceSession(
        (tmp_path / "student.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    more = np.vstack([points, 3 * points, np.full((1, points.shape[1]), np.nan)])
    label, shares = session.run(None, {"X": more.astype(np.float32)})
    wanted = student.predict_proba(more.astype(np.float32))
    assert np.allclose(shares, wanted, rtol=0, atol=1e-12)
    assert label.tolist() == student.predict(more.astype(np.float32)).tolist()
    assert len(set(label)) == len(student.classes_)


def test_the_file_of_a_student_of_votes_of_records_is_trusted_and_checked(tmp_path: Path) -> None:
    student = every_student.record_votes(2)
    assert dump_student(student, tmp_path / "student.skops") == ()
    loaded = load_student(tmp_path / "student.skops")
    points = every_student.POINTS
    assert np.array_equal(loaded.predict_proba(points), student.predict_proba(points))
    changes = {
        "weights": lambda s: setattr(s, "coef_", s.coef_[:, :-1]),
        "columns": lambda s: setattr(s, "n_features_in_", 3),
        "unit": lambda s: setattr(s, "_unit", 0.0),
        "classes": lambda s: setattr(s, "classes_", s.classes_[:1]),
        "intercept": lambda s: setattr(s, "intercept_", np.array([np.nan, 0.0])),
    }
    for name, change in changes.items():
        odd = every_student.record_votes(2)
        change(odd)
        with pytest.raises(DataError, match=r"would read it again|not be read again"):
            dump_student(odd, tmp_path / f"{name}.skops")


def test_a_model_whose_sums_are_too_large_for_doubles_has_no_onnx_file() -> None:
    pytest.importorskip("onnx")
    student, _ = every_student.moments(2, texts=False)
    large = MomentsStudent(student.basis, np.full_like(student.weights, 2**35), student.classes)
    with pytest.raises(DataError, match="fewer directions"):
        moments_graph(large)


def test_a_stranger_is_refused_by_name_and_loads_once_trusted(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray]
) -> None:
    path = tmp_path / "student.skops"
    needs = dump_student(OwnStudent().fit(*data), path)
    assert needs == (f"{__name__}.OwnStudent",)
    with pytest.raises(DataError, match=r"not trusted: .*OwnStudent.*trusted=\["):
        load_student(path)
    assert np.array_equal(load_student(path, trusted=needs).classes_, np.unique(data[1]))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"x" * 1000, pickle.dumps(3)])
def test_other_files_are_no_students(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "student.skops"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a readable skops file"):
        load_student(path)


@pytest.mark.parametrize("student", STUDENTS, ids=lambda student: type(student).__name__)
def test_onnx_predicts_as_the_student(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], student: Any
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    X, y = data
    path = tmp_path / "student.onnx"
    dump_onnx(student.fit(X.astype(np.float32), y), path, X)
    session = runtime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    labels = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})[0]
    assert np.array_equal(labels, student.predict(X.astype(np.float32)))
