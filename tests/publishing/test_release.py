"""A release comes into its place complete or not at all, and nothing else is touched."""

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from secretballot.exceptions import DataError, ParameterError, ResourceError
from secretballot.publishing.process import PublishingProcess
from secretballot.publishing.release import make_release, write_release
from secretballot.released import ReleasedLabels
from secretballot.report.student.load import load_student

Make = Callable[..., ReleasedLabels]


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


@pytest.fixture
def made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make releases in this process, where a test can break them."""

    def perform(_: PublishingProcess, job: bytes, folder: str, say: Callable[[str], None]) -> Any:
        return make_release(pickle.loads(job), Path(folder), say)

    monkeypatch.setattr(PublishingProcess, "perform", perform)


@pytest.mark.parametrize(
    "student",
    ["auto", "sklearn.naive_bayes:GaussianNB", DecisionTreeClassifier()],
    ids=["auto", "GaussianNB", "unseeded"],
)
def test_a_student_is_fitted_by_name_or_unfitted(
    tmp_path: Path, make_released: Make, points: np.ndarray, student: Any
) -> None:
    written = write_release(
        tmp_path / "release", make_released(), student=student, X_public=points, without=["report"]
    )
    loaded = load_student(written.path / "student.onnx")
    right = loaded.predict(points) == np.where(points[:, 0] > 0, "yes", "no")
    assert np.mean(right) > 0.9
    if not isinstance(student, str):
        assert not hasattr(student, "classes_")


def test_a_student_that_only_this_process_knows_is_refused(
    tmp_path: Path, make_released: Make, points: np.ndarray
) -> None:
    class Own(LogisticRegression):
        pass

    with pytest.raises(ParameterError, match="its class must be in a module"):
        write_release(tmp_path / "release", make_released(), student=Own(), X_public=points)
    assert not names(tmp_path)


def test_only_released_labels_come_in(tmp_path: Path, make_released: Make) -> None:
    for other in (make_released().to_json(), np.zeros(3), None):
        with pytest.raises(ParameterError, match="made from a fitted learner"):
            write_release(tmp_path / "release", other)
    assert not names(tmp_path)


def test_nothing_that_exists_is_overwritten(tmp_path: Path, make_released: Make) -> None:
    (tmp_path / "file").write_text("keep")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    release = write_release(tmp_path / "release", make_released()).path
    there = names(tmp_path)
    for name in sorted(there):
        with pytest.raises(DataError, match="exists; name another folder"):
            write_release(tmp_path / name, make_released("labels"))
    assert names(tmp_path) == there
    assert (tmp_path / "file").read_text() == "keep"
    assert not names(tmp_path / "empty")
    assert "noisy_count" in (release / "labels.csv").read_text()


@pytest.mark.parametrize("name", ["labels.csv", "certificate.json"])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()],
    ids=["full", "interrupted"],
)
def test_trouble_on_the_way_leaves_nothing(
    tmp_path: Path,
    make_released: Make,
    made_here: None,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: BaseException,
) -> None:
    open_as_ever = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if path.name == name and "w" in mode:
            with open_as_ever(path, mode, *args, **kwargs) as file:
                file.write(b"half")
            raise error
        return open_as_ever(path, mode, *args, **kwargs)

    def write_bytes(path: Path, content: bytes) -> None:
        with opened(path, "wb") as file:
            file.write(content)

    monkeypatch.setattr(Path, "open", opened)
    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises((ResourceError, KeyboardInterrupt)) as caught:
        write_release(tmp_path / "release", make_released())
    if isinstance(error, OSError):
        assert os.strerror(errno.ENOSPC) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not names(tmp_path)
