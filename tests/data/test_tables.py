"""Reading tables, the columns they must share, labels and units; above all what messages do not
say."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from secretballot.data import reading as tables
from secretballot.data.frames import check_columns, class_indices, frame_of_arrow, unit_ids
from secretballot.data.reading import read_table
from secretballot.exceptions import DataError

SECRET = "s3cr3t-cell"


def write(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_column_by_itself_keeps_blank_lines_as_rows(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a\n1\n\n3\n"))["a"].tolist() == ["1", "", "3"]


def test_blocks_are_joined_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_ROWS_TOGETHER", 3)
    frame = read_table(write(tmp_path, "a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(10))))
    assert frame["a"].tolist() == [str(i) for i in range(10)]


def test_parquet_that_claims_more_rows_than_memory_holds_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_parquet_with_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
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


def test_broken_parquet_and_parquet_without_pyarrow_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, b"PAR1" + SECRET.encode() * 10)
    with pytest.raises(DataError, match="begins like Parquet") as caught:
        read_table(path)
    assert_silent(caught.value)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"secretballot\[parquet\]"):
        read_table(path)


def assert_silent(error: BaseException) -> None:
    """No cell in the message, nor in an exception that rides along."""
    assert SECRET not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_paths_that_are_no_files_are_refused(tmp_path: Path) -> None:
    words = {tmp_path / "nowhere.csv": "does not exist", "/dev/null": "no regular file"}
    for place, word in (words | {"a\0b": "cannot be read"}).items():
        with pytest.raises(DataError, match=word):
            read_table(place)


def test_a_file_larger_than_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
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
def test_names_that_may_be_cells_are_counted_and_not_shown(
    expected: list[str], message: str
) -> None:
    frame = pd.DataFrame({"39": ["1"], SECRET: ["2"]})
    with pytest.raises(DataError, match=message) as caught:
        check_columns(frame, expected, role="private file")
    assert_silent(caught.value)


@pytest.mark.parametrize("cells", [["0", "1"], ["0.0", "1.0"], [0, 1], [0.0, 1.0], [False, True]])
def test_whole_numbers_are_one_class_however_stored(cells: list[object]) -> None:
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
    ],
)
def test_bad_labels_are_counted_and_placed_never_shown(cells: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        class_indices(pd.DataFrame({"y": cells}), "y", ["yes", "no"], role="private file")
    assert_silent(caught.value)


def test_unit_ids_are_texts_and_none_may_be_missing() -> None:
    frame = pd.DataFrame({"person": [7.0, 8.0, 7.0]})
    assert unit_ids(frame, "person", role="private file").tolist() == ["7", "8", "7"]
    frame = pd.DataFrame({"person": [7.0, None, 7.0]})
    with pytest.raises(DataError, match=r"1 rows without a unit in column 'person' \(row 1\)"):
        unit_ids(frame, "person", role="private file")
