"""The notebooks run from the first cell to the last, are kept without outputs, and stand on
the first page."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from quick_plans import quick_forecasts

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells_of(path: Path) -> list[dict[str, Any]]:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    cells: list[dict[str, Any]] = document["cells"]
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    done = 0
    with quick_forecasts():  # a notebook's plan is read, and not judged
        for number, cell in enumerate(cells_of(path)):
            if cell["cell_type"] == "code":
                place = f"{path.name}, cell {number + 1}"
                exec(compile("".join(cell["source"]), place, "exec"), names)
                done += 1
    assert done >= 4
    # each of them pays from an account, and from nothing that lies elsewhere
    assert names["ledger"].spent().epsilon > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_plain(path: Path) -> None:
    cells = cells_of(path)
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    assert len({cell["id"] for cell in cells}) == len(cells)
    for cell in cells:
        # no outputs that grow old, and no shell or magic that a test cannot run
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
        if cell["cell_type"] == "code":
            assert not re.search(r"^\s*[!%]", "".join(cell["source"]), re.MULTILINE)
