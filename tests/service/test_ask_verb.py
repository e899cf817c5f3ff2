"""`secretballot serve ask`: a file of points to a table of answers."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from served_places import QUERIES, Place
from typer.testing import CliRunner

from secretballot.cli import app


def test_rows_of_a_file_are_asked_and_the_answers_written(
    place: Place, tmp_path: Path, line_to: Any
) -> None:
    points, key = tmp_path / "points.csv", tmp_path / "key"
    rows = "".join(f"{1 + n},{n}\n" for n in range(QUERIES + 2))
    points.write_text(f"a,b\n{rows}")
    key.write_text(place.token() + "\n")
    line_to(place)
    words = ["serve", "ask", "http://service", str(points), "--key-file", str(key)]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "answers.csv")])
    assert done.exit_code == 3, done.stderr  # answered in part
    assert f"{QUERIES} of {QUERIES + 2} points" in done.stderr
    again = CliRunner().invoke(app, [*words, "--json"])
    none = CliRunner().invoke(app, words[:4], env={"SECRETBALLOT_KEY": ""})
    table = pd.read_csv(tmp_path / "answers.csv")
    assert list(table) == ["row", "label", "abstained", "given", "noisy_count_yes"]
    assert table["given"].sum() == QUERIES
    assert set(table["label"].dropna()) <= {"no", "yes"}
    said = json.loads(again.stdout)
    assert (said["given"], said["left"]) == (QUERIES, 0)
    assert said["answers"]["label"][:QUERIES] == table["label"][:QUERIES].tolist()
    assert none.exit_code == 2
    assert "There is no key" in none.stderr
