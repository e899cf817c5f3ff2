"""Tables in a file, in several, or at a URL: read alike, or refused without a cell."""

import io
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import secretballot as sb
from secretballot._files import is_url, place_of, shown_place, table_name
from secretballot.data import reading as tables
from secretballot.data.frames import check_columns, class_indices, frame_of_arrow, unit_ids
from secretballot.data.reading import estimated_rows, read_table, source_of, table_blocks
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError

SECRET = "s3cr3t-cell"


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_column_by_itself_keeps_blank_lines_as_rows(tmp_path):
    assert read_table(write(tmp_path, "a\n1\n\n3\n"))["a"].tolist() == ["1", "", "3"]


def test_blocks_are_joined_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS_TOGETHER", 3)
    frame = read_table(write(tmp_path, "a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(10))))
    assert frame["a"].tolist() == [str(i) for i in range(10)]


def test_parquet_that_claims_more_rows_than_memory_holds_is_refused_unread(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "many.parquet"
    pd.DataFrame({"a": np.zeros(1_000_000), "b": np.zeros(1_000_000)}).to_parquet(path)
    assert path.stat().st_size < 20_000  # runs of one value take no room
    with monkeypatch.context() as patch:
        patch.setattr(tables, "memory_bytes", lambda: 10**7)
        patch.setattr(tables, "frame_of_arrow", lambda *_: pytest.fail("memory was taken"))
        with pytest.raises(
            DataError, match="claims more rows than this machine's memory"
        ) as caught:
            read_table(path)
    assert caught.value.__context__ is None
    assert len(read_table(path)) == 1_000_000


def test_parquet_with_a_name_that_is_no_text_is_refused(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    parquet.write_table(arrow.table({"a": [1, 2], "damaged": [3, 4]}), path)
    path.write_bytes(path.read_bytes().replace(b"damaged", b"dam\xffged"))
    with pytest.raises(DataError, match="begins like Parquet") as refused:
        read_table(path)
    # Who reads the file by himself gets a table, which fails where its names are asked for.
    words = "name that is not UTF-8"
    with pytest.raises(DataError, match=words) as caught:
        frame_of_arrow(parquet.read_table(path), "X")
    for error in (refused.value, caught.value):
        assert error.__cause__ is error.__context__ is None


def test_broken_parquet_and_parquet_without_pyarrow_are_refused(tmp_path, monkeypatch):
    path = write(tmp_path, b"PAR1" + SECRET.encode() * 10)
    with pytest.raises(DataError, match="begins like Parquet") as caught:
        read_table(path)
    assert_silent(caught.value)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"secretballot\[parquet\]"):
        read_table(path)


def assert_silent(error):
    """No cell in the message, nor in an exception that rides along."""
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_paths_that_are_no_files_are_refused(tmp_path):
    words = {tmp_path / "nowhere.csv": "does not exist", "/dev/null": "no regular file"}
    for place, word in (words | {"a\0b": "cannot be read"}).items():
        with pytest.raises(DataError, match=word):
            read_table(place)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.csv"
    with path.open("wb") as file:
        file.write(b"a,b\n" * 20_000)
        file.truncate(1 << 42)  # a hole, not a byte on disk
    with pytest.raises(DataError, match="too large for this machine's memory"):
        read_table(path)


@pytest.mark.parametrize(
    ("expected", "message"),
    [(["39", "b"], r"lacks column 'b' .*has 1 that"), (["age", "b"], "first line is a header")],
)
def test_names_that_may_be_cells_are_counted_and_not_shown(expected, message):
    frame = pd.DataFrame({"39": ["1"], SECRET: ["2"]})
    with pytest.raises(DataError, match=message) as caught:
        check_columns(frame, expected, role="private file")
    assert_silent(caught.value)


@pytest.mark.parametrize("cells", [["0", "1"], ["0.0", "1.0"], [0, 1], [0.0, 1.0], [False, True]])
def test_whole_numbers_are_one_class_however_stored(cells):
    classes = ["False", "True"] if cells[0] is False else [0, 1]
    index = class_indices(pd.DataFrame({"y": cells}), "y", classes, role="private file")
    assert index.dtype == np.int64
    assert index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["yes", "nan", "no", ""], r"2 rows without a label in column 'y', .*\(rows 1, 3\)"),
        (["yes", None, "no", "no"], r"1 rows without a label in column 'y', .*\(row 1\)"),
        (["yes", SECRET, "no", SECRET], r"2 rows .* none of the 2 declared classes \(rows 1, 3\)"),
        ([" Yes", SECRET, "NO", "no"], r"\(rows 0, 1, 2; 2 are one but for case or blanks\)"),
    ],
)
def test_bad_labels_are_counted_and_placed_never_shown(cells, message):
    with pytest.raises(DataError, match=message) as caught:
        class_indices(pd.DataFrame({"y": cells}), "y", ["yes", "no"], role="private file")
    assert_silent(caught.value)


