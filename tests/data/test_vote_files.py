import decimal
import io
import itertools
import zipfile

import numpy as np
import pandas as pd
import pytest

from secretballot import read_votes
from secretballot.data import tally
from secretballot.exceptions import DataError, ParameterError

VOTES = np.array([[0, 1, 1, 1, 0], [0, 0, 0, 1, 0], [1, 1, 1, 1, 1]])
COUNTS = np.array([[2, 3], [4, 1], [0, 5]])
WORDS = np.where(VOTES, "yes", "NA")


@pytest.fixture
def write(tmp_path):
    def _write(table, suffix, **options):
        path = tmp_path / f"table{suffix}"
        frame = pd.DataFrame(table)
        frame.columns = [f"t{number}" for number in range(frame.shape[1])]
        if suffix == ".npy":
            np.save(path, table, **options)
        elif suffix == ".csv":
            frame.to_csv(path, index=False, **options)
        else:
            pytest.importorskip("pyarrow")
            frame.to_parquet(path, index=False, **options)
        return path

    return _write


def opened(counts):
    return counts._unseal()[0].tolist()


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
@pytest.mark.parametrize("cells", [2**20, 4])
def test_counts_and_votes_are_read_from_every_format(write, suffix, cells, monkeypatch):
    monkeypatch.setattr(tally, "_BLOCK_CELLS", cells)
    assert opened(read_votes(write(COUNTS.astype(float), suffix), "counts")) == COUNTS.tolist()
    # the order of columns in memory does not matter
    for votes in (VOTES, np.asfortranarray(VOTES)):
        assert opened(read_votes(write(votes, suffix), "votes", classes=[0, 1])) == COUNTS.tolist()
    counts = read_votes(write(WORDS, suffix), "votes", classes=("NA", "yes"))
    assert opened(counts) == COUNTS.tolist()
    assert (counts.shape.n_teachers, counts.classes) == (5, ("NA", "yes"))


def test_csv_without_a_header_is_read_from_its_first_row(write):
    for table, kind, classes in (
        (COUNTS, "counts", None),
        (VOTES, "votes", [0, 1]),
        (WORDS, "votes", ["NA", "yes"]),
    ):
        path = write(table, ".csv", header=False)
        assert read_votes(path, kind, classes).shape.n_queries == 3


def test_files_that_are_not_what_is_said_of_them_are_refused(write, tmp_path):
    pd.DataFrame(COUNTS).to_csv(tmp_path / "indexed.csv")
    (tmp_path / "one.csv").write_text("0\n1\n")
    path = write(VOTES, ".npy")
    for place, given, error, words in (
        (tmp_path / "indexed.csv", {"kind": "counts"}, DataError, "without its row index"),
        (path, {"kind": "votes"}, ParameterError, "classes is None"),
        (path, {"kind": "ballots"}, ParameterError, "kind is 'ballots'"),
        (path, {"classes": [0, 1], "n_teachers": 6}, DataError, "must be 6, one for each teacher"),
        (tmp_path / "one.csv", {"classes": [0, 1]}, DataError, "depends on a few cells"),
    ):
        with pytest.raises(error, match=words):
            read_votes(place, **{"kind": "votes", **given})


def test_inconsistent_rows_of_a_csv_are_named(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,c\n0,1,1\n0,,1\n0,7,1\nNA,1,1\n")
    with pytest.raises(DataError, match=r"no declared class \(rows 1, 2, 3"):
        read_votes(path, "votes", classes=[0, 1])


def _npy_claiming(shape, dtype="<i8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": dtype, "fortran_order": False, "shape": shape}
    )
    return file.getvalue() + bytes(80)


def _npz():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        # of a fixed date: it is part of a test's name
        archive.writestr(zipfile.ZipInfo("a.npy"), b"")
    return file.getvalue()


