"""One record stands on one line, and a stray carriage return does not make two of it."""

from pathlib import Path

import pytest

import secretballot as sb
from secretballot.data.reading import lines_of, read_table


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_that_end_alike_are_read(tmp_path: Path, end: str) -> None:
    (tmp_path / "table.csv").write_bytes(end.join(["a,b", "1,2", "3,4", ""]).encode())
    assert read_table(tmp_path / "table.csv").shape == (2, 2)
    (tmp_path / "unended.csv").write_bytes(end.join(["a,b", "1,2", "3,4"]).encode())
    assert read_table(tmp_path / "unended.csv").shape == (2, 2)


def test_ends_with_and_without_a_carriage_return_may_be_mixed() -> None:
    assert len([*lines_of(["a\r\n", "b\n", "c"], "The file")]) == 3


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\nx,y\rz,w\n", b"a,b\r\n1,2\r3,4\r\n", b"a,b\r1,2\r3,4\n5,6\r"]
)
def test_a_stray_carriage_return_does_not_make_two_records_of_one(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(sb.DataError, match="does not end as its first line"):
        read_table(tmp_path / "table.csv")


def test_a_stray_carriage_return_does_not_make_two_queries_of_one(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_bytes(b"no,yes\nyes,no\ryes,yes\n")
    with pytest.raises(sb.DataError, match="line 2"):
        sb.read_votes(tmp_path / "votes.csv", kind="votes", classes=["no", "yes"])