def test_unit_ids_are_texts_and_none_may_be_missing():
    frame = pd.DataFrame({"person": [7.0, 8.0, 7.0]})
    assert unit_ids(frame, "person", role="private file").tolist() == ["7", "8", "7"]
    frame = pd.DataFrame({"person": [7.0, None, 7.0]})
    with pytest.raises(DataError, match=r"1 rows without a unit in column 'person' \(row 1\)"):
        unit_ids(frame, "person", role="private file")


pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")

TOKEN = "s3cr3t"
N = 60


def rows(count=N):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, count),
            "dose": rng.normal(5, 2, count),
            "ward": rng.choice(["north", "south", "03"], count),
            "seen": pd.to_datetime("2020-02-27") + pd.to_timedelta(np.arange(count), unit="D"),
        }
    )


def hive_folder(place, table):
    """Write a table in the folders that Hive would make of the column "ward"."""
    for name, part in table.groupby("ward", sort=False):
        folder = place / f"ward={name}"
        folder.mkdir(parents=True)
        part.drop(columns="ward").to_parquet(folder / "part.parquet", index=False)
    return place


@pytest.fixture
def remote():
    """Give a folder of a file system that is not this machine's."""
    system = fsspec.filesystem("memory")
    yield "memory://tables"
    if system.exists("/tables"):
        system.rm("/tables", recursive=True)


def upload(address, content):
    with fsspec.open(address, "wb") as file:
        file.write(content)


def by_age(table):
    schema = Schema.from_json(
        {"columns": {"age": "numeric", "dose": "numeric", "ward": ["north", "south", "03"]}},
        public=rows(),
    )
    order = np.argsort(table["dose"].astype(float).to_numpy(), kind="stable")
    return schema.encode(table.iloc[order]).tobytes()


def test_a_folder_of_hive_says_what_one_file_says(tmp_path):
    table = rows()
    folder = hive_folder(tmp_path / "all", table)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden.parquet").write_bytes(b"")
    read = read_table(folder)
    assert sorted(read.columns) == sorted(table.columns)
    assert by_age(read) == by_age(table)
    # no type is guessed from the names of folders
    assert set(read["ward"]) == {"north", "south", "03"}
    assert sum(map(len, table_blocks(folder, rows=7))) == N
    assert max(map(len, table_blocks(folder, rows=7))) <= 7
    assert estimated_rows(folder) == N
    assert table_name(folder) == "all"


def test_a_null_in_one_file_changes_no_cell_of_another(tmp_path):
    large = 2**53 + 1
    for name, cells in (("a", [large, 1]), ("b", [1, None])):
        frame = pd.DataFrame({"id": pd.array(cells, dtype="Int64"), "x": [1, 2]})
        frame.to_parquet(tmp_path / f"{name}.parquet")
    assert read_table(tmp_path)["id"].tolist() == [str(large), "1", "1", ""]


def test_files_that_disagree_on_columns_are_refused(tmp_path):
    rows().to_parquet(tmp_path / "a.parquet")
    rows().rename(columns={"dose": "dosis"}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet, file 2\)' has other columns than"):
        list(table_blocks(tmp_path, role="private file"))
    rows().to_parquet(tmp_path / "b.parquet")
    (tmp_path / "ward=1").mkdir()
    rows().to_parquet(tmp_path / "ward=1" / "c.parquet")
    with pytest.raises(DataError, match="subfolders of different columns"):
        source_of(tmp_path)


