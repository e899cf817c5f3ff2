"""The release folder: written beside its place, complete or not at all, then moved into it."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.export import dump_onnx, dump_student
from secretballot.report.extras import MissingExtraError
from secretballot.report.labels_file import class_text, labels_blocks
from secretballot.report.page import render_page
from secretballot.report.query_captions import QUERY_TITLES
from secretballot.report.query_pictures import draw_query_pictures
from secretballot.report.query_story import QueryStory, check_story
from secretballot.report.readme import release_readme

__all__ = ["ReleaseFolder", "write_release"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ReleaseFolder:
    """A release on disk.

    Attributes
    ----------
    path : Path
        The folder.
    files : dict
        Name of each file, with what it is.
    left_out : dict
        Name of each file that could not be made, with the reason.
    """

    path: Path
    files: dict[str, str]
    left_out: dict[str, str]


def write_release(
    folder: str | Path,
    released: ReleasedLabels,
    *,
    student: Any = None,
    X_public: Any = None,
    schema: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    story: QueryStory | None = None,
) -> ReleaseFolder:
    """Write all that may be published of a release into one folder.

    The folder appears complete or not at all. What needs an optional package that is missing, or a conversion that
    fails, is left out; `README.txt` and the result say why.

    Parameters
    ----------
    folder : path
        Folder to make.
    released : ReleasedLabels
        What left the door, with its certificate; it is the only way in for anything that was private.
    student : fitted classifier, optional
        Trained on released labels and public points.
    X_public : array or frame of shape (n, n_features), optional
        Public points: for the picture of the student's confidence, and to check the ONNX student.
    schema : mapping, optional
        Public description of the columns, as JSON values; written as ``schema.json``.
    overwrite : bool
        Whether an earlier release in `folder` may be replaced. Any other folder is left alone.
    story : QueryStory, optional
        How the queries were chosen; written as ``queries.json`` and drawn, on the page and as files.

    Returns
    -------
    ReleaseFolder

    Raises
    ------
    ParameterError
        If something else than released labels is given.
    CertificateError
        If the certificate is not the one of these labels.
    DataError
        If the folder exists, or cannot be written, or the story is not the one of these labels; nothing half-written
        is left.
    """
    if not isinstance(released, ReleasedLabels):
        raise ParameterError(f"released is a {type(released).__name__}; a release is made from ReleasedLabels only.")
    if story is not None:
        check_story(story, released)
    target = Path(os.path.abspath(folder))
    _check_place(target, overwrite)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as workshop:
            written = _Writer(Path(workshop) / "new")
            _write_all(written, released, student, X_public, schema, story)
            _move(written.folder, target, Path(workshop) / "old")
    except OSError as error:
        raise DataError(
            f"The release cannot be written to {str(target)!r}: {error.strerror or error}; nothing was left there."
        ) from None
    return ReleaseFolder(target, written.files, written.left_out)


def _check_place(target: Path, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise DataError(f"{str(target)!r} exists; name another folder, or allow it to be overwritten.")
    if target.is_symlink() or not target.is_dir():
        raise DataError(f"{str(target)!r} is no folder; name another one.")
    if any(target.iterdir()) and not (target / "certificate.json").is_file():
        raise DataError(f"{str(target)!r} holds something else than a release; name another folder.")


def _move(new: Path, target: Path, old: Path) -> None:
    """Put the finished folder in its place; an earlier release steps aside first, and comes back on failure."""
    if not target.exists():
        new.rename(target)
        return
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise


class _Writer:
    """Makes a folder, writes files into it and keeps the list of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.files: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    def write(self, name: str, words: str, content: bytes) -> None:
        (self.folder / name).write_bytes(content)
        self.files[name] = words

    def attempt(self, name: str, words: str, make: Callable[[Path], object]) -> None:
        """Make a file that may be left out for a stated reason; trouble with the disk is no such reason."""
        try:
            make(self.folder / name)
        except (MissingExtraError, DataError) as error:
            (self.folder / name).unlink(missing_ok=True)
            self.left_out[name] = str(error)
        else:
            self.files[name] = words


def _write_all(
    written: _Writer,
    released: ReleasedLabels,
    student: Any,
    X_public: Any,
    schema: Mapping[str, Any] | None,
    story: QueryStory | None,
) -> None:
    _write_labels(written, released)
    written.write(
        "certificate.json", "what was promised and done; `secretballot verify .` checks it", _json(released.certificate)
    )
    if schema is not None:
        written.write("schema.json", "the public columns and categories that the student reads", _json(schema))
    if story is not None:
        _write_story(written, released, story)
    untrusted: list[str] = []
    if student is not None:
        written.attempt(
            "student.skops", "the student model, for Python", lambda path: untrusted.extend(dump_student(student, path))
        )
        written.attempt(
            "student.onnx", "the student model, for any language", lambda path: _onnx(student, path, X_public)
        )
    readme = {"README.txt": "what may be done with these files, and how"}
    listed = {**written.files, **readme}
    written.attempt(
        "report.html",
        "the report, for people",
        lambda path: path.write_text(
            render_page(released, student=student, X_public=X_public, files_written=listed, story=story),
            encoding="utf-8",
        ),
    )
    text = release_readme(
        released.certificate, {**written.files, **readme}, written.left_out, untrusted, _formula_like(released)
    )
    written.write("README.txt", readme["README.txt"], text.encode())


def _write_labels(written: _Writer, released: ReleasedLabels) -> None:
    """Write labels.csv; refuse a certificate that speaks of other labels."""
    digest = hashlib.sha256()
    with (written.folder / "labels.csv").open("wb") as file:
        for block in labels_blocks(released.queries, released.labels, released.classes, released.noisy_counts):
            file.write(block)
            digest.update(block)
    bound = released.certificate.get("released")
    if not isinstance(bound, Mapping) or bound.get("labels_sha256") != digest.hexdigest():
        raise CertificateError("The certificate is not the one of these released labels; take both from one release.")
    written.files["labels.csv"] = "the released labels, one line for each query"


def _write_story(written: _Writer, released: ReleasedLabels, story: QueryStory) -> None:
    """Write the story, and its pictures for papers and slides."""
    content = json.dumps(story.to_json(), separators=(",", ":"), allow_nan=False) + "\n"
    written.write(
        "queries.json", "which public points were asked, round by round, and where they lie", content.encode()
    )
    for name, picture in draw_query_pictures(story, released).items():
        words = f"picture: {QUERY_TITLES[name][0].lower()}{QUERY_TITLES[name][1:]}"
        written.attempt(f"queries-{name}.svg", f"{words} (to scale and print)", _painted(picture.svg))
        written.attempt(f"queries-{name}.png", f"{words} (for slides)", _painted(picture.png))


def _painted(paint: Callable[[], bytes]) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(paint())


def _onnx(student: Any, path: Path, X_public: Any) -> None:
    if X_public is None:
        raise DataError("ONNX needs public points, to check that the file predicts as the student does.")
    dump_onnx(student, path, X_public)


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
    except (TypeError, ValueError):
        raise DataError("schema holds a value that JSON cannot carry; use text, numbers and lists.") from None


def _formula_like(released: ReleasedLabels) -> list[str]:
    """Return the classes that a spreadsheet might take for a formula."""
    texts = [class_text(value) for value in released.classes]
    return [text for text in texts if text.startswith(_FORMULA_STARTS) and not _is_number(text)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
