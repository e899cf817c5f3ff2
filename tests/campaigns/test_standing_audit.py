"""The standing audit in small: every line attacks a command that works, and gets some answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns.standing_audit import CASES, RELEASES, words_of, write_tables

from secretballot.cli import app

VERBS = {name: words for name, (_, words) in RELEASES.items()}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.fixture
def folder(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for path in tables.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", VERBS)
def test_every_command_that_is_attacked_ends_well(folder: Path, name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        app([*VERBS[name], "--out", "out"])
    assert ended.value.code == 0
    release = folder / "out" / "release"
    assert (release / "certificate.json").exists()
    if "choose" not in name:  # a sparse vector that answers nothing would be attacked for nothing
        assert (release / "labels.csv").read_text().count("false") > 0


def test_every_line_names_files_that_are_written(folder: Path) -> None:
    for name in CASES:
        words = words_of(name, 30)
        named = [word for word in words if word.endswith(".csv")]
        assert [word for word in named if not (folder / word).is_file()] == []
