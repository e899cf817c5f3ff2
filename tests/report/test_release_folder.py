"""The release folder: complete or not there, with everything that may be published and nothing else."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report import folder as folder_room
from secretballot.report.export import load_student
from secretballot.report.extras import MissingExtraError
from secretballot.report.folder import write_release
from secretballot.report.verification import verify_certificate

Make = Callable[..., ReleasedLabels]


@pytest.fixture(name="X_public")
def public_points() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(180, 3))


@pytest.fixture
def student(make_binary: Make, X_public: np.ndarray) -> Any:
    released = make_binary()
    return LogisticRegression().fit(X_public[released.queries], released.label_values)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_folder_holds_what_may_be_published(
    tmp_path: Path, make_binary: Make, student: Any, X_public: np.ndarray
) -> None:
    pytest.importorskip("onnxruntime")
    schema = {"columns": [{"name": "age <years>"}]}
    released = make_binary()
    written = write_release(tmp_path / "release", released, student=student, X_public=X_public, schema=schema)
    assert written.left_out == {}
    assert names(written.path) == set(written.files) == {
        "README.txt", "certificate.json", "labels.csv", "report.html", "schema.json", "student.onnx", "student.skops"
    }  # fmt: skip
    assert json.loads((written.path / "schema.json").read_text()) == schema
    assert verify_certificate(written.path).ok
    loaded = load_student(written.path / "student.skops")
    assert np.array_equal(loaded.predict(X_public), student.predict(X_public))
    frame = pd.read_csv(written.path / "labels.csv")
    assert frame["query"].tolist() == released.queries.tolist()
    assert frame["label"].tolist() == released.label_values.tolist()
    assert frame["noisy_count[yes]"].tolist() == released.noisy_counts.tolist()  # type: ignore[union-attr]
    assert names(tmp_path) == {"release"}


def test_labels_alone_make_a_release_too(tmp_path: Path, make_withheld: Make) -> None:
    released = make_withheld()
    written = write_release(tmp_path / "release", released)
    assert names(written.path) == {"README.txt", "certificate.json", "labels.csv", "report.html"}
    frame = pd.read_csv(written.path / "labels.csv")
    assert frame["abstained"].tolist() == (~released.answered).tolist()
    assert frame["label"].isna().tolist() == (~released.answered).tolist()


def test_the_readme_says_what_to_do(tmp_path: Path, make_binary: Make, student: Any) -> None:
    released = make_binary(classes=["=no", "yes"])
    text = (write_release(tmp_path / "release", released, student=student).path / "README.txt").read_text()
    for words in ("may be published", "load_student", "secretballot verify .", "not a signature", "Left out", "=no"):
        assert words in text
    assert "(1, 1e-5)-differentially private" in text.replace("\n", " ")
    assert max(map(len, text.splitlines())) <= 110


def test_only_released_labels_come_in(tmp_path: Path, make_binary: Make) -> None:
    for other in (make_binary().to_json(), np.zeros(3), None):
        with pytest.raises(ParameterError, match="ReleasedLabels only"):
            write_release(tmp_path / "release", other)  # type: ignore[arg-type]
    assert not names(tmp_path)


def test_a_certificate_of_other_labels_is_refused(tmp_path: Path, make_binary: Make) -> None:
    one, two = make_binary(n=60), make_binary(n=59)
    mixed = ReleasedLabels(two.queries, two.labels, two.classes, 250, 32.0, two.noisy_counts, one.certificate)
    for released in (mixed, ReleasedLabels(two.queries, two.labels, two.classes, 250)):
        with pytest.raises(CertificateError, match="not the one of these"):
            write_release(tmp_path / "release", released)
    assert not names(tmp_path)


def test_a_folder_that_exists_is_refused(tmp_path: Path, make_binary: Make) -> None:
    target = tmp_path / "release"
    target.mkdir()
    (target / "mine.txt").write_text("keep")
    with pytest.raises(DataError, match="exists; name another folder"):
        write_release(target, make_binary())
    with pytest.raises(DataError, match="something else than a release"):
        write_release(target, make_binary(), overwrite=True)
    assert (target / "mine.txt").read_text() == "keep"
    assert names(tmp_path) == {"release"}


def test_files_and_links_are_never_overwritten(tmp_path: Path, make_binary: Make) -> None:
    (tmp_path / "file").write_text("keep")
    (tmp_path / "goal").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "goal")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link", "dangling"):
        with pytest.raises(DataError, match="exists"):
            write_release(tmp_path / name, make_binary())
        with pytest.raises(DataError, match="is no folder"):
            write_release(tmp_path / name, make_binary(), overwrite=True)
    assert names(tmp_path) == {"file", "goal", "link", "dangling"}


def test_an_earlier_release_is_replaced_when_allowed(tmp_path: Path, make_binary: Make, make_withheld: Make) -> None:
    target = tmp_path / "release"
    write_release(target, make_binary(), schema={"columns": []})
    write_release(target, make_withheld(), overwrite=True)
    assert names(target) == {"README.txt", "certificate.json", "labels.csv", "report.html"}
    assert names(tmp_path) == {"release"}
    assert verify_certificate(target).ok


def test_a_folder_may_lie_deep(tmp_path: Path, make_binary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_release("a/b/release", make_binary())
    assert written.path == tmp_path / "a" / "b" / "release"


@pytest.mark.parametrize("name", ["labels.csv", "certificate.json", "report.html", "student.skops", "README.txt"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_trouble_with_the_disk_leaves_nothing(
    tmp_path: Path, make_binary: Make, student: Any, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    _fail_on(monkeypatch, name, OSError(code, os.strerror(code)))
    with pytest.raises(DataError, match=os.strerror(code)) as caught:
        write_release(tmp_path / "release", make_binary(), student=student)
    assert str(caught.value).count(".") <= 3
    assert "\n" not in str(caught.value)
    assert not names(tmp_path)


def _fail_on(monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    """Let the writing of one file fail half-way."""
    open_as_ever = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if path.name == name and "w" in mode:
            with open_as_ever(path, mode, *args, **kwargs) as file:
                file.write(b"half" if "b" in mode else "half")
            raise error
        return open_as_ever(path, mode, *args, **kwargs)

    def write_bytes(path: Path, content: bytes) -> None:
        with opened(path, "wb") as file:
            file.write(content)

    def write_text(path: Path, content: str, encoding: str) -> None:
        with opened(path, "w", encoding=encoding) as file:
            file.write(content)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    monkeypatch.setattr(Path, "write_text", write_text)
    if name == "student.skops":
        monkeypatch.setattr(folder_room, "dump_student", lambda student, path: opened(path, "wb"))


def test_an_interruption_leaves_nothing(tmp_path: Path, make_binary: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_on(monkeypatch, "certificate.json", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_release(tmp_path / "release", make_binary())
    assert not names(tmp_path)


def test_the_earlier_release_comes_back_when_the_last_move_fails(
    tmp_path: Path, make_binary: Make, make_withheld: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "release"
    write_release(target, make_binary())
    move = Path.rename

    def rename(path: Path, to: Path) -> Path:
        if path.name == "new":
            raise OSError(errno.EIO, "Input/output error")
        return move(path, to)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(DataError, match="Input/output"):
        write_release(target, make_withheld(), overwrite=True)
    assert verify_certificate(target).ok
    assert (target / "labels.csv").read_text().startswith("query,label,abstained,noisy_count[yes]")
    assert names(tmp_path) == {"release"}


def test_a_parent_that_is_a_file_is_one_sentence(tmp_path: Path, make_binary: Make) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_release(tmp_path / "file" / "release", make_binary())


def test_what_cannot_be_made_is_left_out_with_the_reason(
    tmp_path: Path, make_binary: Make, student: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise MissingExtraError("skops is not installed; install it with: pip install 'secretballot[export]'.")

    monkeypatch.setattr(folder_room, "dump_student", missing)
    monkeypatch.setattr(folder_room, "render_page", missing)
    written = write_release(tmp_path / "release", make_binary(), student=student)
    assert set(written.left_out) == {"student.skops", "student.onnx", "report.html"}
    assert names(written.path) == {"README.txt", "certificate.json", "labels.csv"}
    assert "secretballot[export]" in (written.path / "README.txt").read_text()


def test_a_schema_that_json_cannot_carry_is_refused(tmp_path: Path, make_binary: Make) -> None:
    with pytest.raises(DataError, match="schema"):
        write_release(tmp_path / "release", make_binary(), schema={"x": float("nan")})
    assert not names(tmp_path)
