"""The files of a release: everything that may be published and nothing else, the certificate
last."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made_releases import binary, withheld
from sklearn.linear_model import LogisticRegression

from secretballot.exceptions import CertificateError, DataError
from secretballot.publishing import release as release_module
from secretballot.publishing.release import ReleaseJob, write_files
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.student.load import load_student
from secretballot_verify import check_files


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 3))


@pytest.fixture
def student(X_public: np.ndarray) -> Any:
    released = binary()
    return LogisticRegression().fit(X_public[released.queries], released.label_values)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_folder_holds_what_may_be_published(
    tmp_path: Path, student: Any, X_public: np.ndarray
) -> None:
    pytest.importorskip("onnxruntime")
    schema = {"columns": [{"name": "age <years>"}]}
    released = binary()
    written = write_files(tmp_path, ReleaseJob(released, None, X_public, schema), student=student)
    assert written.left_out == {}
    texts = {"README.txt", "model-card.md", "report.html", "labels.csv"}
    parts = {"certificate.json", "schema.json", "student.onnx"}
    assert names(tmp_path) == set(written.files) == texts | parts
    assert json.loads((tmp_path / "schema.json").read_text()) == schema
    assert verify_certificate(tmp_path).ok
    loaded = load_student(tmp_path / "student.onnx")
    assert np.array_equal(loaded.predict(X_public), student.predict(X_public))
    frame = pd.read_csv(tmp_path / "labels.csv")
    assert frame["query"].tolist() == released.queries.tolist()
    assert frame["label"].tolist() == released.label_values.tolist()
    counts = released.noisy_counts.tolist()  # type: ignore[union-attr]
    assert frame["noisy_count[yes]"].tolist() == counts


def test_a_certificate_of_other_labels_is_refused(tmp_path: Path) -> None:
    one, two = binary(n=60), binary(n=59)
    mixed = ReleasedLabels(
        two.queries, two.labels, two.classes, 250, 32.0, two.noisy_counts, one.certificate
    )
    for released in (mixed, ReleasedLabels(two.queries, two.labels, two.classes, 250)):
        with pytest.raises(CertificateError, match="not the one of these"):
            write_files(tmp_path, ReleaseJob(released))
    assert "certificate.json" not in names(tmp_path)


def test_the_time_of_writing_is_not_told(tmp_path: Path) -> None:
    written = write_files(tmp_path, ReleaseJob(binary()))
    issued = datetime.fromisoformat(written.certificate["issued"]).timestamp()
    assert {path.stat().st_mtime for path in (tmp_path, *tmp_path.iterdir())} == {issued}


def test_a_reason_tells_no_address(
    tmp_path: Path, student: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise DataError(f"{object()!r} cannot be written.")

    monkeypatch.setattr(release_module, "student_bytes", refuse)
    written = write_files(tmp_path, ReleaseJob(binary()), student=student)
    assert written.left_out["student.onnx"] == "<object object at 0x...> cannot be written."


def test_released_labels_are_written_as_parquet_too(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    released = withheld(classes=("01", "1"))
    write_files(tmp_path, ReleaseJob(released, parquet=True))
    table = pd.read_parquet(tmp_path / "labels.parquet")
    assert {*table["label"].dropna()} <= {"01", "1"}  # texts stay texts
    pd.testing.assert_frame_equal(
        table, pd.read_csv(tmp_path / "labels.csv", dtype={"label": object}), check_dtype=False
    )
    assert table["label"].isna().equals(table["abstained"])
    assert verify_certificate(tmp_path).ok
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert "answers.parquet" not in check_files(certificate, str(tmp_path))