def _pickled_objects():
    file = io.BytesIO()
    np.save(file, np.array([[1, None]], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("empty.csv", b""), ("garbage.csv", bytes(range(256)) * 4)),
        *(("garbage.parquet", bytes(range(256))), ("huge.npy", _npy_claiming((10**12, 250)))),
        *(("overflow.npy", _npy_claiming((2**40, 2**40))), ("flat.npy", _npy_claiming((10,)))),
        ("records.npy", _npy_claiming((2, 2), [("a", "<i8")])),
        ("complex.npy", _npy_claiming((2, 2), "<c16")),
        ("letters.npy", _npy_claiming((2, 2), "<U5").replace(bytes(80), b"\xff" * 80)),
        *(("nothing.npy", _npy_claiming((2, 2), "<U0")), ("objects.npy", _pickled_objects())),
        *(("archive.npy", _npz()), ("cut.npy", b"\x93NUMPY\x01\x00")),
        *(("long.csv", b"a,b\n1,2\n1,2,3,4\n"), ("quotes.csv", b'a,b\n1,"2\n')),
        *(("words.csv", b"a,b\n4711,x\n"), ("header.csv", b"a,b\n")),
        ("latin.csv", "a,b\n1,\xe9\n".encode("latin-1")),
    ],
)
def test_unreadable_file_is_one_sentence_without_its_content(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_votes(path, "counts")
    message = str(caught.value)
    assert message.count("\n") == 0
    assert message.endswith(".")
    assert "4711" not in message
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_named_columns_of_counts_go_to_their_classes(tmp_path, suffix):
    frame = pd.DataFrame({"yes": [2, 30, 5], "no": [48, 20, 45]})
    path = tmp_path / f"counts{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    assert opened(read_votes(path, kind="counts", classes=["no", "yes"])) == [
        [48, 2],
        [20, 30],
        [45, 5],
    ]
    with pytest.raises(DataError, match="name each column by its class"):
        read_votes(path, kind="counts", classes=["ill", "well"])


EDITS = [
    *("0", "1", "2", "7", "-1", "1.0", "0.5", "1e0", "nan", "NA"),
    *("", " ", " 1", "a", "b", "ab", "x4711", "é", "\0"),
    *('"', '"a', 'a"', '"a"', '"1"', '""', "1,1", ",", ";"),
    *("1;0", "a\tb", "1\r", "\ufeff1", "inf", "9" * 400),
    "x" * 140_000,
]


def reading(path, edited, **options):
    """Return the counts of a file without what the edited cell votes for, or None where it was
    refused."""
    try:
        counts = read_votes(path, **options)
    except DataError as error:
        refused = error
    else:
        return counts.shape.n_queries, np.delete(counts._unseal()[0], edited, axis=0).tolist()
    assert "4711" not in str(refused)
    assert str(refused).isprintable()
    assert len(str(refused)) < 600
    assert refused.__context__ is None
    return None


# A row less its edited cell cannot be told from counts alone, so the row itself is left out and all
# others compared.
@pytest.mark.parametrize(
    ("classes", "header", "teachers", "said"),
    [
        *(([0, 1], True, 1, True), (["a", "b"], False, 1, True), ([0, 1], False, 2, False)),
        *((["a", "b"], True, 2, False), (["a", "b"], False, 2, False), ([0, 1], True, 2, True)),
    ],
)
def test_one_cell_of_votes_changes_no_other_reading(tmp_path, classes, header, teachers, said):
    votes = [
        [str(classes[(row * teacher) % 2]) for teacher in range(1, teachers + 1)]
        for row in range(1, 4)
    ]
    first = [[f"teacher {number}" for number in range(teachers)]] if header else []
    path = tmp_path / "votes.csv"
    spoken = ("yes" if header else "no") if said else None

    def read(lines, row):
        path.write_text(
            "".join(",".join(line) + "\n" for line in first + lines), encoding="utf-8", newline=""
        )
        return reading(path, row, classes=classes, kind="votes", header=spoken)

    for row in (0, 2):
        before = read(votes, row)
        assert before is not None
        for column, cell in itertools.product(range(teachers), EDITS):
            lines = [list(line) for line in votes]
            lines[row][column] = cell
            assert read(lines, row) in (before, None)


@pytest.mark.parametrize(("header", "classes"), [(True, ["no", "yes"]), (False, None)])
def test_one_cell_of_counts_changes_no_other_reading(tmp_path, header, classes):
    path = tmp_path / "counts.csv"

    def read(row, column, cell):
        lines = [["4711", "1"], ["4700", "12"], ["0", "4712"]]
        lines[row][column] = cell
        whole = "\n".join(map(",".join, [["no", "yes"], *lines] if header else lines))
        path.write_text(whole, encoding="utf-8", newline="")
        return reading(path, row, kind="counts", classes=classes)

    before = {0: read(0, 0, "4711"), 2: read(2, 0, "0")}
    assert None not in before.values()
    for row, column, cell in itertools.product(before, range(2), EDITS):
        assert read(row, column, cell) in (before[row], None)


