"""`check`: what the curator sees before anything is spent."""

from pathlib import Path

import pytest
from patients import invoke, words_of_run, write_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path, 200)


@pytest.mark.parametrize("value", ["1e400", '"\\ud800"'])
def test_classes_that_no_file_can_hold_are_refused_before_anything_is_paid(
    folder: Path, value: str
) -> None:
    words = words_of_run(folder)
    at = words.index("--classes")
    del words[at : at + 2]
    columns = '{"age": "numeric", "dose": "numeric", "ward": ["north", "south"]}'
    schema = folder / "schema.json"
    schema.write_text(f'{{"columns": {columns}, "classes": ["no", {value}]}}')
    before = sorted(folder.iterdir())
    result = invoke(*words, "--schema", str(schema))
    assert result.exit_code == 2, result.output
    assert sorted(folder.iterdir()) == before
