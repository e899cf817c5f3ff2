"""`secretballot ask`: a file of points to a table of answers."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
from served_places import QUERIES, Place
from typer.testing import CliRunner

from secretballot.cli import app
from secretballot.service.asked_files import points_of_file


def test_rows_of_a_file_are_asked_and_the_answers_written(
    place: Place, tmp_path: Path, line_to: Any
) -> None:
    points, key = tmp_path / "points.csv", tmp_path / "key"
    rows = "".join(f"{1 + n},{n}\n" for n in range(QUERIES + 2))
    points.write_text(f"a,b\n{rows}")
    key.write_text(place.token() + "\n")
    line_to(place)
    words = ["ask", "http://service", str(points), "--key-file", str(key)]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "answers.csv")])
    assert done.exit_code == 0, done.stderr
    assert f"{QUERIES} of {QUERIES + 2} points" in done.stderr
    again = CliRunner().invoke(app, [*words, "--json"])
    none = CliRunner().invoke(app, words[:3], env={"SECRETBALLOT_KEY": ""})
    table = pd.read_csv(tmp_path / "answers.csv")
    assert list(table) == ["row", "label", "abstained", "given", "noisy_count_yes"]
    assert table["given"].sum() == QUERIES
    assert set(table["label"].dropna()) <= {"no", "yes"}
    said = json.loads(again.stdout)
    assert (said["given"], said["left"]) == (QUERIES, 0)
    assert said["answers"]["label"][:QUERIES] == table["label"][:QUERIES].tolist()
    assert none.exit_code == 2
    assert "There is no key" in none.stderr


class _Described:
    request = "session"

    def __init__(self, columns: object) -> None:
        self.columns = columns


FRAME = {"kind": "frame", "columns": [["age", "float64", None], ["site", "str", None]]}
ARRAY = {"kind": "array", "columns": 2, "dtype": "<f8"}


def test_a_file_is_read_as_the_teachers_take_it(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text("id,site,age\n7,north,1.5\n8,,\n")
    frame = points_of_file(file, _Described(FRAME))  # type: ignore[arg-type]
    assert list(frame) == ["age", "site"]
    assert frame["age"].tolist()[0] == 1.5
    assert frame["site"].tolist()[0] == "north"
    assert frame["site"].isna().tolist() == [False, True]
    assert frame["age"].isna().tolist() == [False, True]
    file.write_text("a,b\n1,2\n3,4\n")
    assert points_of_file(file, _Described(ARRAY)).tolist() == [[1, 2], [3, 4]]  # type: ignore[arg-type]
