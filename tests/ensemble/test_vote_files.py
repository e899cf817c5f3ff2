import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from secretballot.ensemble import VoteCounts, vote_files
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
    return counts.open_at_the_door().tolist()


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
@pytest.mark.parametrize("cells", [2**20, 4])
def test_counts_and_votes_are_read_from_every_format(write, suffix, cells, monkeypatch):
    monkeypatch.setattr(vote_files, "_BLOCK_CELLS", cells)
    assert opened(VoteCounts.read(write(COUNTS.astype(float), suffix))) == COUNTS.tolist()
    assert opened(VoteCounts.read(write(VOTES, suffix), classes=[0, 1])) == COUNTS.tolist()
    counts = VoteCounts.read(write(WORDS, suffix), classes=["NA", "yes"])
    assert opened(counts) == COUNTS.tolist()
    assert (counts.n_teachers, counts.classes) == (5, ["NA", "yes"])


def test_csv_without_a_header_is_read_from_its_first_row(write):
    for table, classes in ((COUNTS, None), (VOTES, [0, 1]), (WORDS, ["NA", "yes"])):
        assert VoteCounts.read(write(table, ".csv", header=False), classes=classes).n_queries == 3


def test_csv_with_a_row_index_is_refused(tmp_path):
    pd.DataFrame(COUNTS).to_csv(tmp_path / "indexed.csv")
    with pytest.raises(DataError, match="without the row index"):
        VoteCounts.read(tmp_path / "indexed.csv")


def test_parquet_with_a_row_index_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame(COUNTS, index=["x", "y", "z"], columns=["a", "b"]).to_parquet(tmp_path / "indexed.parquet")
    with pytest.raises(DataError, match="without the row index"):
        VoteCounts.read(tmp_path / "indexed.parquet")


def test_large_memory_map_is_counted_in_blocks(tmp_path):
    path = tmp_path / "votes.npy"
    votes = np.lib.format.open_memmap(path, mode="w+", dtype=np.int16, shape=(60_000, 250))
    votes[:, ::3] = 1
    votes.flush()
    counts = VoteCounts.read(path, classes=[0, 1])
    assert (counts.n_queries, counts.n_teachers) == (60_000, 250)
    assert opened(counts.take([0, 59_999])) == [[166, 84]] * 2


def test_column_order_in_memory_does_not_matter(write):
    assert opened(VoteCounts.read(write(np.asfortranarray(VOTES), ".npy"), classes=[0, 1])) == COUNTS.tolist()


# The kind is told from public numbers alone: neighbouring files must never be read as different kinds.
@pytest.mark.parametrize(
    ("table", "options", "kind"),
    [
        (VOTES, {"classes": [0, 1]}, "votes"),
        (VOTES, {"classes": [0, 1], "n_teachers": 5}, "votes"),
        (COUNTS, {}, "counts"),
        (COUNTS, {"classes": [0, 1]}, "counts"),
        (COUNTS, {"classes": ["a", "b"], "n_teachers": 5}, "counts"),
        (COUNTS, {"n_teachers": 5}, "counts"),
        (VOTES[:, :2], {"classes": [0, 1], "kind": "votes"}, "votes"),
        (COUNTS[:1], {"kind": "counts"}, "counts"),
    ],
)
def test_kind_follows_the_shape(write, table, options, kind):
    counts = VoteCounts.read(write(table, ".npy"), **options)
    assert counts.n_teachers == (table.shape[1] if kind == "votes" else 5)


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (VOTES[:, :2], {"classes": [0, 1], "n_teachers": 2}),
        (VOTES, {"n_teachers": 5}),
        (np.ones((4, 5), dtype=int), {}),
        (np.array([[1, 0], [0, 1]]), {}),
        (np.array([[1, 0], [0, 1]]), {"classes": [0, 1]}),
        (COUNTS[:1], {}),
    ],
)
def test_ambiguous_kind_is_asked_for(write, table, options):
    with pytest.raises(DataError, match="say which by kind"):
        VoteCounts.read(write(table, ".npy"), **options)


def test_votes_need_declared_classes(write):
    with pytest.raises(ParameterError, match="classes are missing"):
        VoteCounts.read(write(VOTES, ".npy"), kind="votes")
    with pytest.raises(ParameterError, match="kind is 'ballots'"):
        VoteCounts.read(write(VOTES, ".npy"), kind="ballots")