def test_folders_that_are_no_table_are_refused(tmp_path):
    with pytest.raises(DataError, match="folder without Parquet files"):
        read_table(tmp_path)
    rows().to_parquet(tmp_path / "a.parquet")
    (tmp_path / "notes.txt").write_text(TOKEN)
    with pytest.raises(DataError, match=r"other files than Parquet, such as 'notes.txt'"):
        read_table(tmp_path)
    (tmp_path / "notes.txt").unlink()
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + TOKEN.encode())
    with pytest.raises(DataError, match="cannot be read as such") as refused:
        read_table(tmp_path)
    assert TOKEN not in str(refused.value)
    (tmp_path / "b.parquet").unlink()
    # left out in silence, they would be missing in the table
    os.symlink("nowhere", tmp_path / "c.parquet")
    os.mkfifo(tmp_path / "d.parquet")  # which would wait for ever
    (tmp_path / "month=1").symlink_to(tmp_path)
    for address in (tmp_path, f"file://{tmp_path}"):
        with pytest.raises(DataError, match="a folder with 3 links to folders, links that lead"):
            read_table(address)
    with pytest.raises(DataError, match="no regular file"):
        read_table(f"file://{tmp_path}/d.parquet")
    for name in ("c.parquet", "d.parquet", "month=1"):
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / "_pipe")
    assert len(read_table(tmp_path)) == N


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie"])
def test_a_table_whose_files_hold_deleted_rows_is_refused(tmp_path, remote, log):
    rows().to_parquet(tmp_path / "a.parquet")
    (tmp_path / log).mkdir()
    (tmp_path / log / "0.json").write_text("{}")
    upload(f"{remote}/a.parquet", (tmp_path / "a.parquet").read_bytes())
    upload(f"{remote}/{log}/0.json", b"{}")
    for address in (tmp_path, remote):
        with pytest.raises(DataError, match="files hold deleted and older rows too"):
            source_of(address)


def test_what_folders_say_stands_in_no_message(tmp_path):
    folder = tmp_path / "all"
    for name in ("a", TOKEN):
        (folder / f"ward={name}").mkdir(parents=True)
        rows().drop(columns="ward").to_parquet(folder / f"ward={name}" / "part.parquet")
    damaged = folder / f"ward={TOKEN}" / "part.parquet"
    damaged.write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"'.*all \(part.parquet, file 2\)'") as one:
        read_table(folder)
    damaged.rename(damaged.with_suffix(".txt"))
    with pytest.raises(DataError, match=r"than Parquet, such as 'part.txt'") as two:
        read_table(folder)
    assert TOKEN not in str(one.value) + str(two.value)


def test_files_of_two_tables_are_known_by_any_name(tmp_path, remote):
    folder = tmp_path / "all"
    folder.mkdir()
    for number in range(2):
        rows(N + number).to_parquet(folder / f"{number}.parquet")
    one, other = folder / "1.parquet", tmp_path / "other.parquet"
    rows(N + 5).to_parquet(other)
    upload(f"{remote}/1.parquet", one.read_bytes())
    os.link(one, tmp_path / "link.parquet")
    for place in (one, f"file://{one}", tmp_path / "link.parquet", f"{remote}/1.parquet", remote):
        assert source_of(folder).shares_file(source_of(place))
        assert source_of(place).shares_file(source_of(folder))
    assert not source_of(folder).shares_file(source_of(other))


def test_what_a_file_system_raises_stays_unsaid(tmp_path, monkeypatch):
    rows().to_csv(tmp_path / "a.csv", index=False)
    rows().to_parquet(tmp_path / "a.parquet")

    class OddError(Exception):
        """Of a library for the network."""

    class Breaks(io.FileIO):
        def read(self, *args):
            raise OddError(f"https://host/?token={TOKEN}")

        readinto = readall = read

    monkeypatch.setattr("secretballot.data.reading._TableFile.opened", lambda one: Breaks(one.path))
    for name in ("a.csv", "a.parquet"):
        for look in (lambda f: list(table_blocks(f)), lambda f: source_of(f).digest()):
            with pytest.raises(DataError, match=r"cannot be read \(OddError\)") as refused:
                look(tmp_path / name)
            assert refused.value.__context__ is None


