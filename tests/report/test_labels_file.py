"""The bytes of labels.csv: exact values, one text for each release, read back by anybody's CSV
reader."""

import csv
import hashlib
import io

import numpy as np
import pandas as pd
import pytest

from secretballot.exceptions import DataError
from secretballot.report.certificate.build import labels_blocks, labels_digest
from secretballot.report.certificate.verify import read_labels

AWKWARD = ["plain", "=1+1", "@x", "a,b", 'say "so"', "two\nlines", "", " spaced ", "-3", "日本"]


def text(*args: object) -> str:
    return b"".join(labels_blocks(*args)).decode()  # type: ignore[arg-type]


def test_binary_counts_have_one_column_named_by_the_second_class() -> None:
    written = text(np.array([4, 9, 2]), np.array([1, 0, -1]), ["no", "yes"], np.array([130, -7, 0]))
    assert (
        written
        == "query,label,abstained,noisy_count[yes]\n4,yes,false,130\n9,no,false,-7\n2,,true,0\n"
    )


def test_values_come_back_unaltered_from_any_reader() -> None:
    labels = np.arange(len(AWKWARD))
    written = text(labels, labels, AWKWARD)
    assert [row[1] for row in csv.reader(io.StringIO(written, newline=""))][1:] == AWKWARD
    frame = pd.read_csv(io.StringIO(written), keep_default_na=False)
    assert frame["label"].tolist() == AWKWARD
    assert frame["abstained"].tolist() == [False] * len(AWKWARD)


def test_blocks_do_not_change_the_text_and_the_digest_sees_every_value() -> None:
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
def test_what_is_written_is_read_back(n_counts: int) -> None:
    rng = np.random.default_rng(3)
    classes = AWKWARD if n_counts != 1 else AWKWARD[:2]
    labels = rng.integers(-1, len(classes), 400)
    shape = (400,) if n_counts == 1 else (400, n_counts)
    counts = rng.integers(-(10**6), 10**6, shape) if n_counts else None
    queries = rng.permutation(10**6)[:400]
    found = read_labels(text(queries, labels, classes, counts).encode(), classes, n_counts)
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
        GENUINE.replace(b"no", b"the patient has HIV"),
        GENUINE.replace(b"no,false", b"no,false,201"),
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
        GENUINE.replace(b"query,label,abstained", b"query,label,abstained,votes"),
        GENUINE.replace(b"query,label,abstained\n", b"\xef\xbb\xbfquery,label,abstained\n"),
        b"# exact votes: 201 49\n" + GENUINE,
        GENUINE.replace(b"no,false", b"n\xf6,false"),
    ],
    ids=range(29),
)
def test_nothing_but_what_a_release_writes_is_read(content: bytes) -> None:
    read_labels(GENUINE, ["no", "yes"], 0)
    with pytest.raises(DataError, match=r"^labels\.csv .*give the labels\.csv of the release\.$"):
        read_labels(content, ["no", "yes"], 0)


def test_counts_must_be_there_exactly_where_they_are_stated() -> None:
    counts = np.array([[1, 2], [3, 4]])
    written = text(np.arange(2), np.arange(2), ["a", "b"], counts).encode()
    for columns in (0, 1, 3):
        with pytest.raises(DataError):
            read_labels(written, ["a", "b"], columns)