CELLS = [None, "a", "x4711", "", 1, 0.5, True, "1", "1.0", float("nan")]


@pytest.mark.parametrize(
    ("suffix", "classes", "cell"),
    [
        # a column of parquet has one type; cells of CSV files are read as texts above
        *((".parquet", ["a", "1"], cell) for cell in CELLS if not isinstance(cell, int | float)),
        *((".parquet", [0, 1], cell) for cell in CELLS if not isinstance(cell, str | bool)),
    ],
)
def test_one_vote_changes_the_type_of_no_other(write, suffix, classes, cell):
    votes = [
        [classes[0], classes[1], classes[1]],
        [classes[1]] * 3,
        [classes[1], classes[0], classes[1]],
    ]
    before = reading(write(votes, suffix), 1, classes=classes, kind="votes")
    assert before is not None
    table = np.array(votes, dtype=object)
    table[1, 2] = cell
    path = write(table, suffix)
    assert reading(path, 1, classes=classes, kind="votes") in (before, None)


def test_a_class_that_a_teacher_never_voted_for_changes_nothing(write):
    votes = np.array([["1", "a"], ["1", "1"]], dtype=object)
    for suffix in (".csv", ".parquet"):
        assert opened(read_votes(write(votes, suffix), classes=["a", "1"], kind="votes")) == [
            [1, 1],
            [0, 2],
        ]
    frame = pd.DataFrame({"t0": [1, 1], "t1": ["a", "1"], "t2": [1.0, 1.0]})
    path = write(votes, ".parquet")
    frame.to_parquet(path, index=False)
    assert opened(read_votes(path, classes=["a", "1"], kind="votes")) == [[1, 2], [0, 3]]


def test_the_first_vote_of_a_file_without_header_is_no_header(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("0,1,x4711\n1,1,0\n0,0,0\n")
    with pytest.raises(DataError, match="column 3 cannot be votes") as caught:
        read_votes(path, classes=[0, 1], kind="votes")
    assert "4711" not in str(caught.value)
    assert read_votes(path, classes=[0, 1], kind="votes", header="yes").shape.n_queries == 2
    with pytest.raises(DataError, match=r"no declared class \(row 0"):
        read_votes(path, classes=[0, 1], kind="votes", header="no")
    with pytest.raises(ParameterError, match="header is 'maybe'"):
        read_votes(path, "votes", classes=[0, 1], header="maybe")


def test_names_of_columns_that_may_be_counts_are_not_quoted(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("4711,289\n1,4999\n")
    with pytest.raises(DataError, match="columns 1, 2 by none of them") as caught:
        read_votes(path, kind="counts", classes=["no", "yes"], header="yes")
    assert "4711" not in str(caught.value)


def test_hostile_parquet_is_one_sentence(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    hostile = {
        "list": pa.array([[4711], [0]]),
        "struct": pa.array([{"a": 4711}, {"a": 0}]),
        "map": pa.array([[("a", 4711)], []], type=pa.map_(pa.string(), pa.int64())),
        "date": pa.array([4711, 0], type=pa.date32()),
        "bytes": pa.array([b"4711", b"0"]),
        "decimal": pa.array([decimal.Decimal("4711.5"), None]),
        "words": pa.array(["4711", "x"]).dictionary_encode(),
        "lists of words": pa.array([["4711"], None]),
        "nothing": pa.nulls(2),
    }
    for name, column in hostile.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"t0": pa.array([0, 1]), "t1": column}), path)
        for kind in ("votes", "counts"):
            assert reading(path, 0, classes=[0, 1], kind=kind) is None
    one = pa.array([decimal.Decimal("1.0"), decimal.Decimal("0.0")])
    pq.write_table(pa.table({"t0": one, "t1": pa.array(["1", "0"]).dictionary_encode()}), path)
    assert opened(read_votes(path, classes=[0, 1], kind="votes")) == [[0, 2], [2, 0]]
