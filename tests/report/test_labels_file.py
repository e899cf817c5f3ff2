"""The bytes of labels.csv: exact values, one text for each release, read back by anybody's CSV reader."""

import csv
import hashlib
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError
from secretballot.report.labels_file import labels_blocks, labels_digest, summarise_labels_file

AWKWARD = ["plain", "=1+1", "@x", "a,b", 'say "so"', "two\nlines", "", " spaced ", "-3", "日本"]


def text(*args: object) -> str:
    return b"".join(labels_blocks(*args)).decode()  # type: ignore[arg-type]


def test_binary_counts_have_one_column_named_by_the_second_class() -> None:
    written = text(np.array([4, 9, 2]), np.array([1, 0, -1]), ["no", "yes"], np.array([130, -7, 0]))
    assert written == ("query,label,abstained,noisy_count[yes]\n4,yes,false,130\n9,no,false,-7\n2,,true,0\n")


def test_many_classes_have_a_column_each() -> None:
    written = text(np.array([0]), np.array([2]), [0, 1, 2], np.array([[1, 2, 30]]))
    assert written == "query,label,abstained,noisy_count[0],noisy_count[1],noisy_count[2]\n0,2,false,1,2,30\n"


def test_values_come_back_unaltered_from_any_reader() -> None:
    labels = np.arange(len(AWKWARD))
    written = text(labels, labels, AWKWARD)
    assert [row[1] for row in csv.reader(io.StringIO(written, newline=""))][1:] == AWKWARD
    frame = pd.read_csv(io.StringIO(written), keep_default_na=False)
    assert frame["label"].tolist() == AWKWARD
    assert frame["abstained"].tolist() == [False] * len(AWKWARD)


def test_types_of_classes_keep_their_plain_text() -> None:
    written = text(np.arange(4), np.arange(4), [True, np.int64(3), 0.5, "x"])
    assert [line.split(",")[1] for line in written.splitlines()[1:]] == ["true", "3", "0.5", "x"]


def test_blocks_do_not_change_the_text() -> None:
    n = 70_000
    labels = np.arange(n) % 2
    written = text(np.arange(n), labels, [0, 1])
    assert written.count("\n") == n + 1
    assert labels_digest(np.arange(n), labels, [0, 1]) == hashlib.sha256(written.encode()).hexdigest()


def test_the_digest_sees_every_value() -> None:
    queries, labels, counts = np.array([3, 5]), np.array([0, 1]), np.array([10, 20])
    known = {
        labels_digest(queries, labels, ["a", "b"], counts),
        labels_digest(queries + 1, labels, ["a", "b"], counts),
        labels_digest(queries, 1 - labels, ["a", "b"], counts),
        labels_digest(queries, labels, ["a", "c"], counts),
        labels_digest(queries, labels, ["a", "b"], counts + 1),
        labels_digest(queries, labels, ["a", "b"]),
    }
    assert len(known) == 6


def test_no_queries_give_a_header_alone() -> None:
    assert text(np.empty(0, int), np.empty(0, int), [0, 1]) == "query,label,abstained\n"
    header = "query,label,abstained,noisy_count[1]\n"
    assert text(np.empty(0, int), np.empty(0, int), [0, 1], np.empty(0, int)) == header


@pytest.mark.parametrize(
    ("labels", "counts", "said"),
    [
        (np.array([0]), None, "same length"),
        (np.array([0, 2]), None, "class indices"),
        (np.array([0, -2]), None, "class indices"),
        (np.array([0, 1]), np.zeros((2, 3), int), "noisy_counts has shape"),
    ],
)
def test_what_does_not_fit_is_refused(labels: np.ndarray, counts: np.ndarray | None, said: str) -> None:
    with pytest.raises(DataError, match=said):
        text(np.array([0, 1]), labels, ["a", "b"], counts)


def test_a_file_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(text(np.arange(10), np.arange(10) % 4 - 1, AWKWARD).encode())
    found = summarise_labels_file(path)
    assert (found.queries, found.answered) == (10, 7)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"query,label,abstained\n1\n", b"\xff\xfe\x00", b"\x00" * 99])
def test_other_files_are_no_labels(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a file of released labels"):
        summarise_labels_file(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        summarise_labels_file(tmp_path / "labels.csv")
