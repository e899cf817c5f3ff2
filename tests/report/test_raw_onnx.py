"""The ONNX student that reads raw columns: the package's own answers, from the cells of a table."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from secretballot.bases import KernelBasis, TableBasis
from secretballot.datasets.schema import Schema
from secretballot.exceptions import DataError
from secretballot.report.release.usage import complete_schema
from secretballot.report.student.export import dump_raw_onnx
from secretballot.report.student.raw_columns import RawRows, encoded_width
from secretballot.runs.tables import raw_rows_of
from secretballot.students import MomentsStudent, NoisyCountsClassifier

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
skl2onnx = pytest.importorskip("skl2onnx")


def table(rows: int, seed: int) -> pd.DataFrame:
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


PUBLIC = table(500, 0)
SCHEMA = Schema.infer(PUBLIC)


def rows_of(frame: pd.DataFrame) -> RawRows:
    return RawRows({name: frame[name].tolist() for name in frame}, SCHEMA.encode(frame))


def moments(basis: Any, n_classes: int) -> MomentsStudent:
    fitted = basis.fit(SCHEMA.encode(PUBLIC))
    width = fitted.n_directions_ + 1
    columns = 1 if n_classes == 2 else n_classes
    weights = np.random.default_rng(1).integers(-(2**18), 2**18, size=(width, columns))
    return MomentsStudent(fitted, weights, ["no", "yes", "unknown"][:n_classes])


def run(path: Path, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    label, shares = session.run(None, rows_of(frame).inputs(SCHEMA.to_json()))
    return label, shares


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("basis", [TableBasis(n_bins=8), KernelBasis(n_directions=20)])
def test_a_model_of_moments_says_the_same_of_raw_cells_digit_by_digit(
    tmp_path: Path, basis: Any, n_classes: int
) -> None:
    student = moments(basis, n_classes)
    path = tmp_path / "student.onnx"
    dump_raw_onnx(student, path, SCHEMA.to_json(), rows_of(PUBLIC))
    other = table(2000, 3)
    # cells that are the odd ones of the encoding
    other.loc[0, "age"], other.loc[1, "X"], other.loc[2, "v0"] = math.inf, -1e31, 1e30
    other.loc[3, "ward"], other.loc[4, "ward"] = "east", ""
    label, shares = run(path, other)
    X = SCHEMA.encode(other)
    assert (label == student.predict(X)).all()
    assert (shares == student.predict_proba(X)).all()
    assert len(set(label.tolist())) == n_classes


@pytest.mark.parametrize(
    "student",
    [
        LogisticRegression(max_iter=500),
        RandomForestClassifier(10, random_state=0),
        NoisyCountsClassifier(),
    ],
    ids=lambda student: type(student).__name__,
)
def test_other_students_say_the_same_within_single_precision(tmp_path: Path, student: Any) -> None:
    frame = PUBLIC.drop(columns="v0")
    schema = Schema.infer(frame)
    X = schema.encode(frame)
    y = np.where(frame["age"].fillna(0) + 20 * frame["X"] > 50, "yes", "no")
    if isinstance(student, NoisyCountsClassifier):
        counts = 100.0 * (y == "yes") + 1.0
        student.fit(X, counts, n_teachers=102, sigma=1.0, classes=["no", "yes"])
    else:
        student.fit(X, y)
    rows = RawRows({name: frame[name].tolist() for name in frame}, X)
    dump_raw_onnx(student, tmp_path / "student.onnx", schema.to_json(), rows)
    session = onnxruntime.InferenceSession((tmp_path / "student.onnx").read_bytes())
    label, shares = session.run(None, rows.inputs(schema.to_json()))
    assert (label == student.predict(X)).all()
    assert shares == pytest.approx(student.predict_proba(X), abs=1e-5)


def test_vectors_are_read_as_by_the_package(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    public = pd.DataFrame(
        {"scan": [str(row.tolist()) for row in rng.normal(size=(200, 6))], "age": range(200)}
    )
    schema = Schema.from_json({"columns": {"scan": "vector", "age": "numeric"}}, public=public)
    fitted = KernelBasis(n_directions=10, scaled=False).fit(schema.encode(public))
    weights = rng.integers(-(2**18), 2**18, size=(fitted.n_directions_ + 1, 1))
    student = MomentsStudent(fitted, weights, ["no", "yes"])
    path = tmp_path / "student.onnx"
    dump_raw_onnx(student, path, schema.to_json(), raw_rows_of(schema, public))
    vectors, ages = rng.normal(size=(300, 6)), rng.integers(0, 300, 300).astype(float)
    # what the package takes as a vector of which nothing is known
    vectors[0, 2], vectors[1], vectors[2, 0], vectors[3, 5] = np.nan, np.nan, 2e30, -np.inf
    session = onnxruntime.InferenceSession(path.read_bytes())
    assert [one.shape[1] for one in session.get_inputs()] == [6, 1]
    label, shares = session.run(None, {"scan": vectors, "age": ages.reshape(-1, 1)})
    X = schema.encode(pd.DataFrame({"scan": list(vectors), "age": ages}))
    assert (X[:4, :6] == 0).all()
    assert (label == student.predict(X)).all()
    assert (shares == student.predict_proba(X)).all()


def test_a_file_that_says_otherwise_is_not_written(tmp_path: Path) -> None:
    student = moments(TableBasis(), 2)
    rows = rows_of(PUBLIC)
    path = tmp_path / "student.onnx"
    # the cells of other rows than those that were encoded
    wrong = RawRows({name: cells[::-1] for name, cells in rows.cells.items()}, rows.X)
    with pytest.raises(DataError, match=r"differs from the student on \d+ of 500 public points"):
        dump_raw_onnx(student, path, SCHEMA.to_json(), wrong)

    class Shy(MomentsStudent):
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.asarray(super().predict_proba(X)) * 0.999 + 0.0005

    shy = Shy(student.basis, student.weights, student.classes)
    shy.__class__.__qualname__, shy.__class__.__module__ = (
        "MomentsStudent",
        MomentsStudent.__module__,
    )
    with pytest.raises(DataError, match="Probabilities of the ONNX student differ"):
        dump_raw_onnx(shy, path, SCHEMA.to_json(), rows)
    assert not path.exists()


def kinds_table(rows: int, seed: int) -> pd.DataFrame:
    """Return the texts of a table that has columns of every kind that a graph can encode."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(-4 * 10**9, 4 * 10**9, rows)  # 1843 to 2096
    seconds[: rows // 10] = rng.integers(-6 * 10**10, 2 * 10**11, rows // 10)  # 68 to 8307
    moments = [str(moment).replace("T", " ") for moment in seconds.astype("datetime64[s]")]
    days = [str(day) for day in rng.integers(-(10**4), 3 * 10**4, rows).astype("datetime64[D]")]
    frame = pd.DataFrame(
        {
            "moment": moments,
            "day": days,
            "flag": rng.choice(["true", "FALSE", "False", "x", ""], rows),
            "stay": [str(pd.Timedelta(int(s), "s")) for s in rng.integers(0, 10**6, rows)],
            "ward": rng.choice(["north", "south"], rows),
        }
    )
    frame.loc[::11, "moment"], frame.loc[::13, "stay"] = "", "?"
    return frame


def test_dates_truth_values_and_lengths_of_time_are_read_as_by_the_package(tmp_path: Path) -> None:
    public = kinds_table(600, 5)
    schema = Schema.from_json(
        {
            "columns": {
                "moment": {"kind": "date", "parts": ["hour", "weekday", "month", "day"]},
                "day": {"kind": "date", "parts": ["day", "month", "weekday"]},
                "flag": "boolean",
                "stay": "duration",
                "ward": "categorical",
            }
        },
        public=public,
    )
    document = schema.to_json()
    assert [encoded_width(column) for column in document["columns"].values()] == [
        len(column.feature_names) for column in schema.columns
    ]
    fitted = TableBasis().fit(schema.encode(public))
    weights = np.random.default_rng(1).integers(-(2**18), 2**18, (fitted.n_directions_ + 1, 1))
    student = MomentsStudent(fitted, weights, ["no", "yes"])
    path = tmp_path / "student.onnx"
    dump_raw_onnx(student, path, document, raw_rows_of(schema, public))
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    assert {one.name: one.type for one in session.get_inputs()} == {
        "moment": "tensor(int64)",
        "day": "tensor(int64)",
        "flag": "tensor(string)",
        "stay": "tensor(double)",
        "ward": "tensor(string)",
    }
    other = kinds_table(4000, 6)
    rows = raw_rows_of(schema, other)
    rows = RawRows({name: cells[:1000] for name, cells in rows.cells.items()}, rows.X[:1000])
    label, shares = session.run(None, rows.inputs(document))
    X = schema.encode(other.iloc[:1000])
    assert (label == student.predict(X)).all()
    assert (shares == student.predict_proba(X)).all()
    assert len(set(label.tolist())) == 2
    # the integers of numpy's own reading are those of the package
    moments = np.array([text or "NaT" for text in other["moment"][:1000]], "datetime64[s]")
    assert moments.astype(np.int64).tolist() == rows.cells["moment"]


@pytest.mark.parametrize("encoding", ["words", "tfidf", "hashed"])
def test_free_text_is_refused_in_a_sentence(tmp_path: Path, encoding: str) -> None:
    public = pd.DataFrame({"note": ["some pain", "no pain", "fever", "some fever"] * 5})
    spec = {"kind": "text", "encoding": encoding}
    schema = Schema.from_json({"columns": {"note": spec}}, public=public)
    assert complete_schema(schema.to_json()) is not None
    (column,) = schema.to_json()["columns"].values()
    assert encoded_width(column) == len(schema.feature_names)
    student = LogisticRegression().fit(schema.encode(public), [0, 1] * 10)
    rows = raw_rows_of(schema, public)
    with pytest.raises(DataError, match="Column 'note' holds free text, whose words no ONNX graph"):
        dump_raw_onnx(student, tmp_path / "student.onnx", schema.to_json(), rows)
    assert not (tmp_path / "student.onnx").exists()
