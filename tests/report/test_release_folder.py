"""The files of a release: exactly those of its certificate, each with one text."""

import csv
import hashlib
import io
import json
import os
import socket
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from made_releases import binary, withheld
from sklearn.linear_model import LogisticRegression

from made_certificates import failed, renewed, reseal
from secretballot.exceptions import CertificateError, DataError
from secretballot.publishing import release as release_module
from secretballot.publishing.release import ReleaseJob, _write_files
from secretballot.released import ReleasedLabels
from secretballot.report.certificate import labels_blocks, labels_digest
from secretballot.report.verification import _read_labels, read_certificate, verify_certificate
from secretballot_verify import _check_files


@pytest.fixture(name="X_public")
def public_points():
    return np.random.default_rng(3).normal(size=(180, 3))


@pytest.fixture
def student(X_public):
    released = binary()
    return LogisticRegression().fit(X_public[released.queries], released.label_values)


def names(path):
    return {entry.name for entry in path.iterdir()}


def test_a_folder_holds_what_may_be_published(tmp_path, student, X_public):
    pytest.importorskip("onnxruntime")
    schema = {"columns": [{"name": "age <years>"}]}
    released = binary()
    written = _write_files(tmp_path, ReleaseJob(released, None, X_public, schema), student=student)
    assert written.left_out == {}
    texts = {"README.txt", "model-card.md", "report.html", "labels.csv"}
    parts = {"certificate.json", "schema.json", "student.onnx"}
    assert names(tmp_path) == set(written.files) == texts | parts
    assert json.loads((tmp_path / "schema.json").read_text()) == schema
    assert verify_certificate(tmp_path).ok
    frame = pd.read_csv(tmp_path / "labels.csv")
    assert frame["query"].tolist() == released.queries.tolist()
    assert frame["label"].tolist() == released.label_values.tolist()
    counts = released.noisy_counts.tolist()
    assert frame["noisy_count[yes]"].tolist() == counts


def test_a_certificate_of_other_labels_is_refused(tmp_path):
    one, two = binary(n=60), binary(n=59)
    mixed = ReleasedLabels(
        two.queries, two.labels, two.classes, 250, 32.0, two.noisy_counts, one.certificate
    )
    for released in (mixed, ReleasedLabels(two.queries, two.labels, two.classes, 250)):
        with pytest.raises(CertificateError, match="not the one of these"):
            _write_files(tmp_path, ReleaseJob(released))
    assert "certificate.json" not in names(tmp_path)


def test_the_time_of_writing_is_not_told(tmp_path):
    written = _write_files(tmp_path, ReleaseJob(binary()))
    issued = datetime.fromisoformat(written.certificate["issued"]).timestamp()
    assert {path.stat().st_mtime for path in (tmp_path, *tmp_path.iterdir())} == {issued}


def test_a_reason_tells_no_address(tmp_path, student, monkeypatch):
    def refuse(*_, **__):
        raise DataError(f"{object()!r} cannot be written.")

    monkeypatch.setattr(release_module, "student_bytes", refuse)
    written = _write_files(tmp_path, ReleaseJob(binary()), student=student)
    assert written.left_out["student.onnx"] == "<object object at 0x...> cannot be written."


def test_released_labels_are_written_as_parquet_too(tmp_path):
    pytest.importorskip("pyarrow")
    released = withheld(classes=("01", "1"))
    _write_files(tmp_path, ReleaseJob(released, parquet=True))
    table = pd.read_parquet(tmp_path / "labels.parquet")
    assert {*table["label"].dropna()} <= {"01", "1"}  # texts stay texts
    as_text = pd.read_csv(tmp_path / "labels.csv", dtype={"label": object})
    pd.testing.assert_frame_equal(table.fillna(""), as_text.fillna(""), check_dtype=False)
    assert table["label"].isna().equals(table["abstained"])
    assert verify_certificate(tmp_path).ok
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    assert "answers.parquet" not in _check_files(certificate, str(tmp_path))


@pytest.fixture
def folder(make_folder):
    return make_folder(binary())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "README.txt").unlink(),
        lambda folder: (folder / "README.txt").write_text("A private relEase."),
        lambda folder: (folder / "README.txt").write_text("A private release.."),
        lambda folder: (folder / "votes.csv").write_text("201,49\n"),
        lambda folder: (folder / ".votes").write_text("201,49\n"),
        lambda folder: (folder / "vault").mkdir(),
        lambda folder: os.mkfifo(folder / "pipe"),
        lambda folder: (folder / "nowhere").symlink_to("/nowhere"),
    ],
    ids=["gone", "changed", "longer", "more", "hidden", "folder", "pipe", "link"],
)
def test_what_is_not_listed_or_not_there_is_refused(folder, spoil):
    spoil(folder)
    assert failed(folder) == {"files"}


def test_a_certificate_beside_labels_is_that_of_a_folder_also_without_its_words(folder):
    (folder / "README.txt").unlink()
    (folder / "labels.csv").write_text("query,label\n0,1\n")
    assert {"files", "labels"} <= failed(folder / "certificate.json")


def bound_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)  # the name of a socket is short
        server.bind(path.name)