def test_votes_must_have_the_stated_teachers(write):
    with pytest.raises(DataError, match="5 columns; there must be 6"):
        VoteCounts.read(write(VOTES, ".npy"), classes=[0, 1], n_teachers=6)


def test_inconsistent_rows_of_a_csv_are_named(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("a,b,c\n0,1,1\n0,,1\n0,7,1\n0,1\n")
    with pytest.raises(DataError, match=r"a missing vote \(nan\) \(rows 1, 3"):
        VoteCounts.read(path, classes=[0, 1])


def _npy_claiming(shape, dtype="<i8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(80)


def _npz():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.npy", b"")
    return file.getvalue()


def _pickled_objects():
    file = io.BytesIO()
    np.save(file, np.array([[1, None]], dtype=object), allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.npy", b""),
        ("empty.csv", b""),
        ("empty.parquet", b""),
        ("garbage.npy", bytes(range(256))),
        ("garbage.csv", bytes(range(256)) * 4),
        ("garbage.parquet", bytes(range(256))),
        ("huge.npy", _npy_claiming((10**12, 250))),
        ("negative.npy", _npy_claiming((-5, 2))),
        ("overflow.npy", _npy_claiming((2**40, 2**40))),
        ("flat.npy", _npy_claiming((10,))),
        ("columns.npy", _npy_claiming((10, 0))),
        ("rows.npy", _npy_claiming((0, 10))),
        ("records.npy", _npy_claiming((2, 2), [("a", "<i8")])),
        ("complex.npy", _npy_claiming((2, 2), "<c16")),
        ("dates.npy", _npy_claiming((2, 2), "<M8[s]")),
        ("objects.npy", _pickled_objects()),
        ("archive.npy", _npz()),
        ("cut.npy", b"\x93NUMPY\x01\x00"),
        ("long.csv", b"a,b\n1,2\n1,2,3,4\n"),
        ("quotes.csv", b'a,b\n1,"2\n'),
        ("words.csv", b"a,b\n4711,x\n"),
        ("header.csv", b"a,b\n"),
        ("latin.csv", "a,b\n1,\xe9\n".encode("latin-1")),
        ("zeros.csv", bytes(100)),
        ("table.txt", b"1,2\n"),
    ],
)
def test_unreadable_file_is_one_sentence_without_its_content(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        VoteCounts.read(path)
    message = str(caught.value)
    assert message.count("\n") == 0
    assert message.endswith(".")
    assert "4711" not in message
    assert caught.value.__cause__ is None


def test_absent_file_and_folder_are_one_sentence(tmp_path):
    with pytest.raises(DataError, match="cannot be read: No such file"):
        VoteCounts.read(tmp_path / "none.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(DataError, match="not a readable file"):
        VoteCounts.read(tmp_path / "folder.npy")


def test_parquet_without_pyarrow_names_the_extra(write, monkeypatch):
    import sys

    path = write(COUNTS, ".parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"secretballot\[parquet\]"):
        VoteCounts.read(path)


def test_published_vote_files_are_read():
    from secretballot.datasets import data_folder

    try:
        folder = data_folder()
    except DataError as error:
        pytest.skip(str(error))
    digits = VoteCounts.read(folder / "votes" / "mnist_250_teachers.npy")
    assert (digits.n_queries, digits.n_classes, digits.n_teachers) == (9000, 10, 250)
    incomes = VoteCounts.read(folder / "votes" / "adult_250_teachers.npy", classes=["<=50K", ">50K"])
    assert (incomes.n_queries, incomes.n_teachers) == (16281, 250)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_named_columns_of_counts_go_to_their_classes(tmp_path, suffix):
    frame = pd.DataFrame({"yes": [2, 30, 5], "no": [48, 20, 45]})
    path = tmp_path / f"counts{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    counts = VoteCounts.read(path, kind="counts", classes=["no", "yes"])
    assert counts.open_at_the_door().tolist() == [[48, 2], [20, 30], [45, 5]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_named_for_other_classes_are_refused(tmp_path, suffix):
    frame = pd.DataFrame({"ill": [2, 30], "well": [48, 20]})
    path = tmp_path / f"counts{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path, index=False)
    with pytest.raises(DataError, match="name each column by its class"):
        VoteCounts.read(path, kind="counts", classes=["no", "yes"])
