"""`secretballot demo`: the whole way on data that comes with the program."""

import json
from pathlib import Path

from typer.testing import CliRunner

from secretballot.cli import app


def test_the_demo_learns_twice_and_says_where_to_look(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    result = CliRunner().invoke(app, ["demo", "--out", str(out), "--json"])
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert set(document) == {"clinic", "breast-cancer"}
    for name, part in document.items():
        assert part["accuracy"] > 0.75
        assert Path(part["report"]).is_file()
        assert CliRunner().invoke(app, ["verify", str(out / name)]).exit_code == 0
    result = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 2
    assert "give a new folder with --out" in result.stderr