def test_what_changes_or_comes_while_a_table_is_read_is_noticed(tmp_path):
    path, folder = tmp_path / "a.csv", tmp_path / "all"
    folder.mkdir()
    rows().to_csv(path, index=False)
    rows().to_parquet(folder / "a.parquet")
    every = [table_blocks(place, rows=10) for place in (path, folder)]
    for blocks in every:
        next(blocks)
    with path.open("a") as file:
        file.write("30,1.0,north,2020-01-01\n")
    rows().to_parquet(folder / "b.parquet")
    for blocks in every:
        with pytest.raises(DataError, match="changed while it was read"):
            list(blocks)


@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_a_table_at_a_url_says_what_the_file_says(tmp_path, remote, kind):
    rows().to_csv(tmp_path / "a.csv", index=False)
    rows().to_parquet(tmp_path / "a.parquet")
    place = f"{remote}/a.{kind}"
    if kind == "folder":
        place = f"{remote}/folder"
        upload(f"{place}/one/a.parquet", (tmp_path / "a.parquet").read_bytes())
    else:
        upload(place, (tmp_path / f"a.{kind}").read_bytes())
    assert by_age(read_table(place)) == by_age(rows())
    assert is_url(place)
    assert place_of(place) == place
    assert table_name(place) == ("folder" if kind == "folder" else "a")
    assert 0.8 * N < estimated_rows(place) < 1.3 * N
    source = source_of(place)
    assert len(source.digest()) == 64
    assert source.single == (kind != "folder")


def test_what_is_at_no_url_is_told_in_one_sentence_without_credentials(remote):
    with pytest.raises(DataError, match="does not exist; check the address"):
        read_table(f"{remote}/nowhere.csv")
    with pytest.raises(DataError, match="is no path; give the path or the URL"):
        source_of([1])
    with pytest.raises(DataError, match="no installed file system knows"):
        read_table("nosuch://bucket/a.csv")
    address = f"s3://key:{TOKEN}@127.0.0.1:1/bucket/a.csv?token={TOKEN}"
    assert shown_place(address) == "s3://127.0.0.1:1/bucket/a.csv"
    with pytest.raises(DataError) as refused:
        read_table(f"nosuch://user:{TOKEN}@host/a.csv?token={TOKEN}")
    assert TOKEN not in str(refused.value)
    for address in (
        f"s3://key:se/{TOKEN}@bucket/a.csv",
        f"s3://key:se?{TOKEN}@bucket/a.csv",
        f"s3://key:se#/{TOKEN}@bucket/a.csv",
        f"simplecache::s3://key:{TOKEN}@bucket/a.csv",
        f"https://bucket/a.csv?token={TOKEN}",
    ):
        assert is_url(address)
        assert shown_place(address).endswith("://bucket/a.csv")
        assert table_name(address) == "a"
        with pytest.raises(DataError) as refused:
            read_table(address.replace("s3:", "nosuch:").replace("https:", "nosuch:"))
        assert TOKEN not in str(refused.value)
    assert table_name("s3://bucket") == "bucket"
    assert shown_place("hdfs://node:8020/a.csv") == "hdfs://node:8020/a.csv"
    assert not is_url(Path("a.csv"))
    assert place_of("a.csv") == Path("a.csv")


def test_the_digest_follows_the_files(tmp_path, remote):
    rows().to_parquet(tmp_path / "a.parquet")
    one = source_of(tmp_path).digest()
    # whatever the folder is called
    assert source_of(tmp_path / "." / ".." / tmp_path.name).digest() == one
    assert source_of(f"file://{tmp_path}").digest() == one
    rows(N + 1).to_parquet(tmp_path / "b.parquet")
    assert source_of(tmp_path).digest() != one
    upload(f"{remote}/a.csv", b"a\n1\n")
    first = source_of(f"{remote}/a.csv").digest()
    upload(f"{remote}/a.csv", b"a\n12\n")
    assert source_of(f"{remote}/a.csv").digest() != first


def test_an_array_of_votes_elsewhere_is_never_looked_for_here(remote, tmp_path):
    place = tmp_path / "votes.npy"
    np.save(place, np.array([[2, 3], [4, 1]]))
    buffer = io.BytesIO()
    np.save(buffer, np.array([[0, 5]]))
    upload(f"memory://{place}", buffer.getvalue())
    with pytest.raises(DataError, match="on another machine"):
        sb.read_votes(f"memory://{place}", kind="counts", classes=["no", "yes"], n_teachers=5)