def sparse_monster(path):
    path.touch()
    os.truncate(path, 1 << 40)


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to("labels.csv"),
        lambda path: path.mkdir(),
        bound_socket,
        sparse_monster,
    ],
    ids=["pipe", "endless", "link", "folder", "socket", "sparse"],
)
def test_only_regular_files_of_bounded_size_are_read(folder, make, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("labels.csv", "certificate.json"):
        (folder / name).rename(folder / "kept")
        make(folder / name)
        details = [check.detail for check in verify_certificate(folder).failures]
        assert any("no regular file" in one or "are read. Give" in one for one in details)
        (folder / name).rename(folder.parent / name)
        (folder / "kept").rename(folder / name)
    document = read_certificate(folder / "certificate.json")
    (folder / "README.txt").unlink()
    make(folder / "README.txt")
    document["files"]["README.txt"]["bytes"] = (folder / "README.txt").lstat().st_size
    (folder / "certificate.json").write_text(json.dumps(renewed(document)))
    assert failed(folder) == {"files"}


def test_a_list_of_another_file_or_without_labels_is_refused(folder, seal):
    reseal(folder, lambda document: document["files"].pop("labels.csv"))
    assert failed(folder) == {"files"}
    (folder / "votes.csv").write_text("201,49\n")
    seal(folder, binary().certificate)
    assert failed(folder) == {"files"}


AWKWARD = ["plain", "=1+1", "@x", "a,b", 'say "so"', "two\nlines", "", " spaced ", "-3", "日本"]


def text(*args):
    return b"".join(labels_blocks(*args)).decode()


def test_binary_counts_have_one_column_named_by_the_second_class():
    written = text(np.array([4, 9, 2]), np.array([1, 0, -1]), ["no", "yes"], np.array([130, -7, 0]))
    assert (
        written
        == "query,label,abstained,noisy_count[yes]\n4,yes,false,130\n9,no,false,-7\n2,,true,0\n"
    )


def test_values_come_back_unaltered_from_any_reader():
    labels = np.arange(len(AWKWARD))
    written = text(labels, labels, AWKWARD)
    assert [row[1] for row in csv.reader(io.StringIO(written, newline=""))][1:] == AWKWARD
    frame = pd.read_csv(io.StringIO(written), keep_default_na=False)
    assert frame["label"].tolist() == AWKWARD
    assert frame["abstained"].tolist() == [False] * len(AWKWARD)


def test_blocks_do_not_change_the_text_and_the_digest_sees_every_value():
    queries = np.arange(70_000)
    labels = queries % 2
    written = text(queries, labels, [0, 1])
    assert written.count("\n") == len(queries) + 1
    digest = hashlib.sha256(written.encode()).hexdigest()
    assert labels_digest(queries, labels, [0, 1]) == digest
    changed = (
        (queries + 1, labels, [0, 1]),
        (queries, 1 - labels, [0, 1]),
        (queries, labels, [0, 2]),
        (queries, labels, [0, 1], queries),
        (queries, labels, [0, 1], queries + 1),
    )
    assert len({digest, *(labels_digest(*one) for one in changed)}) == 6


@pytest.mark.parametrize("n_counts", [0, 1, 10])
def test_what_is_written_is_read_back(n_counts):
    rng = np.random.default_rng(3)
    classes = AWKWARD if n_counts != 1 else AWKWARD[:2]
    labels = rng.integers(-1, len(classes), 400)
    shape = (400,) if n_counts == 1 else (400, n_counts)
    counts = rng.integers(-(10**6), 10**6, shape) if n_counts else None
    queries = rng.permutation(10**6)[:400]
    found = _read_labels(text(queries, labels, classes, counts).encode(), classes, n_counts)
    np.testing.assert_array_equal(found[0], queries)
    np.testing.assert_array_equal(found[1], labels)
    assert (found[2] is None) == (counts is None)
    if counts is not None:
        np.testing.assert_array_equal(found[2], counts)


GENUINE = b"query,label,abstained\n3,no,false\n5,,true\n9,yes,false\n"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a,b\n1,2\n",
        b"\xff\xfe\x00",
        b"\x00" * 99,
        GENUINE[:-1],
        GENUINE + b"\n",
        GENUINE + b"7",
        GENUINE.replace(b"\n", b"\r\n"),
        GENUINE.replace(b"no,false", b"no,False"),
        GENUINE.replace(b"no,false", b"no,"),
        GENUINE.replace(b"no,false", b'"no",false'),
        *(
            GENUINE.replace(b"3,", number.encode() + b",")
            for number in ("03", "+3", " 3", "3.0", "1_0", "\N{ARABIC-INDIC DIGIT THREE}")
        ),
        *(GENUINE.replace(b"3,", b"9" * digits + b",") for digits in (30, 5000)),
        *(GENUINE.replace(b",,true", one) for one in (b",no,true", b",,false", b",,1")),
        GENUINE.replace(b"query", b"row"),
        GENUINE.replace(b"query,label,abstained\n", b"\xef\xbb\xbfquery,label,abstained\n"),
        GENUINE.replace(b"no,false", b"n\xf6,false"),
    ],
    ids=range(25),
)
def test_nothing_but_what_a_release_writes_is_read(content):
    _read_labels(GENUINE, ["no", "yes"], 0)
    with pytest.raises(DataError, match=r"^labels\.csv .*give the labels\.csv of the release\.$"):
        _read_labels(content, ["no", "yes"], 0)


def test_counts_must_be_there_exactly_where_they_are_stated():
    counts = np.array([[1, 2], [3, 4]])
    written = text(np.arange(2), np.arange(2), ["a", "b"], counts).encode()
    for columns in (0, 1, 3):
        with pytest.raises(DataError):
            _read_labels(written, ["a", "b"], columns)
